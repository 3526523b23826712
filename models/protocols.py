"""Model protocols: Embedder, Reranker, CrossEncoder, Generator, and optional abilities.

Steps depend on these protocols only; `models/choose.py` chooses the backend. All calls
are coroutines, so that cancelling the task stops the work between two batches. A
backend says in `abilities` what it can do; a step that needs more than `generate` asks
`tree_scorer`, and works by rules, visibly, where that is None. Not for:
loading, caching or fallbacks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

CONTEXT_TOKENS: Final = 8_192
"""Default context in tokens of a GGUF generator (0.25 to 1.1 GB), and of a remote one
that reports none."""
ANSWERS_AT_ONCE: Final = 4
"""Answers asked for at once: a server writes several together, a GGUF model one after
the other."""
Vectors = NDArray[np.float32]
TextKind = Literal["query", "passage"]
Ability: TypeAlias = Literal["generate", "schema", "grammar", "score_tree"]
"""One thing a generator can do: `schema` and `grammar` (an argument of that name: GBNF,
start symbol `root`) are what `generate` can hold its answer to."""


def unit_rows(vectors: NDArray[np.float32]) -> Vectors:
    """Return the rows [n, d] at length one; a row of zeros, which has no direction,
    stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(
        vectors / np.maximum(lengths, np.float32(1e-12)), dtype=np.float32
    )


class HeldModel:
    """Optional lifecycle methods of a model: prepare, close, count."""

    runs_on: str = "onnxruntime on the processor"
    """Runtime and device, for reports."""
    tokens: int = 0
    """Tokens that went through the model so far; 0 where nothing is counted."""

    async def prepare(self) -> None:
        """Ask a server which model it serves, so that name, context and dimension are
        known; raises nothing."""

    async def aclose(self) -> None:
        """End the process of the model, if it has one; a later call starts it again."""


class Named(Protocol):
    """A model with a name."""

    @property
    def name(self) -> str:
        """Model, quantisation and runtime; part of every cache key."""
        ...


class Embedder(Named, Protocol):
    """Turns texts into unit vectors."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def reads(self, text: str) -> bool:
        """Whether the model knows the script of `text`; a step leaves the embedder out
        when it does not.

        An English model on Chinese text ranks worse than chance and drags a fused
        ranking down."""
        ...

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return float32 vectors [n, dimension] of unit length, in the order of
        `texts`; raises `ModelError`."""
        ...


class Reranker(Named, Protocol):
    """Scores texts against a query, together."""

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n], higher is better."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """What a cross-encoder reads at once: sentences of one page that follow each
    other."""

    above: str
    """Title › headings (› table header) above the first sentence; "" if none."""
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WindowReading:
    """What a cross-encoder found in a window."""

    keep: Vectors
    """Probability of each sentence to be part of the answer [sentences]; 0 for those
    that did not fit."""
    answers: float


class CrossEncoder(Named, Protocol):
    """Reads question and text together: which sentences answer, and whether they do."""

    def reads(self, text: str) -> bool:
        """Whether the model knows the script of `text`."""
        ...

    async def read(
        self, question: str, windows: Sequence[Window]
    ) -> list[WindowReading]:
        """Return one reading a window, in the order of `windows`; raises
        `ModelError`."""
        ...


@dataclass(frozen=True, slots=True)
class Said:
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


class Generator(Named, Protocol):
    """Writes text."""

    @property
    def context_tokens(self) -> int:
        """How many of its own tokens fit in prompt and answer together."""
        ...

    async def generate(
        self,
        messages: Sequence[Said],
        *,
        max_tokens: int,
        schema: dict[str, object] | None = None,
    ) -> str:
        """Return the answer's text; with `schema`, JSON that is valid under it.

        Raises `ContextExceeded` where the messages are longer than the context, else
        `ModelError`."""
        ...


Prompt: TypeAlias = "str | Sequence[Said]"
"""A text to continue, or messages for the model's chat template."""


@dataclass(frozen=True, slots=True)
class PathScores:
    """Log-probabilities of paths after a prefix, and what they cost."""

    log_probabilities: NDArray[np.float64]
    """One number a path [n], in nats."""
    evaluated_tokens: int
    """Tokens that went through the model, prefix included."""
    prefix_tokens: int
    tree_tokens: int
    """Nodes of the paths' token tree; prefix_tokens + tree_tokens bounds what needs to
    be evaluated."""
    whole_tokens: int
    """Tokens of n whole prompts, prefix and path each: what the naive way evaluates."""


class TreeScorer(Named, Protocol):
    """Scores many continuations of one prefix; has `score_tree` among its abilities."""

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return log P(path | prefix) of each path; beginnings that paths share are
        evaluated once (HtmlRAG §3.4.2).

        With `among_siblings` each token is soft-maxed over the tokens that some path
        has there, not over the vocabulary; one without rivals has probability 1
        (HtmlRAG's node scores). One path may be the beginning of another. Raises
        `ContextExceeded` for a prefix and path that are too long, `ModelError` for an
        empty path."""
        ...


def tree_scorer(model: object) -> TreeScorer | None:
    """Return `model` as a `TreeScorer`, None when its backend is none."""
    return cast(TreeScorer, model) if "score_tree" in abilities_of(model) else None


def abilities_of(model: object) -> frozenset[Ability]:
    """Return what `model` says it can do; one that says nothing (or None) can do
    nothing special."""
    return frozenset(getattr(model, "abilities", ()))
