"""Writing evidence out for a reader: numbered pages, lettered passages, one frame a page, links.

The form that `research`, `extract_relevant` and `raptor_query` share. Not for: choosing evidence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from pipeline.documents import Evidence
from pipeline.text.frame import framed, one_line
from pipeline.text.tokens import count_tokens

LINKS_FROM: Final = 1500
"""Smallest budget whose text shows a link a passage; below, the structured part alone has them."""
LONGEST_AUTHOR: Final = 80
"""Code points of who wrote a page."""
ALSO: Final = 2
"""Other pages with the same words that the text names; the structured part has them all."""
UNSURE: Final = "No passage clearly answers. These are the nearest; check that they do before you use them:"
"""Stands above evidence that the None gate is not sure of."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Evidence as text."""

    labels: tuple[str, ...]
    """`1a`, `1b`, `2a` … one for each evidence."""
    text: str
    tokens: int
    """Exactly `count_tokens(text)`."""


def show_evidence(evidence: Sequence[Evidence], mark: str, *, links: bool) -> Shown:
    """Write `evidence` out, passages of one page that follow each other under one head.

    Args:
        evidence: In the order to be shown.
        mark: The answer's own mark for untrusted text (`pipeline/text/frame.py`).
        links: Whether every passage's link is shown; each costs 20 to 40 tokens.
    """
    labels: list[str] = []
    pages: list[str] = []
    for _, group in groupby(evidence, key=lambda one: (one.url, one.title)):
        passages = list(group)
        letters = [_letter(place) for place in range(len(passages))]
        number = len(pages) + 1
        labels.extend(f"{number}{letter}" for letter in letters)
        pages.append(_page(number, letters, passages, mark, links=links))
    text = "\n".join(pages)
    return Shown(tuple(labels), text, count_tokens(text))


def headings_to_show(title: str, heading_path: Sequence[str]) -> tuple[str, ...]:
    """Return the headings on one line each, without those that only repeat the page's title."""
    known = one_line(title).casefold()
    folded = (one_line(heading) for heading in heading_path)
    return tuple(heading for heading in folded if heading and heading.casefold() not in known)


def headline(title: str, published: str, *, author: str = "") -> str:
    """Return the line that names a page: title, author where the title does not name them, date."""
    title, author = one_line(title) or "(no title)", one_line(author)[:LONGEST_AUTHOR]
    by = f" – by {author}" if author and author.casefold() not in title.casefold() else ""
    return f"{title}{by}" + (f" ({published})" if published else "")


def _fragment(citation: str) -> str:
    """Return the part of a citation behind the page's address, empty where there is none."""
    return citation[citation.index("#") :] if "#" in citation else ""


def _page(number: int, letters: Sequence[str], passages: Sequence[Evidence], mark: str, *, links: bool) -> str:
    first = passages[0]
    lines = [f"[{number}] {headline(first.title, first.published, author=first.author)}"]
    if first.url:
        lines.append(first.url)
    quoted = []
    above = ""
    for letter, passage in zip(letters, passages, strict=True):
        path = " › ".join(passage.heading_path)
        head = f"({letter}) [summary of {len(passage.sources)} places] " if passage.is_summary else f"({letter}) "
        quoted.append(f"{head}{path}: {passage.text}" if path and path != above else f"{head}{passage.text}")
        above = path
    lines.append(framed("\n".join(quoted), mark))
    if links:
        shown = zip(letters, passages, strict=True)
        lines.append(" ".join(f"({letter}) {link}" for letter, one in shown if (link := _fragment(one.citation))))
    lines.extend(_also(letter, passage) for letter, passage in zip(letters, passages, strict=True))
    return "\n".join(line for line in lines if line)


def _also(letter: str, passage: Evidence) -> str:
    """Return the line that names other pages with the same words, empty where there are none."""
    if not passage.also:
        return ""
    shown = ", ".join(citation.partition("#")[0] for citation in passage.also[:ALSO])
    more = len(passage.also) - ALSO
    return f"({letter}) also: {shown}" + (f" and {more} more" if more > 0 else "")


def _letter(place: int) -> str:
    """Return a, b, … z, aa, ab … for 0, 1, …"""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters
