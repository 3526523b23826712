"""What runs in the process of a GGUF model: llama.cpp behind the requests `embed` and `generate`.

The one file that imports `llama_cpp`; started by `models/worker.py`, never imported by the server. Each input that is
known to kill the native code (a text over the micro-batch, a grammar that does not parse, notes/models §3g) is cut or
refused before it gets there. Not for: choosing models, or checking replies against a schema (`models/llama.py`).
"""

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

import llama_cpp
import numpy as np
from llama_cpp.llama_grammar import LlamaGrammar, json_schema_to_gbnf

from errors import ModelError
from models.worker import Fields, Frame, serve

ENCODED_TOKENS: Final = 512
"""Longest text of an encoder, and its micro-batch: llama.cpp's attention spans the whole micro-batch, so a larger one
is slower for short texts (notes/models §1)."""
TEXTS_AT_ONCE: Final = 16
"""Texts between two looks at cancellation."""
MOST_THREADS: Final = 8
FEW_CORES: Final = 4
"""Up to here all cores compute; above, half of them: the other half are mostly second threads of the same cores."""


class _Encoder(llama_cpp.Llama):
    """`Llama` whose texts are cut to the micro-batch with their closing token kept; the class itself drops it."""

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        # Text is data: a page that writes [SEP] or </s> does not get the token.
        tokens: list[int] = super().tokenize(text, add_bos=add_bos, special=False)
        if not tokens:
            return [max(self.token_bos(), 0)]
        if len(tokens) <= self.n_batch:
            return tokens
        vocabulary = llama_cpp.llama_model_get_vocab(self._model.model)
        closing = {self.token_eos(), llama_cpp.llama_vocab_sep(vocabulary)}
        return [*tokens[: self.n_batch - 1], tokens[-1]] if tokens[-1] in closing else tokens[: self.n_batch]


class _Served:
    """The loaded model and its two requests."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = arguments
        self._model: Any = None
        self._control: re.Pattern[str] | None = None

    def handle(self, fields: Fields, blob: bytes, cancelled: threading.Event) -> Frame:
        """Answer one request; the model is loaded by the first.

        Raises:
            ModelError: The file cannot be loaded, or the request cannot be served.
        """
        if self._model is None:
            self._model = _load(self._arguments)
            self._control = _control_texts(self._model)
        if fields["do"] == "embed":
            return self._embed(json.loads(blob), cancelled)
        return self._generate(json.loads(blob), cancelled)

    def _embed(self, texts: list[str], cancelled: threading.Event) -> Frame:
        rows: list[np.ndarray[Any, np.dtype[np.float32]]] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            if cancelled.is_set():
                break
            try:
                found = self._model.embed(texts[start : start + TEXTS_AT_ONCE], truncate=False)
                rows.append(np.array(found, dtype=np.float32))
            except (RuntimeError, ValueError) as error:
                raise ModelError(
                    f"llama.cpp could not embed with {self._arguments['path']}: {error}",
                    hint="Set a GGUF file of an embedding model.",
                ) from error
            if rows[-1].ndim != 2:
                raise ModelError(
                    f"{self._arguments['path']} gives a vector a token, not a text.",
                    hint="Set a GGUF file with a pooling type, made for embeddings.",
                )
        width = rows[0].shape[1] if rows else 0
        return Frame({"width": width}, b"".join(part.tobytes() for part in rows))

    def _generate(self, request: dict[str, Any], cancelled: threading.Event) -> Frame:
        grammar = _grammar(self._model, request["schema"]) if request["schema"] is not None else None
        request["messages"] = [{**item, "content": self._defused(item["content"])} for item in request["messages"]]
        text, ended = "", "stop"
        try:
            for piece, reason in self._pieces(request, grammar):
                text += piece
                ended = reason or ended
                if cancelled.is_set():
                    break
        except ValueError as error:
            raise ModelError(
                f"{self._arguments['path']} cannot take this prompt: {error}",
                hint=f"Its context is {self._model.n_ctx()} tokens: shorten the input.",
            ) from error
        except RuntimeError as error:
            raise ModelError(f"llama.cpp failed on {self._arguments['path']}: {error}", hint="Try again.") from error
        return Frame({"ended": ended}, text.encode())

    def _defused(self, text: str) -> str:
        """Return `text` with each control token's spelling broken by a blank, so that a page cannot end its message."""
        return self._control.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text) if self._control else text

    def _pieces(self, request: dict[str, Any], grammar: Any) -> Iterator[tuple[str, str | None]]:
        common = {"max_tokens": request["max_tokens"], "temperature": 0.0, "grammar": grammar, "stream": True}
        if "tokenizer.chat_template" in self._model.metadata:
            for chunk in self._model.create_chat_completion(_messages(self._model, request["messages"]), **common):
                choice = chunk["choices"][0]
                yield choice["delta"].get("content") or "", choice["finish_reason"]
            return
        # A base model: it continues the text of the messages.
        prompt = "\n\n".join(message["content"] for message in request["messages"])
        for chunk in self._model.create_completion(prompt, **common):
            yield chunk["choices"][0]["text"], chunk["choices"][0]["finish_reason"]


def _load(arguments: Mapping[str, Any]) -> Any:
    offload = bool(llama_cpp.llama_supports_gpu_offload())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = min(MOST_THREADS, cores if cores <= FEW_CORES else cores // 2)
    options: dict[str, Any] = {
        "model_path": arguments["path"],
        "n_gpu_layers": -1 if offload else 0,
        "n_threads": threads,
        "n_threads_batch": threads,
        "verbose": False,  # it points file descriptors 1 and 2 elsewhere while loading: harmless in this process alone
    }
    try:
        if arguments["role"] == "embedder":
            size = min(ENCODED_TOKENS, arguments["context"])
            # Flash attention is off in the bindings unless asked for: half the speed on encoders.
            return _Encoder(**options, embedding=True, n_ctx=size, n_batch=size, n_ubatch=size, flash_attn=True)
        return llama_cpp.Llama(**options, n_ctx=arguments["context"], n_batch=512, flash_attn=offload)
    except (ValueError, RuntimeError, AssertionError) as error:
        raise ModelError(
            f"llama.cpp cannot load {arguments['path']}: {error}",
            hint="The file may be damaged, of a newer format, or larger than the free memory.",
        ) from error


def _control_texts(model: Any) -> re.Pattern[str] | None:
    """Return a pattern of the vocabulary's control tokens, such as `<|im_end|>`; the bindings read them in any text."""
    vocabulary = llama_cpp.llama_model_get_vocab(model._model.model)
    found = (
        llama_cpp.llama_vocab_get_text(vocabulary, token)
        for token in range(model.n_vocab())
        if llama_cpp.llama_vocab_is_control(vocabulary, token)
    )
    texts = {text.decode("utf-8", "replace") for text in found if text and len(text) > 1}
    return re.compile("|".join(sorted(map(re.escape, texts), key=len, reverse=True))) if texts else None


def _messages(model: Any, messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the messages; where the template knows no system role, its text goes in front of the first user's."""
    template = model.metadata["tokenizer.chat_template"]
    if messages[0]["role"] != "system" or "system" in template.lower().replace("system role not supported", ""):
        return messages
    if len(messages) == 1 or messages[1]["role"] != "user":
        return [{"role": "user", "content": messages[0]["content"]}, *messages[1:]]
    joined = f"{messages[0]['content']}\n\n{messages[1]['content']}"
    return [{"role": "user", "content": joined}, *messages[2:]]


def _grammar(model: Any, schema: dict[str, Any]) -> LlamaGrammar:
    """Return the grammar of a JSON schema, once llama.cpp has parsed it: a bad one is a segmentation fault later."""
    try:
        text = json_schema_to_gbnf(json.dumps(schema))
    except (AssertionError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(
            f"The JSON schema has a part that llama.cpp's converter does not know: {error!r}.",
            hint="Use object, array, string, integer, number, boolean, enum, anyOf and lengths only.",
        ) from error
    vocabulary = llama_cpp.llama_model_get_vocab(model._model.model)
    sampler = llama_cpp.llama_sampler_init_grammar(vocabulary, text.encode(), b"root")
    if not sampler:
        raise ModelError("The grammar made from the JSON schema does not parse.", hint="Simplify the schema.")
    llama_cpp.llama_sampler_free(sampler)
    return LlamaGrammar.from_string(text, verbose=False)


def main(arguments: str) -> None:
    """Serve the model that the JSON `arguments` name (`path`, `role`, `context`) until stdin ends."""
    serve(_Served(json.loads(arguments)).handle)
