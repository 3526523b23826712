"""What the forms of an export share: the pages that a session quotes, outcomes, links.

Nothing is fetched. Each form (`extras/exports/`) escapes every word of a page for
itself; addresses lead to http, https and file only."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pipeline.session.session import SeenPage, Session, Turn
from pipeline.text.frame import address, one_line
from readers.page import Evidence

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
        author = one_line(self.page.author)
        return list(filter(None, author.split("; ") if self.page.doi else [author]))

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
            sorted(
                {page for quote in self.quotes if (page := _page_of(quote))}, key=int
            )
        )

    @property
    def notes(self) -> list[str]:
        """Each quote with its page and link, on a line."""
        return [
            f"“{one_line(quote.text)}” {_position(quote)}{link_of(quote.citation)}".strip()
            for quote in self.quotes
        ]

    def facts(self, escaped: Callable[[str], str]) -> str:
        """Author, title, date and DOI."""
        doi = f"doi:{one_line(self.page.doi)}" if self.page.doi else ""
        published = one_line(self.page.published)
        facts = ("; ".join(self.authors), self.title, published, doi)
        return ". ".join(map(escaped, filter(None, facts)))


def quoted_pages(session: Session) -> dict[str, QuotedPage]:
    """Return the pages that were quoted by address, in the order of their first
    quotes."""
    seen = {page.final_url: page for page in session.pages}
    by_url: dict[str, list[Evidence]] = {}
    for quote in session.passages:
        by_url.setdefault(quote.url, []).append(quote)
    return {
        url: QuotedPage(number, seen.get(url) or _of_result(quotes[0]), tuple(quotes))
        for number, (url, quotes) in enumerate(by_url.items(), start=1)
    }


def _of_result(quote: Evidence) -> SeenPage:
    """Return the page of a quote that was taken from a search result."""
    url, title, author = quote.url, quote.title, quote.author
    return SeenPage(url, url, "", title, author, quote.published, "", "", "", quote.doi)


def outcome_of(turn: Turn) -> list[str]:
    """Return the outcome of a question, and what was not read."""
    if not turn.verdict:
        return ["Not answered yet: ask again with the session."]
    unread = (f"Not read: {missing}" for missing in turn.open)
    return [one_line(line) for line in (turn.reason, *unread)]


def label_of(quote: Evidence, sources: dict[str, QuotedPage]) -> str:
    """Return the number and title of a quote's page, and the page of a PDF."""
    source, page = sources[quote.url], _page_of(quote)
    return f"{source.number}. {source.title}{f', p. {page}' if page else ''}"


def _position(quote: Evidence) -> str:
    page = _page_of(quote)
    return f"p. {page}: " if page else ""


def _page_of(quote: Evidence) -> str:
    match = _PAGE.search(quote.citation)
    return match[1] if match else ""


def read_at(page: SeenPage) -> str:
    """Return when a page was read, "" for one that was not."""
    return f"(read {page.fetched_at})" if page.fetched_at else ""


def date_parts(text: str) -> list[str]:
    """Return year, month and day of an ISO date, as far as it has them."""
    match = _PARTIAL_DATE.match(text)
    return list(filter(None, match.groups())) if match else []


def link_of(url: str) -> str:
    """Return an address that may be followed, without anything that ends a link; empty
    for any other."""
    return address(url) if _WEB_OR_FILE.match(url) else ""
