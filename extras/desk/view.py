"""Data for drawing an answer in the desk: whole passages, positions, scores.

Plain JSON in the `_meta` of a result, which no model reads, so nothing is shortened to
save tokens; what bounds it is the size of a message.
Not for: what an answer says (`pipeline/evidence/show.py`)."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import numpy as np

from pipeline.evidence.assemble import Assembled
from pipeline.fetch.handles import page_handle
from pipeline.prune.prune import Pruned
from pipeline.reading.reading import Reading
from readers.page import Document, Evidence
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
    evidence = assembled.evidence
    urls = list(dict.fromkeys(passage.url for passage in evidence))
    labelled = zip(assembled.shown.labels, evidence, strict=True)
    return {
        "kind": "evidence",
        "question": question,
        "max_tokens": max_tokens,
        "passages": [
            rows.passage(label, passage, urls.index(passage.url))
            for label, passage in labelled
        ],
        "pages": [rows.page(url, evidence) for url in urls],
        "rest": rows.left_out(evidence),
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
                }
            )
        page = document.page
        pages.append(
            {
                "url": page.final_url,
                "title": page.title,
                "author": page.author,
                "published": page.published,
                "blocks": blocks,
                "more": len(document.blocks) - len(blocks),
            }
        )
    return {
        "kind": "reading",
        "question": question,
        "by": pruned.reading.made_by if pruned.reading else "",
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
        self._by = reading.made_by if reading is not None else ""
        self._places = reading.places if reading is not None else []
        self._scores = np.round(reading.values, 3).tolist() if reading else []
        self._row = {
            (index, unit.number): row for row, (index, unit) in enumerate(self._places)
        }

    def passage(self, label: str, passage: Evidence, page: int) -> Drawing:
        """Return a passage with its context. One of a page that is not among the
        documents has no units or surroundings."""
        index, document = self._documents.get(passage.url, (-1, None))
        rows = [
            row
            for number in passage.sentences
            if (row := self._row.get((index, number))) is not None
        ]
        start, passage_end = max(0, passage.start), passage.end
        text = document.text if document is not None and passage.start >= 0 else ""
        return {
            "label": label,
            "page": page,
            "text": passage.text,
            "headings": list(passage.heading_path),
            "citation": passage.citation,
            "also": list(passage.also),
            "score": round(passage.score.value, 3),
            "by": passage.score.made_by,
            "trust": passage.trust,
            "injection": passage.injection,
            "summary": passage.is_summary,
            "sources": list(passage.sources),
            "before": text[max(0, start - AROUND) : start].lstrip(),
            "after": text[passage_end : passage_end + AROUND].rstrip(),
            "units": [[self._places[row][1].text, self._scores[row]] for row in rows],
        }

    def page(self, url: str, evidence: Sequence[Evidence]) -> Drawing:
        """Return a page, with the best score in each cell of its strip. Of `evidence`
        at least one is of this page."""
        passages = [passage for passage in evidence if passage.url == url]
        index, document = self._documents.get(url, (-1, None))
        length = len(document.text) if document is not None else 0
        strip = [0.0] * STRIP
        for (number, unit), score in zip(self._places, self._scores, strict=True):
            if number == index and length:
                cell = min(STRIP - 1, unit.start * STRIP // length)
                strip[cell] = max(strip[cell], score)
        # No handle names a page that was not read in time.
        fetched = document is not None and document.page.fetched_at
        return {
            "url": url,
            "title": passages[0].title,
            "author": passages[0].author,
            "published": passages[0].published,
            "handle": page_handle(document.page) if document and fetched else "",
            "strip": strip if any(strip) else [],
            "kept": [
                [passage.start / length, passage.end / length]
                for passage in passages
                if length and passage.start >= 0
            ],
        }

    def left_out(self, evidence: Sequence[Evidence]) -> list[Drawing]:
        """Return the beginnings of the best units that no passage holds, at most
        `NEXT_BEST`; none without a reading."""
        held = {
            (self._documents[passage.url][0], number)
            for passage in evidence
            for number in passage.sentences
            if passage.url in self._documents
        }
        urls = list(self._documents)
        ranked = sorted(
            zip(self._scores, self._places, strict=True), key=lambda row: -row[0]
        )
        free = (
            {"text": unit.text[:AROUND], "url": urls[index], "score": score}
            for score, (index, unit) in ranked
            if (index, unit.number) not in held
        )
        return list(islice(free, NEXT_BEST))

    def of_blocks(self, document: int) -> dict[int, float]:
        """Return the best score among the units of each block; empty without a reading
        or a question."""
        block_scores: dict[int, float] = {}
        if self._by == "content":
            return block_scores
        for (index, unit), score in zip(self._places, self._scores, strict=True):
            if index == document:
                block_scores[unit.block] = max(block_scores.get(unit.block, 0.0), score)
        return block_scores
