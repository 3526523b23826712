"""Asks sets of questions at the door and says how many answers show what they must, beside
baselines of the same run.

    python -m bench run door490 asked_more --versus naive      extract_relevant, 256, 512, 1,000 and no budget
    python -m bench run library --tools research --budgets 1000,3000 --versus bm25
    python -m bench run door490 --versus naive,grow,HEAD~20    beside the server of another commit
    python -m bench run library --tools research --set generator=llama:FILE.gguf --versus plain
    python -m bench run FOLDER --tools fetch_and_prune_html    questions of your own (examples/README.md)
    python -m bench run library288 followups nothing-library --tools research --budgets default
    python -m bench run door490 --twins                        verdicts and confidence of questions and their twins
    python -m bench run --check                                a spread sample against the bars; exit code 1 at a miss
    python -m bench run --list                                 the sets: what was chosen on each, its licence

Sets are rows of `bench/sets.py`, or folders. Tools are asked through an MCP client; gold counts where
the quoted words hold it. `research` searches the whole folder of a set, the others are
given the page that answers; baselines are given that page too, and pay for no source,
frame or heading. A share has its 95 % interval, a difference from a baseline one of its
own, paired by question. Not for: parts of the product alone."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final

import anyio
import numpy as np
from mcp import Client, StdioServerParameters

from bench.grow import grown
from bench.html_questions import DATA
from bench.sets import ROOT, SETS, Asked, QuestionSet, read_set
from cache.store import open_stores
from models.onnx import OnnxEmbedder, OnnxReader
from models.protocols import Embedder, Window
from pipeline.cached_models import CachedEmbedder
from pipeline.fetch.files import read_file
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25, Floats, standardise
from pipeline.reading.extract import read_documents
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import Blend, Reread
from pipeline.text.tokens import count_each, count_tokens
from readers.html.document import read_document
from readers.page import Document
from server.app import build_server
from server.settings import read_settings
from tools.common.ending import data_of

TOOLS: Final = ("extract_relevant", "fetch_and_prune_html", "raptor_query", "research")
BUDGETS: Final = (256, 512, 1_000, 0)
"""In tokens; 0 names none."""
LEAST: Final = {"raptor_query": 200}
"""Smallest budget that a tool takes."""
CHUNK: Final = 70
"""Tokens from which a chunk of the baselines is closed: some 80 in the mean."""
READ: Final = 32
"""Chunks, best by BM25, that the baseline with a cross-encoder reads again."""
CACHE_BYTES: Final = 2_000_000_000
SECONDS: Final = 100
"""Of a call: a busy machine reads slowly."""
INTERVAL: Final = 1.96
"""Standard errors of a 95 % interval."""
ONE_SIDED: Final = 1.645
"""Standard errors by which a sample must fall short of a bar."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What a sample of a set must show."""

    tool: str
    budget: int
    sample: int
    shown: float = 0.0
    over_naive: float = -1.0
    not_none: float = 0.0


BARS: Final = {
    "asked": [
        Bar("extract_relevant", 256, 48, over_naive=0.02, not_none=0.92),
        Bar("fetch_and_prune_html", 256, 48, over_naive=0.02),
    ],
    "library_dev": [
        Bar("research", 500, 40, shown=0.85),
        Bar("research", 1_000, 40, shown=0.93),
    ],
    "xquad_de_of_en": [Bar("extract_relevant", 256, 24, over_naive=0.1)],
    "xquad_en_of_zh": [Bar("extract_relevant", 256, 24, over_naive=0.1)],
}


@dataclass(frozen=True, slots=True)
class Given:
    """What a tool gave to a question within a budget, and what baselines gave."""

    set: str
    id: str
    kind: str
    half: str
    tool: str
    budget: int
    answerable: bool
    shown: bool
    verdict: str
    confidence: float
    tokens: int
    quoted_tokens: int
    beside: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a tool."""

    text: str
    verdict: str = ""
    confidence: float = 0.0

    @property
    def quoted(self) -> str:
        """What is between marks: a question must not answer itself."""
        return quoted(self.text)

    @property
    def session(self) -> str:
        """The session that it names."""
        named = re.search(r"Session: (\S+)", self.text)
        return named[1] if named else ""


def quoted(text: str) -> str:
    """Return what is between marks in an answer's text."""
    kept, inside = [], False
    for line in text.splitlines():
        if re.fullmatch(r"«/?\w+»", line.strip()):
            inside = "/" not in line
        elif inside:
            kept.append(line)
    return "\n".join(kept)


async def ask(
    client: Client,
    tool: str,
    question: str,
    source: Path | None,
    budget: int,
    session: str = "",
) -> Answer:
    """Return what `tool` answers; `source` None where it searches the folder."""
    arguments: dict[str, object] = {"question": question}
    arguments |= {"max_tokens": budget} if budget else {}
    arguments |= {"session": session} if session else {}
    arguments |= {"sources": [str(source)]} if source is not None else {}
    result = await client.call_tool(tool, arguments)
    text = "\n".join(part.text for part in result.content if part.type == "text")
    if result.is_error or (budget and count_tokens(text) > budget):
        raise RuntimeError(f"{tool} at {budget} on {source}: {text[:500]}")
    data = data_of(result)
    return Answer(text, data.get("verdict", ""), data.get("confidence", 0.0))


class Baselines:
    """What simpler ways show of the pages of a set, best first."""

    def __init__(
        self, questions: QuestionSet, folder: Path, embedder: Embedder
    ) -> None:
        self._questions = questions
        self._folder = folder
        self._embedder = embedder
        self._cross_encoder = OnnxReader()
        self._documents: dict[str, Document] = {}
        self._chunks: dict[str, tuple[list[str], BM25]] = {}
        self._reading: tuple[Asked, Reading] | None = None
        """Of the last question: its budgets follow each other."""

    def documents(self, question: Asked) -> list[Document]:
        """Return the page of a question, or all pages of the folder."""
        names = [question.page] if question.page else sorted(self._questions.files)
        for name in names:
            if name not in self._documents:
                page = read_file(
                    self._folder / name, roots=[self._folder], max_bytes=30_000_000
                )
                self._documents[name] = read_document(page)
        return [self._documents[name] for name in names]

    def chunks(self, question: Asked) -> tuple[list[str], BM25]:
        """Return chunks of the plain text of the question's page, and their index."""
        key, dumps = question.page, self._questions.dumps
        if key not in self._chunks:
            texts = (
                [dumps[key]]
                if key in dumps
                else [d.text for d in self.documents(question)]
            )
            parts = [chunk for text in texts for chunk in chunks(text)]
            self._chunks[key] = parts, BM25(parts)
        return self._chunks[key]

    async def bm25(self, question: Asked, budget: int) -> str:
        """Chunks by BM25 alone."""
        parts, index = self.chunks(question)
        return filled(parts, index.scores(Question(question.text)), budget)

    async def naive(self, question: Asked, budget: int) -> str:
        """Chunks by the sum of standardised BM25 and cosine."""
        parts, index = self.chunks(question)
        scores = standardise(index.scores(Question(question.text)))
        return filled(parts, scores + standardise(await self.cosines(question)), budget)

    async def cosines(self, question: Asked) -> Floats:
        """Return the cosine of each chunk with the question."""
        [asked] = await self._embedder.embed([question.text], kind="query")
        vectors = await self._embedder.embed(self.chunks(question)[0], kind="passage")
        cosines: Floats = (vectors * asked).sum(axis=1)
        return cosines

    async def reader(self, question: Asked, budget: int) -> str:
        """The chunks that BM25 puts first, by the built-in cross-encoder."""
        parts, index = self.chunks(question)
        scores = standardise(index.scores(Question(question.text)))
        first = np.argsort(-scores, kind="stable")[:READ].tolist()
        windows = [Window("", (parts[place],)) for place in first]
        readings = await self._cross_encoder.read(question.text, windows)
        for place, reading in zip(first, readings, strict=True):
            scores[place] = 100 + float(reading.keep.max(initial=0.0)) + reading.answers
        return filled(parts, scores, budget)

    async def grow(self, question: Asked, budget: int) -> str:
        """A plain growth over the product's own scores (`bench/grow.py`)."""
        documents = self.documents(question)
        if self._reading is None or self._reading[0] is not question:
            reader = Reread(Blend(self._embedder), self._cross_encoder)
            reading = await read_documents(
                Question(question.text), documents, reader=reader
            )
            self._reading = question, reading
        reading = self._reading[1]
        return "\n".join(
            reading.places[row][1].text for row in grown(documents, reading, budget)
        )

    def named(self) -> dict[str, Callable[[Asked, int], Awaitable[str]]]:
        """Return the baselines by name."""
        return {
            "bm25": self.bm25,
            "naive": self.naive,
            "reader": self.reader,
            "grow": self.grow,
        }


VERSUS: Final = ("bm25", "naive", "reader", "grow")
PLAIN: Final = "plain"
"""The server without what `--set` gives it."""


def chunks(text: str) -> list[str]:
    """Return the sentences of a plain text in chunks of about 80 tokens, blind to its
    layout."""
    found: list[str] = []
    now: list[str] = []
    for line in text.splitlines():
        for part in filter(None, re.split(r"(?<=[.!?]) +|(?<=[。！？])", line.strip())):
            now.append(part)
            if count_tokens(" ".join(now)) >= CHUNK:
                found.append(" ".join(now))
                now = []
    return [*found, " ".join(now)] if now else found


def filled(texts: Sequence[str], scores: Floats, budget: int) -> str:
    """Return those of `texts` with the highest scores that fit into a budget."""
    ordered = [
        texts[row] for row in np.argsort(-scores, kind="stable")[:budget].tolist()
    ]
    used = np.cumsum(np.asarray(count_each(ordered), dtype=np.int64) + 1)
    return "\n".join(ordered[: int((used <= budget).sum())])


@asynccontextmanager
async def served(
    questions: QuestionSet, cache: Path, **more: str
) -> AsyncIterator[tuple[Client, Path]]:
    """Open a client of a server whose only folder holds the files of a set; `more` are
    settings. A setting `checkout` names another checkout whose server is started."""
    checkout = more.pop("checkout", "")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for file, body in questions.files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(body)
        given = {
            "folders": str(folder),
            "cache": str(cache),
            "seconds": str(SECONDS),
            **more,
        }
        if checkout:
            environment = {
                f"WINNOW_{key.upper()}": value for key, value in given.items()
            }
            server = StdioServerParameters(
                command=sys.executable,
                args=["-m", "server"],
                env={**os.environ, **environment},
                cwd=checkout,
            )
            async with Client(server) as client:
                yield client, folder
        else:
            async with Client(build_server(read_settings(given, {}))) as client:
                yield client, folder


async def measure(
    questions: QuestionSet,
    tools: Sequence[str],
    budgets: Sequence[int],
    versus: Sequence[str] = (),
    **settings: str,
) -> list[Given]:
    """Return what each tool gives to each question of a set within each budget, and what
    the baselines do."""
    async with AsyncExitStack() as stack:
        cache = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stores = open_stores(cache / "baselines", size_limit=CACHE_BYTES)
        stack.callback(stores.close)
        client, folder = await stack.enter_async_context(
            served(questions, cache / "own", **settings)
        )
        baselines = Baselines(
            questions, folder, CachedEmbedder(OnnxEmbedder(), stores.embeddings)
        )
        others = {}
        for name in versus:
            if name not in VERSUS:
                commit = name if name != PLAIN else ""
                checkout = stack.enter_context(checked_out(commit)) if commit else ""
                server = served(questions, cache / name, checkout=checkout)
                others[name] = await stack.enter_async_context(server)
        sessions: dict[tuple[str, int, str], str] = {}
        given: list[Given] = []
        for question, tool, budget in product(questions.asked, tools, budgets):
            is_of_page = tool != "research"
            if (is_of_page and not question.page) or 0 < budget < LEAST.get(tool, 0):
                continue
            source = folder / question.page if is_of_page else None
            session = sessions.get((tool, budget, question.after), "")
            answer = await ask(client, tool, question.text, source, budget, session)
            sessions[tool, budget, question.id] = answer.session
            row = judged(questions, question, tool, budget, answer)
            for name, way in baselines.named().items():
                if name in versus:
                    text = await way(question, budget or row.tokens)
                    row.beside[name] = questions.hit(question, text)
            for name, (other, files) in others.items():
                source = files / question.page if is_of_page else None
                answer = await ask(other, tool, question.text, source, budget)
                row.beside[name] = questions.hit(question, answer.quoted)
            given.append(row)
    return given


def judged(
    questions: QuestionSet, question: Asked, tool: str, budget: int, answer: Answer
) -> Given:
    """Return what an answer shows of what its question needs."""
    return Given(
        set=questions.name,
        id=question.id,
        kind=question.kind,
        half=question.half,
        tool=tool,
        budget=budget,
        answerable=bool(question.gold),
        shown=questions.hit(question, answer.quoted),
        verdict=answer.verdict,
        confidence=answer.confidence,
        tokens=count_tokens(answer.text),
        quoted_tokens=count_tokens(answer.quoted),
    )


class checked_out:
    """A context with the checkout of a commit."""

    def __init__(self, commit: str) -> None:
        self._commit = commit
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> str:
        place = f"{self._folder.name}/checkout"
        git("worktree", "add", "--detach", place, self._commit)
        return place

    def __exit__(self, *error: object) -> None:
        git("worktree", "remove", "--force", f"{self._folder.name}/checkout")
        self._folder.cleanup()


def git(*words: str) -> str:
    """Return what a command of git prints in this checkout."""
    command = ["git", *words]  # git is on every developer's path
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603  ours
    return done.stdout.strip()


def share(values: Iterable[bool]) -> float:
    """Return the part of `values` that is true."""
    listed = list(values)
    return sum(listed) / len(listed) if listed else float("nan")


def wide(values: Iterable[bool]) -> str:
    """Return a share with its 95 % interval (Wilson), which is never outside of 0 to 1."""
    listed = list(values)
    n, p, z = len(listed), share(listed), INTERVAL
    if not n:
        return "–"
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5 / (1 + z * z / n)
    return f"{p:.2f} ({middle - half:.2f} to {middle + half:.2f})"


Line = tuple[str, Sequence[Given], Callable[[Sequence[Given]], str]]
"""A label, answers, and what a cell says of those within one budget."""


def _beside(name: str, rows: Sequence[Given]) -> str:
    return wide(row.beside[name] for row in rows)


def difference(name: str, rows: Sequence[Given]) -> str:
    """Return how much more a tool shows than a baseline, with its 95 % interval."""
    values = np.asarray([row.shown - row.beside[name] for row in rows], dtype=float)
    half = INTERVAL * float(values.std()) / len(values) ** 0.5
    return f"{values.mean():+.2f} ({values.mean() - half:+.2f} to {values.mean() + half:+.2f})"


def table(found: Sequence[Given], by: str = "") -> list[str]:
    """Return the lines of a Markdown table: a column for each budget, rows for each tool,
    its baselines, and the differences; `by` `kind` or `half` adds the shares of these."""
    budgets = sorted({row.budget for row in found}, key=lambda budget: budget or 10**9)
    heads = [f"{budget:,} tokens" if budget else "no budget" for budget in budgets]
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for label, rows, cell in _lines(found, by):
        cells = [
            cell([row for row in rows if row.budget == budget]) for budget in budgets
        ]
        if any(cells):
            lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def _lines(found: Sequence[Given], by: str) -> Iterator[Line]:
    """Yield the lines of each set and tool, then those of its parts."""
    groups: dict[tuple[str, str], dict[str, list[Given]]] = {}
    for row in found:
        parts = groups.setdefault((row.set, row.tool), {"": []})
        parts[""].append(row)
        if by:
            parts.setdefault(getattr(row, by), []).append(row)
    for (name, tool), parts in groups.items():
        for part, rows in sorted(parts.items()):
            label = f"{name}, {part or tool}"
            answerable = [row for row in rows if row.answerable]
            nothing = [row for row in rows if not row.answerable]
            if answerable:
                yield f"{label}, n {_count(answerable)}", answerable, _shown
                yield from _compared(answerable, part)
            if nothing:
                n = _count(nothing)
                yield f"{label}: nothing answers, n {n}", nothing, verdicts


def _compared(rows: Sequence[Given], part: str) -> Iterator[Line]:
    """Yield what baselines show; of a whole set also how much less, and verdicts."""
    names = sorted({name for row in rows for name in row.beside})
    for name in names:
        yield f"— {', '.join(filter(None, (name, part)))}", rows, partial(_beside, name)
    if part:
        return
    for name in names:
        yield f"— more than {name}", rows, partial(difference, name)
    yield "— verdict answered / unsure / none", rows, verdicts
    yield "— tokens, median", rows, _tokens


def _count(rows: Iterable[Given]) -> int:
    return len({row.id for row in rows})


def _shown(rows: Sequence[Given]) -> str:
    return wide(row.shown for row in rows)


def _tokens(rows: Sequence[Given]) -> str:
    return f"{median(row.tokens for row in rows):.0f}"


def verdicts(rows: Sequence[Given]) -> str:
    """Return the shares of the three verdicts, empty for a tool that gives none."""
    said = [row.verdict for row in rows if row.verdict]
    words = ("answered", "unsure", "none")
    return (
        " / ".join(f"{share(v == word for v in said):.2f}" for word in words)
        if said
        else ""
    )


def auc(upper: Sequence[float], lower: Sequence[float]) -> float:
    """Return how often one of `upper` lies above one of `lower`, ties counting half."""
    above = np.asarray(upper)[:, None] - np.asarray(lower)[None, :]
    return float((above > 0).mean() + 0.5 * (above == 0).mean())


async def twins(questions: QuestionSet, tool: str) -> list[str]:
    """Return how verdicts and confidence separate questions from their twins."""
    paired = [question for question in questions.asked if question.twin]
    both = [
        *paired,
        *(Asked(f"{q.id} twin", q.kind, q.twin, (), q.page) for q in paired),
    ]
    found = await measure(
        QuestionSet(questions.name, both, questions.files, questions.holds),
        [tool],
        [512],
    )
    real, twin = (
        [row for row in found if row.answerable == kind] for kind in (True, False)
    )
    return [
        f"| {questions.name}, {tool}, n {len(real)} twins | answered / unsure / none |",
        "|---|---|",
        f"| questions | {verdicts(real)} |",
        f"| twins | {verdicts(twin)} |",
        f"| AUC of the confidence | {auc([r.confidence for r in real], [r.confidence for r in twin]):.3f} |",
    ]


async def check() -> list[str]:
    """Measure spread samples, print them, and return the bars that are missed."""
    missed: list[str] = []
    for name, bars in BARS.items():
        if name != "library_dev" and not DATA.is_dir():
            print(f"{name} skipped: ../shared/data is not beside this checkout")
            continue
        for bar in bars:
            found = await measure(
                read_set(name, bar.sample), [bar.tool], [bar.budget], ["naive"]
            )
            print(*table(found), sep="\n", flush=True)
            judged = {
                f"shown, bar {bar.shown}": [row.shown - bar.shown for row in found],
                f"shown over naive, bar {bar.over_naive:+}": [
                    row.shown - row.beside["naive"] - bar.over_naive for row in found
                ],
                f"not none, bar {bar.not_none}": [
                    (row.verdict != "none") - bar.not_none for row in found
                ],
            }
            missed += [
                f"{name}, {bar.tool} at {bar.budget}: {what}"
                for what, values in judged.items()
                if below(values)
            ]
    return missed


def below(values: Sequence[float]) -> bool:
    """Whether the mean of a sample is below 0 by more than chance (one-sided, 95 %)."""
    return float(np.mean(values) + ONE_SIDED * np.std(values) / len(values) ** 0.5) < 0


async def run(wanted: argparse.Namespace) -> int:
    """Do what the options ask for; return the exit code."""
    if wanted.check:
        missed = await check()
        print(
            *[f"BAR MISSED: {line}" for line in missed] or ["all bars hold"], sep="\n"
        )
        return int(bool(missed))
    budgets = [
        0 if word == "default" else int(word) for word in wanted.budgets.split(",")
    ]
    versus = [name for name in wanted.versus.split(",") if name]
    found: list[Given] = []
    for name in wanted.sets:
        questions = read_set(name, wanted.limit)
        tools = wanted.tools.split(",")
        if wanted.twins:
            print(*await twins(questions, tools[0]), sep="\n", flush=True)
            continue
        settings = dict(pair.split("=", 1) for pair in wanted.set)
        found += await measure(questions, tools, budgets, versus, **settings)
    if found:
        print(*table(found, wanted.by), sep="\n")
    elif not wanted.twins:
        raise SystemExit(f"no question of {wanted.sets} names the page that answers")
    if wanted.out:
        with wanted.out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(row)) + "\n" for row in found)
    if wanted.misses:
        for row in found:
            if row.answerable and not row.shown:
                print(
                    f"missed: {row.set} {row.id} {row.kind} by {row.tool} at {row.budget}"
                )
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Read the options; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="bench run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sets", nargs="*", metavar="SET", help="or a folder")
    parser.add_argument(
        "--tools", default="extract_relevant", help=f"of {', '.join(TOOLS)}"
    )
    parser.add_argument("--budgets", default="256,512,1000,default")
    parser.add_argument(
        "--versus", default="", help=f"of {', '.join(VERSUS)}, {PLAIN}, or a commit"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting"
    )
    parser.add_argument(
        "--limit", type=int, default=0, help="questions of each set, evenly spread"
    )
    parser.add_argument("--by", default="", choices=["", "kind", "half"])
    parser.add_argument(
        "--twins", action="store_true", help="questions beside their twins"
    )
    parser.add_argument("--misses", action="store_true", help="name what was missed")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="append each answer as a line of JSON"
    )
    parser.add_argument(
        "--check", action="store_true", help="a spread sample against the bars"
    )
    parser.add_argument("--list", action="store_true", help="the sets")
    wanted = parser.parse_args(words)
    if wanted.list:
        for name, row in SETS.items():
            print(f"{name:18} chosen on it: {row.chosen:30} {row.licence}")
        return 0
    if not wanted.sets and not wanted.check:
        parser.error("name a SET, or --check, or --list")
    return anyio.run(run, wanted)


if __name__ == "__main__":
    sys.exit(main())
