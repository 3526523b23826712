"""How documents become IDMS leaves: boundaries by a rule, and written forms of chunks by their density, where wanted.

What `chunking="idms"` of a tree stands on. A tree's handle takes in `Idms.version`, so that what a slow model had no
time for is no tree of another name. Not for: margins (`judge.py`), rules (`margins.py`), writing (`enrich.py`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import anyio

from cache.store import Store
from errors import ModelError
from models.protocols import Embedder, Generator
from pipeline.documents import Sentence
from pipeline.segment.density import Reading, densities
from pipeline.segment.enrich import Enriched, enrich
from pipeline.segment.judge import Judge, judge_of
from pipeline.segment.margins import Rule
from pipeline.segment.partition import Ranges, SegmentOptions, segment_by
from prompts import load

Boundaries = Literal["partition"] | Rule
PROMPTS: Final = ("list_entities", "rate_passage", "condense", "supplement")


@dataclass(frozen=True, slots=True)
class IdmsOptions:
    """How chunks are cut, and whether they get written forms."""

    rule: Boundaries = "partition"
    density: bool = False
    """Whether a generator writes a condensed form of chunks of low density and a supplemented one of high (IDMS,
    density-driven chunking), for the index to read beside the text."""
    entities: Literal["rule", "model"] = "rule"
    """Who finds the names that a density counts."""


class Enricher:
    """Writes forms of chunks within a time; what it wrote and rated is kept by content, so a repeat goes on from it."""

    def __init__(self, generator: Generator, reading: Reading) -> None:
        """Write with `generator`, read with `reading`, and spend at most its seconds from the first call on."""
        self._generator = generator
        self._reading = reading
        self._seconds = reading.seconds
        self._until: float | None = None
        self.ways: Counter[str] = Counter()
        """Chunks by what became of them: condensed, supplemented, kept, refused."""
        self.trouble = ""
        """Why it did not get through; empty while it has."""

    @property
    def version(self) -> str:
        """Generator and prompts: what the forms hang on besides the chunks."""
        prompts = ":".join(load(name).version for name in PROMPTS)
        return f"{self._generator.name}:{self._reading.entities}:{prompts}"

    @property
    def told(self) -> str:
        """What was done, as one sentence."""
        if self.trouble:
            return self.trouble
        told = ", ".join(f"{count} {way}" for way, count in sorted(self.ways.items()))
        # Nothing is counted where the tree was there already.
        return f"Forms for the index by {self._generator.name}{f': {told}' if told else ''}."

    async def forms(self, chunks: Sequence[Sequence[str]], *, language: str) -> list[str]:
        """Return the written form of each chunk of one document, "" where it is read as it stands.

        After a failure, or when the time is over, `trouble` says so and nothing more is written.
        """
        nothing = [""] * len(chunks)
        if self.trouble or not chunks:
            return nothing
        self._until = self._until or anyio.current_time() + self._seconds
        done: list[Enriched] | None = None
        with anyio.CancelScope(deadline=self._until):
            try:
                found = await densities(chunks, self._reading, language=language)
                done = await enrich(chunks, found, self._generator, self._reading, language=language)
            except ModelError as error:
                self.trouble = f"No forms for the index were written: {error}"
                return nothing
        if done is None:
            self.trouble = (
                f"{self._generator.name} did not write all forms for the index in {self._seconds:.0f} s, so none is "
                "used; what it wrote is kept: ask again, or raise WINNOW_SECONDS."
            )
            return nothing
        self.ways.update("refused" if one.refused and one.way == "kept" else one.way for one in done)
        return [one.written if one.way != "kept" else "" for one in done]


class Idms:
    """Cuts documents into segments and gives those their forms."""

    def __init__(
        self,
        options: IdmsOptions | None = None,
        *,
        judge: Judge | None = None,
        enricher: Enricher | None = None,
        unasked: str = "",
    ) -> None:
        """Cut by `options`; without a judge by embeddings, without an enricher no forms are written.

        `unasked` tells why a generator that is set is no judge.
        """
        self._options = options or IdmsOptions()
        self._judge = judge
        self._enricher = enricher
        self._unasked = unasked

    @property
    def version(self) -> str:
        """What made the leaves besides sentences and embedder; what failed is no part of it."""
        parts = [] if self._options.rule == "partition" else [f"rule {self._options.rule}"]
        if self._judge is not None:
            parts.append(f"boundaries {'in part ' if self._judge.trouble else ''}by {self._judge.version}")
        if self._enricher is not None and not self._enricher.trouble:
            parts.append(f"forms by {self._enricher.version}")
        return "; ".join(parts)

    @property
    def told(self) -> list[str]:
        """Sentences for the reader: who found the boundaries, which forms were written, and what failed."""
        lines = [self._unasked] if self._unasked else []
        if self._judge is not None:
            lines.append(self._judge.trouble or f"Boundaries by {self._judge.name}.")
        if self._enricher is not None:
            lines.append(self._enricher.told)
        elif self._options.density:
            lines.append("No forms for the index: WINNOW_IDMS wants them, and there is no generator or no embedder.")
        return lines

    @property
    def writes(self) -> bool:
        """Whether its forms are to be used: they are wanted, and all of them were written."""
        return self._enricher is not None and not self._enricher.trouble

    async def ranges(
        self, sentences: Sequence[Sentence], *, embedder: Embedder | None, minimum: int, maximum: int
    ) -> Ranges:
        """Return [start, end) ranges of a document's sentences, of `minimum` to `maximum` tokens where possible.

        Raises:
            ModelError: The embedder failed.
        """
        options = SegmentOptions(minimum=minimum, maximum=maximum, rule=self._options.rule)
        return (await segment_by(sentences, judge=self._judge, embedder=embedder, options=options)).ranges

    async def forms(self, chunks: Sequence[Sequence[str]], *, language: str) -> list[str]:
        """Return what an index reads beside each chunk of one document, "" for nothing more."""
        if self._enricher is None:
            return [""] * len(chunks)
        return await self._enricher.forms(chunks, language=language)


@dataclass(frozen=True, slots=True)
class IdmsTime:
    """Seconds that the generator may take."""

    boundaries: float
    forms: float


def idms_of(
    options: IdmsOptions,
    generator: Generator | None,
    embedder: Embedder | None,
    *,
    store: Store | None,
    time: IdmsTime,
) -> Idms:
    """Return how documents are cut with these models: whatever one of them cannot do is left out."""
    judge = judge_of(generator, store=store, seconds=time.boundaries)
    enricher = None
    if options.density and generator is not None and embedder is not None:
        # A generator that weighs no options cannot rate, yet may list names; the factor is left out then.
        enricher = Enricher(generator, Reading(embedder, generator, options.entities, store, time.forms))
    unasked = ""
    if generator is not None and judge is None:
        unasked = f"Boundaries by embeddings: {generator.name} lists no probabilities."
    return Idms(options, judge=judge, enricher=enricher, unasked=unasked)
