"""The steps that a generator can take part in, each measured by rules and with the
generator.

    python -m bench.eval --set generator=llama:FILE.gguf [FOLDER] [--steps
        parse,extract] [--limit 20]
    python -m bench.eval --mimic oracle|small|noise --split test --limit 100
    python -m bench.eval --check         oracle and noise on questions held aside; exit 1 below a bar

Pruning by block paths, extracting by lines, tags or votes, parsing a request, answering
from evidence; the table says what to switch on. What each question gave is written to
`--keep FILE` at once; a run that was killed goes on from there and ends with the same
table. `gain` and `loss` are shares of the questions on which the generator does better
and worse than the rules.

A folder of data holds `questions.jsonl` (an object a line: `question`; `answers`, a
list of facts, each a list of wordings, empty where nothing answers; `pages`, the file
names that answer, or that are read where nothing does; `split`) and the documents in
`library/`. A checkout carries one in `examples/`. `--mimic` puts a server on loopback
that answers as a model of known worth (`bench/mimic.py`). Not for: what a generator
does for trees (`bench/leaves.py`)."""

import argparse
import hashlib
import importlib
import json
import shutil
import sys
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias, TypeVar, cast

import anyio
import numpy as np

from bench.library import (
    CARRIED,
    LIBRARY,
    QUESTIONS,
    Library,
    MeasuredQuestion,
    read_library,
)
from bench.mimic import WORTHS, Worth, mimic
from cli.output import OK, USAGE, drawn_progress, print_json
from errors import ModelError, UsageError, WinnowError
from models.protocols import (
    Ability,
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
from papers.htmlrag.blocks import path_scorer
from papers.htmlrag.prune import prune_as_printed
from papers.zero_index.ask import WAYS, Asking, Way, can_ask
from papers.zero_index.parser import parse
from pipeline.evidence.assemble import assemble
from pipeline.generated import Writing, write_answer
from pipeline.prune.prune import PruneOptions
from pipeline.question.question import Question
from pipeline.reading.bm25 import reciprocal_rank_fusion
from pipeline.reading.extract import extract
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import Reader
from pipeline.search.chain import seated
from pipeline.search.parse import parse_request
from pipeline.search.query import ParsedRequest
from pipeline.text.frame import new_delimiter
from pipeline.text.tokens import count_tokens
from pipeline.work import Report, in_thread, no_report
from readers.page import Document
from server.settings import Settings, read_settings
from server.wiring import open_services

STEP_SECONDS: Final = 1800.0
"""For one question's step of a generator, which has no tool's deadline here."""


class Watched:
    """A `Generator`, with all that the wrapped one it can do, that keeps count from its
    making on."""

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
        """Name of the wrapped generator."""
        return self._generator.name

    @property
    def context_tokens(self) -> int:
        """Context of the wrapped generator."""
        return self._generator.context_tokens

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the wrapped generator can do."""
        return abilities_of(self._generator)

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, **held_to: Any
    ) -> str:
        """Ask the wrapped generator, with the same schema or grammar; raises what it
        raises."""
        async with self._call():
            text = await self._generator.generate(
                messages, max_tokens=max_tokens, **held_to
            )
            self.replies.append(text)
            return text

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Ask the wrapped generator; raises what it raises."""
        async with self._call():
            return await cast(TreeScorer, self._generator).score_tree(
                prefix, paths, among_siblings=among_siblings
            )

    async def tokens(self) -> int | None:
        """Return how many tokens went through the model so far; None where its backend
        does not count them."""
        now = await self._counted() if self._begun else 0
        return max(0, now - (self._before or 0)) if now is not None else None

    async def _counted(self) -> int | None:
        if not isinstance(self._generator, HeldModel):
            return None
        return self._generator.tokens or None

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        if not self._begun:
            self._before = await self._counted()
        self._begun = True
        self._open += 1
        if self._open == 1:
            self._since = time.perf_counter()
        done = False
        try:
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


T = TypeVar("T")


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
    """How the generator is asked for lines: as WINNOW_PAPERS says, every way where
    that is `rules`."""
    seconds: float
    """Patience for one call; the figures are not about the deadline of a tool."""
    report: Report
    journal: "Journal"
    split: str = ""
    """Questions of this split only; "" for all."""

    @property
    def answerable(self) -> list[MeasuredQuestion]:
        """Questions that the library answers, `limit` of them evenly spread."""
        return some(
            [one for one in self._asked if one.answers and one.pages], self.limit
        )

    @property
    def unanswerable(self) -> list[MeasuredQuestion]:
        """Questions that it does not answer, likewise."""
        return some([one for one in self._asked if not one.answers], self.limit)

    @property
    def _asked(self) -> list[MeasuredQuestion]:
        return [one for one in self.library.asked if self.split in ("", one.split)]


class Journal:
    """What each question of a run gave, in a file that is written after every one."""

    def __init__(self, path: Path | None, run: Mapping[str, object]) -> None:
        """Go on with the run in the file at `path`; begin a new one where it holds
        another, or one that was ended. None keeps nothing."""
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        if path is None:
            return
        head = json.dumps({"run": run}, sort_keys=True)
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        if lines[:1] != [head] or lines[-1:] == [_ENDED]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{head}\n", "utf-8")
            lines = []
        for line in lines[1:]:
            try:
                one = json.loads(line)
            except ValueError:
                break  # the line that was being written when the run was killed
            self._known[one["key"]] = one
        if len(lines) - 1 > len(self._known):
            kept = [head, *(json.dumps(one) for one in self._known.values())]
            path.write_text("".join(f"{line}\n" for line in kept), "utf-8")

    @property
    def kept(self) -> int:
        """How many questions were there already."""
        return len(self._known)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what a question gave in the run before it was killed."""
        return self._known.get(key)

    def add(self, key: str, given: Mapping[str, object]) -> None:
        """Write down what a question gave."""
        self._write(json.dumps({"key": key, **given}))

    def end(self) -> None:
        """Write down that the run was ended: the next one begins again."""
        self._write(_ENDED)

    def _write(self, line: str) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
                file.flush()


_ENDED: Final = json.dumps({"ended": True})


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
    """Tokens that went through the model for this row and those of the step that are
    without a number."""
    seconds: float | None = None
    failed: int = 0
    note: str = ""
    gain: float | None = None
    """Share of the questions on which the model does better than the rules."""
    loss: float | None = None


@dataclass(slots=True)
class Figure:
    """One figure's values by rules (none where they have no such figure) and by the
    model; the row has their means."""

    what: str
    rules: list[float] = field(default_factory=list)
    model: list[float] = field(default_factory=list)
    low: bool = False
    """Whether less is better."""


class FigureTable:
    """The rows of one step in the making, and the generator that it asks."""

    def __init__(self, step: str, setup: Setup, part: str = "") -> None:
        """Measure a step; `part` shows its tables apart."""
        self.watched = Watched(setup.generator)
        self._step = step
        self._part = part
        self._report = setup.report
        self._journal = setup.journal
        self._figures: list[Figure] = []
        self._spent = _Spent()

    def figure(self, what: str, *, low: bool = False) -> Figure:
        """Return a new figure, whose row comes after those of the ones before; of some
        a `low` value is good."""
        self._figures.append(Figure(what, low=low))
        return self._figures[-1]

    async def each(self, items: Sequence[T]) -> AsyncIterator[T]:
        """Yield the items, write down what each gave, and report after it; items of the
        run that was killed give what they gave then, and are not yielded."""
        for number, item in enumerate(items):
            key = f"{self._step} {self._part} {number}"
            known = self._journal.get(key)
            if known is not None:
                for figure, (by_rules, by_model) in zip(
                    self._figures, known["figures"], strict=True
                ):
                    figure.rules += by_rules
                    figure.model += by_model
                self._spent.add(_Spent(**known["spent"]))
            else:
                sizes = [(len(one.rules), len(one.model)) for one in self._figures]
                before = await self._now()
                yield item
                given = [
                    (one.rules[rules:], one.model[model:])
                    for one, (rules, model) in zip(self._figures, sizes, strict=True)
                ]
                spent = (await self._now()).less(before)
                self._spent.add(spent)
                self._journal.add(key, {"figures": given, "spent": asdict(spent)})
            await self._report(number + 1, len(items), self._step)

    async def rows(self) -> list[MeasuredFigure]:
        """Return a row a figure; the first has what the generator spent."""
        rows = [_row(self._step, one) for one in self._figures]
        spent = self._spent
        rows[0] = replace(
            rows[0],
            tokens=spent.tokens,
            seconds=spent.seconds,
            failed=spent.failed,
            note=spent.fault,
        )
        return rows

    async def _now(self) -> "_Spent":
        asked = self.watched
        return _Spent(await asked.tokens(), asked.seconds, asked.failed, asked.fault)


@dataclass(slots=True)
class _Spent:
    """What a generator spent."""

    tokens: int | None = None
    seconds: float = 0.0
    failed: int = 0
    fault: str = ""

    def less(self, before: "_Spent") -> "_Spent":
        """Return what came after `before`."""
        tokens = self.tokens - (before.tokens or 0) if self.tokens is not None else None
        fault = self.fault if self.failed > before.failed else ""
        return _Spent(
            tokens, self.seconds - before.seconds, self.failed - before.failed, fault
        )

    def add(self, more: "_Spent") -> None:
        """Count `more`."""
        if more.tokens is not None:
            self.tokens = (self.tokens or 0) + more.tokens
        self.seconds += more.seconds
        self.failed += more.failed
        self.fault = more.fault or self.fault


def _row(step: str, one: Figure) -> MeasuredFigure:
    row = MeasuredFigure(
        step,
        one.what,
        max(len(one.rules), len(one.model)),
        _mean(one.rules),
        _mean(one.model),
    )
    if len(one.rules) != len(one.model) or not one.rules:
        return row
    better = [
        ((model > rules) - (model < rules)) * (-1 if one.low else 1)
        for rules, model in zip(one.rules, one.model, strict=True)
    ]
    return replace(
        row, gain=better.count(1) / len(better), loss=better.count(-1) / len(better)
    )


def some(items: Sequence[T], limit: int) -> list[T]:
    """Return at most `limit` of `items`, evenly spread, in their order."""
    if len(items) <= limit:
        return list(items)
    return [items[number * len(items) // limit] for number in range(limit)]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


# Steps

BUDGET: Final = 256
"""Tokens of pruned pages and of extracted sentences: few, so that choosing well
shows."""
EVIDENCE: Final = BUDGET * 3
"""Tokens of evidence that an answer is written from."""
GLANCE: Final = 100
"""Tokens of an answer that a reader looks at first."""


async def prune_by_paths(setup: Setup) -> list[MeasuredFigure]:
    """Return whether pages pruned to `BUDGET` tokens by HtmlRAG's first step keep the
    answer, and by both (§3.4)."""
    table, what = (
        FigureTable("prune", setup, "paper"),
        f"answers kept at {BUDGET} tokens",
    )
    kept = table.figure(what)
    if tree_scorer(table.watched) is None:
        note = f"{table.watched.name} scores no paths: set a GGUF file"
        return [MeasuredFigure("prune", what, len(setup.answerable), note=note)]
    async for one in table.each(setup.answerable):
        documents = setup.library.nearest(one.question, first=one.pages, count=1)
        scorer = path_scorer(table.watched, documents, seconds=setup.seconds)
        for values, finer in ((kept.rules, None), (kept.model, scorer)):
            found = await prune_as_printed(
                documents,
                Question(one.question),
                PruneOptions(BUDGET, "html"),
                embedder=setup.embedder,
                finer=finer,
            )
            values.append(
                float(one.is_in("\n".join(page.text for page in found.pages)))
            )
    return await table.rows()


async def extract_sentences(setup: Setup) -> list[MeasuredFigure]:
    """Return recall and None by rules, and by the rules with a generator, for each way
    to ask it.

    What the rules read is read once: it is the same for every way, and takes as long as
    a small model's answer."""
    asked = (*setup.answerable, *setup.unanswerable)
    plain = [await _extracted(setup, one) for one in asked]
    rows: list[MeasuredFigure] = []
    for way in setup.ways:
        table = FigureTable("extract", setup, way)
        if not can_ask(table.watched, way):
            rows.append(
                MeasuredFigure(
                    "extract",
                    f"{way}: answers held",
                    len(asked),
                    note="it cannot be asked so",
                )
            )
            continue
        held = table.figure(f"{way}: answers in the best {BUDGET} tokens")
        nothing = table.figure(f"{way}: None where nothing answers")
        something = table.figure(f"{way}: None where pages answer", low=True)
        shown = table.figure(f"{way}: answers in the evidence at {EVIDENCE} tokens")
        tokens = table.figure(f"{way}: tokens of that evidence", low=True)
        asking = Asking(table.watched, way, setup.seconds)
        async for one, (documents, by_rules) in table.each(
            list(zip(asked, plain, strict=True))
        ):
            by_model = await asking(Question(one.question), documents, by_rules)
            none = something if one.answers else nothing
            for found, best, silent in (
                (by_rules, held.rules, none.rules),
                (by_model, held.model, none.model),
            ):
                best.extend([float(one.is_in(_best(found)))] if one.answers else ())
                silent.append(float(found.verdict == "none"))
            if not one.answers:
                continue
            for found, holds, spent in (
                (by_rules, shown.rules, tokens.rules),
                (by_model, shown.model, tokens.model),
            ):
                evidence = await in_thread(
                    assemble,
                    documents,
                    found,
                    max_tokens=EVIDENCE,
                    delimiter=new_delimiter(),
                )
                holds.append(
                    float(one.is_in("\n".join(one.text for one in evidence.evidence)))
                )
                spent.append(float(evidence.shown.tokens))
        rows += await table.rows()
    return rows


async def _extracted(
    setup: Setup, one: MeasuredQuestion
) -> tuple[list[Document], Reading]:
    documents = setup.library.nearest(one.question, first=one.pages)
    return documents, await extract(
        Question(one.question), documents, reader=setup.reader
    )


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
    """Return how well queries by rules and by the generator find the pages that
    answer."""
    table = FigureTable("parse", setup)
    right = table.figure("pages that answer among the first 5")
    recent = table.figure("requests with a query for recent pages only", low=True)
    taken = table.figure("requests that the model parsed, not the rules for it")
    async for one in table.each(setup.answerable):
        by_rules = parse_request(Question(one.question), today=setup.today)
        by_model = await parse(
            Question(one.question),
            table.watched,
            None,
            setup.seconds,
            today=setup.today,
        )
        taken.model.append(float(not by_model.fallback))
        for parsed, found, narrowed in (
            (by_rules, right.rules, recent.rules),
            (by_model, right.model, recent.model),
        ):
            narrowed.append(
                float(any(query.freshness != "any" for query in parsed.queries))
            )
            found.append(await in_thread(_found, setup, parsed, one.pages))
    return await table.rows()


def _found(setup: Setup, parsed: ParsedRequest, pages: tuple[str, ...]) -> float:
    """Share of `pages` among the first documents by all queries together."""
    count = len(setup.library.names)

    def fused(*, guessed: bool) -> list[int]:
        """Return the documents that the queries by rules, or the guessed ones, find."""
        scores = [
            setup.library.index.scores(query.question)
            for query in parsed.queries
            if query.guessed == guessed
        ]
        orders = [
            [i for i in np.argsort(-one, kind="stable").tolist() if one[i] > 0]
            for one in scores
        ]
        total = reciprocal_rank_fusion(orders, count)
        return [i for i in np.argsort(-total, kind="stable").tolist() if total[i] > 0]

    found = seated(fused(guessed=False), fused(guessed=True))
    best = list(dict.fromkeys(found))[:5]
    return sum(setup.library.names[i] in pages for i in best) / max(
        1, min(5, len(pages))
    )


async def answer_questions(setup: Setup) -> list[MeasuredFigure]:
    """Return whether the facts are in the evidence (rules) and in the answer written
    from it, and its support."""
    table = FigureTable("answer", setup)
    first = table.figure(f"all facts in the first {GLANCE} tokens shown")
    facts = table.figure("all facts in the evidence (rules), in the answer (model)")
    supported = table.figure("sentences that the passages they cite bear out")
    silent = table.figure("None where nothing answers")
    writing = Writing(table.watched, None, setup.seconds, setup.today)
    async for one in table.each((*setup.answerable, *setup.unanswerable)):
        documents, reading = await _extracted(setup, one)
        shown = await in_thread(
            assemble, documents, reading, max_tokens=EVIDENCE, delimiter=new_delimiter()
        )
        answer = await write_answer(
            one.question, shown.evidence, shown.shown.labels, writing
        )
        if one.answers:
            evidence = "\n".join(passage.text for passage in shown.evidence)
            # What a reader sees: statements that their passages bear out, then the evidence.
            held = [one.text for one in answer.statements if one.supported]
            first.rules.append(float(one.is_in(_beginning(evidence))))
            first.model.append(
                float(one.is_in(_beginning("\n".join([*held, evidence]))))
            )
            facts.rules.append(float(one.is_in(evidence)))
            facts.model.append(
                float(
                    one.is_in(
                        " ".join(statement.text for statement in answer.statements)
                    )
                )
            )
            supported.model += [
                float(statement.supported) for statement in answer.statements
            ]
        else:
            silent.rules.append(float(reading.verdict == "none"))
            silent.model.append(float(not answer.statements and not answer.failure))
    return await table.rows()


def _beginning(text: str) -> str:
    """Return the words of `text` that `GLANCE` tokens hold."""
    words = text.split()
    most = bisect_right(
        range(1, len(words) + 1),
        GLANCE,
        key=lambda count: count_tokens(" ".join(words[:count])),
    )
    return " ".join(words[:most])


Steps: TypeAlias = Mapping[str, Callable[[Setup], Awaitable[list[MeasuredFigure]]]]
STEPS: Final[Steps] = {
    "prune": prune_by_paths,
    "extract": extract_sentences,
    "parse": parse_requests,
    "answer": answer_questions,
}


@dataclass(frozen=True, slots=True)
class Run:
    """What is measured, and how it is shown."""

    folder: Path | None = None
    """None for the sample library."""
    steps: str = ""
    """Names with commas between; "" for all."""
    limit: int = 20
    split: str = ""
    keep: Path | None = None
    """File of what each question gave; None keeps nothing."""
    as_json: bool = False
    quiet: bool = True
    label: str = ""
    """Name of the generator in the table, where its address says nothing."""


async def evaluate(settings: Settings, run: Run, known: Steps = STEPS) -> int:
    """Measure the steps of a run, of those that are `known`, and print the table on
    stdout.

    Returns the exit code. Raises `UsageError` without a generator, for an unknown step
    or a folder out of form, else what a model raises."""
    head, rows = await measure(settings, run, known)
    if run.as_json:
        print_json({**head, "rows": [asdict(row) for row in rows]})
    else:
        title = f"generator {head['generator']}, embedder {head['embedder']}"
        print("\n".join([f"{title}, at most {run.limit} a step", *_table(rows)]))
    return OK


async def measure(
    settings: Settings, run: Run, known: Steps = STEPS
) -> tuple[dict[str, object], list[MeasuredFigure]]:
    """Return what was measured with, and the rows; see `evaluate`."""
    names = [name.strip() for name in run.steps.split(",") if name.strip()] or list(
        known
    )
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(
            f"There is no step {unknown[0]!r}.", hint=f"Use some of {','.join(known)}."
        )
    if run.limit < 1:
        raise UsageError(
            f"--limit is {run.limit}.", hint="Measure on at least 1 question."
        )
    rows: list[MeasuredFigure] = []
    async with open_services(settings) as services:
        if services.generator is None:
            raise UsageError(
                "There is nothing to measure: no generator is set.",
                hint="Set WINNOW_GENERATOR (or --set generator=…) to llama:FILE.gguf or "
                "openai:URL#MODEL; "
                "`winnow models list` shows models that can be pulled.",
            )
        folder = run.folder or CARRIED
        library = await in_thread(read_library, folder)
        head: dict[str, object] = {
            "generator": run.label or services.generator.name,
            "embedder": services.embedder.name if services.embedder else "none",
            "data": str(folder),
            "limit": run.limit,
            "split": run.split,
            "extractor": settings.papers.extractor,
        }
        questions = hashlib.sha256((folder / QUESTIONS).read_bytes()).hexdigest()
        journal = Journal(run.keep, {**head, "steps": names, "questions": questions})
        if journal.kept and not run.quiet:
            print(
                f"going on after {journal.kept} questions", file=sys.stderr, flush=True
            )
        with drawn_progress(quiet=run.quiet) as draw:
            setup = Setup(
                library,
                services.generator,
                services.embedder,
                services.reader,
                services.today(),
                run.limit,
                WAYS
                if settings.papers.extractor == "rules"
                else (settings.papers.extractor,),
                STEP_SECONDS,
                draw or no_report,
                journal,
                run.split,
            )
            for name in names:
                if not run.quiet and draw is None:
                    print(f"winnow: measuring {name}", file=sys.stderr, flush=True)
                rows += await known[name](setup)
        journal.end()
    return head, rows


def _table(rows: Sequence[MeasuredFigure]) -> list[str]:
    """Return the rows as aligned lines under a head; what went wrong is below its
    row."""
    wide = max((len(row.what) for row in rows), default=0)
    form = f"{{:10}} {{:{wide}}} {{:>5}} {{:>7}} {{:>7}} {{:>6}} {{:>6}} {{:>9}} {{:>8}} {{:>6}}"
    heads = (
        "step",
        "figure",
        "n",
        "rules",
        "model",
        "gain",
        "loss",
        "tokens",
        "seconds",
        "failed",
    )
    lines = [form.format(*heads)]
    step = ""
    for row in rows:
        figures = (
            _number(row.rules, 3),
            _number(row.model, 3),
            _number(row.gain, 3),
            _number(row.loss, 3),
            _number(row.tokens, 0),
            _number(row.seconds, 1),
        )
        name = row.step if row.step != step else ""
        lines.append(
            form.format(name, row.what, row.n, *figures, row.failed or "").rstrip()
        )
        if row.note:
            lines.append(f"{'':10} {' '.join(row.note.split())}")
        step = row.step
    return lines


def _number(value: float | None, places: int) -> str:
    return "" if value is None else f"{value:,.{places}f}"


def options(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of what every measurement of this kind takes."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--steps", default="", metavar="A,B")
    parser.add_argument("--limit", type=int, default=20, metavar="N")
    parser.add_argument(
        "--split", default="", help="questions of this split only, such as test"
    )
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    return parser


def run_of(wanted: argparse.Namespace) -> tuple[Settings, Run]:
    """Return the settings and the run that a command line asks for."""
    settings = read_settings(dict(pair.split("=", 1) for pair in wanted.set))
    folder = wanted.data and wanted.data.expanduser()
    return settings, Run(
        folder,
        wanted.steps,
        wanted.limit,
        wanted.split,
        wanted.keep,
        wanted.json,
        wanted.quiet,
    )


def main() -> int:
    """Print the table; return its exit code."""
    parser = options(__doc__)
    parser.add_argument(
        "--mimic", choices=WORTHS, help="answer by a server of this worth"
    )
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    if wanted.check:
        return anyio.run(check)
    try:
        with ExitStack() as stack:
            if wanted.mimic:
                url = stack.enter_context(mimic(wanted.data or CARRIED, wanted.mimic))
                wanted.set.append(f"generator=openai:{url}#{wanted.mimic}")
            settings, run = run_of(wanted)
            return anyio.run(evaluate, settings, replace(run, label=wanted.mimic or ""))
    except WinnowError as error:
        print(f"{error}", file=sys.stderr)
        return USAGE


MOST_LOST: Final = 0.02
"""Most that a step may lose with a generator that answers at random."""
JUDGED: Final = {
    "prune": (f"answers kept at {BUDGET} tokens",),
    "extract": tuple(f"{way}: answers in the best {BUDGET} tokens" for way in WAYS),
    "parse": ("pages that answer among the first 5",),
    "answer": (f"all facts in the first {GLANCE} tokens shown",),
}
"""The figures of each step that a generator may raise, and may not lower."""
SHORTENED: Final = tuple(f"{way}: tokens of that evidence" for way in WAYS)
"""Figures that an oracle must lower."""
KEPT: Final = tuple(
    f"{way}: answers in the evidence at {EVIDENCE} tokens"
    for way in WAYS
    if way != "pages"
)
"""Figures that a generator may not lower; `pages` follows it, as printed."""


OTHER_PAGES: Final = 12
"""Pages of sites held aside whose first question is asked beside the sample library's test
questions, of which 58 have an answer."""


def write_held_aside(folder: Path) -> None:
    """Write the test questions of the sample library with its documents, and one question
    on each of `OTHER_PAGES`, as a folder of data."""
    # Their module trains models: it imports torch.
    write_library = importlib.import_module("papers.recipes.pruner").write_library
    write_library(folder, "held", most=OTHER_PAGES)
    shutil.copytree(CARRIED / LIBRARY, folder / LIBRARY, dirs_exist_ok=True)
    rows = [
        json.loads(line)
        for line in (CARRIED / QUESTIONS).read_text("utf-8").splitlines()
    ]
    kept = [row for row in rows if row["split"] == "test"]
    first: dict[str, dict[str, object]] = {}
    for line in (folder / QUESTIONS).read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["answers"]:
            first.setdefault(row["pages"][0], {**row, "split": "test"})
    lines = [json.dumps(row) for row in (*kept, *first.values())]
    (folder / QUESTIONS).write_text("\n".join(lines), "utf-8")


async def check() -> int:
    """Measure an oracle and noise on questions held aside; return 1 where a bar falls
    short."""
    missed: list[str] = []
    with TemporaryDirectory() as named:
        folder = Path(named)
        write_held_aside(folder)
        for worth in ("oracle", "noise"):
            missed += await _missed(folder, worth)
    print("\n".join(f"missed: {one}" for one in missed) or "all bars hold")
    return bool(missed)


async def _missed(folder: Path, worth: Worth) -> list[str]:
    """Print the table of a generator of `worth`; return the figures below a bar."""
    with mimic(folder, worth) as url:
        settings = read_settings({"generator": f"openai:{url}#{worth}"})
        run = Run(folder, limit=100, split="test", label=worth)
        _, rows = await measure(settings, run)
    print("\n".join([worth, *_table(rows)]), flush=True)
    missed = []
    for row in rows:
        if row.rules is None or row.model is None:
            continue
        judged = row.what in JUDGED.get(row.step, ())
        gains = judged and row.model > row.rules
        gains = gains or (row.what in SHORTENED and row.model < row.rules)
        lost = row.rules - row.model > MOST_LOST and (judged or row.what in KEPT)
        must = worth == "oracle" and (judged or row.what in SHORTENED)
        missed += (
            [f"{worth}: {row.step}: {row.what}"] if lost or (must and not gains) else []
        )
    return missed


if __name__ == "__main__":
    sys.exit(main())
