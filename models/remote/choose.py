"""Probabilities of given answers from the top log-probabilities that a server lists for the next token.

Limits, all named where they bite: a server lists 20 tokens (llama-server more), so an option outside the list gets the
most that it can have; in a chat only the first token of an option is seen; Ollama before 0.12.11 and LM Studio list
none. The exact form is the one in this process (`models/llama/model.py`). Not for: sending (`models/remote/openai.py`).
"""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from errors import ModelError

LISTED: Final = 20
"""Tokens listed for one position: what OpenAI's API and vLLM allow at most."""
MOST_REQUESTS: Final = 64
"""Requests for one choice after a plain text: one for each place where options of several tokens part or go on."""

Next = Callable[[str], Awaitable[Mapping[str, float]]]
"""Asks for the log-probabilities of the tokens that may follow the prompt and a text after it."""


async def weigh_first(following: Next, options: Sequence[str]) -> NDArray[np.float64]:
    """Return the options' probabilities [n] by their first token alone, summing to 1: all that a chat shows.

    Raises:
        ModelError: An option is empty or given twice, none is among the tokens listed, or two begin with the same.
    """
    check_options(options)
    listed = await following("")
    first = {option: _token(option, listed) for option in options}
    taken = [token for token in first.values() if token]
    if len(set(taken)) < len(taken):
        raise ModelError(
            f"The options {list(options)!r} begin with the same token, and a chat server shows the first one only.",
            hint="Use options that differ at their beginning, or a GGUF model (llama:FILE.gguf).",
        )
    return _shares([_weight(token, listed) for token in first.values()], options, listed)


async def weigh_whole(following: Next, options: Sequence[str]) -> NDArray[np.float64]:
    """Return the options' probabilities [n] over all their tokens, summing to 1, by a walk of at most 64 requests.

    An option that is the beginning of another is not told from it: it keeps what its last token had.

    Raises:
        ModelError: An option is empty or given twice, none is among the tokens listed, or they need more requests.
    """
    check_options(options)
    weights = dict.fromkeys(options, 0.0)
    waiting: list[tuple[str, float, Sequence[str]]] = [("", 0.0, options)]
    beginning: Mapping[str, float] = {}
    asked = 0
    while waiting:
        done, score, going = waiting.pop(0)
        asked += 1
        if asked > MOST_REQUESTS:
            raise ModelError(
                f"Choosing among {len(options)} options takes more than {MOST_REQUESTS} requests.",
                hint="Use fewer or shorter options, or a GGUF model (llama:FILE.gguf).",
            )
        listed = await following(done)
        beginning = beginning or listed
        parts: dict[str, list[str]] = {}
        for option in going:
            rest = option[len(done) :]
            token = _token(rest, listed)
            if token and token != rest:
                parts.setdefault(token, []).append(option)
            else:
                weights[option] = math.exp(score) * _weight(token, listed)
        waiting += [(done + token, score + listed[token], group) for token, group in parts.items()]
    return _shares([weights[option] for option in options], options, beginning)


def check_options(options: Sequence[str]) -> None:
    """Refuse options that cannot be weighed.

    Raises:
        ModelError: None given, an empty or a double one.
    """
    if not options or not all(options) or len(set(options)) < len(options):
        raise ModelError(f"The options {list(options)!r} cannot be weighed.", hint="Give different, non-empty texts.")


def listed_tokens(choice: Mapping[str, object]) -> dict[str, float]:
    """Return token to log-probability for the first place of an answer, in the form of chats or of completions.

    Raises:
        ModelError: The server lists none.
    """
    told = choice.get("logprobs")
    told = told if isinstance(told, Mapping) else {}
    content, older = told.get("content"), told.get("top_logprobs")
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


def _token(text: str, listed: Mapping[str, float]) -> str:
    """Return the longest listed token that `text` begins with, "" when none is."""
    return max((token for token in listed if text.startswith(token)), key=len, default="")


def _weight(token: str, listed: Mapping[str, float]) -> float:
    """Return a token's probability; of one that is not listed, the most that it can have."""
    if token:
        return math.exp(listed[token])
    rest = max(1.0 - sum(map(math.exp, listed.values())), 0.0)
    return max(min(rest, math.exp(min(listed.values()))), 1e-12)


def _shares(weights: Sequence[float], options: Sequence[str], listed: Mapping[str, float]) -> NDArray[np.float64]:
    if not any(_token(option, listed) for option in options):
        likely = sorted(listed, key=lambda token: listed[token], reverse=True)[:5]
        raise ModelError(
            f"None of {list(options)!r} is among the {len(listed)} tokens listed; the likeliest are {likely!r}.",
            hint="Ask so that the answer begins with one of the options.",
        )
    found = np.array(weights, dtype=np.float64)
    shares: NDArray[np.float64] = found / max(float(found.sum()), 1e-300)
    return shares
