"""What runs in the process of a GGUF model: `llama_cpp.Llama` for the requests of
`models/llama/model.py`.

Started by `models/worker.py`, never imported by the server. Beginnings that prompts
share are evaluated once: what the context holds stays, and of the next prompt only the
rest goes through the model. Not for: the server's side (`models/llama/model.py`)."""

import functools
import json
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import jinja2
import llama_cpp
import numpy as np
from llama_cpp.llama_chat_format import Jinja2ChatFormatter
from llama_cpp.llama_grammar import LlamaGrammar, json_schema_to_gbnf
from numpy.typing import NDArray

from errors import ContextExceeded, ModelError
from models.llama.token_tree import Beginning, grow, score_paths
from models.options import THINKING, loading, sampling
from models.pipe import Cancelled, Frame, IsCancelled, serve
from models.shares import usable_cores

FAILURES: Final = (
    ValueError,
    TypeError,
    ArithmeticError,
    AssertionError,
    LookupError,
    AttributeError,
    RecursionError,
    RuntimeError,
    jinja2.TemplateError,
)
"""What llama-cpp-python, its converter of schemas and a file's chat template raise."""
TEXTS_A_BATCH: Final = 32
"""Texts that are encoded between two looks at whether the call is cancelled."""


def main(text: str) -> None:
    """Serve the model that the JSON `text` of `models/llama/model.py` and the worker's
    `Limits` describes."""
    arguments = json.loads(text)

    kind = _Generating if arguments["role"] == "generator" else _Encoding
    serve(lambda: kind(arguments).answer, memory_bytes=arguments["memory_bytes"])


class _Served:
    """What the roles share: the file's description, and errors of llama.cpp as ours."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._path: str = arguments["path"]
        self._longest: int = arguments["longest"]
        self._options: dict[str, Any] = arguments["options"]
        self._ranks = arguments["role"] == "reranker"

    def answer(self, frame: Frame, is_cancelled: IsCancelled) -> Frame:
        """Compute the answer to a request; a `models.pipe.Answer`."""
        try:
            if frame.fields["do"] == "describe":
                return Frame(self._description)
            request = json.loads(frame.blob)
            return self._computed(str(frame.fields["do"]), request, is_cancelled)
        except FAILURES as error:
            raise ModelError(
                f"llama.cpp failed on {self._path}: {error}.",
                hint="The file may be damaged, of another kind, or larger than the free memory.",
            ) from error

    def _computed(
        self, doing: str, request: dict[str, Any], is_cancelled: IsCancelled
    ) -> Frame:
        raise NotImplementedError

    @functools.cached_property
    def _description(self) -> dict[str, Any]:
        """Facts in the file's header; its weights are not read."""
        model = llama_cpp.Llama(self._path, vocab_only=True, verbose=False)
        facts = model.metadata
        kind = facts.get("general.architecture", "")
        description = {
            "name": facts.get("general.name", ""),
            "dimension": int(facts.get(f"{kind}.embedding_length", 0)),
            "context": int(facts.get(f"{kind}.context_length", 0)),
            "vocabulary": model.n_vocab(),
        }
        model.close()
        return description

    @functools.cached_property
    def _tokens(self) -> int:
        """Tokens of the context: what is asked for, and no more than the model was
        trained for."""
        return min(self._longest, self._description["context"] or self._longest)

    def _arguments(self) -> dict[str, Any]:
        cores = usable_cores()
        arguments = {"n_threads": cores, "n_threads_batch": cores, "verbose": False}
        return arguments | loading(self._options) | {"n_ctx": self._tokens}


class _TokenEncoder(llama_cpp.Llama):  # type: ignore[misc]  # mypy does not follow this import
    """`embed` of inputs that are tokens, spelled in decimal: pairs and cut texts are
    put together from tokens, and `embed` takes texts only."""

    def tokenize(
        self, text: bytes, add_bos: bool = True, special: bool = False
    ) -> list[int]:
        """Return the tokens that `text` spells."""
        return [int(token) for token in text.split()]

    def n_embd(self) -> int:
        """Return how many numbers an input has: a reranker's has one, and no more may
        be read of it."""
        ranks = self.pooling_type() == llama_cpp.LLAMA_POOLING_TYPE_RANK
        return 1 if ranks else super().n_embd()


class _Encoding(_Served):
    def _computed(
        self, doing: str, request: dict[str, Any], is_cancelled: IsCancelled
    ) -> Frame:
        if self._model.pooling_type() == llama_cpp.LLAMA_POOLING_TYPE_NONE:
            raise ModelError(
                f"{self._path} returns a vector per token, not per text.",
                hint="Set a GGUF file with a pooling type, made for embeddings.",
            )
        texts = request["texts"]
        rows = []
        for start in range(0, len(texts), TEXTS_A_BATCH):
            if is_cancelled():
                raise Cancelled
            inputs = [
                self._pair(request["query"], text) if self._ranks else self._text(text)
                for text in texts[start : start + TEXTS_A_BATCH]
            ]
            rows += self._model.embed([" ".join(map(str, tokens)) for tokens in inputs])
        return Frame({}, np.array(rows, dtype=np.float32).tobytes())

    @functools.cached_property
    def _model(self) -> _TokenEncoder:
        # A text is read in one batch; flash attention doubles an encoder's speed.
        pooling = (
            llama_cpp.LLAMA_POOLING_TYPE_RANK
            if self._ranks
            else llama_cpp.LLAMA_POOLING_TYPE_UNSPECIFIED
        )
        if self._ranks and not _has_head(self._path):
            # llama.cpp would rank by the first number of the text's vector.
            raise ModelError(
                f"{self._path} has no classification head, so it cannot rerank.",
                hint="Set a GGUF file of a reranker; convert Qwen3-Reranker with "
                "llama.cpp's convert_hf_to_gguf.py.",
            )
        arguments = {"flash_attn": True, **self._arguments()}
        arguments |= {"n_batch": self._tokens, "n_ubatch": self._tokens}
        return _TokenEncoder(
            self._path, embedding=True, pooling_type=pooling, **arguments
        )

    @functools.cached_property
    def _special(self) -> tuple[int, int, int]:
        """Tokens at the beginning of an input, at its end, and between two texts; -1
        where the vocabulary has none."""
        vocabulary = llama_cpp.llama_model_get_vocab(self._model.model)
        return (
            int(llama_cpp.llama_vocab_bos(vocabulary)),
            int(llama_cpp.llama_vocab_eos(vocabulary)),
            int(llama_cpp.llama_vocab_sep(vocabulary)),
        )

    def _pieces(self, text: str, *, edges: bool, special: bool = False) -> list[int]:
        """Return the tokens of `text`; with `edges`, those at an
        input's edges too. Text
        of strangers is never `special`: its [SEP] is text."""
        pieces: list[int] = self._model.tokenizer_.tokenize(
            text.encode(), edges, special
        )
        return pieces

    def _text(self, text: str) -> list[int]:
        """Return the tokens of a text, at most those of the context, with its closing
        token kept."""
        tokens = self._pieces(text, edges=True) or [max(self._special[0], 0)]
        closing = tokens[-1:] if tokens[-1] in self._special[1:] else []
        if len(tokens) <= self._tokens:
            return tokens
        return tokens[: self._tokens - len(closing)] + closing

    def _pair(self, query: str, text: str) -> list[int]:
        """Return the tokens of a query and a text as the model was trained to see them
        together. The query is cut to half of the context, the text to the rest."""
        facts = self._model.metadata
        query_tokens = self._pieces(query, edges=False)[: self._tokens // 2]
        text_tokens = self._pieces(text, edges=False)
        if template := facts.get("tokenizer.chat_template.rerank"):
            # "… {query} … {document} …", as Qwen3-Reranker's conversion writes it
            before, between, after = re.split(r"\{query\}|\{document\}", template)
            head = [*self._pieces(before, edges=True, special=True), *query_tokens]
            head += self._pieces(between, edges=False, special=True)
            tail = self._pieces(after, edges=False, special=True)
        else:
            opening, closing, separator = self._special
            edge = closing if closing >= 0 else separator
            # XLM-RoBERTa has a second separator between query and text, BERT has not.
            # Files of 2025 and later say so; earlier ones are judged by their tokenizer.
            usual = "false" if facts.get("tokenizer.ggml.model") == "bert" else "true"
            twice = facts.get("tokenizer.ggml.add_sep_token", usual) == "true"
            second = [separator if separator >= 0 else edge] if twice else []
            head, tail = [opening, *query_tokens, edge, *second], [edge]
        room = max(0, self._tokens - len(head) - len(tail))
        return [token for token in (*head, *text_tokens[:room], *tail) if token >= 0]


class _Generating(_Served):
    _evaluated = 0
    """Tokens that went through the model in the running call."""

    def _computed(
        self, doing: str, request: dict[str, Any], is_cancelled: IsCancelled
    ) -> Frame:
        self._evaluated = 0
        tokens = self._prompt(request["prompt"])
        if len(tokens) >= self._model.n_ctx():
            raise ContextExceeded(
                f"The prompt has {len(tokens)} tokens, too many for {self._path}.",
                hint=f"Its context is {self._model.n_ctx()} tokens: shorten the prompt.",
            )
        if doing == "generate":
            return self._written(tokens, request, is_cancelled)
        return self._scored(tokens, request, is_cancelled)

    @functools.cached_property
    def _model(self) -> llama_cpp.Llama:
        # Nothing outside a sliding window is dropped: a prompt that is cut goes on there.
        return llama_cpp.Llama(self._path, swa_full=True, **self._arguments())

    @functools.cached_property
    def _vocabulary(self) -> Any:
        return llama_cpp.llama_model_get_vocab(self._model.model)

    @functools.cached_property
    def _keeps_state(self) -> bool:
        """Whether the model has a state for the whole sequence, which cannot go back."""
        model = self._model.model
        return bool(
            llama_cpp.llama_model_is_recurrent(model)
            or llama_cpp.llama_model_is_hybrid(model)
        )

    # --- prompts ---

    def _prompt(self, prompt: str | list[dict[str, str]]) -> list[int]:
        """Return the tokens of a text, or of messages in the file's own chat template; a
        file without one continues the messages' texts."""
        if not isinstance(prompt, str) and not self._template:
            prompt = "\n\n".join(message["content"] for message in prompt)
        if isinstance(prompt, str):
            return self._opened(prompt, special=False)
        messages = [
            {**message, "content": self._defused(message["content"])}
            for message in prompt
        ]
        begins = self._spelling(self._model.token_bos())
        formatter = Jinja2ChatFormatter(
            self._template,
            eos_token=self._spelling(self._model.token_eos()),
            bos_token=begins,
        )
        rendered = formatter(
            messages=_merged(messages, self._template),
            enable_thinking=bool(self._options.get(THINKING)),
        )
        return self._opened(rendered.prompt.removeprefix(begins), special=True)

    def _opened(self, text: str, *, special: bool) -> list[int]:
        """Return the tokens of a text that the model goes on with: opened as its
        vocabulary wants, never closed."""
        tokens: list[int] = self._model.tokenize(text.encode(), special=special)
        closes = llama_cpp.llama_vocab_get_add_eos(self._vocabulary)
        return tokens[:-1] if closes and len(tokens) > 1 else tokens

    @functools.cached_property
    def _template(self) -> str:
        return str(self._model.metadata.get("tokenizer.chat_template", ""))

    @functools.cached_property
    def _control(self) -> re.Pattern[str]:
        """The spellings of control tokens, the longest first."""
        spellings = {
            self._spelling(token)
            for token in range(self._model.n_vocab())
            if llama_cpp.llama_vocab_is_control(self._vocabulary, token)
        }
        longest_first = sorted(spellings, key=len, reverse=True)
        escaped = [re.escape(text) for text in longest_first if len(text) > 1]
        # Without any, a pattern that matches nothing.
        return re.compile("|".join(escaped) or r"(?!)")

    def _defused(self, text: str) -> str:
        """Return `text` with each control token's spelling broken by a blank, so that a
        page cannot end its message."""
        return self._control.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)

    def _spelling(self, token: int) -> str:
        if token < 0:
            return ""
        spelled = llama_cpp.llama_vocab_get_text(self._vocabulary, token)
        return str(spelled.decode("utf-8", "replace")) if spelled else ""

    # --- answers ---

    def _written(
        self, tokens: list[int], request: dict[str, Any], is_cancelled: IsCancelled
    ) -> Frame:
        """Return the text of an answer, and why it ended: `stop` or `length`."""
        grammar = self._grammar(request)
        sampled = sampling(self._options)
        self._model.set_seed(sampled.pop("seed", 0))
        longest_answer = min(request["max_tokens"], self._model.n_ctx() - len(tokens))
        if longest_answer < 1:
            raise ModelError("No tokens were requested.", hint="Allow at least one.")
        self._reach(tokens, is_cancelled)
        written: list[int] = []
        ended = "length"
        stream = self._model.generate(
            tokens, temp=sampled.pop("temperature"), grammar=grammar, **sampled
        )
        for token in stream:
            if is_cancelled():
                raise Cancelled
            if llama_cpp.llama_vocab_is_eog(self._vocabulary, token):
                ended = "stop"
                break
            written.append(token)
            if len(written) == longest_answer:
                break
        tokens_used = self._evaluated + len(written)
        fields = {"ended": ended, "evaluated": tokens_used}
        return Frame(fields, self._model.detokenize(written))

    def _grammar(self, request: dict[str, Any]) -> LlamaGrammar | None:
        """Return what holds an answer to a schema or a grammar.

        Raises `ModelError` where the grammar does not parse: sampling by it would end
        the process."""
        text = request["grammar"]
        if request["schema"] is not None:
            text = json_schema_to_gbnf(json.dumps(request["schema"]))
        if text is None:
            return None
        sampler = llama_cpp.llama_sampler_init_grammar(
            self._vocabulary, text.encode(), b"root"
        )
        if not sampler:
            raise ModelError(
                "The grammar does not parse, or has no rule `root`.",
                hint="Use GBNF syntax (llama.cpp's grammars/README), or a simpler schema.",
            )
        llama_cpp.llama_sampler_free(sampler)
        return LlamaGrammar.from_string(text, verbose=False)

    # --- scores ---

    def _scored(
        self, prefix: list[int], request: dict[str, Any], is_cancelled: IsCancelled
    ) -> Frame:
        """Return the log-probability of each text after `prefix`."""
        paths = [self._continuation(text) for text in request["texts"]]
        if not all(paths):
            raise ModelError(
                "An empty text cannot be scored.", hint="Leave empty texts out."
            )
        longest = len(prefix) + max(map(len, paths)) - 1
        if longest > self._model.n_ctx():
            raise ContextExceeded(
                f"Prompt and text together have {longest} tokens, too many for {self._path}.",
                hint=f"Its context is {self._model.n_ctx()} tokens: shorten them.",
            )

        def logits_after(beginning: Beginning) -> NDArray[np.float32]:
            return self._reach([*prefix, *beginning], is_cancelled)

        tree = grow(sorted(paths))  # depth first: the cache goes on from each token
        by_path = score_paths(
            tree, logits_after, among_siblings=request["among_siblings"]
        )
        scores = np.array([by_path[tuple(path)] for path in paths], dtype=np.float64)
        counts = {
            "evaluated": self._evaluated,
            "prefix": len(prefix),
            "tree": sum(map(len, tree.values())),
            "apart": sum(map(len, paths)),
        }
        return Frame(counts, scores.tobytes())

    def _continuation(self, text: str) -> list[int]:
        """Return the tokens of `text` as it goes on after other text: without the blank
        that some vocabularies put in front of a beginning."""
        line: list[int] = self._model.tokenize(b"\n", add_bos=False)
        tokens: list[int] = self._model.tokenize(f"\n{text}".encode(), add_bos=False)
        if tokens[: len(line)] != line:
            return list(self._model.tokenize(text.encode(), add_bos=False))
        return tokens[len(line) :]

    def _reach(
        self, tokens: Sequence[int], is_cancelled: IsCancelled
    ) -> NDArray[np.float32]:
        """Have the context hold `tokens`, and return the logits [vocabulary] after the
        last, valid until the next evaluation.

        Only what it does not hold is evaluated, and the last token. Raises `Cancelled`
        between two batches, `ModelError` for numbers that are not finite.
        """
        model = self._model
        held = model.input_ids[: model.n_tokens].tolist()
        shared = min(model.longest_token_prefix(held, tokens), len(tokens) - 1)
        if shared < model.n_tokens and self._keeps_state:
            model.reset()
            shared = 0
        model.n_tokens = shared
        for start in range(shared, len(tokens), model.n_batch):
            if is_cancelled():
                raise Cancelled
            model.eval(tokens[start : start + model.n_batch])
        self._evaluated += len(tokens) - shared
        logits = np.ctypeslib.as_array(
            llama_cpp.llama_get_logits_ith(model.ctx, -1), (model.n_vocab(),)
        )
        if not np.isfinite(logits).all():
            raise ModelError(
                f"{self._path} computes invalid numbers (NaN).",
                hint="The file may be damaged: download it again.",
            )
        return logits


def _merged(messages: list[dict[str, str]], template: str) -> list[dict[str, str]]:
    """Return the messages; for templates without a system role, with its text before
    the first user message's."""
    roles = template.lower().replace("system role not supported", "")
    if messages[0]["role"] != "system" or "system" in roles or len(messages) == 1:
        return messages
    system, question, *following = messages
    text = f"{system['content']}\n\n{question['content']}"
    return [{"role": "user", "content": text}, *following]


def _has_head(path: str) -> bool:
    """Whether a GGUF file has a classification head: names follow their lengths, and
    those of the tensors are within the first 64 MiB."""
    with Path(path).open("rb") as file:
        header = file.read(64 << 20)
    heads = (b"cls.weight", b"cls.output.weight")
    return any(struct.pack("<Q", len(name)) + name in header for name in heads)
