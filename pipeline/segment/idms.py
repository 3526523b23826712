"""How documents become IDMS leaves: boundaries by a rule, and written forms of chunks by their density, where wanted.

What `chunking="idms"` of a tree uses. A tree's handle takes in `Idms.version`, so that a tree whose model ran out of
time does not stand under the handle of a whole one. Not for: margins (`judge.py`), rules (`partition.py`), forms
(`density.py`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import anyio

from cache.store import Store
from errors import ModelError
from models.protocols import Embedder, Generator
from pipeline.documents import Sentence
from pipeline.segment.density import DensityModels, Form, densities, enrich
from pipeline.segment.judge import judge_of
from pipeline.segment.partition import Ranges, Rule, cut_by_margins, segment, sentence_costs
from pipeline.work import in_thread
from prompts import load


@dataclass(frozen=True, slots=True)
class IdmsOptions:
    """How chunks are cut, and whether they get written forms."""

    rule: Rule = "partition"
    density: bool = False
    """Whether a generator writes a condensed form of chunks of low density and a supplemented one of high (IDMS,
    density-driven chunking), for the index to read beside the text."""
    entities: Literal["rule", "model"] = "rule"


class Idms:
    """Cuts documents into segments and gives those their forms; `notes` say what a model could not do."""

    def __init__(
        self,
        options: IdmsOptions | None = None,
        *,
        generator: Generator | None = None,
        embedder: Embedder | None = None,
        store: Store | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Cut by the margins of `generator` where it lists probabilities, else by embeddings.

        Without an `embedder`, which measures densities, no forms are written. All boundaries have `seconds` from the
        first question on, and all forms the same again.
        """
        self._options = options or IdmsOptions()
        self._generator = generator
        self._judge = judge_of(generator, store=store, seconds=seconds)
        self._reading: DensityModels | None = None
        if self._options.density and generator is not None and embedder is not None:
            self._reading = DensityModels(embedder, generator, self._options.entities, store, seconds)
        self._forms_until: float | None = None
        self._no_margins = self._no_forms = ""
        """Why margins, or forms, are missing; empty while none is."""
        self.ways: Counter[str] = Counter()
        """Chunks by what became of them: condensed, supplemented, kept, refused."""

    @property
    def version(self) -> str:
        """What made the leaves besides sentences and embedder; what failed is no part of it."""
        parts = [] if self._options.rule == "partition" else [f"rule {self._options.rule}"]
        if self._judge is not None:
            parts.append(f"boundaries {'in part ' if self._no_margins else ''}by {self._judge.version}")
        if self.writes and self._generator is not None:
            names = ("list_entities", "rate_passage", "condense", "supplement")
            prompts = ":".join(load(name).version for name in names)
            parts.append(f"forms by {self._generator.name}:{self._options.entities}:{prompts}")
        return "; ".join(parts)

    @property
    def notes(self) -> list[str]:
        """Sentences for the reader: who found the boundaries, which forms were written, and what failed."""
        lines: list[str] = []
        if self._judge is not None:
            lines.append(self._no_margins or f"Boundaries by {self._judge.name}.")
        elif self._generator is not None:
            lines.append(f"Boundaries by embeddings: {self._generator.name} lists no probabilities.")
        if self._no_forms:
            lines.append(self._no_forms)
        elif self._reading is not None and self._generator is not None:
            # `ways` is empty when the tree came from the cache.
            counted = ", ".join(f"{count} {way}" for way, count in sorted(self.ways.items()))
            lines.append(f"Forms for the index by {self._generator.name}{f': {counted}' if counted else ''}.")
        elif self._options.density:
            lines.append("No forms for the index: WINNOW_IDMS wants them, and there is no generator or no embedder.")
        return lines

    @property
    def writes(self) -> bool:
        """Whether its forms are to be used: they are wanted, and all so far were written."""
        return self._reading is not None and not self._no_forms

    async def ranges(
        self, sentences: Sequence[Sentence], *, embedder: Embedder | None, minimum: int, maximum: int
    ) -> Ranges:
        """Return [start, end) ranges of a document's sentences, of `minimum` to `maximum` tokens where possible.

        Raises `ModelError` for the embedder's failure; a failing generator leaves the boundaries to embeddings.
        """
        rule = self._options.rule
        if self._judge is not None and len(sentences) > 1:
            texts = [sentence.text for sentence in sentences]
            try:
                margins = await self._judge.margins(texts)
            except ModelError as error:
                self._no_margins = f"Boundaries by embeddings: {error}"
            else:
                costs = await in_thread(sentence_costs, texts)
                return await in_thread(cut_by_margins, margins, costs, rule=rule, minimum=minimum, maximum=maximum)
        return await segment(sentences, embedder=embedder, rule=rule, minimum=minimum, maximum=maximum)

    async def forms(self, chunks: Sequence[Sequence[str]], *, language: str) -> list[str]:
        """Return what an index reads beside each chunk of one document, "" for nothing more.

        After a failure, or when the time is over, `notes` say so and nothing more is written. What was written is kept
        by content, so that a repeat goes on from it.
        """
        nothing = [""] * len(chunks)
        if self._reading is None or self._generator is None or self._no_forms or not chunks:
            return nothing
        self._forms_until = self._forms_until or anyio.current_time() + self._reading.seconds
        done: list[Form] | None = None
        with anyio.CancelScope(deadline=self._forms_until):
            try:
                found = await densities(chunks, self._reading, language=language)
                done = await enrich(chunks, found, self._generator, self._reading, language=language)
            except ModelError as error:
                self._no_forms = f"No forms for the index were written: {error}"
                return nothing
        if done is None:
            self._no_forms = (
                f"{self._generator.name} did not write all forms for the index in {self._reading.seconds:.0f} s, so "
                "none is used; what it wrote is kept: ask again, or raise WINNOW_SECONDS."
            )
            return nothing
        self.ways.update(form.way for form in done)
        return [form.text for form in done]
