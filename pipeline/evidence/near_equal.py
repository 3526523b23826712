"""Files of nearly the same words, such as copies and versions of one, and what an answer
says of them.

Not for: the same words in several pages (`Evidence.also`)."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from string import ascii_lowercase
from typing import Final

from pipeline.evidence.assemble import Assembled
from pipeline.text.frame import shown_location
from pipeline.text.words import raw_words
from readers.page import Document, Page, kept_with_document

NEAR_EQUAL: Final = 0.8
"""Share of common words, numbers aside, from which two files are said to be nearly the
same: 0 pairs of 228 files of library288 (at most .53) and of the sample library."""
MOST_NAMED: Final = 3
"""Files of nearly the same words that the line names; the others are counted."""


def near_equal_files(documents: Sequence[Document]) -> dict[str, list[Page]]:
    """Return for the address of each file that others are nearly equal to, in order, it
    and these, the last changed first."""
    files = [
        document
        for document in documents
        if document.page.final_url.startswith("file:") and document.page.fetched_at
    ]
    groups = {
        document.page.final_url: sorted(
            (
                other.page
                for other in files
                if other is document or _are_near(document, other)
            ),
            key=attrgetter("fetched_at"),
            reverse=True,
        )
        for document in files
    }
    return {url: pages for url, pages in groups.items() if len(pages) > 1}


def near_equal_line(
    groups: Mapping[str, Sequence[Page]], assembled: Assembled | None = None
) -> str:
    """Return the line of the first of `groups` whose file is quoted, with the day of
    each one's last change; empty where none is.

    Named are the newest and quoted ones, `MOST_NAMED` at most. Which of them counts is
    not said: a copy has a time, too. Without `assembled` it is the longest that the line
    can be."""
    labels = {page.final_url: "10" for pages in groups.values() for page in pages}
    if assembled is not None:
        shown = zip(assembled.evidence, assembled.shown.labels, strict=True)
        labels = {one.url: label.rstrip(ascii_lowercase) for one, label in shown}
    newest, *older = next((groups[url] for url in groups if url in labels), (None,))
    if newest is None:
        return ""
    is_labelled = assembled is not None and newest.final_url in labels
    place = (
        f"[{labels[newest.final_url]}]"
        if is_labelled
        else shown_location(newest.final_url)
    )
    quoted = [page for page in older if page.final_url in labels][: MOST_NAMED - 1]
    dated = [f"{place} {newest.fetched_at[:10]}"]
    dated += [f"[{labels[page.final_url]}] {page.fetched_at[:10]}" for page in quoted]
    count = len(older) - len(quoted)
    more = f" and {count} more" if count else ""
    return f"Files of nearly the same words, by last change: {', '.join(dated)}{more}."


def _are_near(one: Document, other: Document) -> bool:
    lengths = len(one.text), len(other.text)
    if 2 * min(lengths) < max(lengths):
        return False
    words, others = _words_in(one), _words_in(other)
    return len(words & others) >= NEAR_EQUAL * len(words | others)


@kept_with_document
def _words_in(document: Document) -> frozenset[str]:
    """Return the words of a document; its numbers may differ from version to version."""
    return frozenset(filter(str.isalpha, raw_words(document.text.casefold())))
