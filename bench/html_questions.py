"""Questions on real pages, and whether what was kept of a page answers them: what
`bench/run.py` and others measure with.

Data: ../shared/data/pages and ../shared/data/html_qa, all of them development data. The
pages whose name's MD5 ends in 6..9 (last decimal digit) are held aside: nothing was
tuned on their questions."""

import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from readers.html.document import read_document
from readers.page import Document, Page

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"
_SIGN: Final = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Question:
    """One question on one page."""

    id: str
    set: str
    page: str
    text: str
    answers: tuple[str, ...]
    context: tuple[str, ...]
    """What must be beside the answer for it to be usable: row label and column
    header."""

    @property
    def held(self) -> bool:
        """Whether its page was held aside from tuning."""
        return (
            int(hashlib.md5(self.page.encode(), usedforsecurity=False).hexdigest(), 16)
            % 10
            >= 6
        )


def questions() -> list[Question]:
    """Return all questions."""
    rows = map(
        json.loads,
        (DATA / "html_qa" / "questions.jsonl").read_text("utf-8").splitlines(),
    )
    return [
        Question(
            r["id"],
            r["set"],
            r["page"],
            r["question"],
            tuple(r["answers"]),
            tuple(r["context"]),
        )
        for r in rows
    ]


def table_questions(limit: int) -> list[Question]:
    """Return the questions about tables, some `limit` of them spread over all; all
    where it is 0."""
    asked = [question for question in questions() if question.set == "table"]
    return asked[:: max(1, len(asked) // limit)] if limit else asked


def pages(every: int) -> dict[str, str]:
    """Return every n-th page's name and HTML."""
    return {
        path.name.removesuffix(".html.gz"): _html(path)
        for path in sorted((DATA / "pages").glob("*.gz"))[::every]
    }


def raw(page: str) -> str:
    """Return a page's HTML."""
    return _html(DATA / "pages" / f"{page}.html.gz")


def _html(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


@lru_cache(maxsize=400)
def document(page: str) -> Document:
    """Return a page, read."""
    return read_document(
        Page(f"https://{page}/", f"https://{page}/", "", raw(page), "text/html")
    )


def judged(question: Question, text: str) -> tuple[bool, bool]:
    """Return whether the answer is in `text`, and whether what makes it usable is there
    too."""
    line = folded(text.replace("\\|", "|"))
    found = any(
        re.search(rf"(?<!\w){re.escape(folded(answer))}(?!\w)", line)
        for answer in question.answers
    )
    return found, found and all(folded(part) in line for part in question.context)


def folded(text: str) -> str:
    """Return words and signs in lower case, one blank between them; an en dash is a
    hyphen."""
    return " ".join(_SIGN.findall(text.lower().replace("–", "-")))
