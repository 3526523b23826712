"""Data for drawing an answer in the desk: whole passages, positions, scores.

Plain JSON in the `_meta` of a result, which no model reads, so nothing is shortened to
save tokens; what bounds it is the size of a message.
Not for: what an answer says (`pipeline/evidence/show.py`)."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from pipeline.document.cite import box_of
from pipeline.document.page import Document, Evidence
from pipeline.evidence.assemble import Assembled
from pipeline.fetch.handles import page_handle
from pipeline.prune.prune import Pruned
from pipeline.reading.reading import Reading
from tools.common.view import Drawing

AROUND: Final = 400
"""Characters of context before and after a passage."""
STRIP: Final = 60
"""Cells of the strip that shows where on a page the scores lie: one is 4 pixels of the
desk's narrow column."""
NEXT_BEST: Final = 8
"""Maximum listed units that were left out; the rest is counted."""
MOST_CHARACTERS: Final = 400_000
"""Of blocks in one answer: twice the longest page of the 256 real ones, and a message
that hosts take in one piece."""


def view_evidence(
    question: str,
    assembled: Assembled,
    documents: Sequence[Document],
    reading: Reading | None,
    max_tokens: int,
) -> Drawing:
    """Return passages with their sentences' scores, their pages, and the best of what
    was left out.

    Documents are those of the reading, in its order; others than its own have no
    scores. The reading is None where nodes of a tree were scored instead of units."""
    rows = _Rows(documents, reading)
    urls = list(dict.fromkeys(one.url for one in assembled.evidence))
    shown = zip(assembled.shown.labels, assembled.evidence, strict=True)
    return {
        "kind": "evidence",
        "question": question,
        "max_tokens": max_tokens,
        "passages": [
            rows.passage(label, one, urls.index(one.url)) for label, one in shown
        ],
        "pages": [rows.page(url, assembled.evidence) for url in urls],
        "rest": rows.left_out(assembled.evidence),
        "left_out": assembled.left_out,
    }


def view_pages(question: str, documents: Sequence[Document], pruned: Pruned) -> Drawing:
    """Return the pages as blocks in reading order, each with whether it was kept and
    its score where it has one. After `MOST_CHARACTERS` of all pages further blocks are
    only counted, as `more`."""
    rows = _Rows(documents, pruned.reading)
    kept = {page.document: set(page.kept) for page in pruned.pages}
    room = MOST_CHARACTERS
    pages = []
    for index, document in enumerate(documents):
        scores = rows.of_blocks(index)
        blocks = []
        for number, block in enumerate(document.blocks):
            room -= len(block.text)
            if room < 0:
                break
            blocks.append(
                {
                    "path": block.path,
                    "kind": block.kind,
                    "text": block.text,
                    "kept": number in kept.get(index, ()),
                    "score": scores.get(number),
                    "main": block.main,
                    "trust": block.trust,
                    "injection": block.injection,
                }
            )
        page = document.page
        pages.append(
            {
                "url": page.final_url,
                "title": page.title,
                "author": page.author,
                "published": page.published,
                "language": page.language,
                "handle": page_handle(page),
                "blocks": blocks,
                "more": len(document.blocks) - len(blocks),
            }
        )
    by = pruned.reading.made_by if pruned.reading else ""
    return {
        "kind": "reading",
        "question": question,
        "by": by,
        "pages": pages,
        "left_out": pruned.left_out,
    }


class _Rows:
    """The units of a reading by their place."""

    def __init__(self, documents: Sequence[Document], reading: Reading | None) -> None:
        self._documents = {
            document.page.final_url: (index, document)
            for index, document in enumerate(documents)
        }
        self._reading = reading
        places = reading.places if reading is not None else []
        self._row = {
            (index, unit.number): row for row, (index, unit) in enumerate(places)
        }
        self._places = places
        self._of: dict[int, list[int]] = {}
        for row, (index, _) in enumerate(places):
            self._of.setdefault(index, []).append(row)

    def _value(self, row: int) -> float:
        return (
            round(float(self._reading.values[row]), 3)
            if self._reading is not None
            else 0.0
        )

    def passage(self, label: str, one: Evidence, page: int) -> Drawing:
        """Return a passage with its context. One of a page that is not among the
        documents has no units, box or surroundings."""
        index, document = self._documents.get(one.url, (-1, None))
        rows = [
            row
            for number in one.sentences
            if (row := self._row.get((index, number))) is not None
        ]
        spans = [(self._places[row][1].start, self._places[row][1].end) for row in rows]
        whole = document.text if document is not None and one.start >= 0 else ""
        return {
            "label": label,
            "page": page,
            "text": one.text,
            "headings": list(one.heading_path),
            "citation": one.citation,
            "also": list(one.also),
            "score": round(one.score.value, 3),
            "by": one.score.made_by,
            "place": one.place,
            "box": list(box_of(document, spans)) if document is not None else [],
            "trust": one.trust,
            "injection": one.injection,
            "summary": one.is_summary,
            "sources": list(one.sources),
            "start": one.start,
            "end": one.end,
            "before": whole[max(0, one.start - AROUND) : max(0, one.start)].lstrip(),
            "after": whole[one.end : one.end + AROUND].rstrip(),
            "units": [[self._places[row][1].text, self._value(row)] for row in rows],
        }

    def page(self, url: str, evidence: Sequence[Evidence]) -> Drawing:
        """Return a page, with the best score in each cell of its strip. Of `evidence`
        at least one is of this page."""
        own = [one for one in evidence if one.url == url]
        index, document = self._documents.get(url, (-1, None))
        length = len(document.text) if document is not None else 0
        strip = [0.0] * STRIP
        for row in self._of.get(index, ()) if length else ():
            cell = min(STRIP - 1, self._places[row][1].start * STRIP // length)
            strip[cell] = max(strip[cell], self._value(row))
        return {
            "url": url,
            "title": own[0].title,
            "author": own[0].author,
            "published": own[0].published,
            # A page that was not read in time is shown by a few of its words, which no handle
            # names.
            "handle": page_handle(document.page)
            if document is not None and document.page.fetched_at
            else "",
            "hidden": own[0].hidden,
            "strip": strip if any(strip) else [],
            "kept": [
                [one.start / length, one.end / length]
                for one in own
                if length and one.start >= 0
            ],
        }

    def left_out(self, evidence: Sequence[Evidence]) -> list[Drawing]:
        """Return the beginnings of the best units that no passage holds, at most
        `NEXT_BEST`; none without a reading."""
        if self._reading is None:
            return []
        held = {
            (self._documents.get(one.url, (-1, None))[0], number)
            for one in evidence
            for number in one.sentences
        }
        urls = list(self._documents)
        found: list[Drawing] = []
        for row in np.argsort(-self._reading.values, kind="stable").tolist():
            index, unit = self._places[row]
            if (index, unit.number) not in held:
                found.append(
                    {
                        "text": unit.text[:AROUND],
                        "url": urls[index],
                        "score": self._value(row),
                    }
                )
            if len(found) == NEXT_BEST:
                break
        return found

    def of_blocks(self, document: int) -> dict[int, float]:
        """Return the best score among the units of each block; empty without a reading
        or a question."""
        if self._reading is None or self._reading.made_by == "content":
            return {}
        best: dict[int, float] = {}
        for row in self._of.get(document, ()):
            block = self._places[row][1].block
            best[block] = max(best.get(block, 0.0), self._value(row))
        return best
