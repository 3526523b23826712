"""How documents become IDMS leaves: boundaries by a rule, and written forms of chunks
by their density, where wanted.

What `chunking="idms"` of a tree uses. A tree's handle takes in `Idms.version`, so that
an incomplete tree does not get the handle of a complete one.

Margins are P(yes) - P(no) by a generator that a sentence goes on with the text before
it (IDMS Eq. 1). The text so far is the prefix of one growing prompt, so that each
sentence enters the model once as text and once as question. Questions about several
gaps are one token tree along the text, which fills the model's batches. A model leans
to the option that it reads first: some gaps are asked in both orders, and the mean
difference is taken off. Not for: rules (`partition.py`), forms (`density.py`)."""

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import anyio
import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from errors import ContextExceeded, ModelError
from models.protocols import Embedder, Generator, TreeScorer, tree_scorer
from papers.idms.density import DensityModels, Form, densities, enrich
from papers.idms.partition import Rule, cut_by_margins, segment
from pipeline.messages import CACHED_ANSWER_SECONDS
from pipeline.raptor.leaves import Ranges, sentence_costs
from pipeline.text.frame import one_line
from pipeline.text.tokens import count_tokens
from pipeline.work import in_thread
from prompts import load
from readers.page import Sentence

PROMPT: Final = "segment"
YES_NO: Final = ("Yes", "No")
ORDERS: Final = (YES_NO, YES_NO[::-1])
UNBOUNDED_TOKENS: Final = 10**9
"""Tokens that no chunk has: the paper's chunks have no bounds."""
Found = TypeVar("Found")
Question: TypeAlias = tuple[int, tuple[str, str]]
"""A gap, and the order in which the options are offered."""
CALIBRATED: Final = 8
"""Gaps of a document that are asked about in both orders."""
TOGETHER: Final = 400
"""Tokens of the questions asked at once, with the text between them, so that one batch
of 512 holds them; also the most characters of a sentence that the model is shown, since
a character may be a token."""


class Judge:
    """Asks a generator about gaps between sentences."""

    def __init__(
        self,
        generator: Generator,
        *,
        store: Store | None,
        seconds: float,
    ) -> None:
        """Ask `generator`, keep its answers in `store`, and spend at most `seconds`
        from the first call on."""
        self._scorer = cast(TreeScorer, generator)
        self.name = generator.name
        self._window = generator.context_tokens // 2
        """Maximum tokens of the text so far before the prompt is restarted."""
        self._longest = min(TOGETHER, generator.context_tokens // 4)
        self._together = TOGETHER
        self._question = count_tokens(split_prompt("", "", YES_NO)[1])
        self._store = store
        self._seconds = seconds
        self._until: float | None = None

    @property
    def version(self) -> str:
        """Model and prompt: what the margins depend on besides the sentences."""
        return f"{self.name}:{load(PROMPT).version}"

    async def margins(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return how much the sentences `texts` i and i+1 belong together, from -1 to 1
        less the lean, [n - 1]. Raises `ModelError`: the model failed, or not all were
        judged in time."""
        if len(texts) < 2:
            return np.zeros(0)
        return await self._in_time(self._ask_all, texts)

    async def chunks(self, texts: Sequence[str]) -> Ranges:
        """Return the chunks of `texts`, one or more, as printed: a sentence begins a
        chunk where its margin with the open chunk is not over the mean of all margins
        before, 0 for the first. Raises `ModelError` as `margins` does."""
        return await self._in_time(self._ask_in_order, texts)

    async def _in_time(
        self, asking: Callable[[list[str]], Awaitable[Found]], texts: Sequence[str]
    ) -> Found:
        self._until = self._until or anyio.current_time() + self._seconds
        with anyio.CancelScope(deadline=self._until):
            return await asking([one_line(text)[: self._longest] for text in texts])
        raise ModelError(
            (
                f"{self.name.partition(':')[0]} judged only some of the "
                f"{len(texts) - 1} gaps between sentences in "
                f"{self._seconds:.0f} s."
            ),
            hint="Ask again: what it judged is kept."
            if self._store is not None
            else "Raise WINNOW_SECONDS.",
        )

    async def _ask_in_order(self, texts: Sequence[str]) -> Ranges:
        sizes = sentence_costs(texts)
        edges, margins = [0], [0.0]
        for gap in range(len(texts) - 1):
            # Of a chunk over the window its last sentences are shown.
            shown = edges[-1]
            while sum(sizes[shown : gap + 1]) > self._window and shown < gap:
                shown += 1
            answer = await self._answers(
                *stretch_prompts(texts, shown, [(gap, YES_NO)])
            )
            threshold = float(np.mean(margins[1:] or margins))
            margins.append(float(answer[0]))
            edges += [gap + 1] if margins[-1] <= threshold else []
        return list(pairwise([*edges, len(texts)]))

    async def _ask_all(self, texts: Sequence[str]) -> NDArray[np.float64]:
        gaps = len(texts) - 1
        both = {int(gap) for gap in np.linspace(0, gaps - 1, min(CALIBRATED, gaps))}
        sizes = sentence_costs(texts)
        margins = np.zeros(gaps)
        changed: list[float] = []
        start = gap = 0
        while gap < gaps:
            if sum(sizes[start : gap + 1]) > self._window and gap > start:
                # A new prompt begins with the last two sentences.
                start = max(start + 1, gap - 1)
            end = self._end_of_stretch(sizes, start, gap)
            asked = [
                (at, order)
                for at in range(gap, end)
                for order in ORDERS[: 1 + (at in both)]
            ]
            try:
                answers = await self._answers(*stretch_prompts(texts, start, asked))
            except ContextExceeded:
                # The model's tokenizer splits finer than ours: fewer gaps at once, then a smaller
                # window.
                if end - gap > 1:
                    self._together //= 2
                elif gap > start:
                    self._window //= 2
                else:
                    raise
                continue
            for (at, order), answer in zip(asked, answers.tolist(), strict=True):
                if order == YES_NO:
                    margins[at] = answer
                else:
                    changed.append((margins[at] - answer) / 2)
            gap = end
        return margins - np.mean(changed)

    def _end_of_stretch(self, sizes: Sequence[int], start: int, gap: int) -> int:
        """Return the end of the gaps from `gap` on that are asked at once, with the
        text from `start` on."""
        shown, asked = sum(sizes[start : gap + 1]), sizes[gap + 1] + self._question
        for end in range(gap + 1, len(sizes) - 1):
            shown += sizes[end]
            asked += sizes[end] + sizes[end + 1] + self._question
            if asked > self._together or shown > self._window:
                return end
        return len(sizes) - 1

    async def _answers(
        self, prefix: str, questions: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return P(yes) - P(no) of each question [n], from the store where it was asked
        before."""
        raw = json.dumps([self.version, prefix, *questions]).encode()
        key = f"margins:{hashlib.blake2b(raw, digest_size=20).hexdigest()}"
        kept = (
            await in_thread(self._store.get_bytes, key)
            if self._store is not None
            else None
        )
        if kept is not None and len(kept) == 8 * len(questions):
            return np.frombuffer(kept, dtype=np.float64)
        answers = await self._weighed(prefix, questions)
        if self._store is not None:
            # At once, so that a call that is cut short leaves to the next what it found.
            await in_thread(
                self._store.set_bytes,
                key,
                answers.tobytes(),
                expire=CACHED_ANSWER_SECONDS,
            )
        return answers

    async def _weighed(
        self, prefix: str, questions: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return P(yes) - P(no) of each question [n]; raises `ModelError` for a model
        without probabilities.

        Probabilities are those of the two answers alone, where they part: a vocabulary
        may spell them in pieces."""
        paths = [f"{question} {option}" for question in questions for option in YES_NO]
        scored = await self._scorer.score_tree(prefix, paths, among_siblings=True)
        yes, no = scored.log_probabilities.reshape(-1, 2).T
        return np.asarray(np.tanh((yes - no) / 2), dtype=np.float64)


def stretch_prompts(
    texts: Sequence[str], start: int, asked: Sequence[Question]
) -> tuple[str, list[str]]:
    """Return the prompt from sentence `start` up to the first gap asked about, and how
    it goes on to each question."""
    first = asked[0][0]
    before, _ = split_prompt("\n".join(texts[start : first + 1]), "", YES_NO)
    questions = []
    for gap, order in asked:
        _, question = split_prompt("", texts[gap + 1], order)
        questions.append(
            "".join(f"\n{text}" for text in texts[first + 1 : gap + 1]) + question
        )
    return before, questions


def split_prompt(
    so_far: str, following: str, order: tuple[str, str]
) -> tuple[str, str]:
    """Return the prompt up to the end of the text so far, which the next gap's prompt
    goes on from, and the rest."""
    text = load(PROMPT).fill(
        text="\0", next=following, options=f"{order[0]} or {order[1]}"
    )
    before, after = text.split("\0", 1)
    return before + so_far, after


def judge_of(
    generator: Generator | None, *, store: Store | None, seconds: float
) -> Judge | None:
    """Return a judge where `generator` can be one, else None: the embeddings decide
    then."""
    if generator is None or tree_scorer(generator) is None:
        return None
    return Judge(generator, store=store, seconds=seconds)


@dataclass(frozen=True, slots=True)
class IdmsOptions:
    """How chunks are cut, and whether they get written forms."""

    rule: Rule = "partition"
    """`running` is the paper's, with its unbounded chunks and its formula of
    density."""
    density: bool = False
    """Whether a generator writes a condensed form of chunks of low density and a
    supplemented one of high (IDMS, density-driven chunking), for the index to read
    beside the text."""
    entities: Literal["rule", "model"] = "rule"


def chunker(form: str = "partition", **models: Any) -> "Idms":
    """Return what cuts documents as WINNOW_PAPERS says: a rule, with `+density` if
    chunks get written forms, `+density:model` if the generator lists their entities.

    `models` are those of `Idms`."""
    rule, _, forms = form.partition("+")
    entities: Literal["rule", "model"] = "model" if forms.endswith(":model") else "rule"
    # The settings have validated the name.
    options = IdmsOptions(cast(Rule, rule), density=bool(forms), entities=entities)
    return Idms(options, **models)


class Idms:
    """Cuts documents into segments and gives those their forms; `notes` say what a
    model could not do."""

    def __init__(
        self,
        options: IdmsOptions | None = None,
        *,
        generator: Generator | None = None,
        embedder: Embedder | None = None,
        store: Store | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Cut by the margins of `generator` where it lists probabilities, else by
        embeddings.

        Without an `embedder`, which measures densities, no forms are written. All
        boundaries have `seconds` from the first question on, and all forms the same
        again."""
        self._options = options or IdmsOptions()
        self._generator = generator
        self._judge = judge_of(generator, store=store, seconds=seconds)
        self._reading: DensityModels | None = None
        if self._options.density and generator is not None and embedder is not None:
            self._reading = DensityModels(
                embedder,
                generator,
                self._options.entities,
                store,
                seconds,
                printed=self._options.rule == "running",
            )
        self._forms_until: float | None = None
        self._no_margins = self._no_forms = ""
        """Why margins, or forms, are missing; empty while none is."""
        self.ways: Counter[str] = Counter()
        """Chunks by what became of them: condensed, supplemented, kept, refused."""

    @property
    def version(self) -> str:
        """What made the leaves besides sentences and embedder; failures are not
        included."""
        parts = (
            []
            if self._options.rule == "partition"
            else [f"chunks by the rule {self._options.rule} of the IDMS paper"]
        )
        if self._judge is not None:
            parts.append(
                f"boundaries {'in part ' if self._no_margins else ''}by {self._judge.version}"
            )
        if self.writes and self._generator is not None:
            names = ("list_entities", "rate_passage", "condense", "supplement")
            prompts = ":".join(load(name).version for name in names)
            parts.append(
                f"forms by {self._generator.name}:{self._options.entities}:{prompts}"
            )
        return "; ".join(parts)

    @property
    def notes(self) -> list[str]:
        """Sentences for the reader: who found the boundaries, which forms were written,
        and what failed."""
        lines: list[str] = []
        if self._judge is not None:
            lines.append(self._no_margins or f"Boundaries by {self._judge.name}.")
        elif self._generator is not None:
            lines.append(
                "Chunk boundaries were found by embeddings, since "
                f"{self._generator.name} returns no probabilities."
            )
        if self._no_forms:
            lines.append(self._no_forms)
        elif self._reading is not None and self._generator is not None:
            # `ways` is empty when the tree came from the cache.
            counted = ", ".join(
                f"{count} {way}" for way, count in sorted(self.ways.items())
            )
            lines.append(
                "Rewritten forms of chunks, for searching only, by "
                f"{self._generator.name}{f': {counted}' if counted else ''}."
            )
        elif self._options.density:
            lines.append(
                "No rewritten forms of chunks: +density in WINNOW_PAPERS "
                "requires a generator and an embedder."
            )
        return lines

    @property
    def writes(self) -> bool:
        """Whether its forms are to be used: they are wanted, and all so far were
        written."""
        return self._reading is not None and not self._no_forms

    async def ranges(
        self,
        sentences: Sequence[Sentence],
        *,
        embedder: Embedder | None,
        minimum: int,
        maximum: int,
    ) -> Ranges:
        """Return [start, end) ranges of a document's sentences, of `minimum` to
        `maximum` tokens where possible; the running rule has no such bounds.

        Raises `ModelError` for the embedder's failure; a failing generator leaves the
        boundaries to embeddings, and `notes` say so."""
        rule = self._options.rule
        if rule == "running":
            minimum, maximum = 0, UNBOUNDED_TOKENS
        if self._judge is not None and len(sentences) > 1:
            texts = [sentence.text for sentence in sentences]
            try:
                if rule == "running":
                    return await self._judge.chunks(texts)
                margins = await self._judge.margins(texts)
            except ModelError as error:
                self._no_margins = f"Boundaries by embeddings: {error}"
            else:
                costs = await in_thread(sentence_costs, texts)
                return await in_thread(
                    cut_by_margins,
                    margins,
                    costs,
                    rule=rule,
                    minimum=minimum,
                    maximum=maximum,
                )
        return await segment(
            sentences, embedder=embedder, rule=rule, minimum=minimum, maximum=maximum
        )

    async def forms(
        self, chunks: Sequence[Sequence[str]], *, language: str
    ) -> list[str]:
        """Return the additional index text of each chunk of one document, or "".

        After a failure, or when the time is over, `notes` say so and nothing more is
        written: all are empty, also those that were written in time. What was written
        is kept by content, so that a repeat goes on from it."""
        nothing = [""] * len(chunks)
        if (
            self._reading is None
            or self._generator is None
            or self._no_forms
            or not chunks
        ):
            return nothing
        self._forms_until = (
            self._forms_until or anyio.current_time() + self._reading.seconds
        )
        done: list[Form] | None = None
        with anyio.CancelScope(deadline=self._forms_until):
            try:
                found = await densities(chunks, self._reading, language=language)
                done = await enrich(
                    chunks, found, self._generator, self._reading, language=language
                )
            except ModelError as error:
                self._no_forms = f"No forms for the index were written: {error}"
                return nothing
        if done is None:
            self._no_forms = (
                f"{self._generator.name} did not write all forms for the index in "
                f"{self._reading.seconds:.0f} s, so "
                "none is used; what it wrote is kept: ask again, or raise WINNOW_SECONDS."
            )
            return nothing
        self.ways.update(form.way for form in done)
        return [form.text for form in done]
