"""`winnow eval`: the steps that a generator can take part in, each measured by rules and with the
generator.

Pruning by block paths, extracting by lines, tags or votes, parsing a request, answering from
evidence; the table tells what to switch on. A folder of data holds `questions.jsonl` (an object a
line: `question`; `answers`, a list of facts, each a list of wordings, empty where nothing answers;
`pages`, the file names that answer, or that are read where nothing does) and the documents in
`library/`. A checkout carries one in `examples/`. Not for: what a generator does for trees
(`bench/leaves.py`), or speeds alone (`winnow models bench`).
"""

import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cli.output import OK, PATIENCE, drawn_progress, print_json
from errors import ModelError, UsageError
from models.protocols import (
    Ability,
    Chooser,
    Embedder,
    Generator,
    HeldModel,
    PathScores,
    Prompt,
    Said,
    TreeScorer,
    abilities_of,
    tree_scorer,
)
from pipeline.answer import Writing, write_answer
from pipeline.document.page import Document, ParsedRequest, Reading
from pipeline.evidence.assemble import assemble
from pipeline.fetch.files import read_file
from pipeline.html.document import read_document
from pipeline.prune.paper import path_scorer
from pipeline.prune.prune import PruneOptions, prune
from pipeline.question.parse import Parser, parse, parse_request
from pipeline.reading.ask import WAYS, Way, can_ask
from pipeline.reading.bm25 import BM25, reciprocal_rank_fusion
from pipeline.reading.extract import Asking, extract, with_model
from pipeline.reading.relevance import Reader
from pipeline.text.frame import new_mark
from pipeline.text.tokens import count_tokens
from pipeline.work import Report, check_cancelled, in_thread, no_report
from server.settings import Settings
from server.wiring import open_services


class Watched:
    """A `Generator`, with all that the one behind it can do, that keeps count from its making
    on."""

    def __init__(self, generator: Generator) -> None:
        """Watch `generator`."""
        self._generator = generator
        self._begun = False
        self._open = 0
        self._since = 0.0
        self.failed = 0
        """Calls that failed, or were given up because their time was over."""
        self.seconds = 0.0
        """Time during which a call was under way."""
        self.fault = ""
        """Why the last failed call failed; empty for none."""
        self._before: int | None = None
        self.replies: list[str] = []
        """Answers in the order in which they came."""

    @property
    def name(self) -> str:
        """Name of the generator behind."""
        return self._generator.name

    @property
    def context_tokens(self) -> int:
        """Context of the generator behind."""
        return self._generator.context_tokens

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the generator behind can do."""
        return abilities_of(self._generator)

    async def generate(self, messages: Sequence[Said], *, max_tokens: int, **held_to: Any) -> str:
        """Ask the generator behind, with the same schema or grammar; raises what it raises."""
        async with self._call():
            text = await self._generator.generate(messages, max_tokens=max_tokens, **held_to)
            self.replies.append(text)
            return text

    async def choose(self, prompt: Prompt, options: Sequence[str]) -> NDArray[np.float64]:
        """Ask the generator behind, whose `abilities` have it; raises what it raises."""
        async with self._call():
            return await cast(Chooser, self._generator).choose(prompt, options)

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Ask the generator behind; raises what it raises."""
        async with self._call():
            return await cast(TreeScorer, self._generator).score_tree(
                prefix, paths, among_siblings=among_siblings
            )

    async def tokens(self) -> int | None:
        """Return how many tokens went through the model so far; None where its backend does not
        count them."""
        now = await self._counted() if self._begun else 0
        return max(0, now - (self._before or 0)) if now is not None else None

    async def _counted(self) -> int | None:
        if not isinstance(self._generator, HeldModel):
            return None
        tokens = (await self._generator.counters()).get("tokens")
        return tokens if isinstance(tokens, int) else None

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        self._begun = True
        self._open += 1
        if self._open == 1:
            self._since = time.perf_counter()
        done = False
        try:
            if self._before is None:
                self._before = await self._counted()
            yield
            done = True
        except ModelError as error:
            self.fault = str(error)
            raise
        finally:
            self._open -= 1
            if not self._open:
                self.seconds += time.perf_counter() - self._since
            if not done:
                self.failed += 1
                self.fault = self.fault or "its time was over"


QUESTIONS: Final = "questions.jsonl"
LIBRARY: Final = "library"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MeasuredQuestion:
    """One question with what answers it."""

    question: str
    answers: tuple[tuple[str, ...], ...]
    """Facts, each in the wordings that count; empty where the library does not answer."""
    pages: tuple[str, ...]
    """File names."""

    def is_in(self, text: str) -> bool:
        """Whether every fact stands in `text`, in one of its wordings."""
        folded = _folded(text)
        return all(any(_folded(wording) in folded for wording in fact) for fact in self.answers)


@dataclass(frozen=True, slots=True)
class Library:
    """Questions and the documents that they are asked of."""

    asked: tuple[MeasuredQuestion, ...]
    names: tuple[str, ...]
    documents: tuple[Document, ...]
    index: BM25

    def nearest(self, text: str, *, first: Sequence[str] = (), count: int = 3) -> list[Document]:
        """Return `count` documents, or all of `first` where those are more: them, then the nearest
        to `text`."""
        order = [self.names.index(name) for name in first]
        scores = self.index.scores(text)
        order += [
            i for i in sorted(range(len(scores)), key=lambda i: -float(scores[i])) if i not in order
        ]
        return [self.documents[i] for i in order[: max(count, len(first))]]


@dataclass(frozen=True, slots=True)
class Setup:
    """What every step is measured with."""

    library: Library
    generator: Generator
    embedder: Embedder | None
    reader: Reader
    """What judges units, as the tools have it."""
    today: date
    limit: int
    """Most questions, documents or clusters of a step."""
    ways: Sequence[Way]
    """How the generator is asked for lines: as WINNOW_EXTRACTOR says, every way where that is
    `rules`."""
    seconds: float
    """Patience for one call; the figures are not about the deadline of a tool."""
    report: Report

    @property
    def answerable(self) -> list[MeasuredQuestion]:
        """Questions that the library answers, `limit` of them evenly spread."""
        return some([one for one in self.library.asked if one.answers and one.pages], self.limit)

    @property
    def unanswerable(self) -> list[MeasuredQuestion]:
        """Questions that it does not answer, likewise."""
        return some([one for one in self.library.asked if not one.answers], self.limit)


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """One figure by rules and by the model."""

    step: str
    what: str
    n: int = 0
    rules: float | None = None
    """None where the rules have no such figure."""
    model: float | None = None
    """None where the model could not be asked; `note` says why."""
    tokens: int | None = None
    """Tokens that went through the model for this row and those of the step that stand without a
    number."""
    seconds: float | None = None
    failed: int = 0
    note: str = ""


@dataclass(slots=True)
class Figure:
    """One figure's values by rules (none where they have no such figure) and by the model; the row
    has their means."""

    what: str
    rules: list[float] = field(default_factory=list)
    model: list[float] = field(default_factory=list)


class FigureTable:
    """The rows of one step in the making, and the generator that it asks."""

    def __init__(self, step: str, setup: Setup) -> None:
        self.watched = Watched(setup.generator)
        self._step = step
        self._report = setup.report
        self._figures: list[Figure] = []

    def figure(self, what: str) -> Figure:
        """Return a new figure, whose row comes after those of the ones before."""
        self._figures.append(Figure(what))
        return self._figures[-1]

    async def each(self, items: Sequence[T]) -> AsyncIterator[T]:
        """Yield the items, and report after each."""
        for number, item in enumerate(items):
            yield item
            await self._report(number + 1, len(items), self._step)

    async def rows(self) -> list[MeasuredFigure]:
        """Return a row a figure; the first tells what the generator spent."""
        rows = [
            MeasuredFigure(
                self._step,
                one.what,
                max(len(one.rules), len(one.model)),
                _mean(one.rules),
                _mean(one.model),
            )
            for one in self._figures
        ]
        asked, tokens = self.watched, await self.watched.tokens()
        rows[0] = replace(
            rows[0], tokens=tokens, seconds=asked.seconds, failed=asked.failed, note=asked.fault
        )
        return rows


def read_library(folder: Path) -> Library:
    """Return the questions and documents of `folder`."""
    questions, documents = folder / QUESTIONS, (folder / LIBRARY).resolve()
    if not questions.is_file() or not documents.is_dir():
        raise UsageError(
            f"{folder} holds no {QUESTIONS} with a folder {LIBRARY} beside it.",
            hint="Name a folder that does; a checkout of Winnow carries one in examples/, an "
            "installed wheel none.",
        )
    paths = sorted(
        path for path in documents.iterdir() if path.is_file() and not path.name.startswith(".")
    )
    names = tuple(path.name for path in paths)
    asked = [
        _asked(line, number, names)
        for number, line in enumerate(questions.read_text("utf-8").splitlines(), start=1)
        if line.strip()
    ]
    read = []
    for path in paths:
        check_cancelled()
        read.append(read_document(read_file(path, roots=[documents])))
    if not read or not asked:
        raise UsageError(
            f"{folder} holds {len(asked)} questions and {len(read)} documents.",
            hint="Add what is missing.",
        )
    return Library(tuple(asked), names, tuple(read), BM25([document.text for document in read]))


def _asked(line: str, number: int, names: Sequence[str]) -> MeasuredQuestion:
    try:
        row = json.loads(line)
        answers = tuple(tuple(str(wording) for wording in fact) for fact in row["answers"])
        one = MeasuredQuestion(
            str(row["question"]), answers, tuple(str(name) for name in row.get("pages", ()))
        )
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise UsageError(
            f"Line {number} of {QUESTIONS} is no question: {e!r}.",
            hint='Use {"question": "…", "answers": [["one wording", "another"]], "pages": '
            '["name.html"]}.',
        ) from e
    strange = [name for name in one.pages if name not in names]
    if strange:
        raise UsageError(
            f"Line {number} of {QUESTIONS} names {strange[0]}, which is not in {LIBRARY}.",
            hint="Correct it.",
        )
    return one


def some(items: Sequence[T], limit: int) -> list[T]:
    """Return at most `limit` of `items`, evenly spread, in their order."""
    if len(items) <= limit:
        return list(items)
    return [items[number * len(items) // limit] for number in range(limit)]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


# Steps

BUDGET: Final = 256
"""Tokens of pruned pages and of extracted sentences: few, so that choosing well shows."""
EVIDENCE: Final = BUDGET * 3
"""Tokens of evidence that an answer is written from."""
METHODS: Final[dict[Literal["winnow", "paper"], str]] = {
    "winnow": f"answers kept at {BUDGET} tokens",
    "paper": "the same by the paper's own steps",
}


async def prune_by_paths(setup: Setup) -> list[MeasuredFigure]:
    """Return whether pages pruned to `BUDGET` tokens keep the answer, without and with a
    generator's path scores.

    One row for the default pruning, one for the paper's: its first step alone against both steps
    (HtmlRAG §3.4).
    """
    rows: list[MeasuredFigure] = []
    for method, what in METHODS.items():
        table = FigureTable("prune", setup)
        kept = table.figure(what)
        if tree_scorer(table.watched) is None:
            note = f"{table.watched.name} scores no paths: set a GGUF file"
            rows.append(MeasuredFigure("prune", what, len(setup.answerable), note=note))
            continue
        options = PruneOptions(BUDGET, "html", method=method)
        async for one in table.each(setup.answerable):
            documents = setup.library.nearest(one.question, first=one.pages, count=1)
            scorer = path_scorer(table.watched, documents, seconds=setup.seconds)
            for values, finer in ((kept.rules, None), (kept.model, scorer)):
                found = await prune(
                    documents,
                    one.question,
                    options=options,
                    reader=setup.reader,
                    embedder=setup.embedder,
                    finer=finer,
                )
                values.append(float(one.is_in("\n".join(page.text for page in found.pages))))
        rows += await table.rows()
    return rows


async def extract_sentences(setup: Setup) -> list[MeasuredFigure]:
    """Return recall and None by rules, and by the rules with a generator, for each way to ask it.

    What the rules read is read once: it is the same for every way, and takes as long as a small
    model's answer.
    """
    asked = (*setup.answerable, *setup.unanswerable)
    plain = [await _extracted(setup, one) for one in asked]
    rows: list[MeasuredFigure] = []
    for way in setup.ways:
        table = FigureTable("extract", setup)
        if not can_ask(table.watched, way):
            rows.append(
                MeasuredFigure(
                    "extract", f"{way}: answers held", len(asked), note="it cannot be asked so"
                )
            )
            continue
        held = table.figure(f"{way}: answers in the best {BUDGET} tokens")
        nothing = table.figure(f"{way}: None where nothing answers")
        something = table.figure(f"{way}: None where pages answer")
        asking = Asking(table.watched, way, setup.seconds)
        async for one, (documents, by_rules) in table.each(list(zip(asked, plain, strict=True))):
            by_model = await with_model(one.question, documents, by_rules, asking)
            none = something if one.answers else nothing
            for found, best, silent in (
                (by_rules, held.rules, none.rules),
                (by_model, held.model, none.model),
            ):
                best.extend([float(one.is_in(_best(found)))] if one.answers else ())
                silent.append(float(found.verdict == "none"))
        rows += await table.rows()
    return rows


async def _extracted(setup: Setup, one: MeasuredQuestion) -> tuple[list[Document], Reading]:
    documents = setup.library.nearest(one.question, first=one.pages)
    return documents, await extract(one.question, documents, reader=setup.reader)


def _best(found: Reading) -> str:
    """Return the best units of `BUDGET` tokens; nothing where the verdict is none."""
    kept: list[str] = []
    used = 0
    places = found.places if found.verdict != "none" else []
    for row in np.argsort(-found.values, kind="stable").tolist() if places else ():
        used += count_tokens(places[row][1].text) + 1
        if used > BUDGET:
            break
        kept.append(places[row][1].text)
    return "\n".join(kept)


async def parse_requests(setup: Setup) -> list[MeasuredFigure]:
    """Return how well queries by rules and by the generator find the pages that answer."""
    table = FigureTable("parse", setup)
    right = table.figure("pages that answer among the first 5")
    recent = table.figure("requests with a query for recent pages only")
    taken = table.figure("requests that the model parsed, not the rules for it")
    parser = Parser(table.watched, None, setup.seconds)
    async for one in table.each(setup.answerable):
        by_rules = parse_request(one.question, today=setup.today)
        by_model = await parse(one.question, parser, today=setup.today)
        taken.model.append(float(by_model.made_by == "model"))
        for parsed, found, narrowed in (
            (by_rules, right.rules, recent.rules),
            (by_model, right.model, recent.model),
        ):
            narrowed.append(float(any(query.freshness != "any" for query in parsed.queries)))
            found.append(await in_thread(_found, setup, parsed, one.pages))
    return await table.rows()


def _found(setup: Setup, parsed: ParsedRequest, pages: tuple[str, ...]) -> float:
    """Share of `pages` among the first documents by all queries together."""
    count = len(setup.library.names)
    orders = []
    for query in parsed.queries:
        scores = setup.library.index.scores(query.text)
        orders.append(
            [i for i in sorted(range(count), key=lambda i: -float(scores[i])) if scores[i] > 0]
        )
    fused = reciprocal_rank_fusion(orders, count)
    best = sorted(range(count), key=lambda i: -float(fused[i]))[:5]
    return sum(setup.library.names[i] in pages for i in best) / max(1, min(5, len(pages)))


async def answer_questions(setup: Setup) -> list[MeasuredFigure]:
    """Return whether the facts stand in the evidence (rules) and in the answer written from it, and
    its support."""
    table = FigureTable("answer", setup)
    facts = table.figure("all facts in the evidence (rules), in the answer (model)")
    supported = table.figure("sentences that the passages they cite bear out")
    silent = table.figure("None where nothing answers")
    writing = Writing(table.watched, None, setup.seconds, setup.today)
    async for one in table.each((*setup.answerable, *setup.unanswerable)):
        documents, reading = await _extracted(setup, one)
        shown = await in_thread(assemble, documents, reading, max_tokens=EVIDENCE, mark=new_mark())
        answer = await write_answer(one.question, shown.evidence, shown.shown.labels, writing)
        if one.answers:
            facts.rules.append(
                float(one.is_in("\n".join(passage.text for passage in shown.evidence)))
            )
            facts.model.append(
                float(one.is_in(" ".join(statement.text for statement in answer.statements)))
            )
            supported.model += [float(statement.supported) for statement in answer.statements]
        else:
            silent.rules.append(float(reading.verdict == "none"))
            silent.model.append(float(not answer.statements and not answer.failure))
    return await table.rows()


Steps: TypeAlias = Mapping[str, Callable[[Setup], Awaitable[list[MeasuredFigure]]]]
STEPS: Final[Steps] = {
    "prune": prune_by_paths,
    "extract": extract_sentences,
    "parse": parse_requests,
    "answer": answer_questions,
}


CARRIED: Final = Path(__file__).resolve().parents[1] / "examples"
"""The sample library with its questions; a checkout has it, a wheel does not."""


async def evaluate(
    settings: Settings,
    folder: Path | None,
    steps: str,
    limit: int,
    as_json: bool,
    quiet: bool,
    known: Steps = STEPS,
) -> int:
    """Measure `steps` of those that are `known` on `folder` (None: the sample library) and print
    the table on stdout.

    Returns the exit code. Raises `UsageError` without a generator, for an unknown step or a folder
    out of form, else what a model raises.
    """
    names = [name.strip() for name in steps.split(",") if name.strip()] or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(
            f"There is no step {unknown[0]!r}.", hint=f"Use some of {','.join(known)}."
        )
    if limit < 1:
        raise UsageError(f"--limit is {limit}.", hint="Measure on at least 1 question.")
    rows: list[MeasuredFigure] = []
    async with open_services(settings) as services:
        if services.generator is None:
            raise UsageError(
                "There is nothing to measure: no generator is set.",
                hint="Set WINNOW_GENERATOR (or --set generator=…) to llama:FILE.gguf or "
                "openai:URL#MODEL; "
                "`winnow models list` shows models that can be pulled.",
            )
        library = await in_thread(read_library, folder or CARRIED)
        with drawn_progress(quiet=quiet) as draw:
            setup = Setup(
                library,
                services.generator,
                services.embedder,
                services.reader,
                services.today(),
                limit,
                WAYS if settings.extractor == "rules" else (settings.extractor,),
                PATIENCE,
                draw or no_report,
            )
            for name in names:
                if not quiet and draw is None:
                    print(f"winnow: measuring {name}", file=sys.stderr, flush=True)
                rows += await known[name](setup)
        generator, embedder = (
            services.generator.name,
            services.embedder.name if services.embedder else "none",
        )
    if as_json:
        run = {
            "generator": generator,
            "embedder": embedder,
            "data": str(folder or CARRIED),
            "limit": limit,
        }
        print_json({**run, "rows": [asdict(row) for row in rows]})
    else:
        print(
            "\n".join(
                [
                    f"generator {generator}, embedder {embedder}, at most {limit} a step",
                    *_table(rows),
                ]
            )
        )
    return OK


def _table(rows: Sequence[MeasuredFigure]) -> list[str]:
    """Return the rows as aligned lines under a head; what went wrong stands below its row."""
    wide = max((len(row.what) for row in rows), default=0)
    form = f"{{:10}} {{:{wide}}} {{:>5}} {{:>7}} {{:>7}} {{:>9}} {{:>8}} {{:>6}}"
    lines = [form.format("step", "figure", "n", "rules", "model", "tokens", "seconds", "failed")]
    step = ""
    for row in rows:
        figures = (
            _number(row.rules, 3),
            _number(row.model, 3),
            _number(row.tokens, 0),
            _number(row.seconds, 1),
        )
        name = row.step if row.step != step else ""
        lines.append(form.format(name, row.what, row.n, *figures, row.failed or "").rstrip())
        if row.note:
            lines.append(f"{'':10} {' '.join(row.note.split())}")
        step = row.step
    return lines


def _number(value: float | None, places: int) -> str:
    return "" if value is None else f"{value:,.{places}f}"
