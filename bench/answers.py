"""Judged at the door: whether the text of a tool's answer shows what answers, beside a
naive sum and the ranking alone.

    python -m bench.answers                         every set of questions through every tool, at every budget
    python -m bench.answers --sets asked,library --tools extract_relevant --budgets
        256,512 --limit 40
    python -m bench.answers --twins                 confidence in questions over their almost-answered twins
    python -m bench.answers --agreement             whether the tools show the same best unit of a page
    python -m bench.answers --check                 a spread sample; exit code 1, naming each bar that falls short

Tools are asked through an MCP client in this process; gold counts where the quoted
words hold it.
Columns: `shown` by the tool; `naive`, a sum of standardised BM25 and cosine over chunks
of about 80 tokens of the page's plain text, best first; `ranking`, the units of
`read_documents` best first; `lost`, ranking less shown; `words`, the part of the budget
that is quoted; verdicts `answered/unsure/none` (of questions that are answered);
`result`, median tokens of what programs get beside the text; `text`, median tokens of
the answer. By kind and half: shown/naive (questions). The budget `default` names none.
`research` searches the whole folder of a set, while naive and ranking know the page;
over the sample library both have all its pages."""

import argparse
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

import anyio
import numpy as np
from mcp import Client
from mcp_types import TextContent

from bench.answer_sets import EVIDENCE, FOREIGN, SETS, Asked, QuestionSet, read_set
from bench.html_questions import DATA
from cache.store import open_stores
from models.onnx import OnnxEmbedder
from models.protocols import Embedder
from pipeline.cached_models import CachedEmbedder
from pipeline.fetch.files import read_file
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25, Floats, standardise
from pipeline.reading.extract import read_documents
from pipeline.reading.relevance import Blend
from pipeline.text.tokens import count_each, count_tokens
from readers.html.document import read_document
from readers.page import Document
from server.app import build_server
from server.settings import read_settings
from tools.common.answer import data_of

TOOLS: Final = ("extract_relevant", "fetch_and_prune_html", "raptor_query", "research")
BUDGETS: Final = (128, 256, 512, 1_000)
DEFAULT: Final = 0
LEAST: Final = {"raptor_query": 200}
"""Smallest budget that a tool takes, where one of `BUDGETS` is below it."""
CHUNK: Final = 70
"""Tokens from which a chunk of the naive baseline is closed: some 80 in the mean."""
CACHE_BYTES: Final = 2_000_000_000
NAIVE_GAIN: Final = 0.02
"""What a tool must show above the naive sum on the asked questions."""
LIBRARY_BARS: Final = {500: 0.85, 1_000: 0.93}
LOST: Final = 0.05
"""What may be lost between ranking and answer at 256 tokens, English pages."""
LOST_FOREIGN: Final = 0.08
CHANCE: Final = 1.645
"""Standard errors by which a sample must fall short: of 24 to 48 questions one is .02
to .04."""
SAID_NONE: Final = 0.08
"""Part of the asked questions that may be answered with none."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a tool gave to a question within a budget."""

    set: str
    id: str
    kind: str
    half: str
    tool: str
    budget: int
    """0: none named."""
    answerable: bool
    shown: bool
    naive: bool
    ranking: bool
    verdict: str
    confidence: float
    text_tokens: int
    quoted_tokens: int
    result_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a tool."""

    text: str
    quoted: str
    verdict: str
    confidence: float
    result: str


class References:
    """The naive sum and the ranking alone on the pages of a set."""

    def __init__(self, of: QuestionSet, folder: Path, embedder: Embedder) -> None:
        self._of = of
        self._folder = folder
        self._embedder = embedder
        self._documents: dict[str, Document] = {}
        self._chunks: dict[str, list[str]] = {}
        self._index: dict[str, BM25] = {}

    def documents(self, question: Asked) -> list[Document]:
        """Return the page of a question, or all pages of the folder."""
        names = [question.page] if question.page else sorted(self._of.files)
        for name in names:
            if name not in self._documents:
                self._documents[name] = read_document(
                    read_file(self._folder / name, roots=[self._folder])
                )
        return [self._documents[name] for name in names]

    async def naive(self, question: Asked) -> tuple[list[str], Floats]:
        """Return the chunks of the page's plain text and the cosine of each with the
        question [n], best sum first."""
        key = question.page
        if key not in self._chunks:
            texts = (
                [self._of.dumps[key]]
                if key in self._of.dumps
                else [d.text for d in self.documents(question)]
            )
            self._chunks[key] = [chunk for text in texts for chunk in chunks(text)]
            self._index[key] = BM25(self._chunks[key])
        parts = self._chunks[key]
        asked = (await self._embedder.embed([question.text], kind="query"))[0]
        vectors = await self._embedder.embed(parts, kind="passage")
        cosines: Floats = (vectors * asked).sum(axis=1)
        total = standardise(
            self._index[key].scores(Question(question.text))
        ) + standardise(cosines)
        order = np.argsort(-total, kind="stable")
        return [parts[row] for row in order.tolist()], cosines[order]

    async def ranking(self, question: Asked) -> list[tuple[int, str]]:
        """Return the units of the pages, best first, each with its place in reading
        order."""
        reading = await read_documents(
            Question(question.text),
            self.documents(question),
            reader=Blend(self._embedder),
        )
        texts = [unit.text for _, unit in reading.places]
        return [
            (row, texts[row])
            for row in np.argsort(-reading.values, kind="stable").tolist()
        ]


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


def filled(texts: Sequence[str], budget: int) -> int:
    """Return how many of `texts`, best first, fit into `budget` tokens."""
    used = np.cumsum(np.asarray(count_each(list(texts[:budget])), dtype=np.int64) + 1)
    return int((used <= budget).sum())


def quoted(text: str) -> str:
    """Return what is between marks: a question must not answer itself."""
    kept, inside = [], False
    for line in text.splitlines():
        if re.fullmatch(r"«/?\w+»", line.strip()):
            inside = "/" not in line
        elif inside:
            kept.append(line)
    return "\n".join(kept)


async def ask(
    client: Client, tool: str, question: str, source: Path | None, budget: int
) -> Answer:
    """Return what `tool` answers; `source` None where it searches the folder."""
    arguments: dict[str, object] = {"question": question} | (
        {"max_tokens": budget} if budget else {}
    )
    if source is not None:
        arguments["sources"] = [str(source)]
    result = await client.call_tool(tool, arguments)
    text = "\n".join(
        part.text for part in result.content if isinstance(part, TextContent)
    )
    data = data_of(result)
    if result.is_error or (budget and count_tokens(text) > budget):
        raise RuntimeError(f"{tool} at {budget} on {source}: {text[:500]}")
    beside = json.dumps(data, ensure_ascii=False)
    return Answer(
        text, quoted(text), data.get("verdict", ""), data.get("confidence", 0.0), beside
    )


@asynccontextmanager
async def served(
    of: QuestionSet, cache: Path, **more: str
) -> AsyncIterator[tuple[Client, Path]]:
    """Open a client of a server whose only folder holds the files of a set; `more`
    settings."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for file, body in of.files.items():
            (folder / file).write_bytes(body)
        settings = read_settings(
            {"folders": str(folder), "cache": str(cache), **more}, {}
        )
        async with Client(build_server(settings)) as client:
            yield client, folder


async def measure(
    of: QuestionSet,
    tools: Sequence[str],
    budgets: Sequence[int],
    cache: Path,
    embedder: Embedder,
) -> list[Given]:
    """Return what each tool gives to each question of a set within each budget; 0 is
    the default."""
    found: list[Given] = []
    async with served(of, cache) as (client, folder):
        references = References(of, folder, embedder)
        for question in of.asked:
            parts, _ = await references.naive(question)
            units = await references.ranking(question)
            for tool in tools:
                source = None if tool == "research" else folder / question.page
                for budget in budgets:
                    if 0 < budget < LEAST.get(tool, 0):
                        continue
                    answer = await ask(client, tool, question.text, source, budget)
                    tokens = count_tokens(answer.text)
                    room = budget or tokens
                    best = sorted(
                        units[: filled([text for _, text in units[:room]], room)]
                    )
                    found.append(
                        Given(
                            set=of.name,
                            id=question.id,
                            kind=question.kind,
                            half=question.half,
                            tool=tool,
                            budget=budget,
                            answerable=bool(question.gold),
                            shown=of.hit(question, answer.quoted),
                            naive=of.hit(
                                question, "\n".join(parts[: filled(parts, room)])
                            ),
                            ranking=of.hit(
                                question, "\n".join(text for _, text in best)
                            ),
                            verdict=answer.verdict,
                            confidence=answer.confidence,
                            text_tokens=tokens,
                            quoted_tokens=count_tokens(answer.quoted),
                            result_tokens=count_tokens(answer.result),
                        )
                    )
    return found


def share(values: Iterable[bool]) -> float:
    """Return the part of `values` that is true."""
    listed = list(values)
    return sum(listed) / len(listed) if listed else float("nan")


def verdicts(rows: Sequence[Given]) -> str:
    """Return the shares of the three verdicts, empty for a tool that gives none."""
    said = [row.verdict for row in rows if row.verdict]
    words = ("answered", "unsure", "none")
    return (
        "/".join(f"{share(v == word for v in said):.2f}" for word in words)
        if said
        else ""
    )


def print_table(found: Sequence[Given]) -> None:
    """Print one line for each tool and budget, then shares by kind and half where a set
    has them."""
    rows = [row for row in found if row.answerable]
    groups: dict[tuple[str, int], list[Given]] = defaultdict(list)
    for row in rows:
        groups[row.tool, row.budget].append(row)
    print(f"\n{rows[0].set}, {len({row.id for row in rows})} questions")
    print(
        f"{'tool':21}{'budget':>8} shown naive  ranking   lost  words  verdicts        result  text"
    )
    for (tool, budget), group in sorted(
        groups.items(), key=lambda item: (item[0][0], item[0][1] or 10**6)
    ):
        hit, naive, rank = (
            share(getattr(row, name) for row in group)
            for name in ("shown", "naive", "ranking")
        )
        words = np.mean(
            [row.quoted_tokens / (budget or row.text_tokens) for row in group]
        )
        sizes = f"{median(r.result_tokens for r in group):6.0f}{median(r.text_tokens for r in group):6.0f}"
        print(
            f"{tool:21}{budget or 'default':>8}  {hit:.3f} {naive:.3f}    {rank:.3f} "
            f"{rank - hit:+.3f}  {words:5.2f}"
            f"  {verdicts(group):15} {sizes}"
        )
    for field in ("kind", "half"):
        names = sorted({str(getattr(row, field)) for row in rows} - {""})
        for (tool, budget), group in groups.items() if len(names) > 1 else ():
            parts = {
                name: [row for row in group if getattr(row, field) == name]
                for name in names
            }
            cells = "  ".join(
                f"{name} {_beside_naive(part)}" for name, part in parts.items()
            )
            print(f"  by {field}, {tool} {budget or 'default'}: {cells}")
    if unanswerable := [row for row in found if not row.answerable and row.verdict]:
        print(
            f"  {len(unanswerable)} answers to what nothing answers: {verdicts(unanswerable)}"
        )
    sys.stdout.flush()


def _beside_naive(rows: Sequence[Given]) -> str:
    """Return the shares that the tool and the naive sum show, and of how many."""
    return (
        f"{share(row.shown for row in rows):.2f}/{share(row.naive for row in rows):.2f} "
        f"({len(rows)})"
    )


def auc(upper: Sequence[float], lower: Sequence[float]) -> float:
    """Return how often one of `upper` lies above one of `lower`, ties counting half."""
    above = np.asarray(upper)[:, None] - np.asarray(lower)[None, :]
    return float((above > 0).mean() + 0.5 * (above == 0).mean())


async def twins(
    of: QuestionSet, tools: Sequence[str], cache: Path, embedder: Embedder
) -> None:
    """Print how confidence and cosine separate questions from their twins."""
    paired = [question for question in of.asked if question.twin]
    async with served(of, cache) as (client, folder):
        references = References(of, folder, embedder)
        cosines: dict[bool, list[float]] = {True: [], False: []}
        said: dict[tuple[str, bool], list[Answer]] = defaultdict(list)
        for question in paired:
            for real in (True, False):
                text = question.text if real else question.twin
                put = Asked(question.id, question.kind, text, (), question.page)
                cosines[real].append(float((await references.naive(put))[1].max()))
                for tool in tools:
                    source = None if tool == "research" else folder / question.page
                    said[tool, real].append(await ask(client, tool, text, source, 512))
    print(
        f"\n{of.name}, {len(paired)} twins: AUC of the best cosine "
        f"{auc(cosines[True], cosines[False]):.3f}"
    )
    for tool in tools:
        pair = [
            [answer.confidence for answer in said[tool, real]] for real in (True, False)
        ]
        print(f"  {tool}: AUC of the confidence {auc(*pair):.3f}")
        for real in (True, False):
            spoken = [answer.verdict for answer in said[tool, real]]
            cells = "/".join(
                f"{share(v == word for v in spoken):.2f}"
                for word in ("answered", "unsure", "none")
            )
            print(
                f"    {'questions' if real else 'twins':10} answered/unsure/none {cells}"
            )


async def agreement(
    of: QuestionSet, tools: Sequence[str], cache: Path, embedder: Embedder
) -> None:
    """Print how often the answers at 256 tokens show the unit that the ranking puts
    first, by tool and all together."""
    hits: dict[str, list[bool]] = defaultdict(list)
    asked = [question for question in of.asked if question.page]
    for question in asked:
        alone = QuestionSet(
            of.name, [question], {question.page: of.files[question.page]}, of.holds
        )
        async with served(alone, cache) as (client, folder):
            references = References(alone, folder, embedder)
            headings = {
                b.text
                for d in references.documents(question)
                for b in d.blocks
                if b.kind == "heading"
            }
            best = next(
                (
                    text
                    for _, text in await references.ranking(question)
                    if text not in headings
                ),
                "",
            )
            said = {}
            for tool in tools:
                source = None if tool == "research" else folder / question.page
                answer = await ask(client, tool, question.text, source, 256)
                said[tool] = "".join(re.findall(r"\w", best)) in "".join(
                    re.findall(r"\w", answer.quoted)
                )
        for tool, hit in said.items():
            hits[tool].append(hit)
        hits["all of them"].append(all(said.values()))
    print(
        f"\n{of.name}, {len(asked)} questions on one page: the best unit is shown within 256 tokens"
    )
    for tool, values in hits.items():
        print(f"  {tool:21} {share(values):.3f}")


async def check(cache: Path, embedder: Embedder) -> int:
    """Measure a spread sample against the bars; return the exit code."""
    plan = {
        "asked": (48, TOOLS[:2], (256, 512, 1_000)),
        "library": (40, ("research",), (500, 1_000)),
        **{name: (24, TOOLS[:1], (256,)) for name in EVIDENCE if name != "chunkeval"},
    }
    missed: list[str] = []
    for name, (limit, tools, budgets) in plan.items():
        if name != "library" and not DATA.is_dir():
            print(f"{name} skipped: ../shared/data is not beside this checkout")
            continue
        found = await measure(read_set(name, limit), tools, budgets, cache, embedder)
        print_table(found)
        missed += _missed(name, found, tools, budgets)
    for line in missed:
        print(f"BAR MISSED: {line}")
    return 1 if missed else 0


def _missed(
    name: str, found: Sequence[Given], tools: Sequence[str], budgets: Sequence[int]
) -> list[str]:
    missed: list[str] = []
    for tool in tools:
        for budget in budgets:
            group = [
                row
                for row in found
                if row.answerable and (row.tool, row.budget) == (tool, budget)
            ]
            judged: list[tuple[str, bool, list[float], float]] = [
                (
                    "shown over naive",
                    name == "asked",
                    [row.shown - row.naive for row in group],
                    NAIVE_GAIN,
                ),
                (
                    "shown",
                    name == "library",
                    [float(row.shown) for row in group],
                    LIBRARY_BARS.get(budget, 0.0),
                ),
                (
                    "shown over ranking",
                    budget == 256,
                    [row.shown - row.ranking for row in group],
                    -(LOST_FOREIGN if name in FOREIGN else LOST),
                ),
                (
                    "not none",
                    name == "asked",
                    [float(row.verdict != "none") for row in group],
                    1 - SAID_NONE,
                ),
            ]
            missed += [
                f"{name}, {tool} at {budget}: {reported} {np.mean(values):.3f} < {bar}"
                for reported, applies, values, bar in judged
                if applies and below(values, bar)
            ]
    return missed


def below(values: Sequence[float], bar: float) -> bool:
    """Whether the mean of a sample is below `bar` by more than chance (one-sided, 95
    %)."""
    return float(np.mean(values) + CHANCE * np.std(values) / len(values) ** 0.5) < bar


async def run(wanted: argparse.Namespace) -> int:
    """Do what the options ask for; return the exit code."""
    tools = [
        tool for tool in TOOLS if tool in (wanted.tools or ",".join(TOOLS)).split(",")
    ]
    budgets = [*map(int, wanted.budgets.split(",")), DEFAULT]
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        stores = open_stores(cache, size_limit=CACHE_BYTES)
        embedder = CachedEmbedder(OnnxEmbedder(), stores.embeddings)
        try:
            if wanted.check:
                return await check(cache, embedder)
            for set_name in wanted.sets.split(","):
                if set_name != "library" and not DATA.is_dir():
                    print(
                        f"{set_name} skipped: ../shared/data is not beside this checkout"
                    )
                    continue
                of = read_set(set_name, wanted.limit)
                if wanted.twins and any(question.twin for question in of.asked):
                    informative = [
                        tool
                        for tool in tools
                        if tool in {"extract_relevant", "research"}
                    ]
                    await twins(
                        of,
                        informative if wanted.tools else informative[:1],
                        cache,
                        embedder,
                    )
                elif wanted.agreement and set_name != "library":
                    await agreement(of, tools, cache, embedder)
                elif not wanted.twins and not wanted.agreement:
                    asked = [
                        tool
                        for tool in tools
                        if (tool == "research") == (set_name == "library")
                        or wanted.tools
                    ]
                    asked = [
                        tool
                        for tool in asked
                        if tool == "research" or set_name != "library"
                    ]
                    found = await measure(of, asked, budgets, cache, embedder)
                    print_table(found)
                    if wanted.out:
                        with wanted.out.open("a", encoding="utf-8") as file:
                            file.writelines(
                                json.dumps(asdict(row)) + "\n" for row in found
                            )
        finally:
            stores.close()
    return 0


def main() -> int:
    """Read the options; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help=f"of {', '.join(SETS)}")
    parser.add_argument(
        "--tools",
        default="",
        help="default: research over the library, the others over pages",
    )
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument(
        "--limit",
        type=int,
        default=0,
        help="questions of each set, evenly spread; 0: all",
    )
    parser.add_argument(
        "--twins", action="store_true", help="separate questions from their twins"
    )
    parser.add_argument(
        "--agreement",
        action="store_true",
        help="whether the tools show the same best unit",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="a spread sample; exit code 1 where a bar falls short",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="append each answer's record as a JSON line",
    )
    return anyio.run(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
