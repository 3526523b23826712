"""A folder of many pages: is the right page found, and is the answer shown, beside a
naive search of all chunks.

    python -m bench.across                         120 questions over the pages of asked and asked_more
    python -m bench.across --sets kinds            the same over those of asked_kinds
    python -m bench.across --sets library288       the questions over 288 files of a person's library
    python -m bench.across --limit 0 --out FILE    all questions; each one's record as a JSON line
    python -m bench.across --check                 exit code 1, naming each bar that falls short

`first`, `five`, `eight`: share of questions whose page is the best, among the best
five, eight pages: those that `research` reads, that its default answer cites, and of
the naive search. `shown`: what must be shown is in the quoted words within so many
tokens, 0 for the default. `naive`: standardised BM25 plus cosine over chunks of about
80 tokens of all pages, within the tokens that ours used. By half: `made` is what was
tuned on, `aside` what was not. What models make of a text is kept in `--cache`. Not
for: one known page (`bench/answers.py`)."""

import argparse
import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from statistics import mean
from typing import Final
from urllib.parse import unquote, urlsplit

import anyio
import numpy as np

from bench.answer_sets import Asked, QuestionSet, read_set, shown
from bench.answers import below, chunks, filled, quoted, share
from bench.html_questions import DATA
from errors import SourceError
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25, Floats, standardise
from pipeline.research import enriched, research
from pipeline.search.query import SearchQuery
from pipeline.services import Services
from pipeline.sources.gather import Wanted, open_source
from pipeline.work import no_report
from server.settings import read_settings
from server.wiring import open_services

BUDGETS: Final = (0, 512, 1_000, 2_000)
SETS: Final = {
    "asked": ("asked", "asked_more"),
    "kinds": ("asked_kinds",),
    "library288": (),
}
"""Sets of questions whose pages make one folder."""
PAGES: Final = 8
"""Pages that `research` reads where no number is named."""
LIMIT: Final = 120
"""Questions that a sample has."""
FIVE_GAIN, SHOWN_GAIN = 0.05, 0.10
"""What ours must have over the naive search: the right page among five, and the answer
shown."""


@dataclass(frozen=True, slots=True)
class Given:
    """What one question brought."""

    id: str
    kind: str
    half: str
    place: int
    """Of the right page among ours, from 1; 0 where it is not read."""
    cited: int
    """Rank of the right page among those that the default answer cites; 0 if it is not
    cited."""
    naive_place: int
    shown: dict[int, bool]
    """By budget."""
    naive: dict[int, bool]
    tokens: int
    """Of the default answer."""
    seconds: float
    """Processor seconds of the default call."""


def read_folder(name: str, place: Path) -> list[Asked]:
    """Write the files of a set below `place` and return its questions; `page` is a path
    below it."""
    if name == "library288":
        with tarfile.open(DATA / name / "library.tar.xz") as packed:
            packed.extractall(place, filter="data")
        rows = map(
            json.loads,
            (DATA / name / "questions.jsonl").read_text("utf-8").splitlines(),
        )
        return [
            Asked(
                row["id"],
                row["kind"],
                row["question"],
                tuple((gold,) for gold in row["gold"]),
                row["file"][0],
            )
            for row in rows
            if row["gold"] and row["kind"] != "followup"
        ]
    asked: list[Asked] = []
    for part in SETS[name]:
        of = read_set(part, 0)
        for file, body in of.files.items():
            (place / file).write_bytes(body)
        asked += of.asked
    return asked


def half_of(question: Asked) -> str:
    """Return which half a question belongs to: that of its set, else one drawn by its
    page's name."""
    drawn = blake2b(question.page.encode(), digest_size=1).digest()[0] % 2
    return question.half or ("aside" if drawn else "made")


class Naive:
    """A search of the chunks of all pages."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._parts: list[str] = []
        self._owners: list[str] = []

    async def read(self, folder: Path) -> None:
        """Cut every file of `folder` that can be read."""
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            try:
                document = await open_source(str(path), self._services)
            except SourceError:
                continue
            own = chunks(document.text)
            self._parts += own
            self._owners += [str(path.relative_to(folder))] * len(own)
        self._index = BM25(self._parts)
        embedder = self._services.embedder
        assert embedder is not None
        lots = [self._parts[at : at + 256] for at in range(0, len(self._parts), 256)]
        self._vectors = np.concatenate(
            [await embedder.embed(lot, kind="passage") for lot in lots]
        )

    async def best(self, question: str) -> list[tuple[str, str]]:
        """Return page and words of each chunk, best first."""
        embedder = self._services.embedder
        assert embedder is not None
        asked = await embedder.embed([question], kind="query")
        cosines: Floats = self._vectors @ asked[0]
        total = standardise(self._index.scores(Question(question))) + standardise(
            cosines
        )
        order = np.argsort(-total, kind="stable")[:1_000].tolist()
        return [(self._owners[row], self._parts[row]) for row in order]


def place_of(page: str, pages: Iterable[str]) -> int:
    """Return the place of a page among others, each counted once, from 1; 0 where it is
    not there."""
    return next(
        (
            place
            for place, one in enumerate(dict.fromkeys(pages), start=1)
            if one == page
        ),
        0,
    )


async def give(
    question: Asked, folder: Path, services: Services, naive: Naive, holds: QuestionSet
) -> Given:
    """Return what ours and the naive search make of one question."""
    before = time.process_time()
    found = await research(
        Wanted(Question(question.text), PAGES), services, max_tokens=0, report=no_report
    )
    seconds = time.process_time() - before
    texts = {0: found.text}
    for budget in BUDGETS[1:]:
        texts[budget], *_ = enriched(
            found.gathered,
            found.documents,
            found.reading,
            services,
            budget,
            open_end=False,
        )
    pages = [_below(folder, one.result.url) for one in found.gathered.ranked]
    cited = [_below(folder, one.url) for one in found.assembled.evidence]
    best = await naive.best(question.text)
    words = [text for _, text in best]
    room = {budget: budget or found.tokens for budget in BUDGETS}
    return Given(
        id=question.id,
        kind=question.kind,
        half=half_of(question),
        place=place_of(question.page, pages),
        cited=place_of(question.page, cited),
        naive_place=place_of(question.page, (page for page, _ in best)),
        shown={
            budget: holds.hit(question, quoted(text)) for budget, text in texts.items()
        },
        naive={
            budget: holds.hit(question, "\n".join(words[: filled(words, tokens)]))
            for budget, tokens in room.items()
        },
        tokens=found.tokens,
        seconds=seconds,
    )


def _below(folder: Path, url: str) -> str:
    """Return the name below `folder` of the file that a URL names."""
    return str(Path(unquote(urlsplit(url).path)).relative_to(folder))


def _within(places: Sequence[int], most: int) -> float:
    return share(0 < place <= most for place in places)


def print_table(name: str, rows: Sequence[Given]) -> None:
    """Print pages and answers, ours beside naive, then by kind and half."""
    print(
        f"\n{name}, {len(rows)} questions: first / five / eight pages, shown at "
        f"{' / '.join(map(str, BUDGETS))}"
    )
    _line("read", [row.place for row in rows], [row.shown for row in rows])
    _line("cited", [row.cited for row in rows], [row.shown for row in rows])
    _line("naive", [row.naive_place for row in rows], [row.naive for row in rows])
    print(
        f"  default answer {mean(row.tokens for row in rows):.0f} tokens, "
        f"{mean(r.seconds for r in rows):.2f} CPU-s"
    )
    for field in ("half", "kind"):
        for value in sorted({getattr(row, field) for row in rows}):
            part = [row for row in rows if getattr(row, field) == value]
            _line(
                f"{value} ({len(part)})",
                [row.cited for row in part],
                [row.shown for row in part],
            )
            _line(
                "  naive",
                [row.naive_place for row in part],
                [row.naive for row in part],
            )
    sys.stdout.flush()


def _line(name: str, places: Sequence[int], answers: Sequence[dict[int, bool]]) -> None:
    pages = " ".join(f"{_within(places, most):.3f}" for most in (1, 5, 8))
    words = " ".join(
        f"{share(answer[budget] for answer in answers):.3f}" for budget in BUDGETS
    )
    print(f"  {name:18} {pages}   {words}")


def missed(name: str, rows: Sequence[Given]) -> list[str]:
    """Return the bars that fall short by more than chance."""
    five = [float(0 < row.place <= 5) - float(0 < row.naive_place <= 5) for row in rows]
    judged = [("right page of five over naive", five, FIVE_GAIN)]
    for budget in (512, 1_000):
        gains = [float(row.shown[budget]) - float(row.naive[budget]) for row in rows]
        judged.append((f"shown at {budget} over naive", gains, SHOWN_GAIN))
    return [
        f"{name}: {reported} {mean(gains):+.3f} < {bar}"
        for reported, gains, bar in judged
        if below(gains, bar)
    ]


async def measure(name: str, limit: int, cache: Path) -> list[Given]:
    """Return what each of `limit` questions of a set brought (0: all)."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve() / name
        folder.mkdir()
        asked = read_folder(name, folder)
        if name == "library288":
            folder /= "lib"
        count = len(asked)
        asked = (
            [asked[place * count // limit] for place in range(limit)]
            if 0 < limit < count
            else asked
        )
        judge = QuestionSet(name, asked, {}, shown)
        settings = read_settings(
            {"folders": str(folder), "cache": str(cache), "search": "folder"}, {}
        )
        async with open_services(settings) as services:
            naive = Naive(services)
            await naive.read(folder)
            await _settled(services)
            return [
                await give(question, folder, services, naive, judge)
                for question in asked
            ]


async def _settled(services: Services) -> None:
    """Search until every file is read."""
    while True:
        found = await services.chain.search([SearchQuery("what is there")], limit=PAGES)
        if not any(one.unread for one in found.outcomes):
            return


async def run(wanted: argparse.Namespace) -> int:
    """Do what the options ask for; return the exit code."""
    short: list[str] = []
    for name in wanted.sets.split(","):
        if not DATA.is_dir():
            print(f"{name} skipped: ../shared/data is not beside this checkout")
            continue
        rows = await measure(name, wanted.limit, wanted.cache)
        print_table(name, rows)
        short += missed(name, rows)
        if wanted.out:
            with wanted.out.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
    for line in short if wanted.check else ():
        print(f"BAR MISSED: {line}")
    return 1 if short and wanted.check else 0


def main() -> int:
    """Read the options; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default="asked", help=f"of {', '.join(SETS)}")
    parser.add_argument(
        "--limit",
        type=int,
        default=LIMIT,
        help="questions of each set, evenly spread; 0: all",
    )
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "winnow-across"
    )
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 where a bar falls short"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="append each question's record as a JSON line",
    )
    return anyio.run(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
