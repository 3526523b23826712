"""Asks three folders what none of their files answers, and says how often that is said.

    python -m bench.unanswered                            sixty questions, by `research`
    python -m bench.unanswered --over library --check     exit code 1 where a bar is missed

`bench/asked/unanswered.jsonl` has twenty questions each over the sample library, over
`../shared/data/library288` (with its own eight) and over `../shared/data/longdoc`: most are about
something else, some about the files' own subjects. Not for: questions that a page almost answers
(`bench/pairs.py`).
"""

import argparse
import json
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client

from bench.answer_sets import ROOT
from bench.answers import ask
from bench.html_questions import DATA
from server.app import build_server
from server.settings import read_settings

QUESTIONS: Final = Path(__file__).parent / "asked" / "unanswered.jsonl"
FOLDERS: Final = ("library", "library288", "longdoc")
LEAST_NONE, MOST_ANSWERED = 0.5, 0.1
SECONDS: Final = 100
"""Of a call: a busy machine reads slowly."""
Row = dict[str, Any]


def rows(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def fill(name: str, place: Path) -> Path:
    """Return a folder with the files of a set; `place` is for those that are packed."""
    if name == "library":
        return ROOT / "examples" / "library"
    if name == "library288":
        with tarfile.open(DATA / name / "library.tar.xz") as archive:
            archive.extractall(place, filter="data")
        return place / "lib"
    for path in sorted((DATA / name).glob("*/docs.jsonl")):
        for row in rows(path):
            (place / f"{path.parent.name}-{row['id']}.txt").write_text(row["text"], "utf-8")
    return place


def asked(name: str) -> list[str]:
    """Return the questions over a folder."""
    found = [str(row["question"]) for row in rows(QUESTIONS) if row["over"] == name]
    if name == "library288":
        others = rows(DATA / name / "questions.jsonl")
        found += [row["question"] for row in others if row["kind"] == "none"]
    return found


async def measure(name: str, place: Path, *, show: bool) -> Counter[str]:
    """Return how often each verdict was given."""
    folder, cache = fill(name, place / "files"), place / "cache"
    settings = read_settings(
        {"folders": str(folder), "cache": str(cache), "seconds": str(SECONDS)}, {}
    )
    said: Counter[str] = Counter()
    async with Client(build_server(settings)) as client:
        for question in asked(name):
            given = await ask(client, "research", question, None, 0)
            said[given.verdict] += 1
            if show:
                print(f"  {given.verdict:9} {given.confidence:.2f}  {question}", flush=True)
    return said


def main() -> int:
    """Print the shares; return 1 where a bar is missed and `--check` is set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--over", default=",".join(FOLDERS))
    parser.add_argument("--show", action="store_true", help="each question with its verdict")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    missed = False
    for name in given.over.split(","):
        with tempfile.TemporaryDirectory() as made:
            place = Path(made)
            (place / "files").mkdir()
            said = anyio.run(lambda: measure(name, place, show=given.show))  # noqa: B023  run at once
        none, answered = (said[word] / said.total() for word in ("none", "answered"))
        print(f"{name:11} n {said.total():3}  none {none:.2f}  answered {answered:.2f}", flush=True)
        missed |= none < LEAST_NONE or answered > MOST_ANSWERED
    return int(missed and given.check)


if __name__ == "__main__":
    sys.exit(main())
