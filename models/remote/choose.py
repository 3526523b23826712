"""Probabilities of given answers from the top log-probabilities that a server lists for the next token.

A near form: a chat shows the first token of an option only; a server lists 20 tokens (llama-server more), so an option
outside the list gets the most that it can have; Ollama before 0.12.11 and LM Studio list none. The exact form is the
one in this process (`models/llama/model.py`). Not for: sending (`models/remote/openai.py`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from errors import ModelError

LISTED: Final = 20
"""Tokens listed for one position: what OpenAI's API and vLLM allow at most."""


def check_options(options: Sequence[str]) -> None:
    """Refuse options that cannot be weighed."""
    if not options or not all(options) or len(set(options)) < len(options):
        raise ModelError(f"The options {list(options)!r} cannot be weighed.", hint="Give different, non-empty texts.")


def weigh(options: Sequence[str], listed: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the options' probabilities [n] by their first token, summing to 1, from the `listed` log-probabilities.

    Raises:
        ModelError: None of the options is among the tokens listed, or two begin with the same.
    """
    # The longest listed token that each option begins with, "" where none is.
    tokens = [max((t for t in listed if option.startswith(t)), key=len, default="") for option in options]
    known = [token for token in tokens if token]
    if len(set(known)) < len(known):
        raise ModelError(
            f"The options {list(options)!r} begin with the same token, and a chat server shows the first one only.",
            hint="Use options that differ at their beginning, or a GGUF model (llama:FILE.gguf).",
        )
    if not known:
        likely = sorted(listed, key=lambda token: listed[token], reverse=True)[:5]
        raise ModelError(
            f"None of {list(options)!r} is among the {len(listed)} tokens listed; the likeliest are {likely!r}.",
            hint="Ask so that the answer begins with one of the options.",
        )
    left = 1.0 - sum(map(math.exp, listed.values()))
    most = max(min(left, math.exp(min(listed.values()))), 1e-12)
    found = np.array([math.exp(listed[token]) if token else most for token in tokens])
    shares: NDArray[np.float64] = found / max(float(found.sum()), 1e-300)
    return shares


def listed_tokens(choice: Mapping[str, object]) -> dict[str, float]:
    """Return token to log-probability for the first position of an answer, in the form of chats or of completions."""
    found_in = choice.get("logprobs")
    found_in = found_in if isinstance(found_in, Mapping) else {}
    content, older = found_in.get("content"), found_in.get("top_logprobs")
    found: dict[str, float] = {}
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        for item in content[0].get("top_logprobs") or ():
            if isinstance(item, Mapping) and isinstance(item.get("logprob"), int | float):
                found[str(item.get("token", ""))] = float(item["logprob"])
    elif isinstance(older, list) and older and isinstance(older[0], Mapping):
        found = {str(token): float(value) for token, value in older[0].items() if isinstance(value, int | float)}
    found = {token: min(value, 0.0) for token, value in found.items() if token and not math.isnan(value)}
    if not found:
        raise ModelError(
            "The server lists no log-probabilities, so it cannot weigh options.",
            hint="Use llama-server, vLLM or Ollama 0.12.11, or a GGUF model (llama:FILE.gguf).",
        )
    return found
