"""What every step may ask of a model: Embedder, Reranker, Generator, and what only some can do (design §5).

Steps depend on these protocols only; which backend stands behind one is chosen in `models/choose.py`. All calls are
coroutines, so that cancelling the task stops the work between two batches. A backend says in `abilities` what it can
do; a step asks `chooser` or `tree_scorer` before it needs more than `generate`, and takes its form by rules, visibly,
where the answer is None. Not for: loading, caching or fallbacks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
TextKind = Literal["query", "passage"]
Ability: TypeAlias = Literal["embed", "rerank", "generate", "schema", "grammar", "choose", "score_tree"]
"""One thing a backend can do: `schema` and `grammar` are what `generate` can hold its answer to."""


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """Model, quantisation and runtime; part of every cache key."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def reads(self, text: str) -> bool:
        """Whether the model knows the script of `text`; a step leaves the embedder out when it does not.

        An English model on Chinese text ranks worse than chance and drags a fused ranking down (notes/zeroindex §0.8).
        """
        ...

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return float32 vectors [n, dimension] of unit length, in the order of `texts`.

        Raises:
            ModelError: The backend failed; the message says how.
        """
        ...


class Reranker(Protocol):
    """Scores texts against a query, together."""

    @property
    def name(self) -> str:
        """Model, quantisation and runtime; part of every cache key."""
        ...

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n], higher is better."""
        ...


class Message(Protocol):
    """One chat message."""

    @property
    def role(self) -> Literal["system", "user", "assistant"]:
        """Who speaks."""
        ...

    @property
    def content(self) -> str:
        """What is said."""
        ...


class Generator(Protocol):
    """Writes text."""

    @property
    def name(self) -> str:
        """Model, quantisation and runtime; part of every cache key."""
        ...

    @property
    def context_tokens(self) -> int:
        """How many of its own tokens fit in prompt and answer together."""
        ...

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the answer's text; with `schema`, JSON that is valid under it.

        Raises:
            ModelError: The backend failed or cannot do what is asked.
        """
        ...


class Able(Protocol):
    """Says what it can do."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What this backend can do with this model."""
        ...


class GrammarWriter(Able, Protocol):
    """A `Generator` whose answer may be held to a grammar too; has `grammar` among its abilities."""

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: dict[str, object] | None = None,
        grammar: str | None = None,
    ) -> str:
        """Return the answer's text; with `grammar` (GBNF, start symbol `root`), a text of it.

        Raises:
            ModelError: The backend failed, or the grammar is bad.
        """
        ...


Prompt: TypeAlias = "str | Sequence[Message]"
"""A text that is continued as it stands, or messages that are answered in the model's chat template."""


class Chooser(Able, Protocol):
    """Weighs given answers; has `choose` among its abilities."""

    @property
    def name(self) -> str:
        """Model, quantisation and runtime; part of every cache key."""
        ...

    async def choose(self, prompt: Prompt, options: Sequence[str]) -> NDArray[np.float64]:
        """Return the probability of each option [n] as the answer's beginning, summing to 1 over the options.

        An option of several tokens has the product of their probabilities. Where one option is the beginning of
        another, it counts with the end of the answer after it.

        Raises:
            ModelError: The backend failed, an option is empty or given twice, or the prompt is over the context.
        """
        ...


@dataclass(frozen=True, slots=True)
class PathScores:
    """Log-probabilities of paths after a prefix, and what they cost."""

    log_probabilities: NDArray[np.float64]
    """One number a path [n], in nats."""
    evaluated_tokens: int
    """Tokens that went through the model, prefix included."""
    prefix_tokens: int
    """Tokens of the prefix."""
    tree_tokens: int
    """Nodes of the paths' token tree; prefix_tokens + tree_tokens bounds what needs to be evaluated."""
    whole_tokens: int
    """Tokens of n whole prompts, prefix and path each: what the naive way evaluates."""


class TreeScorer(Able, Protocol):
    """Scores many continuations of one prefix; has `score_tree` among its abilities."""

    @property
    def name(self) -> str:
        """Model, quantisation and runtime; part of every cache key."""
        ...

    async def score_tree(self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False) -> PathScores:
        """Return log P(path | prefix) of each path; beginnings that paths share are evaluated once (HtmlRAG §3.4.2).

        Args:
            prefix: What stands before every path.
            paths: The continuations; one may be the beginning of another.
            among_siblings: Soft-max each token over the tokens that some path has there, not over the vocabulary; a
                token without rivals has probability 1 (HtmlRAG's node scores).

        Raises:
            ModelError: The backend failed, a path is empty, or the prefix and a path are over the context.
        """
        ...


class Counting(Protocol):
    """Tells what it has computed."""

    async def counters(self) -> Mapping[str, object]:
        """Return counts by name since the model was loaded; `tokens` are those that went through it.

        Raises:
            ModelError: The backend failed.
        """
        ...


def counting(model: object) -> Counting | None:
    """Return `model` as `Counting`, None when its backend counts nothing."""
    return cast(Counting, model) if callable(getattr(model, "counters", None)) else None


def chooser(model: object) -> Chooser | None:
    """Return `model` as a `Chooser`, None when its backend is none."""
    return cast(Chooser, model) if "choose" in abilities_of(model) else None


def tree_scorer(model: object) -> TreeScorer | None:
    """Return `model` as a `TreeScorer`, None when its backend is none."""
    return cast(TreeScorer, model) if "score_tree" in abilities_of(model) else None


def abilities_of(model: object) -> frozenset[Ability]:
    """Return what `model` says it can do; one that says nothing (or None) can do nothing special."""
    return frozenset(getattr(model, "abilities", ()))
