"""Texts and questions to train the reader on: pages as the product reads them, and data
sets beside this checkout.

    python -m train.reader.data --written FOLDER --units units.json   # puts written questions into questions/

`questions/*.jsonl` are ours: `{"page", "site", "kind", "question", "gold": [texts of
units], "twin", "split"}`, where a twin is asked almost alike and not answered by the
page. Pages and public sets stay outside (`../shared/data`). Not for: drawing windows
(`draw.py`), or checking that nothing of the evaluation is among them (`overlap.py`).
"""

import argparse
import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

from models.protocols import Window
from pipeline.document.units import tag_sentences
from pipeline.reading.bm25 import page_units
from readers.html.document import read_document
from readers.page import Document, Page

Split = Literal["train", "dev", "held"]
ROOT: Final = Path(__file__).resolve().parents[2]
SHARED: Final = ROOT.parent / "shared" / "data"
QUESTIONS: Final = Path(__file__).with_name("questions")
DEV, HELD = 10, 25
"""Sites whose CRC-32 is below these of 100 are for choosing, and for judging; a site is
in one part only."""
LIBRARY_SENTENCES: Final = 6
"""In a window of the sample library: about 180 tokens."""


SAME_SHARE: Final = 0.5
"""Shared words of all words from which a sentence is a gold text that was cut
otherwise; of 209 that cleaning changed one is not found."""
HELD_LETTERS: Final = 20
"""Letters of a gold text from which a sentence that holds it is what it became."""


JUDGED: Final = (
    "An aircraft carrier is a warship that serves",
    "The Dark Knight Rises is a 2012",
    "Featuring the DC Comics character Batman",
    "Christian Bale reprises the lead role",
    "The Lion King is a 1994 American",
    "Use of Estimates: The preparation of financial statements",
    "what is the last year on the chart?",
)
"""Beginnings of sentences and questions of the public sets that occur in evaluation
sets, too (found by `overlap.py`): they are blanked, and questions that they answer are
left out."""


@dataclass(frozen=True, slots=True)
class Text:
    """A page or document: parallel lists, one entry a sentence."""

    sentences: Sequence[str]
    above: Sequence[str]


@dataclass(frozen=True, slots=True)
class Question:
    """A question on one text."""

    question: str
    text: str
    """Its text's name."""
    gold: frozenset[int]
    """Sentences that answer; empty where nothing does."""
    near: frozenset[int]
    """Sentences that look as if they answered, where none does; else the gold ones."""
    source: str
    answer: str = ""
    """The answer's words, where they are known."""


@dataclass(slots=True)
class Corpus:
    """Texts by name, and the questions on them."""

    texts: dict[str, Text] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)


def load_public(split: Split) -> Corpus:
    """Return the questions of `../shared/data/train` with that split, and their
    texts."""
    corpus = Corpus()
    paragraphs: dict[str, list[range]] = {}
    sources: dict[str, str] = {}
    for row in _rows(SHARED / "train" / "docs.jsonl.gz"):
        whole = [sentence for paragraph in row["paras"] for sentence in paragraph]
        sentences = [
            "" if sentence.startswith(JUDGED) else sentence for sentence in whole
        ]
        starts = [0]
        for paragraph in row["paras"]:
            starts.append(starts[-1] + len(paragraph))
        paragraphs[row["id"]] = [range(*pair) for pair in pairwise(starts)]
        corpus.texts[row["id"]] = Text(sentences, [row["title"]] * len(sentences))
        sources[row["id"]] = row["src"]
    for row in _rows(SHARED / "train" / "questions.jsonl.gz"):
        if row["split"] == split:
            gold = frozenset(row["gold"])
            near = gold or frozenset(paragraphs[row["doc"]][row["para"]])
            shown = corpus.texts[row["doc"]].sentences
            if row["q"].startswith(JUDGED) or not all(shown[place] for place in gold):
                continue
            corpus.questions.append(
                Question(
                    row["q"], row["doc"], gold, near, sources[row["doc"]], row["ans"]
                )
            )
    used = {question.text for question in corpus.questions}
    corpus.texts = {name: text for name, text in corpus.texts.items() if name in used}
    return corpus


def judged_rows() -> tuple[int, int]:
    """Return how many sentences and questions of the public training sets are left out
    since they judge us."""
    places = {
        row["id"]: [
            sentence.startswith(JUDGED) for part in row["paras"] for sentence in part
        ]
        for row in _rows(SHARED / "train" / "docs.jsonl.gz")
    }
    questions = sum(
        row["q"].startswith(JUDGED)
        or any(places[row["doc"]][place] for place in row["gold"])
        for row in _rows(SHARED / "train" / "questions.jsonl.gz")
    )
    return sum(map(sum, places.values())), questions


def load_own(split: Split) -> Corpus:
    """Return the questions that were written for this project, twins among them, on
    pages as the product reads them."""
    corpus = Corpus()
    lost = 0
    for row in own_rows():
        if row["split"] != split:
            continue
        text = page_text(row["page"])
        found = [_places(text.sentences, wanted) for wanted in row["gold"]]
        if not all(found):
            lost += 1
            continue
        gold = frozenset[int]().union(*found)
        corpus.texts[row["page"]] = text
        source = f"own-{row['kind']}"
        corpus.questions.append(
            Question(row["question"], row["page"], gold, gold, source)
        )
        if row["twin"]:
            corpus.questions.append(
                Question(row["twin"], row["page"], frozenset(), gold, source)
            )
    if lost:
        print(
            f"{lost} questions of ours have a gold text that their page no longer gives",
            file=sys.stderr,
        )
    return corpus


def _places(sentences: Sequence[str], wanted: str) -> frozenset[int]:
    """Return the sentences that are a gold text, or what it became since the page is
    cut or cleaned otherwise."""
    same = frozenset(
        place for place, sentence in enumerate(sentences) if sentence == wanted
    )
    if same:
        return same
    words = set(wanted.split())
    shares = [
        len(words.intersection(sentence.split())) / len(words.union(sentence.split()))
        for sentence in sentences
    ]
    best = max(range(len(sentences)), key=shares.__getitem__)
    holding = [
        place
        for place, sentence in enumerate(sentences)
        if len(wanted) >= HELD_LETTERS and wanted in sentence
    ]
    return frozenset(holding[:1] or [best] * (shares[best] >= SAME_SHARE))


def own_rows() -> list[dict[str, Any]]:
    """Return all rows of `questions/`."""
    return [row for path in sorted(QUESTIONS.glob("*.jsonl")) for row in _rows(path)]


@cache
def page_document(page: str) -> Document:
    """Return a page of `../shared/data/pages` as the product reads it."""
    return read_document(Page(page, page, "", page_html(page), "text/html"))


def page_html(page: str) -> str:
    """Return a page of `../shared/data/pages`."""
    return gzip.decompress((SHARED / "pages" / f"{page}.html.gz").read_bytes()).decode(
        "utf-8", "replace"
    )


@cache
def page_text(page: str) -> Text:
    """Return the sentences of a page of `../shared/data/pages`."""
    return _text(page_document(page))


def read_text(html: str, *, name: str) -> Text:
    """Return a page's sentences and the headings above each, as the product reads
    them."""
    return _text(read_document(Page(name, name, "", html, "text/html")))


def _text(document: Document) -> Text:
    units = page_units(document, tag_sentences(document))
    return Text(units.texts, units.above)


def library_windows() -> Iterator[tuple[str, list[Window]]]:
    """Yield the sample library's development questions, each with some windows of the
    page that answers it."""
    lines = (
        (ROOT / "examples" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    )
    for row in map(json.loads, lines):
        pages = [page for page in row["pages"] if page.endswith(".html")]
        if row["split"] != "dev" or not pages:
            continue
        text = read_text(
            (ROOT / "examples" / "library" / pages[0]).read_text(encoding="utf-8"),
            name=pages[0],
        )
        starts = range(
            0, len(text.sentences), max(LIBRARY_SENTENCES, len(text.sentences) // 3)
        )
        parts = [
            tuple(text.sentences[start : start + LIBRARY_SENTENCES]) for start in starts
        ]
        yield (
            row["question"],
            [
                Window(text.above[start], part)
                for start, part in zip(starts, parts, strict=True)
            ],
        )


def split_of(site: str) -> Split:
    """Return the part that a site's pages belong to."""
    place = zlib.crc32(site.encode()) % 100
    return "dev" if place < DEV else "held" if place < HELD else "train"


def collect(
    written: Path, units: Mapping[str, Mapping[str, Any]]
) -> dict[Split, list[dict[str, object]]]:
    """Return written questions, whose gold are numbers of units, as rows of
    `questions/`.

    Args:
        written: Folder of `PAGE.jsonl` with rows `{"k": kind, "q": question, "g":
            [numbers], "t": twin}`.
        units: For each page its `site` and the texts of its `units`.
    """
    parts: dict[Split, list[dict[str, object]]] = {"train": [], "dev": [], "held": []}
    for path in sorted(written.glob("*.jsonl")):
        page = units[path.stem]
        part = split_of(page["site"])
        for row in _rows(path):
            gold = [page["units"][number] for number in row["g"]]
            named = {
                "page": path.stem,
                "site": page["site"],
                "kind": row["k"],
                "question": row["q"],
                "gold": gold,
            }
            parts[part].append(named | {"twin": row["t"], "split": part})
    return parts


def main() -> int:
    """Collect what was written; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.reader.data", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--written", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--units", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    parts = collect(
        options.written, json.loads(options.units.read_text(encoding="utf-8"))
    )
    QUESTIONS.mkdir(exist_ok=True)
    for part, rows in parts.items():
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (QUESTIONS / f"{part}.jsonl").write_text(lines, encoding="utf-8")
        print(
            part,
            len(rows),
            "questions,",
            sum(bool(row["twin"]) for row in rows),
            "twins",
        )
    return 0


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with (gzip.open if path.suffix == ".gz" else open)(
        path, "rt", encoding="utf-8"
    ) as file:
        yield from (json.loads(line) for line in file if line.strip())


if __name__ == "__main__":
    sys.exit(main())
