"""The questions of `bench.answers`, each set with the folder of pages that it is asked
over, and what counts as shown.

Not for: asking (`bench/answers.py`).
"""

import gzip
import html
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from bench.html_questions import DATA, folded, questions, raw

ROOT: Final = Path(__file__).resolve().parents[1]
EVIDENCE: Final = (
    "hotpot",
    "chunkeval",
    "xquad_en",
    "xquad_de",
    "xquad_ru",
    "xquad_zh",
)
ASKED: Final = {
    "asked": DATA / "asked" / "questions.jsonl",
    "asked_more": ROOT / "bench" / "asked" / "questions.jsonl",
    "asked_kinds": ROOT / "bench" / "asked" / "kinds.jsonl",
}
"""Files of the questions that people ask of one page; `bench/asked/README.md` says what
each row holds."""
HALVES: Final = {True: "aside", False: "made", None: ""}
"""What `held` of a row says."""
DOOR: Final = "door490"
"""Questions that others asked of 52 pages, and nothing was chosen on."""
SETS: Final = (DOOR, *ASKED, "library", "html_qa", "tables", *EVIDENCE)
FOREIGN: Final = ("xquad_de", "xquad_ru", "xquad_zh")
NEAR: Final = 0.85
"""Share of a gold's words that must be in three adjacent lines if it is not there
verbatim."""

Holds = Callable[[str, str], bool]
"""Whether a gold, the first, is in a text, the second."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question."""

    id: str
    kind: str
    text: str
    gold: tuple[tuple[str, ...], ...]
    """What must be shown: of each the text, or one of its alternatives; empty where
    nothing answers."""
    page: str
    """Name of the file that answers; empty where the whole folder is asked."""
    twin: str = ""
    """A question of the same kind that the page almost answers."""
    half: str = ""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions, the files that they are asked over, and what counts as shown."""

    name: str
    asked: list[Asked]
    files: dict[str, bytes]
    holds: Holds
    dumps: dict[str, str] = field(default_factory=dict)
    """Plain text of a file for the naive baseline; the document's own text where there
    is none."""

    def hit(self, question: Asked, text: str) -> bool:
        """Whether everything that `question` needs is in `text`."""
        return all(
            any(self.holds(gold, text) for gold in golds) for golds in question.gold
        )


def read_set(name: str, limit: int) -> QuestionSet:
    """Return a set with all its files, and `limit` of its questions evenly spread (0:
    all)."""
    if name == "library":
        whole = _library()
    elif name in ASKED:
        whole = _asked(name)
    elif name == DOOR:
        whole = _door()
    elif name in EVIDENCE:
        whole = _evidence(name)
    else:
        whole = _html_qa(name)
    count = len(whole.asked)
    if not 0 < limit < count:
        return whole
    kept = [whole.asked[place * count // limit] for place in range(limit)]
    return QuestionSet(name, kept, whole.files, whole.holds, whole.dumps)


def shown(gold: str, text: str) -> bool:
    """Whether letters and digits of `gold` are in `text`, or most of its words in three
    neighbouring lines."""
    if _squashed(gold) in _squashed(text):
        return True
    need = set(re.findall(r"\w+", gold.casefold()))
    lines = text.splitlines()
    near = (
        " ".join(lines[place : place + 3]).casefold() for place in range(len(lines))
    )
    return any(
        len(need.intersection(re.findall(r"\w+", part))) >= NEAR * len(need)
        for part in near
    )


def _squashed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def _between_words(gold: str, text: str) -> bool:
    """Whether a short answer is in `text` as whole words and signs."""
    line = folded(text.replace("\\|", "|"))
    return re.search(rf"(?<!\w){re.escape(folded(gold))}(?!\w)", line) is not None


def _contained(gold: str, text: str) -> bool:
    return " ".join(gold.split()).casefold() in " ".join(text.split()).casefold()


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _door() -> QuestionSet:
    rows = _rows(DATA / DOOR / "questions.jsonl")
    files = {path.name: path.read_bytes() for path in (DATA / DOOR / "html").iterdir()}
    return QuestionSet(DOOR, _of_pages(rows), files, shown)


def _of_pages(rows: Sequence[dict[str, Any]]) -> list[Asked]:
    return [
        Asked(
            id=row["id"],
            kind=row["kind"],
            text=row["question"],
            gold=tuple((gold,) for gold in row["gold"]),
            page=f"{row['page']}.html",
            twin=row["twin"] or "",
            half=row.get("half") or HALVES[row.get("held")],
        )
        for row in rows
    ]


def _asked(name: str) -> QuestionSet:
    own = name == "asked"
    rows = _rows(ASKED[name])
    asked = _of_pages(rows)
    pages = sorted({row["page"] for row in rows})
    folder = DATA / "asked" / "pages" if own else DATA / "pages"
    files = {
        f"{page}.html": gzip.decompress((folder / f"{page}.html.gz").read_bytes())
        for page in pages
    }
    dumps = {
        f"{page}.html": DATA / "asked" / "texts" / f"{page}.txt.gz"
        for page in pages
        if own
    }
    texts = {
        page: gzip.decompress(path.read_bytes()).decode("utf-8")
        for page, path in dumps.items()
    }
    return QuestionSet(name, asked, files, shown, texts)


def _library() -> QuestionSet:
    asked = [
        Asked(
            row["id"],
            row["kind"],
            row["question"],
            tuple(map(tuple, row["answers"])),
            "",
        )
        for row in _rows(ROOT / "examples" / "questions.jsonl")
    ]
    files = {
        path.name: path.read_bytes()
        for path in sorted((ROOT / "examples" / "library").iterdir())
    }
    return QuestionSet("library", asked, files, _contained)


def _html_qa(name: str) -> QuestionSet:
    rows = [
        question
        for question in questions()
        if (question.set == "table") == (name == "tables")
    ]
    asked = [
        Asked(row.id, row.set, row.text, (row.answers,), f"{row.page}.html")
        for row in rows
    ]
    files = {
        f"{page}.html": raw(page).encode()
        for page in sorted({row.page for row in rows})
    }
    return QuestionSet(name, asked, files, _between_words)


def _evidence(name: str) -> QuestionSet:
    texts = {
        row["text_id"]: row for row in _rows(DATA / "evidence" / f"{name}.texts.jsonl")
    }
    asked = [
        Asked(
            id=row["id"],
            kind=row["kind"],
            text=row["request"],
            gold=tuple(
                (texts[row["text_id"]]["text"][start:end],)
                for start, end in row["gold"]
            ),
            page=f"{row['text_id']}.html",
        )
        for row in _rows(DATA / "evidence" / f"{name}.questions.jsonl")
    ]
    language = name.removeprefix("xquad_") if name.startswith("xquad_") else "en"
    files = {
        f"{key}.html": _as_html(row, language).encode() for key, row in texts.items()
    }
    return QuestionSet(
        name,
        asked,
        files,
        shown,
        {f"{key}.html": row["text"] for key, row in texts.items()},
    )


def _as_html(record: dict[str, Any], language: str) -> str:
    """Return a text as a page: its headings, and a paragraph wherever a blank line or
    another heading begins one."""
    text, units = record["text"], record["units"]
    headings: Sequence[str] = record["headings"] or [""] * len(units)
    keys = [
        (headings[row], text.count("\n\n", 0, units[row][0]))
        for row in range(len(units))
    ]
    parts, last = [], ""
    for (heading, _), rows in groupby(range(len(units)), key=lambda row: keys[row]):
        if heading and heading != last:
            parts.append(f"<h2>{html.escape(heading.rpartition(' › ')[2])}</h2>")
        last = heading
        parts.append(
            f"<p>{html.escape(' '.join(text[units[row][0] : units[row][1]].strip() for row in rows))}</p>"
        )
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html><html lang="{language}"><head><meta '
        f'charset="utf-8"></head><body>{body}</body></html>'
    )
