"""Asks three folders what none of their files answers, and says how often that is said.

    python -m bench.unanswered                            96 questions, by `research`
    python -m bench.unanswered --answerable               and what the files answer
    python -m bench.unanswered --over library --check     exit code 1 where a bar is missed
    python -m bench.unanswered --over notes-held --answerable     a folder of short notes

`bench/asked/unanswered.jsonl` has twenty questions each over the sample library, over
`../shared/data/library288` (with its own eight) and over `../shared/data/longdoc`, most
of them about something else (`far`). It has 70 more about a document that almost
answers (`near`: another entity, time or attribute, a wrong premise, more precise, a
comparison with something absent). Of these every second document is held aside;
`--held` asks them, which no one tunes on. `notes.jsonl` has folders of notes of a few
words, each with two questions that it answers: `notes-tuned`, `notes-held`,
`notes-german`; far are the other folders' far ones. Not for: one page that is named (`bench/pairs.py`)."""

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

from bench.answer_sets import ROOT, Asked, QuestionSet, read_set, shown
from bench.answers import ask
from bench.html_questions import DATA
from server.app import build_server
from server.settings import read_settings

QUESTIONS: Final = Path(__file__).parent / "asked" / "unanswered.jsonl"
NOTES: Final = QUESTIONS.with_name("notes.jsonl")
FOLDERS: Final = ("library", "library288", "longdoc")
LEAST_NONE, MOST_ANSWERED = 0.5, 0.1
SECONDS: Final = 100
"""Of a call: a busy machine reads slowly."""
Row = dict[str, Any]


def rows(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines."""
    return [
        json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()
    ]


def fill(name: str, place: Path) -> Path:
    """Return a folder with the files of a set; `place` is for those that are packed."""
    if name == "library":
        return ROOT / "examples" / "library"
    if name.startswith("notes-"):
        for row in notes(name):
            (place / row["file"]).write_text(row["text"], "utf-8")
        return place
    if name == "library288":
        with tarfile.open(DATA / name / "library.tar.xz") as archive:
            archive.extractall(place, filter="data")
        return place / "lib"
    for path in sorted((DATA / name).glob("*/docs.jsonl")):
        for row in rows(path):
            (place / f"{path.parent.name}-{row['id']}.txt").write_text(
                row["text"], "utf-8"
            )
    return place


def notes(name: str) -> list[Row]:
    """Return the short notes of a folder, such as `notes-held`."""
    return [row for row in rows(NOTES) if name == f"notes-{row['part']}"]


def asked(name: str, *, held: bool) -> list[tuple[str, Asked]]:
    """Return the questions over a folder that nothing there answers, each with `far` or
    `near`."""
    found = [
        ("near" if "about" in row else "far", _nothing(row["id"], row["question"]))
        for row in rows(QUESTIONS)
        if (row["over"] == name or (name.startswith("notes-") and "about" not in row))
        and row.get("held", False) == held
    ]
    if name == "library288" and not held:
        others = rows(DATA / name / "questions.jsonl")
        found += [
            ("near", _nothing(row["id"], row["question"]))
            for row in others
            if row["kind"] == "none"
        ]
    return found


def _nothing(name: str, question: str) -> Asked:
    return Asked(name, "none", question, (), "")


def answerable(name: str) -> list[tuple[str, Asked]]:
    """Return questions that files of a folder answer: of the sample library those that
    may be tuned on, none of `longdoc`, where what answers is not marked by
    sentences."""
    if name == "library":
        dev = {
            row["id"]
            for row in rows(ROOT / "examples" / "questions.jsonl")
            if row["split"] == "dev" and row["answers"]
        }
        return [("answers", one) for one in read_set(name, 0).asked if one.id in dev]
    if name.startswith("notes-"):
        return [
            ("answers", Asked(row["file"], "fact", question, ((row["text"],),), ""))
            for row in notes(name)
            for question in row["questions"]
        ]
    if name == "library288":
        return [
            ("answers", Asked(row["id"], row["kind"], row["question"], _golds(row), ""))
            for row in rows(DATA / name / "questions.jsonl")
            if row["gold"] and row["kind"] != "followup"
        ]
    return []


def _golds(row: Row) -> tuple[tuple[str, ...], ...]:
    return tuple((gold,) for gold in row["gold"])


async def measure(
    name: str, place: Path, questions: list[tuple[str, Asked]], *, show: bool
) -> Counter[tuple[str, str]]:
    """Return how often each verdict was given to each kind of question; `right` and
    `wrong` are answered ones that files answer, with and without the answer shown."""
    folder, cache = fill(name, place / "files"), place / "cache"
    settings = read_settings(
        {"folders": str(folder), "cache": str(cache), "seconds": str(SECONDS)}, {}
    )
    said: Counter[tuple[str, str]] = Counter()
    async with Client(build_server(settings)) as client:
        for kind, question in questions:
            given = await ask(client, "research", question.text, None, 0)
            said[kind, given.verdict] += 1
            if kind == "answers" and given.verdict == "answered":
                held = QuestionSet(name, [], {}, shown).hit(question, given.quoted)
                said[kind, "right" if held else "wrong"] += 1
            if show:
                print(
                    f"  {kind:7} {given.verdict:9} {given.confidence:.2f}  {question.text}",
                    flush=True,
                )
    return said


def main() -> int:
    """Print the shares; return 1 where a bar is missed and `--check` is set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--over", default=",".join(FOLDERS))
    parser.add_argument(
        "--show", action="store_true", help="each question with its verdict"
    )
    parser.add_argument(
        "--held", action="store_true", help="those that are held aside, alone"
    )
    parser.add_argument(
        "--answerable", action="store_true", help="also what files answer"
    )
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    total: Counter[tuple[str, str]] = Counter()
    for name in given.over.split(","):
        questions = asked(name, held=given.held)
        questions += answerable(name) if given.answerable else []
        with tempfile.TemporaryDirectory() as made:
            place = Path(made)
            (place / "files").mkdir()
            said = anyio.run(lambda: measure(name, place, questions, show=given.show))  # noqa: B023  run at once
        print_shares(name, said)
        total += said
    none, answered = print_shares("all", total)
    return int(given.check and (none < LEAST_NONE or answered > MOST_ANSWERED))


def print_shares(name: str, said: Counter[tuple[str, str]]) -> tuple[float, float]:
    """Print the shares of a folder by kind; return those of None and answered among
    what nothing answers."""
    for kind in ("far", "near"):
        _line(name, (kind,), said)
    if "answers" in {kind for kind, _ in said}:
        _line(name, ("answers",), said)
        right, wrong = said["answers", "right"], said["answers", "wrong"]
        print(f"{name:11} of the answered right {right / max(1, right + wrong):.2f}")
    return _line(name, ("far", "near"), said)


def _line(
    name: str, kinds: tuple[str, ...], said: Counter[tuple[str, str]]
) -> tuple[float, float]:
    """Print and return the shares of None and answered among questions of some
    kinds."""
    none, answered, unsure = (
        sum(said[kind, word] for kind in kinds)
        for word in ("none", "answered", "unsure")
    )
    count = max(1, none + answered + unsure)
    print(
        f"{name:11} {' and '.join(kinds):12} n {count:3}  none {none / count:.2f}  "
        f"answered {answered / count:.2f}",
        flush=True,
    )
    return none / count, answered / count


if __name__ == "__main__":
    sys.exit(main())
