"""Relevance score of every unit of some pages for a question; used by all tools.

`Reader` is its interface. `Blend` judges a unit by itself and by the windows of text
that hold it, of three sizes: what answers seldom repeats the question's words, but is
near them.

    window = standardised BM25 + MEANING × standardised cosine
    unit   = mean over itself and the sizes of the best window around it

Units are embedded under their headings, and the vector of a window is the mean of its
units': one embedding a unit, whatever the question. Words and sentence vectors cannot
distinguish "mentions it" from "answers it"; a cross-encoder can, at some 20 ms a
window, so `Reread` has it read only around the blend's best units, and adds what
it finds to their scores: alone it orders worse. Not for: saying whether anything
answers (`verdict.py`), the cross-encoder (`models/onnx.py`), or filling a budget
(`pipeline/evidence`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Protocol

import anyio
import numpy as np
from numpy.typing import NDArray

from errors import ModelError
from models.pair import fitting
from models.protocols import CrossEncoder, Embedder, Reranker, Window, WindowReading
from models.text import reads_latin
from pipeline.question.question import Question
from pipeline.reading.background import Background, background_of
from pipeline.reading.bm25 import (
    BM25,
    JOINT,
    Floats,
    PageUnits,
    TermIndex,
    Windows,
    blend,
    cut_windows,
    letter_counts,
    standardise,
    unit_range,
)
from pipeline.text.tokens import Budget, count_each, cut_to_tokens
from pipeline.text.words import (
    count_letters,
    guess_language,
)
from pipeline.work import LONG_SHARE, STEP_SHARE, in_thread, time_left
from readers.page import ScoreMaker

SIZES: Final = (0, 40, 80, 160)
"""Tokens of windows, 0 for a unit by itself; the largest leaves the reader, which sees
256, room for what is above."""
LETTERS_A_TOKEN: Final = 4.7
"""Of English prose. The token counter has up to five times as many tokens for the same
text in other scripts: by it a window of 160 held one Greek sentence, and an embedder
saw 96 letters of Thai."""
MEANING: Final = 2.0
"""Weight of the cosine against BM25, both standardised: 1.5 shows .855 of the asked
questions at 512 tokens, 2 .863."""
GROUPS_WEIGHT: Final = 0.5
"""Weight of shared letter groups for a question in another language than the page: .42
to .50 of 26 at 512 tokens."""
EMBED_TOKENS: Final = 12_000
"""Most tokens that one call embeds, units in the best windows by BM25 first: with
32,000 a question over a folder takes 1.5 times as long and shows as much."""
FIRST_TOKENS: Final = 4_000
"""Most that is embedded of one text with more than `EMBED_TOKENS` before a
cross-encoder looks, .3 processor seconds."""
ENOUGH_PROBABILITY: Final = 0.7
"""Probability that a window answers, from which no further unit of such a text is
embedded."""
EMBEDDED_AT_ONCE: Final = 64
"""Texts between two looks at the time, .5 processor seconds. What is done is kept: the
same call goes on from it."""
EMBED_LONGEST: Final = 96
"""Tokens of a unit with its headings that the embedder sees; longer ones are cut."""
MOST_TEXTS: Final = EMBED_TOKENS // EMBED_LONGEST
"""Texts without structure that are embedded in one call, best BM25 first."""
WINDOWS: Final = 16
"""Windows of one page that the cross-encoder reads, about .3 processor seconds
(figures: docs/log.md, 2026-11-27)."""
WINDOWS_OF_PAGES: Final = 40
"""Most windows of several pages; as many units see a reranker: these hold .97 to 1.0 of
the evidence on pages of paragraphs."""
WORTH: Final = 0.5
"""Minimum share of the best score for a unit without a set budget, for a further page,
and for reading a window beyond the first `WINDOWS` (figures: docs/log.md,
2026-11-27)."""
READ_AT_ONCE: Final = 4
"""Windows between two looks at the time; the model reads one a batch."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """Scores of all units of all pages, numbered through, and what the verdict looks
    at."""

    values: Floats
    """Scores [units], 0..1 with the best at 1; comparable within one question only."""
    made_by: ScoreMaker
    index: TermIndex
    windows: Windows
    """The largest windows [n, 2], as a cross-encoder reads them."""
    cosines: Floats | None
    """Cosine of the question with the nearest middle-sized window around each unit
    [units], on the scale of the carried English model, NaN where nothing of it was
    embedded; None where the embedder does not read question or pages, or its cosines
    say nothing (`background.py`)."""
    foreign: bool
    """Whether the question is in another language than every page."""
    read: Floats | None = None
    """Probability that a unit answers, by a cross-encoder [units]; 0 where it did not
    look, NaN on pages that it does not read, None without one."""
    long: bool = False
    """Whether it is of one text with more than `EMBED_TOKENS` to embed."""
    late: bool = False
    """Whether time ended before as much of it was embedded and read as is always
    done."""
    failure: str = ""
    """What a model that failed said; the scores are made without it."""


class Reader(Protocol):
    """Judges units against a question."""

    async def read(self, question: Question, pages: Sequence[PageUnits]) -> Relevance:
        """Return one score a unit of `pages`."""
        ...


@dataclass(frozen=True, slots=True)
class Blend:
    """Words and meaning together; the reader that needs no training."""

    embedder: Embedder | None
    """Left out where it does not read the question's script, and for pages whose script
    it does not read."""
    reranker: Reranker | None = None
    """Reranker of the best `WINDOWS_OF_PAGES` units, if given."""

    async def read(
        self,
        question: Question,
        pages: Sequence[PageUnits],
        *,
        of_long: int = EMBED_TOKENS,
    ) -> Relevance:
        """Return one score a unit; see the module. Of one text with more than `EMBED_TOKENS`, only
        so many tokens as `of_long` says. A model that takes too long is left out;
        `late` says so of the embedder; `failure` of one that failed.
        """
        # 1. Words: counts of the question's terms in every unit, and the windows around it
        counted = await in_thread(_Counted, question, pages)
        # 2. Meaning: units embedded, those in the windows with the best words first
        long = len(pages) == 1 and float(counted.tokens.sum()) > EMBED_TOKENS
        most_tokens = of_long if long else EMBED_TOKENS
        try:
            meaning = await self._vectors(question, pages, counted, most_tokens)
        except ModelError as error:
            meaning = _Meaning(failure=str(error))
        # 3. Both, in windows of every size
        relevance = await in_thread(_blend, counted, meaning)
        long = long and meaning.vectors is not None
        relevance = replace(
            relevance, long=long, late=meaning.late, failure=meaning.failure
        )
        # 4. A reranker has the last word on the best
        if self.reranker is None or not counted.index.size:
            return relevance
        texts = [
            page.headed(index) for page in pages for index in range(len(page.texts))
        ]
        rows = np.argsort(-relevance.values, kind="stable")[:WINDOWS_OF_PAGES]
        with anyio.move_on_after(STEP_SHARE * time_left()):
            try:
                scores = await self.reranker.score(
                    question.text, [texts[row] for row in rows.tolist()]
                )
            except ModelError as error:
                return replace(relevance, failure=str(error))
            values = 0.5 * relevance.values
            values[rows] = 0.5 + 0.5 * unit_range(scores)
            return replace(relevance, values=values, made_by="rerank")
        return relevance

    async def _vectors(
        self,
        question: Question,
        pages: Sequence[PageUnits],
        counted: "_Counted",
        most_tokens: int,
    ) -> "_Meaning":
        """Return the vectors of units, zeros where not embedded since they are over
        `most_tokens` together, and of questions, by the embedder that reads all of
        them. None where no embedder reads them. Where time ends first, the rest are
        zeros too, and `late` is set."""
        embedder = _fitting(self.embedder, question, pages, counted.index)
        if embedder is None or not counted.index.size:
            return _Meaning()
        questions = _translated_for(embedder, question, counted.index)
        if not questions:
            return _Meaning()
        stored = [page.vectors for page in pages if page.vectors is not None]
        rows, texts = (
            ([], [])
            if stored
            else await in_thread(_to_embed, pages, counted, embedder, most_tokens)
        )
        if not rows and not stored:
            return _Meaning()
        question_vectors: Floats | None = None
        vectors: Floats | None = np.concatenate(stored) if stored else None
        background: Background | None = None
        with anyio.move_on_after(STEP_SHARE * time_left()) as step:
            wordings = list(dict.fromkeys(questions))
            embedded = await embedder.embed(wordings, kind="query")
            language = question.spoken_to(counted.index.languages)
            background = await background_of(
                embedder, language, counted.index.languages, embedded
            )
            question_vectors = embedded[[wordings.index(text) for text in questions]]
            for start in range(0, len(rows), EMBEDDED_AT_ONCE):
                embedded = await embedder.embed(
                    texts[start : start + EMBEDDED_AT_ONCE], kind="passage"
                )
                if vectors is None:
                    vectors = np.zeros(
                        (counted.index.size, embedded.shape[1]), dtype=np.float32
                    )
                vectors[rows[start : start + EMBEDDED_AT_ONCE]] = embedded
        unknown = question_vectors is None or vectors is None
        late = step.cancelled_caught
        return (
            _Meaning(late=late)
            if unknown
            else _Meaning(vectors, question_vectors, background, late)
        )


@dataclass(frozen=True, slots=True)
class _Meaning:
    """Vectors of units and questions."""

    vectors: Floats | None = None
    """Of all units [units, d], zeros where not embedded."""
    asked: Floats | None = None
    """Each page's question [pages, d]."""
    background: Background | None = None
    """What the model's cosines mean; known where vectors are."""
    late: bool = False
    """Whether time ended before all units were embedded."""
    failure: str = ""
    """What the embedder said that failed."""


def _fitting(
    embedder: Embedder | None,
    question: Question,
    pages: Sequence[PageUnits],
    index: TermIndex,
) -> Embedder | None:
    """Return the embedder for question and pages (see `models.pair.fitting`), None
    without one. Where a page has stored vectors, it is the first of a pair, which made
    them."""
    if any(page.vectors is not None for page in pages):
        return fitting(embedder, (), ())
    languages = [question.spoken, *index.languages]
    texts = [question.text, *(" ".join(page.texts[:20]) for page in pages)]
    return fitting(embedder, languages, texts)


def _translated_for(
    model: Embedder | CrossEncoder, question: Question, index: TermIndex
) -> list[str]:
    """Return what a model is asked of each page; nothing where it would read the
    question for some of them only.

    A model that reads Chinese is taken for one of many languages, which reads the
    question as it is; others read English. Asked of German pages, too, an English
    question finds more than its words in German: 256 tokens .925, .895 of 200."""
    is_multilingual = model.reads("中文")
    texts = [
        (
            question
            if is_multilingual or code != "en"
            else question.translated_to(code)
        ).text
        for code in index.languages
    ]
    return texts if all(map(model.reads, texts)) else []


class _Counted:
    """The question's words in the units, and the windows that the units make."""

    def __init__(self, question: Question, pages: Sequence[PageUnits]) -> None:
        self.index = TermIndex(pages)
        self.own, self.above = self.index.question_counts(question)
        texts = [text for page in pages for text in page.texts]
        self.tokens = np.array(
            sizes_of([text.strip() for text in texts]), dtype=np.float32
        )
        self.windows = [
            cut_windows(self.tokens, self.index.page_starts, size) for size in SIZES
        ]
        language = question.spoken_to(self.index.languages)
        self.foreign = bool(language) and language not in self.index.languages
        letters = letter_counts(question.text, texts) if self.foreign else None
        self.words = [self._words(windows, letters) for windows in self.windows]
        """The standardised BM25 of these windows."""

    def _words(self, windows: Windows, letters: Floats | None) -> Floats:
        scores = standardise(self.index.window_scores(self.own, self.above, windows))
        if letters is not None:
            shared = self.index.window_scores(letters, np.zeros_like(letters), windows)
            scores = scores + np.float32(GROUPS_WEIGHT) * standardise(shared)
        return scores


def sizes_of(texts: Sequence[str]) -> list[int]:
    """Return the tokens of texts; of one that is not in Latin letters as many as an
    English text that says the same would have."""
    counts = count_each(texts)
    return [
        tokens
        if reads_latin(text)
        else min(tokens, round(count_letters(text) / LETTERS_A_TOKEN))
        for text, tokens in zip(texts, counts, strict=True)
    ]


def _cut(text: str, size: int) -> str:
    """Return the beginning of a text of `size` that has `EMBED_LONGEST`."""
    if reads_latin(text):
        return cut_to_tokens(text, EMBED_LONGEST)
    return text[: len(text) * EMBED_LONGEST // size]


def _headed(page: PageUnits, index: int, *, titled: bool) -> str:
    """Return a unit after its innermost heading, and after the page's title where that
    is `titled`."""
    body, headings = page.texts[index], page.above[index]
    heading = headings.rpartition(JOINT)[2]
    title = headings.partition(JOINT)[0]
    if titled and title != heading:
        heading = f"{title}{JOINT}{heading}"
    return body if not heading or body.startswith(heading) else f"{heading}: {body}"


def _to_embed(
    pages: Sequence[PageUnits], counted: _Counted, embedder: Embedder, most_tokens: int
) -> tuple[list[int], list[str]]:
    """Return the units to embed, those in the best windows first within `most_tokens`,
    and their texts.

    A unit is prefixed with its innermost heading; for several pages also with the
    title, which distinguishes them. Pages that `embedder` does not read are left out; a
    unit over `EMBED_LONGEST` is cut."""
    readable = [embedder.reads(" ".join(page.texts[:20])) for page in pages]
    owners = [
        (number, index)
        for number, page in enumerate(pages)
        for index in range(len(page.texts))
    ]
    nearness = _spread(counted.words[1], counted.windows[1], counted.index.size)
    rows: list[int] = []
    texts: list[str] = []
    budget = Budget(most_tokens)
    for row in np.argsort(-nearness, kind="stable").tolist():
        number, index = owners[row]
        if not readable[number]:
            continue
        text = _headed(pages[number], index, titled=len(pages) > 1)
        (cost,) = sizes_of([text])
        if cost > EMBED_LONGEST:
            text, cost = _cut(text, cost), EMBED_LONGEST
        if not budget.spend(cost):
            break
        rows.append(row)
        texts.append(text)
    return rows, texts


def _blend(counted: _Counted, meaning: _Meaning) -> Relevance:
    index, vectors, question_vectors = counted.index, meaning.vectors, meaning.asked
    values = np.zeros(index.size, dtype=np.float32)
    cosines: Floats | None = None
    running: _Running | None = None
    if vectors is not None and question_vectors is not None:
        running = _Running(vectors, np.sqrt(counted.tokens))
    middle = len(counted.windows) // 2
    for number, (windows, words) in enumerate(
        zip(counted.windows, counted.words, strict=True) if index.size else ()
    ):
        fused = words
        if running is not None and question_vectors is not None:
            window_cosines = running.cosines(
                question_vectors, index.owners(windows[:, 0]), windows
            )
            if number == middle:
                cosines = _spread(window_cosines, windows, index.size)
            fused = words + np.float32(MEANING) * _standing(window_cosines)
        values += _spread(fused, windows, index.size)
    values = unit_range(values)
    if cosines is not None and running is not None:
        cosines = _on_scale(cosines, running, counted, meaning.background)
    made_by: ScoreMaker = "bm25" if vectors is None else "blend"
    return Relevance(
        values, made_by, index, counted.windows[-1], cosines, counted.foreign
    )


def _on_scale(
    cosines: Floats,
    running: "_Running",
    counted: _Counted,
    background: Background | None,
) -> Floats | None:
    """Return cosines as what the background says that they mean; None where it does
    not know that."""
    if background is None:
        return None
    windows = counted.windows[len(SIZES) // 2]
    measured = _beside(background, running, counted.index, windows)
    return measured.on_scale(cosines) if measured.separates else None


def _beside(
    background: Background, running: "_Running", index: TermIndex, windows: Windows
) -> Background:
    """Return the figures for these pages, where unrelated questions say how near they
    are to any."""
    if background.unrelated is None or not len(windows):
        return background
    owners = index.owners(windows[:, 0])
    pages = int(owners.max()) + 1
    nearest = [
        np.nanmax(running.cosines(np.tile(vector, (pages, 1)), owners, windows))
        for vector in background.unrelated
    ]
    return background.beside(float(np.mean(nearest)))


class _Running:
    """Sums of the weighted vectors of all units before each; of a long text few are
    known."""

    def __init__(self, vectors: Floats, weights: Floats) -> None:
        is_known = vectors.any(axis=1)
        self._before = np.concatenate(([0], np.cumsum(is_known)))
        self._sums = np.zeros((int(self._before[-1]) + 1, vectors.shape[1]))
        np.cumsum(
            vectors[is_known] * weights[is_known, None], axis=0, out=self._sums[1:]
        )

    def cosines(
        self, questions: Floats, pages: NDArray[np.int64], windows: Windows
    ) -> Floats:
        """Return the cosine of each window's sum with what its page is asked [n], NaN
        where nothing of it is known."""
        cosines: Floats = np.full(len(windows), np.nan, dtype=np.float32)
        start, stop = self._before[windows.T]
        rows = np.flatnonzero(stop > start)
        sums = self._sums[stop[rows]] - self._sums[start[rows]]
        lengths = np.linalg.norm(sums, axis=1)
        long = lengths > 1e-6
        rows = rows[long]
        cosines[rows] = (sums[long] * questions[pages[rows]]).sum(axis=1) / lengths[
            long
        ]
        return cosines


def _standing(cosines: Floats) -> Floats:
    """Return cosines standardised, unknown ones taken for the lowest."""
    return standardise(np.nan_to_num(cosines, nan=float(np.nanmin(cosines))))


def _spread(scores: Floats, windows: Windows, size: int) -> Floats:
    """Return for each unit [size] the best known score of a window that holds it, NaN
    where none is known."""
    highest: Floats = np.full(size, np.nan, dtype=np.float32)
    unit, stop = windows.T
    while len(unit):
        np.fmax.at(highest, unit, scores)
        inside = unit + 1 < stop
        unit, stop, scores = unit[inside] + 1, stop[inside], scores[inside]
    return highest


class First(Protocol):
    """A `Reader` that can embed less of a long text; see `Blend.read`."""

    async def read(
        self,
        question: Question,
        pages: Sequence[PageUnits],
        *,
        of_long: int = EMBED_TOKENS,
    ) -> Relevance:
        """Return one score a unit."""
        ...


def _read_best(
    windows: Sequence[tuple[int, int]], readings: Sequence[WindowReading], size: int
) -> Floats:
    """Return for each unit [size] the best that readings of the first windows found in
    it: its probability, by the square root of the window's."""
    probabilities: Floats = np.zeros(size, dtype=np.float32)
    for (start, stop), reading in zip(windows, readings, strict=False):
        in_window = probabilities[start:stop]
        np.maximum(
            in_window, reading.keep * np.float32(reading.answers**0.5), out=in_window
        )
    return probabilities


@dataclass(frozen=True, slots=True)
class Reread:
    """A `Reader` whose best windows a cross-encoder reads again."""

    first: First
    encoder: CrossEncoder

    async def read(self, question: Question, pages: Sequence[PageUnits]) -> Relevance:
        """Return the first reader's scores with what the cross-encoder found in the
        best windows added.

        Of a long text few units
        are embedded where an answer is found among them, or where the text lacks a name
        of the question. Where time ends before more are, what few say is given, which
        does not depend on how busy the machine is.
        """
        relevance = await self._read(question, pages, FIRST_TOKENS)
        probability = (
            0.0
            if relevance.read is None
            else float(np.nanmax(relevance.read, initial=0.0))
        )
        if not relevance.long or relevance.late or probability >= ENOUGH_PROBABILITY:
            return relevance
        names = relevance.index.names(question).values()
        if not (relevance.foreign or all(name.any(axis=1).all() for name in names)):
            return relevance
        with anyio.move_on_after(LONG_SHARE * time_left()):
            relevance_of_more = await self._read(question, pages, EMBED_TOKENS)
            if not relevance_of_more.late:
                return relevance_of_more
        return replace(relevance, late=True)

    async def _read(
        self, question: Question, pages: Sequence[PageUnits], of_long: int
    ) -> Relevance:
        relevance = await self.first.read(question, pages, of_long=of_long)
        questions = _translated_for(self.encoder, question, relevance.index)
        if not relevance.index.size or not questions:
            return relevance
        readable = _readable(self.encoder, question, questions, pages, relevance.index)
        if not readable.any():
            return relevance
        chosen, windows = await in_thread(_best_windows, pages, relevance, readable)
        wordings = [
            questions[page]
            for page in relevance.index.owners([start for start, _ in chosen]).tolist()
        ]
        readings: list[WindowReading] = []
        with anyio.move_on_after(STEP_SHARE * time_left()) as step:
            for start in range(0, len(windows), READ_AT_ONCE):
                for text, run in groupby(
                    range(start, min(start + READ_AT_ONCE, len(windows))),
                    key=wordings.__getitem__,
                ):
                    try:
                        readings += await self.encoder.read(
                            text, [windows[index] for index in run]
                        )
                    except ModelError as error:
                        return replace(relevance, failure=str(error))
        relevance = replace(relevance, late=relevance.late or step.cancelled_caught)
        if not readings:
            return relevance
        probabilities = _read_best(chosen, readings, relevance.values.size)
        # The fourth root of a probability against the blend's scores, both 0..1: the square root
        # shows .699 and .848 of 256 asked questions by fetch at 256 and 512 tokens, the fourth .719
        # and .863; .809 and .842 of 209 others.
        values = unit_range(relevance.values + probabilities**0.25)
        probabilities[~readable] = np.nan
        return replace(relevance, values=values, made_by="read", read=probabilities)


def _readable(
    encoder: CrossEncoder,
    question: Question,
    wordings: Sequence[str],
    pages: Sequence[PageUnits],
    index: TermIndex,
) -> NDArray[np.bool_]:
    """Return whether a cross-encoder reads each unit [units]: it knows the page's
    script, and a question in another language than the page has words in the page's
    (`wordings`)."""
    is_multilingual = encoder.reads("中文")
    is_read = [
        is_multilingual
        or (
            encoder.reads(" ".join(page.texts[:20]))
            and (question.spoken in ("", language) or text != question.text)
        )
        for page, text, language in zip(pages, wordings, index.languages, strict=True)
    ]
    return np.repeat(np.array(is_read, dtype=bool), np.diff(index.page_starts))


def _best_windows(
    pages: Sequence[PageUnits],
    relevance: Relevance,
    readable: NDArray[np.bool_],
) -> tuple[list[tuple[int, int]], list[Window]]:
    """Return the windows that hold the best `readable` units, each by the window in
    which it is most central. Beyond `WINDOWS` only units that score
    `WORTH` bring further ones."""
    owners = [(page, index) for page in pages for index in range(len(page.texts))]
    windows = relevance.windows
    most_windows = WINDOWS if len(pages) == 1 else WINDOWS_OF_PAGES
    middles = windows.sum(axis=1) / 2
    covered = ~readable
    chosen: list[tuple[int, int]] = []
    for row in np.argsort(-relevance.values, kind="stable").tolist():
        if len(chosen) == most_windows or (
            len(chosen) >= WINDOWS and relevance.values[row] < WORTH
        ):
            break
        if covered[row]:
            continue
        holding = np.flatnonzero((windows[:, 0] <= row) & (row < windows[:, 1]))
        start, stop = windows[holding[np.abs(middles[holding] - row).argmin()]].tolist()
        covered[start:stop] = True
        chosen.append((start, stop))
    texts = []
    for start, stop in chosen:
        page, index = owners[start]
        texts.append(
            Window(page.above[index], tuple(page.texts[index : index + stop - start]))
        )
    return chosen, texts


async def score_texts(
    texts: Sequence[str], question: Question, *, embedder: Embedder | None
) -> Floats:
    """Return one score a text [n] by BM25 and, where it reads the question, the
    embedder: for texts without structure.

    A question in another language is asked in English too, since the language of the
    texts is unknown. Only the best `MOST_TEXTS` by words are embedded; the others count
    as the least alike of these. Raises `ModelError`: the embedder failed.
    """

    languages = {question.translated_to("en"): "en", question: question.language}

    def by_words() -> Floats:
        scores = [
            BM25(texts, language=code).scores(wording)
            for wording, code in languages.items()
        ]
        return standardise(np.asarray(np.sum(scores, axis=0), dtype=np.float32))

    total = await in_thread(by_words)
    language = guess_language(" ".join(texts[:20]))
    embedder = fitting(embedder, [question.spoken, language], [question.text])
    wordings = [wording.text for wording in languages]
    readable = [
        wording
        for wording in wordings
        if embedder is not None and embedder.reads(wording)
    ]
    if embedder is None or not texts or not readable:
        return total
    rows = np.argsort(-total, kind="stable")[:MOST_TEXTS].tolist()
    questions = await embedder.embed(readable, kind="query")
    vectors = await embedder.embed([texts[row] for row in rows], kind="passage")
    likeness = (vectors @ questions.T).max(axis=1)
    meaning: Floats = np.full(len(texts), float(likeness.min()), dtype=np.float32)
    meaning[rows] = likeness
    return blend([total, meaning])
