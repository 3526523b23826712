"""The adapter to llama.cpp: the devices of its build, a loaded model, its tokens, one
context, grammars.

Imported only in a model's own process, and the only module that calls llama.cpp. Every
input that is known to kill the native code is refused here, before it gets there:
batches over the micro-batch, grammars that do not parse. One thread uses it, by
construction of `pipe.serve`; nothing is ever freed before the process ends, so nothing
can be used after that. A file's chat template is a program: llama-cpp-python runs it in
Jinja's sandbox, over values that it cannot change. Not for: what is computed
(`models/llama/encode.py`, `models/llama/decode.py`)."""

import ctypes
import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Any, Final, TypedDict

import jinja2
import llama_cpp
import numpy as np
from llama_cpp._ggml import libggml
from llama_cpp.llama_chat_format import Jinja2ChatFormatter
from llama_cpp.llama_grammar import json_schema_to_gbnf
from numpy.typing import NDArray

from errors import ModelError
from models.llama.placement import (
    Device,
    Placement,
    Plan,
    Weights,
    fallen_back,
    place,
)
from models.pipe import Counters
from models.shares import usable_cores
from models.tuning import Tuning

WRONG: Final = (
    ValueError,
    TypeError,
    ArithmeticError,
    AssertionError,
    LookupError,
    AttributeError,
    RecursionError,
)
"""What a template, and llama-cpp-python's converter of schemas, may raise."""


class ChatTemplate:
    """One model's template, or none: then the messages' texts are continued."""

    def __init__(
        self,
        template: str | None,
        *,
        begins: str,
        ends: str,
        control: Iterable[str],
        thinks: bool = False,
    ) -> None:
        """Compile `template`, Jinja source.

        `begins`, `ends` and `control` are the spellings of the tokens at a text's
        edges, and of all control tokens; `thinks` lets a model think aloud. Raises
        `ModelError` for a template that does not compile.
        """
        self._thinks = thinks
        self.begins = begins
        texts = sorted(
            {text for text in control if len(text) > 1}, key=len, reverse=True
        )
        self._control = re.compile("|".join(map(re.escape, texts))) if texts else None
        self._source = template or ""
        try:
            self._formatter = Jinja2ChatFormatter(
                self._source, eos_token=ends, bos_token=begins
            )
        except jinja2.TemplateError as error:
            raise ModelError(
                f"The model's chat template is broken: {error}.",
                hint="Download the file again.",
            ) from error

    def render(self, messages: Sequence[dict[str, str]]) -> str:
        """Return the text up to where the answer begins; a model that can think aloud
        is asked not to, unless that was set.

        Without a template the texts of the messages are joined. Raises `ModelError`
        where the template refuses them.
        """
        said = [
            {"role": message["role"], "content": self.defused(message["content"])}
            for message in messages
        ]
        if not self._source:
            return "\n\n".join(message["content"] for message in said)
        try:
            # Typed for messages of every kind that OpenAI's API has.
            merged: Any = self._merged(said)
            return str(
                self._formatter(messages=merged, enable_thinking=self._thinks).prompt
            )
        except (jinja2.TemplateError, *WRONG) as error:
            raise ModelError(
                f"The model's chat template refuses the messages: {error}.",
                hint="Set another model.",
            ) from error

    def defused(self, text: str) -> str:
        """Return `text` with each control token's spelling broken by a blank, so that a
        page cannot end its message."""
        return (
            self._control.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
            if self._control
            else text
        )

    def _merged(self, messages: list[dict[str, str]]) -> list[dict[str, str]]:
        """Return the messages; for templates without a system role, merge its text into
        the first user message."""
        known = "system" in self._source.lower().replace(
            "system role not supported", ""
        )
        if known or messages[0]["role"] != "system":
            return messages
        if len(messages) == 1 or messages[1]["role"] != "user":
            return [{"role": "user", "content": messages[0]["content"]}, *messages[1:]]
        joined = f"{messages[0]['content']}\n\n{messages[1]['content']}"
        return [{"role": "user", "content": joined}, *messages[2:]]


DEEPEST_GRAMMAR: Final = 200
"""Brackets open at once in a grammar: each is a call of the native parser, whose stack
is finite."""
STATES: Final = 16
"""Sequences of a model that keeps a state for each, which costs memory even where it is
not used."""
_NESTED: Final = re.compile(r"((?:\(char )*\(char)((?:\)\?)+)")


NO_GPU: Final = frozenset({"CPU", "BLAS", "RPC"})
"""Backends that never have a GPU of this machine."""

Handles = ctypes.Array[ctypes.c_void_p]
"""Devices as llama.cpp takes them: pointers with a null one at the end."""


class Code(IntEnum):
    """What llama_decode returns."""

    DONE = 0
    NO_SLOT = 1
    """The cells are taken; nothing was changed."""
    ABORTED = 2
    """The callback stopped it; the sequences of the batch are to be forgotten."""
    ALLOCATION_FAILED = -2


class DeviceKind(IntEnum):
    """Kinds of ggml devices that are a GPU."""

    OWN_MEMORY = 1
    INTEGRATED = 2
    """Part of the processor, with its memory."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token of a batch."""

    token: int
    position: int
    sequences: tuple[int, ...]
    wanted: bool = False
    """Whether its logits are read afterwards."""


class Native:
    """A model and its context."""

    def __init__(
        self, path: str, *, weights: Weights, plan: Plan, cancelled: set[int]
    ) -> None:
        """Load the file; a batch ends early (on the CPU) once all of its calls are in
        `cancelled`.

        If loading with layers on a GPU fails, it is loaded once more on the processor
        alone. Raises `ModelError`: the file cannot be loaded, or the memory does not
        hold the context.
        """
        self.path = path
        self.plan = (
            plan
            if plan.sequences
            else replace(plan, sequences=llama_cpp.llama_max_parallel_sequences())
        )
        self.counters = Counters()
        self._cancelled = cancelled
        self._running: frozenset[int] = frozenset()
        """Calls of the batch that is computed now."""
        self._log = llama_cpp.llama_log_callback(_written)
        llama_cpp.llama_log_set(self._log, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self.placement, devices = _placed(weights, plan.tuning)
        self._model: Any = None
        try:
            self._load(weights, devices)
        except ModelError:
            if self.placement.gpu_layers == 0:
                raise
            if self._model:
                llama_cpp.llama_model_free(self._model)
            self.placement = fallen_back(self.placement)
            self._load(weights, _handles())
        self.vocabulary: Any = llama_cpp.llama_model_get_vocab(self._model)
        self.n_vocabulary = int(llama_cpp.llama_vocab_n_tokens(self.vocabulary))
        self._memory: Any = llama_cpp.llama_get_memory(self._context)
        self._stopped = llama_cpp.ggml_abort_callback(
            lambda _: bool(self._running) and self.are_cancelled(self._running)
        )
        llama_cpp.llama_set_abort_callback(
            self._context, self._stopped, ctypes.c_void_p(0)
        )
        self.template = self._template()

    @property
    def facts(self) -> dict[str, object]:
        """Where the model runs and why, and the size of its context."""
        made = {
            "context": self.n_context,
            "kv": self.plan.kv or "f16",
            "batch": self.plan.batch,
        }
        return {**asdict(self.placement), **made}

    @property
    def n_context(self) -> int:
        """Cells of the context, shared by all sequences."""
        return int(llama_cpp.llama_n_ctx(self._context))

    @property
    def pooling(self) -> int:
        """How token vectors become one: 0 not at all, 1 mean, 2 first, 3 last, 4
        rank."""
        return int(llama_cpp.llama_pooling_type(self._context))

    # --- texts and tokens ---

    def tokenize(
        self, text: str, *, special: bool = False, ends: bool = True
    ) -> list[int]:
        """Return the tokens of `text`; with `ends`, those that the model wants at an
        input's beginning and end too.

        `special`, which is off for data, reads the spelling of a control token as that
        token. Raises `ModelError` where llama.cpp refuses the text.
        """
        data = text.encode("utf-8", "replace")
        size = len(data) + 8  # no token is shorter than a byte, but those at the edges
        room = (llama_cpp.llama_token * size)()
        count = llama_cpp.llama_tokenize(
            self.vocabulary, data, len(data), room, size, ends, special
        )
        if count < 0:
            raise ModelError(
                f"llama.cpp cannot tokenize a text of {len(data)} bytes.",
                hint="Shorten it.",
            )
        return list(room[:count])

    def continuation(self, text: str) -> list[int]:
        """Return the tokens of `text` as it goes on after other text: without the blank
        that some vocabularies put in front of a beginning."""
        anchor = self.tokenize("\n", ends=False)
        both = self.tokenize("\n" + text, ends=False)
        return (
            both[len(anchor) :]
            if both[: len(anchor)] == anchor
            else self.tokenize(text, ends=False)
        )

    def piece(self, token: int) -> bytes:
        """Return the bytes of a token; b"" for control tokens."""
        size = 64
        while True:
            room = ctypes.create_string_buffer(size)
            count = llama_cpp.llama_token_to_piece(
                self.vocabulary, token, room, size, 0, False
            )
            if count >= 0:
                return bytes(room.raw[:count])
            size = -count

    def is_end(self, token: int) -> bool:
        """Whether the token ends an answer."""
        return bool(llama_cpp.llama_vocab_is_eog(self.vocabulary, token))

    @property
    def end_of_turn(self) -> int:
        """The token that ends an answer; -1 where the vocabulary has none."""
        turn = int(llama_cpp.llama_vocab_eot(self.vocabulary))
        return turn if turn >= 0 else int(llama_cpp.llama_vocab_eos(self.vocabulary))

    @property
    def edges(self) -> tuple[int, int, int]:
        """Tokens at the beginning of a text, at its end, and between two; -1 for one
        that the vocabulary lacks."""
        found = (
            llama_cpp.llama_vocab_bos,
            llama_cpp.llama_vocab_eos,
            llama_cpp.llama_vocab_sep,
        )
        first, last, between = (int(ask(self.vocabulary)) for ask in found)
        return first, last, between

    def prompt(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Return the tokens of `messages` in the file's chat template, up to where the
        answer begins.

        A file without a template continues the messages' text.
        """
        return self.text(self.template.render(messages), special=True)

    def text(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text that the model goes on with: opened as the
        vocabulary wants, never closed."""
        begins = self.template.begins
        opened = special and bool(begins) and text.startswith(begins)
        tokens = self.tokenize(text, special=special, ends=not opened)
        closed = len(tokens) > 1 and tokens[-1] == self.edges[1]
        return (
            tokens[:-1]
            if closed and llama_cpp.llama_vocab_get_add_eos(self.vocabulary)
            else tokens
        )

    def metadata(self, key: str) -> str | None:
        """Return one text of the file's header, or None if it has no such key."""
        size = int(
            llama_cpp.llama_model_meta_val_str(
                self._model, key.encode(), ctypes.create_string_buffer(1), 1
            )
        )
        if size < 0:
            return None
        room = ctypes.create_string_buffer(size + 1)
        llama_cpp.llama_model_meta_val_str(self._model, key.encode(), room, size + 1)
        return room.value.decode("utf-8", "replace")

    # --- computing ---

    def compute(self, rows: Sequence[TokenRow], calls: Iterable[int]) -> Code:
        """Run one batch for `calls`; a code other than DONE says why nothing was
        computed.

        Raises `ModelError`: the batch is one that would end the process, or llama.cpp
        failed."""
        if not 0 < len(rows) <= self.plan.batch:
            raise ModelError(
                (f"A batch has {len(rows)} tokens, but only {self.plan.batch} fit."),
                hint="Shorten the text.",
            )
        batch = _batch(rows)
        run = llama_cpp.llama_decode if self._memory else llama_cpp.llama_encode
        self._running = frozenset(calls)
        self.counters.tokens += len(rows)
        self.counters.calls_a_batch = max(
            self.counters.calls_a_batch, len(self._running)
        )
        try:
            code = int(run(self._context, batch))
        finally:
            self._running = frozenset()
        if code in (Code.DONE, Code.NO_SLOT, Code.ABORTED):
            return Code(code)
        why = ", usually for lack of memory" if code == Code.ALLOCATION_FAILED else ""
        raise ModelError(
            f"llama.cpp failed on {self.path} with code {code}{why}.",
            hint="Free memory, or try again.",
        )

    def are_cancelled(self, calls: Collection[int]) -> bool:
        """Whether all of `calls` were given up."""
        return self._cancelled.issuperset(calls)

    def logits(self, row: int) -> NDArray[np.float32]:
        """Return the logits [vocabulary] after a wanted row of the last batch, valid
        until the next.

        Raises `ModelError` where they are not numbers; sampling from them would end the
        process."""
        found = llama_cpp.llama_get_logits_ith(self._context, row)
        if not found:
            raise ModelError(
                "llama.cpp returned no logits for a requested row.",
                hint="Try again.",
            )
        values = np.ctypeslib.as_array(found, (self.n_vocabulary,))
        if not np.isfinite(values).all():
            raise ModelError(
                f"{self.path} computes invalid numbers (NaN).",
                hint="The file may be damaged: download it again.",
            )
        return values

    def vector(self, sequence: int, width: int) -> NDArray[np.float32]:
        """Return the first `width` numbers of a sequence's pooled vector; a score has
        one, and no more may be read.

        Raises `ModelError` for a model without pooled vectors.
        """
        found = llama_cpp.llama_get_embeddings_seq(self._context, sequence)
        if not found:
            raise ModelError(
                f"{self.path} returns a vector per token, not per text.",
                hint="Set an embedding model.",
            )
        return np.ctypeslib.as_array(found, (width,)).copy()

    def copy(self, source: int, targets: Sequence[int]) -> None:
        """Let the sequences `targets` begin with all that `source` holds; with one
        shared cache this copies nothing."""
        for target in targets:
            llama_cpp.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def cut(self, sequence: int, keep: int) -> bool:
        """Take all after the first `keep` tokens out of a sequence; False where the
        model's state does not allow it."""
        if self.keeps_state:
            return False
        return bool(llama_cpp.llama_memory_seq_rm(self._memory, sequence, keep, -1))

    def forget(self, sequences: Sequence[int]) -> None:
        """Empty whole sequences, which every model can."""
        if self._memory:
            for sequence in sequences:
                llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    # --- inside ---

    def _load(self, weights: Weights, devices: Handles) -> None:
        options = llama_cpp.llama_model_default_params()
        options.devices = ctypes.addressof(devices)
        # Weights in AMX's own layout. GCC 12 drops most of the tile configuration that these
        # kernels load, and the process ends with SIGSEGV at the first batch (ggml-org/llama.cpp,
        # issue 20824 and pull request 26954).
        options.use_extra_bufts = (
            b"AMX_INT8 = 1" not in llama_cpp.llama_print_system_info()
        )
        options.n_gpu_layers = (
            self.placement.gpu_layers
            if self.placement.gpu_layers >= 0
            else weights.layers + 1
        )
        tuning = self.plan.tuning
        options.use_mmap = tuning.mmap != "off"
        if len(self.placement.devices) > 1 and tuning.split:
            # By the order of the devices named; llama.cpp reads as many as it could have.
            shares = [*tuning.split, *[0.0] * int(llama_cpp.llama_max_devices())]
            self._split = (ctypes.c_float * len(shares))(*shares)
            options.tensor_split = self._split
        self._model = llama_cpp.llama_model_load_from_file(
            os.fsencode(self.path), options
        )
        if not self._model:
            raise ModelError(
                f"llama.cpp cannot load {self.path}.",
                hint="The file may be damaged, of a newer format, or larger than the free memory.",
            )
        states = (llama_cpp.llama_model_is_recurrent, llama_cpp.llama_model_is_hybrid)
        self.keeps_state = any(asked(self._model) for asked in states)
        if self.keeps_state:
            self.plan = replace(self.plan, sequences=min(self.plan.sequences, STATES))
        self._context: Any = self._made_context(self.plan)

    def _made_context(self, plan: Plan) -> Any:
        options = llama_cpp.llama_context_default_params()
        options.n_ctx = plan.context
        options.n_batch = options.n_ubatch = plan.batch
        options.n_seq_max = plan.sequences
        options.n_outputs_max_per_seq = 0
        # Nothing outside a window is dropped: a sequence that is cut goes on from there, and its
        # window moves back.
        options.kv_unified = options.swa_full = True
        options.n_threads = options.n_threads_batch = self.placement.threads
        options.embeddings = plan.role != "generator"
        if plan.kv:
            options.type_k = options.type_v = getattr(
                llama_cpp, f"GGML_TYPE_{plan.kv.upper()}"
            )
        if plan.role == "reranker":
            options.pooling_type = llama_cpp.LLAMA_POOLING_TYPE_RANK
        on_gpu = self.placement.gpu_layers != 0
        # Flash attention: encoders run at twice the speed with it; scores of generators on the CPU
        # would depend on what else is in the batch by 0.04 nats and more. On a GPU llama.cpp
        # decides. Values of fewer than 16 bits are only read with it.
        narrow = plan.kv.startswith("q")
        usual = 1 if options.embeddings or narrow else (-1 if on_gpu else 0)
        options.flash_attn_type = {"on": 1, "off": 0}.get(plan.tuning.flash, usual)
        context = llama_cpp.llama_init_from_model(self._model, options)
        if not context:
            raise ModelError(
                (
                    f"llama.cpp cannot create a context of {plan.context} tokens "
                    f"for {self.path}, usually for lack of memory."
                ),
                hint="Free memory, or set a smaller model.",
            )
        return context

    def _template(self) -> ChatTemplate:
        first, last, _between = self.edges
        begins, ends = (
            self._text(token) if token >= 0 else "" for token in (first, last)
        )
        control = (
            self._text(token)
            for token in range(self.n_vocabulary)
            if llama_cpp.llama_vocab_is_control(self.vocabulary, token)
        )
        return ChatTemplate(
            self.metadata("tokenizer.chat_template"),
            begins=begins,
            ends=ends,
            control=control,
            thinks=self.plan.tuning.thinking,
        )

    def _text(self, token: int) -> str:
        found = llama_cpp.llama_vocab_get_text(self.vocabulary, token)
        return str(found.decode("utf-8", "replace")) if found else ""


class Grammar:
    """What holds an answer to a grammar; one for each answer."""

    def __init__(self, native: Native, text: str) -> None:
        """Parse GBNF with the start symbol `root`; raises `ModelError` where it does
        not parse, or is too large."""
        depth = deepest = 0
        for bracket in re.findall(r"[()]", text):
            depth += 1 if bracket == "(" else -1
            deepest = max(deepest, depth)
        if not text.strip() or "\x00" in text or deepest > DEEPEST_GRAMMAR:
            raise ModelError(
                f"This grammar of {len(text)} characters, with brackets nested {deepest} deep, "
                "is empty, contains a NUL character, or nests brackets more than "
                f"{DEEPEST_GRAMMAR} deep.",
                hint="Correct the grammar.",
            )
        self._size = native.n_vocabulary
        self._sampler: Any = llama_cpp.llama_sampler_init_grammar(
            native.vocabulary, text.encode("utf-8", "replace"), b"root"
        )
        if not self._sampler:
            raise ModelError(
                "The grammar does not parse, or has no rule `root`.",
                hint="Use GBNF syntax (llama.cpp's grammars/README).",
            )

    def best(self, logits: NDArray[np.float32]) -> int | None:
        """Return the most likely token that the grammar allows, and take it; None when
        it allows none.

        The most likely token of all is tried alone first: testing every token of the
        vocabulary takes far longer."""
        likely = int(logits.argmax())
        for candidates in (np.array([likely]), np.argsort(logits)[::-1]):
            left = self._allowed(candidates, logits)
            if left is not None:
                llama_cpp.llama_sampler_accept(self._sampler, left)
                return left
        return None

    def free(self) -> None:
        """Give the memory back; the grammar is not used afterwards."""
        if self._sampler:
            llama_cpp.llama_sampler_free(self._sampler)
            self._sampler = None

    def _allowed(
        self, candidates: NDArray[np.int64], logits: NDArray[np.float32]
    ) -> int | None:
        data = np.zeros(
            len(candidates),
            dtype=np.dtype(
                [("id", np.int32), ("logit", np.float32), ("p", np.float32)], align=True
            ),
        )
        data["id"] = candidates
        data["logit"] = logits[candidates]
        array = llama_cpp.llama_token_data_array(
            data=data.ctypes.data_as(llama_cpp.llama_token_data_p),
            size=len(data),
            selected=-1,
            sorted=False,
        )
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(array))
        best = int(data["logit"].argmax())
        return int(data["id"][best]) if np.isfinite(data["logit"][best]) else None


def flat_lengths(grammar: str) -> str:
    """Return `grammar` with the converter's form of a text's length, a bracket for each
    character, as one repetition.

    A text of 300 characters would else be 300 brackets deep, which `Grammar` refuses.
    """

    def flat(found: re.Match[str]) -> str:
        count = found[1].count("(")
        closed = len(found[2]) // 2
        return (
            f"char{{0,{count}}}{')?' * (closed - count)}"
            if closed >= count
            else found[0]
        )

    return _NESTED.sub(flat, grammar)


def schema_grammar(schema_json: str) -> str:
    """Return the grammar of a JSON schema; raises `ModelError` for one that the
    converter does not know."""
    try:
        return flat_lengths(str(json_schema_to_gbnf(schema_json)))
    except WRONG as error:
        raise ModelError(
            f"The JSON schema has a part that llama.cpp's converter does not know: {error!r}.",
            hint="Use object, array, string, integer, number, boolean, enum, anyOf and lengths "
            "only.",
        ) from error


def _batch(rows: Sequence[TokenRow]) -> Any:
    count = len(rows)
    lists = [
        (llama_cpp.llama_seq_id * len(row.sequences))(*row.sequences) for row in rows
    ]
    pointer = ctypes.POINTER(llama_cpp.llama_seq_id)
    batch = llama_cpp.llama_batch(
        n_tokens=count,
        token=(llama_cpp.llama_token * count)(*(row.token for row in rows)),
        embd=None,
        pos=(llama_cpp.llama_pos * count)(*(row.position for row in rows)),
        n_seq_id=(ctypes.c_int32 * count)(*(len(row.sequences) for row in rows)),
        seq_id=(pointer * count)(*(ctypes.cast(numbers, pointer) for numbers in lists)),
        logits=(ctypes.c_int8 * count)(*(row.wanted for row in rows)),
    )
    batch.kept = (
        lists  # ctypes keeps what it was given; the inner lists went through a cast
    )
    return batch


def _written(level: int, text: bytes, _data: object) -> None:
    if level >= 3:  # a warning
        sys.stderr.write(text.decode("utf-8", "replace"))
        sys.stderr.flush()


def _placed(weights: Weights, tuning: Tuning) -> tuple[Placement, Handles]:
    """Return where a model of these sizes goes on this machine, by what the build
    offers and is free now.

    With it, the devices to name to llama.cpp, or none: by itself it spreads over all
    cards, whose free memory the choice did not count, and computes long prompts on a
    card that was found too full. Raises `ModelError` where `tuning` names a device that
    is not there.
    """
    cores = usable_cores()
    found = found_devices()
    devices = [device for device, _ in found]
    placement = place(
        weights, devices, backends=gpu_backends(), cores=cores, tuning=tuning
    )
    pointers = {device.number: pointer for device, pointer in found}
    return placement, _handles(*(pointers[number] for number in placement.devices))


class Described(TypedDict):
    """What this build of llama.cpp says of itself."""

    offloads: bool
    backends: list[str]
    devices: list[Device]
    processor: str


def described_build() -> Described:
    """Return what this build offers and finds."""
    devices = [device for device, _ in found_devices()]
    line = llama_cpp.llama_print_system_info().decode("utf-8", "replace")
    used = re.findall(r"(\w+) = 1\b", line)
    return {
        "offloads": bool(llama_cpp.llama_supports_gpu_offload()),
        "backends": gpu_backends(),
        "devices": devices,
        "processor": ", ".join(dict.fromkeys(used)),
    }


def _handles(*pointers: ctypes.c_void_p) -> Handles:
    """Return the pointers as llama.cpp takes them; without any, it computes on the
    processor alone."""
    return (ctypes.c_void_p * (len(pointers) + 1))(*pointers, None)


def _declare() -> None:
    """Declare to ctypes the functions that the bindings do not wrap."""
    for name, result in (
        ("ggml_backend_dev_count", ctypes.c_size_t),
        ("ggml_backend_dev_get", ctypes.c_void_p),
        ("ggml_backend_dev_type", ctypes.c_int),
        ("ggml_backend_dev_description", ctypes.c_char_p),
        ("ggml_backend_dev_name", ctypes.c_char_p),
        ("ggml_backend_dev_memory", None),
        ("ggml_backend_reg_count", ctypes.c_size_t),
        ("ggml_backend_reg_get", ctypes.c_void_p),
        ("ggml_backend_reg_name", ctypes.c_char_p),
    ):
        getattr(libggml, name).restype = result


def gpu_backends() -> list[str]:
    """Return the names of the backends that may have a GPU; those whose driver is
    missing are not among them."""
    found = []
    for number in range(libggml.ggml_backend_reg_count()):
        backend = ctypes.c_void_p(libggml.ggml_backend_reg_get(ctypes.c_size_t(number)))
        found.append(libggml.ggml_backend_reg_name(backend).decode("utf-8", "replace"))
    return [name for name in found if name not in NO_GPU]


def found_devices() -> list[tuple[Device, ctypes.c_void_p]]:
    """Return ggml's devices other than the processor, with their pointers."""
    llama_cpp.llama_supports_gpu_offload()  # loads the backends of a build that keeps them in files
    _declare()
    found = []
    for number in range(libggml.ggml_backend_dev_count()):
        device = ctypes.c_void_p(libggml.ggml_backend_dev_get(ctypes.c_size_t(number)))
        kind = libggml.ggml_backend_dev_type(device)
        if kind not in list(DeviceKind):
            continue
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        libggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
        backend = libggml.ggml_backend_dev_name(device).decode("utf-8", "replace")
        description = libggml.ggml_backend_dev_description(device).decode(
            "utf-8", "replace"
        )
        named = Device(
            re.sub(r"\d+$", "", backend),
            description,
            free.value,
            integrated=kind == DeviceKind.INTEGRATED,
            number=backend,
        )
        found.append((named, device))
    return found
