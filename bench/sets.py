"""The sets of questions that `bench.run` asks, one row each: where the questions and their
pages or folder come from, what counts as shown, what was chosen on the set, and its
licence.

Not for: asking (`bench/run.py`)."""

import gzip
import html
import json
import re
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.html_questions import DATA, folded, questions, raw

ROOT: Final = Path(__file__).resolve().parents[1]
ASKED: Final = ROOT / "bench" / "asked"
"""`README.md` there says what each row holds."""
HALVES: Final = {True: "aside", False: "made", None: ""}
"""What `held` of a row says."""
NEAR: Final = 0.85
"""Share of a gold's words that must be in three adjacent lines if it is not there
verbatim."""
Row = dict[str, Any]
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
    page: str = ""
    """Name of the file that answers; empty where only the whole folder can be asked."""
    twin: str = ""
    """A question of the same kind that the page almost answers."""
    half: str = ""
    after: str = ""
    """The question whose session of `research` this one goes on with."""


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


def read_set(name: str, limit: int = 0) -> QuestionSet:
    """Return a set, or a folder's questions, with all its files, and `limit` of its
    questions evenly spread (0: all)."""
    questions = SETS[name].read() if name in SETS else _folder(Path(name))
    count = len(questions.asked)
    if not 0 < limit < count:
        return questions
    kept = [questions.asked[place * count // limit] for place in range(limit)]
    return replace(questions, asked=kept)


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


def rows_of(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines."""
    return [
        json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()
    ]


def _door() -> QuestionSet:
    rows = rows_of(DATA / "door490" / "questions.jsonl")
    files = {
        path.name: path.read_bytes() for path in (DATA / "door490" / "html").iterdir()
    }
    return QuestionSet("door490", _of_pages(rows), files, shown)


def _of_pages(rows: Sequence[dict[str, Any]]) -> list[Asked]:
    return [
        Asked(
            id=row["id"],
            kind=row["kind"],
            text=row["question"],
            gold=tuple((gold,) for gold in row["gold"]),
            page=f"{row['page']}.html",
            twin=row["twin"] or "",
            half=row.get("half") or row.get("part") or HALVES[row.get("held")],
        )
        for row in rows
    ]


def _asked(name: str, path: Path) -> QuestionSet:
    own = name == "asked"
    asked = _of_pages(rows_of(path))
    pages = sorted({question.page.removesuffix(".html") for question in asked})
    folder = DATA / "asked" / "pages" if own else DATA / "pages"
    files = {
        f"{page}.html": gzip.decompress((folder / f"{page}.html.gz").read_bytes())
        for page in pages
    }
    texts = {
        f"{page}.html": gzip.decompress(
            (DATA / "asked" / "texts" / f"{page}.txt.gz").read_bytes()
        ).decode("utf-8")
        for page in pages
        if own
    }
    return QuestionSet(name, asked, files, shown, texts)


def _library(parts: Sequence[str]) -> QuestionSet:
    """The sample library's questions of some splits, asked over all of it."""
    questions = _folder(ROOT / "examples")
    asked = [replace(one, page="") for one in questions.asked if one.half in parts]
    return replace(questions, name="library", asked=asked)


def _folder(folder: Path) -> QuestionSet:
    """Questions of `questions.jsonl` over `library/`; one that names a single page can
    be asked of that."""
    asked = [
        Asked(
            row.get("id", str(number)),
            row.get("kind", ""),
            row["question"],
            tuple(map(tuple, row["answers"])),
            row["pages"][0] if len(row.get("pages", ())) == 1 else "",
            half=row.get("split", ""),
        )
        for number, row in enumerate(rows_of(folder / "questions.jsonl"), 1)
    ]
    paths = sorted((folder / "library").iterdir())
    files = {path.name: path.read_bytes() for path in paths if path.is_file()}
    return QuestionSet(folder.name, asked, files, _contained)


def folder_files(name: str) -> dict[str, bytes]:
    """Return the files of a folder that is asked over, by their names below it."""
    if name == "library":
        return _folder(ROOT / "examples").files
    if name.startswith("notes-"):
        return {row["file"]: row["text"].encode() for row in notes(name)}
    if name == "library288":
        with tarfile.open(DATA / name / "library.tar.xz") as archive:
            return {
                member.name.removeprefix("lib/"): packed.read()
                for member in archive
                if (packed := archive.extractfile(member)) is not None
            }
    return {
        f"{path.parent.name}-{row['id']}.txt": row["text"].encode()
        for path in sorted((DATA / name).glob("*/docs.jsonl"))
        for row in rows_of(path)
    }


def notes(name: str) -> list[Row]:
    """Return the short notes of a folder, such as `notes-held`."""
    return [
        row for row in rows_of(ASKED / "notes.jsonl") if name == f"notes-{row['part']}"
    ]


def _notes(name: str) -> QuestionSet:
    """Questions that notes of a few words answer, and the other folders' far ones."""
    asked = [
        Asked(
            f"{row['file']}-{number}", "fact", question, ((row["text"],),), row["file"]
        )
        for row in notes(name)
        for number, question in enumerate(row["questions"])
    ]
    return QuestionSet(name, asked + _unanswered(""), folder_files(name), shown)


def _unanswered(over: str) -> list[Asked]:
    """Questions that no file of a folder answers; those far from every folder for none."""
    return [
        Asked(
            row["id"],
            "near" if "about" in row else "far",
            row["question"],
            (),
            half=HALVES[row.get("held", False)],
        )
        for row in rows_of(ASKED / "unanswered.jsonl")
        if (row["over"] == over if over else "about" not in row)
    ]


def _nothing(over: str) -> QuestionSet:
    return QuestionSet(f"nothing-{over}", _unanswered(over), folder_files(over), shown)


def _library288() -> QuestionSet:
    """A person's library; the second of a pair goes on with the first one's session."""
    asked = [
        Asked(
            row["id"],
            row["kind"],
            row["question"],
            tuple((gold,) for gold in row["full"]),
            row["file"][0] if row["file"] else "",
            after=row["id"][:-1] + "a"
            if row["kind"] == "followup" and row["id"].endswith("b")
            else "",
        )
        for row in rows_of(DATA / "library288" / "questions.jsonl")
    ]
    return QuestionSet("library288", asked, folder_files("library288"), shown)


def _followups() -> QuestionSet:
    """Pairs, the second of which is not understood without the first."""
    asked = []
    for number, row in enumerate(rows_of(ASKED / "followups.jsonl")):
        asked += [
            Asked(f"{number}a", "first", row["first"], ()),
            Asked(
                f"{number}b",
                "followup",
                row["question"],
                ((row["gold"],),),
                after=f"{number}a",
            ),
        ]
    return QuestionSet("followups", asked, folder_files("library288"), shown)


def _across(asked: str, spoken: str) -> QuestionSet:
    """XQuAD's questions in one language, of its texts in another."""
    texts = _evidence(f"xquad_{spoken}")
    words = {_number(one): one.text for one in _evidence(f"xquad_{asked}").asked}
    kept = [
        replace(one, text=words[_number(one)])
        for one in texts.asked
        if _number(one) in words
    ]
    return replace(texts, name=f"xquad_{asked}_of_{spoken}", asked=kept)


def _number(question: Asked) -> str:
    return question.id.split("-", 2)[2]


def _html_qa(name: str) -> QuestionSet:
    rows = [
        question
        for question in questions()
        if (question.set == "table") == (name == "tables")
    ]
    asked = [
        Asked(
            row.id,
            row.set,
            row.text,
            (row.answers,),
            f"{row.page}.html",
            half=HALVES[row.held],
        )
        for row in rows
    ]
    files = {
        f"{page}.html": raw(page).encode()
        for page in sorted({row.page for row in rows})
    }
    return QuestionSet(name, asked, files, _between_words)


def _evidence(name: str) -> QuestionSet:
    texts = {
        row["text_id"]: row
        for row in rows_of(DATA / "evidence" / f"{name}.texts.jsonl")
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
        for row in rows_of(DATA / "evidence" / f"{name}.questions.jsonl")
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


class SetRow(NamedTuple):
    """A row of the table of sets."""

    read: Callable[[], QuestionSet]
    chosen: str
    """What was chosen on it."""
    licence: str


_WCXB: Final = "WCXB, CC BY 4.0; Wikipedia, CC BY-SA 4.0"
_XQUAD: Final = "CC BY-SA 4.0"
_OURS: Final = "Apache-2.0"
LANGUAGES: Final = ("de", "ru", "zh")
SETS: Final[dict[str, SetRow]] = {
    "door490": SetRow(_door, "nothing", _WCXB),
    "asked": SetRow(
        partial(_asked, "asked", DATA / "asked" / "questions.jsonl"), "constants", _WCXB
    ),
    "asked_more": SetRow(
        partial(_asked, "asked_more", ASKED / "questions.jsonl"),
        "the reader's windows, on half",
        _WCXB,
    ),
    "asked_kinds": SetRow(
        partial(_asked, "asked_kinds", ASKED / "kinds.jsonl"),
        "constants, on half",
        _WCXB,
    ),
    "pairs": SetRow(
        partial(_asked, "pairs", ASKED / "pairs_english.jsonl"),
        "nothing; of half train all may be",
        _WCXB,
    ),
    "library": SetRow(partial(_library, ("dev", "test")), "constants, on half", _OURS),
    "library_dev": SetRow(partial(_library, ("dev",)), "constants", _OURS),
    "library_test": SetRow(partial(_library, ("test",)), "nothing", _OURS),
    "html_qa": SetRow(partial(_html_qa, "html_qa"), "constants, on half", _WCXB),
    "tables": SetRow(partial(_html_qa, "tables"), "constants, on half", _WCXB),
    "hotpot": SetRow(partial(_evidence, "hotpot"), "constants, on 120", _XQUAD),
    "chunkeval": SetRow(partial(_evidence, "chunkeval"), "constants, on 120", "MIT"),
    **{
        f"xquad_{language}": SetRow(
            partial(_evidence, f"xquad_{language}"), "constants, on 120", _XQUAD
        )
        for language in ("en", *LANGUAGES)
    },
    **{
        f"xquad_{asked}_of_{spoken}": SetRow(
            partial(_across, asked, spoken), "nothing", _XQUAD
        )
        for other in LANGUAGES
        for asked, spoken in ((other, "en"), ("en", other))
    },
    "library288": SetRow(_library288, "the ranking of files", "of each package"),
    "followups": SetRow(_followups, "nothing", "of each package"),
    **{
        f"nothing-{over}": SetRow(
            partial(_nothing, over), "the verdict, on half", _OURS
        )
        for over in ("library", "library288", "longdoc")
    },
    **{
        f"notes-{part}": SetRow(partial(_notes, f"notes-{part}"), chosen, _OURS)
        for part, chosen in (
            ("tuned", "the verdict"),
            ("held", "the verdict"),
            ("german", "nothing"),
        )
    },
}
