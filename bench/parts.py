"""Questions of several parts, and questions that need two steps: is all of it in what
the tools show?

    python -m bench.parts                 pairs on one page, pairs over the sample library, HotpotQA; an hour
    python -m bench.parts --sets asked --limit 40
    python -m bench.parts --cuts          what the rules cut, and how many questions that are one
    python -m bench.parts --check         a spread sample; exit code 1, naming each bar that falls short

Pairs are questions of the development sets asked as one, in four forms. The rules were
written while looking at those of `asked`; the pages of `asked_more` were held aside
(its questions of the half called so are not touched). `alone` is the share of sides
shown when asked alone within the same tokens; `both` is the share of pairs with both
sides shown; `of shown` is that share over pairs whose sides are both shown alone;
`empty` is the share of these with nothing of one side; `naive` is a sum of BM25 and
cosine over chunks, asked the whole question; bars hold for all pairs together. HotpotQA
is asked over a folder with a file for each of its 990 paragraphs: both supporting facts
at 512 tokens with and without hops, and processor seconds a question; then questions
with one part over their folders, with and without hops."""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import numpy as np

from bench.answer_sets import Asked, QuestionSet, read_set, shown
from bench.answers import CACHE_BYTES, References, ask, filled, quoted, served, share
from bench.html_questions import DATA
from cache.store import open_stores
from errors import SearchFailed
from models.onnx import OnnxEmbedder
from pipeline.cached_models import CachedEmbedder
from pipeline.question.question import Question
from pipeline.research import Researched, research
from pipeline.search.query import SearchQuery
from pipeline.services import Services
from pipeline.sources.gather import Wanted
from pipeline.work import no_report
from server.settings import read_settings
from server.wiring import open_services

BUDGET: Final = 1_000
HOP_BUDGET: Final = 512
SECONDS: Final = "120"
"""Of a call, so that a busy machine changes no answer."""
PAIRS_A_PAGE: Final = 7
LIBRARY_PAIRS: Final = 60
BOTH: Final = 0.85
EMPTY: Final = 0.05
HOP_GAIN: Final = 0.08
HOP_COST: Final = 1.6
HARM: Final = 0.01
"""Part of the questions that need no hop of which one may lose what answers."""
QUICK: Final = 24
"""Questions of HotpotQA and of those that need no hop in the quick form; it has each
fifth pair of every set."""
FALSE_CUTS: Final = 0.02
ON_A_PAGE: Final = ("extract_relevant", "fetch_and_prune_html")
TOOLS: Final = {"asked": ON_A_PAGE, "asked_more": ON_A_PAGE, "library": ("research",)}
ONE: Final = frozenset(
    {
        "fact",
        "table",
        "list",
        "paraphrase",
        "how_why",
        "speaker",
        "date",
        "code",
        "forum",
    }
)
"""Kinds of questions that have one part, in English."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions asked as one."""

    sides: tuple[Asked, Asked]
    text: str


def pairs_of(of: QuestionSet) -> list[Pair]:
    """Return pairs of the questions of one page, or of two pages where the whole folder
    is asked."""
    shuffled = random.Random(1)
    groups: dict[str, list[Asked]] = defaultdict(list)
    for question in of.asked:
        asks = question.kind in ONE and question.text.rstrip().endswith("?")
        if asks and question.gold and question.half != "aside":
            groups[question.page].append(question)
    pairs: list[Pair] = []
    for page in sorted(groups):
        all_pairs = [
            (a, b)
            for place, a in enumerate(groups[page])
            for b in groups[page][place + 1 :]
        ]
        shuffled.shuffle(all_pairs)
        used: dict[str, int] = defaultdict(int)
        most = PAIRS_A_PAGE if page else LIBRARY_PAIRS
        taken = 0
        for first, second in all_pairs:
            if taken < most and max(used[first.id], used[second.id]) < (
                2 if page else 4
            ):
                used[first.id] += 1
                used[second.id] += 1
                taken += 1
                pairs.append(
                    Pair(
                        (first, second),
                        _joined(first.text, second.text, len(pairs) % 4),
                    )
                )
    return pairs


def _joined(first: str, second: str, form: int) -> str:
    first, second = first.strip(), second.strip()
    bare, lowered = first.rstrip("?"), second[0].lower() + second[1:]
    return (
        f"{bare}, and {lowered}",
        f"{first} {second}",
        f"{bare} and {lowered}",
        f"{bare}, and also {lowered}",
    )[form]


async def measure_pairs(
    name: str, limit: int, cache: Path, *, quick: bool = False
) -> list[tuple[bool, bool]]:
    """Print the table of a set; return whether pairs whose sides are both shown alone
    have both, and some of both."""
    of = read_set(name, 0)
    pairs = pairs_of(of)[:: 5 if quick else 1]
    pairs = (
        [pairs[place * len(pairs) // limit] for place in range(limit)]
        if 0 < limit < len(pairs)
        else pairs
    )
    stores = open_stores(cache, size_limit=CACHE_BYTES)
    rows: dict[
        str, list[tuple[Pair, list[bool], list[bool], list[bool], list[bool]]]
    ] = defaultdict(list)
    try:
        async with served(of, cache, seconds=SECONDS) as (client, folder):
            naive = References(
                of, folder, CachedEmbedder(OnnxEmbedder(), stores.embeddings)
            )
            for pair in pairs:
                whole = Asked("", "", pair.text, (), pair.sides[0].page)
                chunks, _ = await naive.naive(whole)
                plain = "\n".join(chunks[: filled(chunks, BUDGET)])
                for tool in TOOLS[name]:
                    source = folder / whole.page if whole.page else None
                    alone = [
                        (await ask(client, tool, one.text, source, BUDGET)).quoted
                        for one in pair.sides
                    ]
                    given = (await ask(client, tool, pair.text, source, BUDGET)).quoted
                    hits = [
                        of.hit(one, text)
                        for one, text in zip(pair.sides, alone, strict=True)
                    ]
                    held = [_some(of, one, given) for one in pair.sides]
                    ours, naively = (
                        [of.hit(one, text) for one in pair.sides]
                        for text in (given, plain)
                    )
                    rows[tool].append((pair, hits, ours, held, naively))
    finally:
        stores.close()
    judged: list[tuple[bool, bool]] = []
    print(
        f"\n{name}, {len(pairs)} pairs at {BUDGET} tokens\n{'':23}pairs  alone   both  of shown  "
        f"empty  naive  of shown"
    )
    for tool, found in rows.items():
        fair = [row for row in found if all(row[1])]
        held_both, empty = (
            share(all(row[2]) for row in fair),
            share(not all(row[3]) for row in fair),
        )
        print(
            f"{tool:22}{len(found):6}  {share(hit for row in found for hit in row[1]):.3f}  "
            f"{share(all(row[2]) for row in found):.3f}     {held_both:.3f}  {empty:.3f}  "
            f"{share(all(row[4]) for row in found):.3f}     "
            f"{share(all(row[4]) for row in fair):.3f}"
        )
        judged += [(all(row[2]), all(row[3])) for row in fair]
    return judged


def short_of(judged: Sequence[tuple[bool, bool]]) -> list[str]:
    """Print what pairs of all sets and tools show together; return the bars missed."""
    both, empty = share(one for one, _ in judged), share(not some for _, some in judged)
    reported = (
        f"{len(judged)} answers to pairs: both {both:.3f} (bar {BOTH}), one side empty "
        f"{empty:.3f} (bar {EMPTY})"
    )
    print(f"\n{reported}")
    return [reported] * (both < BOTH or empty > EMPTY)


def _some(of: QuestionSet, question: Asked, text: str) -> bool:
    return any(of.holds(gold, text) for golds in question.gold for gold in golds)


async def measure_hops(limit: int) -> list[str]:
    """Print how often both supporting facts of a question are shown, with and without
    hops; return the bars missed."""
    texts = {row["text_id"]: row for row in _rows("hotpot.texts")}
    questions = _rows("hotpot.questions")
    # The rules were written while looking at every second question.
    halves = {
        row["id"]: ("tuned", "aside")[place % 2] for place, row in enumerate(questions)
    }
    questions = (
        [questions[place * len(questions) // limit] for place in range(limit)]
        if limit
        else questions
    )
    found: dict[tuple[str, str, int], list[tuple[bool, float]]] = defaultdict(list)
    followed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "pages"
        folder.mkdir()
        for row in texts.values():
            _write_paragraphs(row, folder)
        for hops in (0, Wanted(Question(""), 1).hops):
            settings = read_settings(
                {"folders": str(folder), "cache": str(Path(name) / f"cache{hops}")}, {}
            )
            async with open_services(settings) as services:
                await _counted(services)
                for row in questions:
                    wanted = Wanted(Question(row["request"]), 8, hops=hops)
                    answer, spent = await _answered(wanted, services)
                    followed += len(answer.known.hops)
                    text = quoted(answer.text)
                    gold = [
                        texts[row["text_id"]]["text"][start:end]
                        for start, end in row["gold"]
                    ]
                    found[row["kind"], halves[row["id"]], hops].append(
                        (all(shown(one, text) for one in gold), spent)
                    )
    files = 10 * len(texts)
    print(
        f"\nHotpotQA, {len(questions)} questions over {files} files at {HOP_BUDGET} tokens, "
        f"{followed} hops"
    )
    totals: dict[int, list[tuple[bool, float]]] = defaultdict(list)
    for (kind, half, hops), rows in sorted(found.items()):
        totals[hops] += rows
        both = share(row[0] for row in rows)
        print(
            f"{kind:12}{half:7}{hops} hops  {len(rows):4}  both {both:.3f}  {_cost(rows):.2f} s"
        )
    (none, hopped) = (totals[hops] for hops in sorted(totals))
    gain = share(row[0] for row in hopped) - share(row[0] for row in none)
    cost = _cost(hopped) / _cost(none)
    print(
        f"all: both {share(row[0] for row in hopped):.3f} ({gain:+.3f}), {cost:.2f} times the "
        f"processor time"
    )
    return [f"hops: {gain:+.3f} (bar {HOP_GAIN:+}) at {cost:.2f} (bar {HOP_COST})"] * (
        gain < HOP_GAIN or cost > HOP_COST
    )


async def measure_harm(limit: int) -> list[str]:
    """Print what hops change for questions that need none; return the sets where they
    lose more than they find."""
    missed: list[str] = []
    for name in ("library", "asked"):
        of = read_set(name, 0)
        asked = [
            question
            for question in of.asked
            if question.gold and question.kind != "multi"
        ]
        asked = (
            [asked[place * len(asked) // limit] for place in range(limit)]
            if 0 < limit < len(asked)
            else asked
        )
        changed: Counter[str] = Counter()
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made).resolve() / "pages"
            folder.mkdir()
            for file, raw in of.files.items():
                (folder / file).write_bytes(raw)
            settings = read_settings(
                {"folders": str(folder), "cache": str(Path(made) / "cache")}, {}
            )
            async with open_services(settings) as services:
                await _counted(services)
                for question in asked:
                    hits = []
                    for hops in (0, Wanted(Question(""), 1).hops):
                        answer, _ = await _answered(
                            Wanted(Question(question.text), 8, hops=hops), services
                        )
                        hits.append(of.hit(question, quoted(answer.text)))
                    changed["hopped"] += bool(answer.known.hops)
                    changed["shown"] += hits[0]
                    changed["lost"] += hits[0] > hits[1]
                    changed["found"] += hits[0] < hits[1]
        reported = ", ".join(
            f"{changed[key]} {key}" for key in ("shown", "hopped", "lost", "found")
        )
        print(
            f"hops on {len(asked)} questions of {name} that need none, at {HOP_BUDGET} tokens: "
            f"{reported}",
            flush=True,
        )
        if changed["lost"] - changed["found"] > HARM * len(asked):
            missed.append(f"hops lose more than they find: {name}, {reported}")
    return missed


async def _answered(wanted: Wanted, services: Services) -> tuple[Researched, float]:
    """Return an answer and its processor seconds; a busy machine that let the search
    run out of time is asked again."""
    while True:
        began = time.process_time()
        try:
            found = await research(
                wanted, services, max_tokens=HOP_BUDGET, report=no_report
            )
        except SearchFailed:
            continue
        return found, time.process_time() - began


async def _counted(services: Services) -> None:
    """Wait until the words of all files are counted, which no question is to pay
    for."""
    unread = True
    while unread:
        try:
            found = await services.chain.search([SearchQuery("anything")], limit=1)
            unread = any(outcome.unread for outcome in found.outcomes)
        except SearchFailed:
            await anyio.sleep(1)


def _cost(rows: Sequence[tuple[bool, float]]) -> float:
    return float(np.mean([seconds for _, seconds in rows]))


def _rows(name: str) -> list[dict[str, Any]]:
    path = DATA / "evidence" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _write_paragraphs(row: dict[str, Any], folder: Path) -> None:
    for place, paragraph in enumerate(row["text"].split("\n\n")):
        title, _, body = paragraph.partition("\n")
        page = (
            f"<!DOCTYPE "
            f"html><html><head><title>{title}</title></head><body><h1>{title}</h1><p>{body}</p></body></html>"
        )
        (folder / f"{row['text_id']}-{place}.html").write_text(page, "utf-8")


def cuts(*, show: bool) -> list[str]:
    """Print how many questions with one part are cut, and of those with several; return
    the bars missed."""
    missed: list[str] = []
    for name in ("asked", "library"):
        of = read_set(name, 0)
        one = [question for question in of.asked if question.kind != "multi"]
        cut = [question for question in one if Question(question.text).parts]
        # Anyone who writes "and" between two question words asks for two things, whatever kind the
        # question is listed as
        false = [
            question
            for question in cut
            if not any(word in question.text for word in (" and ", " und ", " и "))
        ]
        several = [question for question in of.asked if question.kind == "multi"]
        print(
            f"{name}: {len(cut)} of {len(one)} that are listed as one part are cut, {len(false)} "
            f"of them without an "
            f'"and"; {sum(bool(Question(q.text).parts) for q in several)} of {len(several)} with several'
        )
        for question in cut if show else ():
            print(f"  {question.text}")
        if len(false) > FALSE_CUTS * len(one):
            missed.append(
                f"{name}: {len(false)} of {len(one)} questions are cut that have one part"
            )
    return missed


async def run(wanted: argparse.Namespace) -> int:
    """Do what the options ask for; return the exit code."""
    sets = wanted.sets.split(",")
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        sets = [name for name in sets if name == "library"]
    missed = cuts(show=wanted.cuts) if DATA.is_dir() else []
    judged: list[tuple[bool, bool]] = []
    with tempfile.TemporaryDirectory() as cache:
        for name in () if wanted.cuts else sets:
            if name == "hotpot":
                limit = wanted.limit or (QUICK if wanted.check else 0)
                missed += [*await measure_hops(limit), *await measure_harm(limit)]
            else:
                judged += await measure_pairs(
                    name, wanted.limit, Path(cache), quick=wanted.check
                )
    missed += short_of(judged) if judged else []
    for line in missed:
        print(f"BAR MISSED: {line}")
    return 1 if missed and wanted.check else 0


def main() -> int:
    """Read the options; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default="asked,asked_more,library,hotpot")
    parser.add_argument(
        "--limit",
        type=int,
        default=0,
        help="pairs or questions of each set, evenly spread; 0: all",
    )
    parser.add_argument(
        "--cuts",
        action="store_true",
        help="print which questions are cut; measure nothing else",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="a spread sample; exit code 1 where a bar falls short",
    )
    return anyio.run(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
