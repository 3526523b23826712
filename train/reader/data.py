"""Texts and questions to train the reader on: pages as the product reads them, and data sets beside this checkout.

Not for: drawing windows (`draw.py`), or checking that nothing of the evaluation is among them (`overlap.py`).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from models.protocols import Window
from pipeline.documents import Page
from pipeline.extract.tag import tag_sentences
from pipeline.html.document import read_document
from pipeline.rank.units import page_units

ROOT: Final = Path(__file__).resolve().parents[2]
SHARED: Final = ROOT.parent / "shared" / "data"
LIBRARY_SENTENCES: Final = 6
"""In a window of the sample library: about 180 tokens."""


@dataclass(frozen=True, slots=True)
class Text:
    """A page or document: parallel lists, one entry a sentence."""

    sentences: Sequence[str]
    above: Sequence[str]


def read_text(html: str, *, name: str) -> Text:
    """Return a page's sentences and what stands above each, as the product reads them."""
    document = read_document(Page(name, name, "", html, "text/html"))
    units = page_units(document, tag_sentences(document))
    return Text(units.texts, units.above)


def library_windows() -> Iterator[tuple[str, list[Window]]]:
    """Yield the sample library's development questions, each with some windows of the page that answers it."""
    lines = (ROOT / "examples" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        pages = [page for page in row["pages"] if page.endswith(".html")]
        if row["split"] != "dev" or not pages:
            continue
        text = read_text((ROOT / "examples" / "library" / pages[0]).read_text(encoding="utf-8"), name=pages[0])
        starts = range(0, len(text.sentences), max(LIBRARY_SENTENCES, len(text.sentences) // 3))
        parts = [tuple(text.sentences[start : start + LIBRARY_SENTENCES]) for start in starts]
        yield row["question"], [Window(text.above[start], part) for start, part in zip(starts, parts, strict=True)]
