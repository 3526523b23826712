"""Chat requests and replies of each kind of server.

A schema goes in Ollama's `format`, in `response_format` of OpenAI's API, or in words, for
a server that refuses both. Thinking is switched off where the server has a switch:
Ollama's `think`, the template's argument `enable_thinking` at llama-server, vLLM and
SGLang. Where it has none, thoughts are recognised in the reply and taken out. Pure;
sends nothing. Not for: connections and facts (`models/remote/server.py`)."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from errors import ModelError
from models.options import THINKING, ModelOptions, sampling
from models.text import without_thoughts

Form = Literal["native", "openai", "words"]
"""How a request is made: Ollama's own call, OpenAI's, or OpenAI's with a schema in
words."""
_SWITCHED: Final = frozenset({"llama-server", "vLLM", "SGLang"})
"""Servers that hand arguments to the chat template: Qwen's calls the switch
`enable_thinking`, DeepSeek's `thinking`; a template that knows neither is not changed
by them."""
LISTED_TOKENS: Final = 20
"""Tokens listed for one position: what OpenAI's API, vLLM and Ollama allow at most."""
LISTED_LONG: Final = 10 * LISTED_TOKENS
"""Tokens listed for one position by llama-server, which allows any number."""
_FENCED: Final = re.compile(r"```(?:json)?\s*\n(?P<inner>.*?)\n?\s*```", re.DOTALL)


class ChatRequest(NamedTuple):
    """Messages and parameters of one request."""

    said: Sequence[Mapping[str, str]]
    max_tokens: int
    schema: dict[str, object] | None = None
    lists: bool = False
    """Whether log-probabilities of the first token are requested."""


class Reply(NamedTuple):
    """A server's reply."""

    text: str
    """The answer without thoughts."""
    thoughts: str
    cut: bool
    """Whether it ended because its tokens ran out."""
    prompt_tokens: int
    """Tokens of the prompt that the server read; 0 where it gives no number."""
    written: int
    """Tokens that the model wrote; 0 where the server gives no number."""


def forms_of(server: str, *, schema: bool) -> tuple[Form, ...]:
    """Return the forms of a request that a kind of server may know, the best first."""
    native: tuple[Form, ...] = ("native",) if server == "Ollama" else ()
    words: tuple[Form, ...] = ("words",) if schema else ()
    return (*native, "openai", *words)


def request_of(
    server: str, form: Form, asked: ChatRequest, options: ModelOptions
) -> dict[str, object]:
    """Return the body of a request in `form`, without the model's name."""
    if form == "native":
        return _native(asked, options)
    messages = list(asked.said)
    body: dict[str, object] = {"max_tokens": asked.max_tokens, **sampling(options)}
    if server in _SWITCHED and not options.get(THINKING):
        body["chat_template_kwargs"] = {"enable_thinking": False, "thinking": False}
    if asked.lists:
        many = LISTED_LONG if server == "llama-server" else LISTED_TOKENS
        body |= {"logprobs": True, "top_logprobs": many}
    if form == "words":
        messages.append({"role": "user", "content": in_words(asked)})
    elif asked.schema is not None:
        named = {"name": "answer", "schema": asked.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return {"messages": messages, **body}


def in_words(asked: ChatRequest) -> str:
    """Return a sentence that asks for an answer under the schema."""
    form = json.dumps(asked.schema, ensure_ascii=False)
    return f"Answer with one JSON value and nothing else. It must be valid under this schema: {form}"


def _native(asked: ChatRequest, options: ModelOptions) -> dict[str, object]:
    run: dict[str, object] = {"num_predict": asked.max_tokens, **sampling(options)}
    run |= {"num_ctx": options["n_ctx"]} if "n_ctx" in options else {}
    body: dict[str, object] = {
        "messages": list(asked.said),
        "stream": False,
        "think": bool(options.get(THINKING)),
        "options": run,
    }
    body |= {"format": asked.schema} if asked.schema is not None else {}
    return body | (
        {"logprobs": True, "top_logprobs": LISTED_TOKENS} if asked.lists else {}
    )


def read_reply(answer: Any) -> Reply:
    """Return what a server answered, in OpenAI's form or Ollama's own.

    Raises one of `KeyError`, `IndexError`, `TypeError`, `ValueError` and
    `AttributeError` where it is in neither."""
    if "choices" in answer:
        choice = answer["choices"][0]
        message, ended = choice["message"], choice.get("finish_reason")
        usage = answer.get("usage") or {}
        counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
    else:
        message, ended = answer["message"], answer.get("done_reason")
        counts = answer.get("prompt_eval_count"), answer.get("eval_count")
    said = map(message.get, ("reasoning_content", "reasoning", "thinking"))
    reasoning = next(filter(None, said), "")
    content = message["content"]
    cut = ended == "length"
    if content is None and (reasoning or cut):
        content = ""
    if not isinstance(content, str):
        raise TypeError("no text")
    text, thoughts = without_thoughts(content)
    read, written = (count if isinstance(count, int) else 0 for count in counts)
    return Reply(text, thoughts or str(reasoning), cut, read, written)


def listed_tokens(answer: Any) -> dict[str, float]:
    """Return token to log-probability for the first position of an answer, in the form
    of chats, of completions, or of Ollama.

    Empty tokens and values that are not numbers are left out. Raises `ModelError` where
    none is left.
    """
    found = {
        str(token): min(float(value), 0.0)
        for token, value in _first_logprobs(answer)
        if token and not math.isnan(value)
    }
    if not found:
        raise ModelError(
            (
                "The server returns no log-probabilities (logprobs), so "
                "options cannot be compared."
            ),
            hint="Use llama-server, vLLM, Ollama 0.12.11 or later, or a GGUF model (llama:FILE.gguf).",
        )
    return found


def _first_logprobs(answer: Any) -> list[tuple[Any, Any]]:
    """Return each token that the first position could have, with its log-probability as
    the server sent both."""
    from_choice = answer["choices"][0] if "choices" in answer else answer
    logprobs = from_choice.get("logprobs") or {}
    if isinstance(logprobs, list):
        logprobs = {"content": logprobs}
    if content := logprobs.get("content"):
        listed = content[0].get("top_logprobs") or ()
        return [(one["token"], one["logprob"]) for one in listed]
    # The older form, of completions
    older = logprobs.get("top_logprobs")
    return list(older[0].items()) if older else []


def json_in(text: str) -> str:
    """Return the JSON within an answer: inside its Markdown fence, or from the first
    bracket to the last, as chat models write it where nothing holds them; else
    `text`."""
    fenced = _FENCED.search(text)
    inner = fenced["inner"] if fenced else text
    found = re.search(r"[{\[].*[}\]]", inner, re.DOTALL)
    return found[0] if found else inner
