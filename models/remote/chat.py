"""Chat requests and replies of each kind of server.

A schema goes in Ollama's `format`, in `response_format` of OpenAI's API, or in words, for
a server that refuses both. Thinking is switched off where the server has a switch:
Ollama's `think`, the template's argument `enable_thinking` at llama-server, vLLM and
SGLang. Where it has none, thoughts are recognised in the reply and taken out. Pure;
sends nothing. Not for: connections and facts (`models/remote/server.py`)."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from models.options import THINKING, ModelOptions, sampling
from models.text import without_thoughts

_SWITCHED: Final = frozenset({"llama-server", "vLLM", "SGLang"})
"""Servers that hand arguments to the chat template: Qwen's calls the switch
`enable_thinking`, DeepSeek's `thinking`; a template that knows neither is not changed
by them."""


class ChatRequest(NamedTuple):
    """Messages and parameters of one request."""

    messages: Sequence[Mapping[str, str]]
    max_tokens: int
    schema: dict[str, object] | None = None


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


def openai_body(
    server: str, request: ChatRequest, options: ModelOptions, *, in_words: bool
) -> dict[str, object]:
    """Return the body of a request in OpenAI's form, without the model's name; the
    schema in words, or as `response_format`."""
    messages = list(request.messages)
    body: dict[str, object] = {"max_tokens": request.max_tokens, **sampling(options)}
    if server in _SWITCHED and not options.get(THINKING):
        body["chat_template_kwargs"] = {"enable_thinking": False, "thinking": False}
    if request.schema is not None and in_words:
        messages.append({"role": "user", "content": schema_in_words(request.schema)})
    elif request.schema is not None:
        schema = {"name": "answer", "schema": request.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return {"messages": messages, **body}


def ollama_body(
    request: ChatRequest, options: ModelOptions, *, context_tokens: int
) -> dict[str, object]:
    """Return the body of a request in Ollama's own form, without the model's name: it
    says the context, beyond which Ollama cuts a prompt without saying so."""
    body: dict[str, object] = {
        "messages": list(request.messages),
        "stream": False,
        "think": bool(options.get(THINKING)),
        "options": {
            "num_predict": request.max_tokens,
            "num_ctx": context_tokens,
            **sampling(options),
        },
    }
    if request.schema is not None:
        body["format"] = request.schema
    return body


def schema_in_words(schema: dict[str, object]) -> str:
    """Return a sentence that asks for an answer under the schema."""
    text = json.dumps(schema, ensure_ascii=False)
    return f"Answer with one JSON value and nothing else. It must be valid under this schema: {text}"


def read_reply(answer: Any) -> Reply:
    """Return what a server answered, in OpenAI's form or Ollama's own.

    Raises one of `KeyError`, `IndexError`, `TypeError`, `ValueError` and
    `AttributeError` where it is in neither."""
    choice = answer["choices"][0] if "choices" in answer else answer
    message = choice["message"]
    usage = answer.get("usage") or {}
    counts = (
        usage.get("prompt_tokens") or answer.get("prompt_eval_count"),
        usage.get("completion_tokens") or answer.get("eval_count"),
    )
    fields = map(message.get, ("reasoning_content", "reasoning", "thinking"))
    reasoning = next(filter(None, fields), "")
    cut = "length" in (choice.get("finish_reason"), choice.get("done_reason"))
    content = message["content"]
    if content is None and (reasoning or cut):
        content = ""
    if not isinstance(content, str):
        raise TypeError("no text")
    text, thoughts = without_thoughts(content)
    read, written = (count if isinstance(count, int) else 0 for count in counts)
    return Reply(text, thoughts or str(reasoning), cut, read, written)


def json_in(text: str) -> str:
    """Return the JSON within an answer: from the first bracket to the last, as chat
    models write it where nothing holds them; else `text`."""
    bracketed = re.search(r"[{\[].*[}\]]", text, re.DOTALL)
    return bracketed[0] if bracketed else text
