"""What the forms of an export share: the pages that a session quotes, outcomes, links.

Nothing is fetched. Each form (`extras/exports/`) escapes every word of a page for
itself; addresses lead to http, https and file only."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pipeline.document.page import Evidence
from pipeline.evidence.show import VERDICT_NAMES
from pipeline.session.session import SeenPage, Session, Turn
from pipeline.text.frame import address, one_line

_WEB_OR_FILE: Final = re.compile(r"(?:https?|file)://", re.IGNORECASE)
_PAGE: Final = re.compile(r"#page=(\d{1,4})")
"""Where a citation says which page of a PDF it opens."""
_PARTIAL_DATE: Final = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")


@dataclass(frozen=True, slots=True)
class QuotedPage:
    """A page that was quoted, with its quotes."""

    number: int
    """1-based, in the order of first quotes."""
    page: SeenPage
    quotes: tuple[Evidence, ...]

    @property
    def title(self) -> str:
        """Its title, or else its address."""
        return one_line(self.page.title) or address(self.page.final_url)

    @property
    def authors(self) -> list[str]:
        """Names as the page has them, of published research each for itself."""
        named = one_line(self.page.author)
        return list(filter(None, named.split("; ") if self.page.doi else [named]))

    @property
    def key(self) -> str:
        """Name of its entry, of letters, digits and hyphens: host or file name, year of
        publication if known, number of the page (`example-com-2024-3`). Unique by the
        number, never empty."""
        location = self.page.final_url.partition("//")[2].strip("/")
        name = (
            location.rpartition("/")[2]
            if self.page.final_url.startswith("file:")
            else location.partition("/")[0]
        )
        return "-".join(
            [
                *re.findall(r"[a-z0-9]+", name.lower()),
                *date_parts(self.page.published)[:1],
                str(self.number),
            ]
        )

    @property
    def pages(self) -> str:
        """The pages of a PDF that were quoted, in order."""
        return ", ".join(
            sorted({page for one in self.quotes if (page := _page_of(one))}, key=int)
        )

    @property
    def notes(self) -> list[str]:
        """Each quote with its page and link, on a line."""
        return [
            f"“{one_line(one.text)}” {_position(one)}{link_of(one.citation)}".strip()
            for one in self.quotes
        ]

    def facts(self, escaped: Callable[[str], str]) -> str:
        """Author, title, date and DOI."""
        doi = f"doi:{one_line(self.page.doi)}" if self.page.doi else ""
        said = ("; ".join(self.authors), self.title, one_line(self.page.published), doi)
        return ". ".join(map(escaped, filter(None, said)))


def quoted_pages(session: Session) -> dict[str, QuotedPage]:
    """Return the pages that were quoted by address, in the order of their first
    quotes."""
    seen = {page.final_url: page for page in session.pages}
    quotes: dict[str, list[Evidence]] = {}
    for one in session.passages:
        quotes.setdefault(one.url, []).append(one)
    return {
        url: QuotedPage(number, seen.get(url) or _unread(own[0]), tuple(own))
        for number, (url, own) in enumerate(quotes.items(), start=1)
    }


def _unread(one: Evidence) -> SeenPage:
    """Return the page of a quote that was taken from a search result."""
    return SeenPage(
        one.url, one.url, "", one.title, one.author, one.published, "", "", "", one.doi
    )


def outcome_of(turn: Turn) -> list[str]:
    """Return the outcome of a question, and what was not read."""
    if not turn.verdict:
        return ["Not answered yet: ask again with the session."]
    outcome = f"{VERDICT_NAMES[turn.verdict].capitalize()}: {turn.reason}"
    unread = (f"Not read: {missing}" for missing in turn.open)
    return [one_line(line) for line in (outcome, *unread)]


def label_of(one: Evidence, sources: dict[str, QuotedPage]) -> str:
    """Return the number and title of a quote's page, and the page of a PDF."""
    source = sources[one.url]
    return f"{source.number}. {source.title}{f', {_position(one)[:-2]}' if _page_of(one) else ''}"


def _position(one: Evidence) -> str:
    return f"p. {_page_of(one)}: " if _page_of(one) else ""


def _page_of(one: Evidence) -> str:
    found = _PAGE.search(one.citation)
    return found.group(1) if found else ""


def read_at(page: SeenPage) -> str:
    """Return when a page was read, "" for one that was not."""
    return f"(read {page.fetched_at})" if page.fetched_at else ""


def date_parts(text: str) -> list[str]:
    """Return year, month and day of an ISO date, as far as it has them."""
    found = _PARTIAL_DATE.match(text)
    return [part for part in found.groups() if part] if found else []


def link_of(url: str) -> str:
    """Return an address that may be followed, without anything that ends a link; empty
    for any other."""
    return address(url) if _WEB_OR_FILE.match(url) else ""
