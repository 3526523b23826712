"""A session written out to be handed on: Markdown, HTML, JSON, and its sources as
BibTeX, RIS and CSL-JSON.

A pure transformation: the same session gives the same bytes, and nothing is fetched.
Every word of a page is escaped for the form that it is written in, addresses lead to
http, https and file only, and the HTML loads and runs nothing. Not for: what an answer
of a tool looks like (`pipeline/evidence/show.py`)."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Final

from pipeline.document.page import Evidence
from pipeline.evidence.show import SAID
from pipeline.session.session import SeenPage, Session, Turn
from pipeline.text.frame import address, one_line, visible

_WEB_OR_FILE: Final = re.compile(r"(?:https?|file)://", re.IGNORECASE)
_PAGE: Final = re.compile(r"#page=(\d{1,4})")
"""Where a citation says which page of a PDF it opens."""
_PARTIAL_DATE: Final = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
_MARKDOWN: Final = re.compile(r"[\\`*_\[\]<>#|~!&@$]|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""Characters that are markup anywhere, and what makes a link of a bare address."""
_MARKDOWN_FIRST: Final = re.compile(r"^(\d+(?=[.)])|(?=[-+=]))")
"""What begins a list or underlines a heading."""
# Escaped braces would count for BibTeX, and one alone would end its field.
_TEX: Final = str.maketrans(
    {char: f"\\{char}" for char in "&%$#_"}
    | {
        "{": r"\textbraceleft{}",
        "}": r"\textbraceright{}",
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)
_EXPORT_STYLE: Final = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 "
    "1rem;overflow-wrap:anywhere}"
    "blockquote{margin:1rem 0;padding-left:1rem;border-left:3px solid #999}blockquote "
    "p{white-space:pre-line;margin:0}"
    "cite,footer{color:#555;font-size:.9rem}"
)
_STYLE_HASH: Final = base64.b64encode(
    hashlib.sha256(_EXPORT_STYLE.encode()).digest()
).decode()
_POLICY: Final = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"
_EXPORT_HEAD: Final = (
    '<!DOCTYPE html>\n<html><head><meta charset="utf-8">\n'
    f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    '<meta name="referrer" content="no-referrer"><meta name="viewport" '
    'content="width=device-width">'
)


@dataclass(frozen=True, slots=True)
class _QuotedPage:
    """A page that was quoted, with its quotes."""

    number: int
    """1-based, in the order of first quotes."""
    page: SeenPage
    quotes: tuple[Evidence, ...]

    @property
    def title(self) -> str:
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
        place = self.page.final_url.partition("//")[2].strip("/")
        name = (
            place.rpartition("/")[2]
            if self.page.final_url.startswith("file:")
            else place.partition("/")[0]
        )
        return "-".join(
            [
                *re.findall(r"[a-z0-9]+", name.lower()),
                *_date(self.page.published)[:1],
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
            f"“{one_line(one.text)}” {_place(one)}{_link(one.citation)}".strip()
            for one in self.quotes
        ]

    def facts(self, escaped: Callable[[str], str]) -> str:
        """Author, title, date and DOI."""
        doi = f"doi:{one_line(self.page.doi)}" if self.page.doi else ""
        said = ("; ".join(self.authors), self.title, one_line(self.page.published), doi)
        return ". ".join(map(escaped, filter(None, said)))


def export(session: Session, form: str) -> str:
    """Return a session in one of `EXPORT_FORMATS`."""
    return EXPORT_FORMATS[form](session)


def _markdown(session: Session) -> str:
    sources = _sources(session)
    first = session.turns[0]
    lines = [
        f"# {_md(first.question)}",
        "",
        f"Session {session.handle}, begun {session.began}.",
    ]
    for turn in session.turns:
        lines += [
            "",
            f"## {_md(turn.question)}",
            "",
            *(f"- {_md(line)}" for line in _outcome(turn)),
        ]
        for one in turn.passages:
            lines += ["", *(f"> {_md(line)}  " for line in one.text.splitlines()), ">"]
            lines.append(f"> — {_md_link(_label(one, sources), one.citation)}")
    lines += ["", "## Sources", ""]
    for source in sources.values():
        url = source.page.final_url
        lines.append(
            f"{source.number}. {source.facts(_md)}. {_md_link(url, url)} "
            f"{_md(_read_at(source.page))}".rstrip()
        )
    return "\n".join(lines) + "\n"


def _html(session: Session) -> str:
    sources = _sources(session)
    first = session.turns[0]
    parts = [
        f"{_EXPORT_HEAD}\n<title>{_text(first.question)}</title><style>{_EXPORT_STYLE}</style></head><body>",
        f"<h1>{_text(first.question)}</h1>\n<footer>Session {session.handle}, begun "
        f"{_text(session.began)}.</footer>",
    ]
    for turn in session.turns:
        content = "".join(f"<li>{_text(line)}</li>" for line in _outcome(turn))
        parts.append(f"<h2>{_text(turn.question)}</h2>\n<ul>{content}</ul>")
        for one in turn.passages:
            cited = _html_link(_label(one, sources), one.citation)
            parts.append(
                f'<blockquote dir="auto"><p>{_text(one.text)}</p><cite>{cited}</cite></blockquote>'
            )
    parts.append("<h2>Sources</h2>\n<ol>")
    for source in sources.values():
        url = source.page.final_url
        content = (
            f"<bdi>{source.facts(_text)}</bdi>. {_html_link(url, url)} "
            f"{_text(_read_at(source.page))}"
        )
        parts.append(f"<li>{content.rstrip()}</li>")
    return "\n".join([*parts, "</ol></body></html>"]) + "\n"


def _json(session: Session) -> str:
    content = asdict(session)
    del content["owner"]
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def _bibtex(session: Session) -> str:
    entries = []
    for source in _sources(session).values():
        date = _date(source.page.published)
        fields = {
            # Double braces: names are not split into first and last, titles keep their
            # case.
            "author": " and ".join(f"{{{_tex(name)}}}" for name in source.authors),
            "title": f"{{{_tex(source.title)}}}",
            "year": "".join(date[:1]),
            "month": "".join(date[1:2]).lstrip("0"),
            "doi": _tex(source.page.doi),
            "language": _tex(source.page.language),
            "url": _link(source.page.final_url),
            "urldate": _tex(source.page.fetched_at[:10]),
            "pages": source.pages,
            "annote": _tex("\n".join(source.notes)),
        }
        content = "".join(
            f",\n  {name} = {{{value}}}" for name, value in fields.items() if value
        )
        entries.append(f"@misc{{{source.key}{content}\n}}\n")
    return "\n".join(entries)


def _ris(session: Session) -> str:
    lines = []
    for source in _sources(session).values():
        date = _date(source.page.published)
        fields = [
            ("ID", source.key),
            ("TI", source.title),
            *(("AU", name) for name in source.authors),
            ("PY", "".join(date[:1])),
            ("DA", "/".join(date)),
            ("DO", source.page.doi),
            ("LA", source.page.language),
            ("SP", source.pages),
            ("UR", _link(source.page.final_url)),
            ("Y2", "/".join(_date(source.page.fetched_at))),
            *(("N1", note) for note in source.notes),
        ]
        lines += [
            f"TY  - {'JOUR' if source.page.doi else 'ELEC'}",
            *(f"{tag}  - {one_line(value)}" for tag, value in fields if value),
            "ER  - ",
            "",
        ]
    return "\r\n".join(lines)


def _csl(session: Session) -> str:
    items = []
    for source in _sources(session).values():
        item = {
            "id": source.key,
            "type": "article" if source.page.doi else "webpage",
            "title": source.title,
            "author": [{"literal": name} for name in source.authors],
            "issued": _csl_date(source.page.published),
            "accessed": _csl_date(source.page.fetched_at),
            "language": source.page.language,
            "URL": _link(source.page.final_url),
            "DOI": source.page.doi,
            "page": source.pages,
            "note": "\n".join(source.notes),
        }
        items.append({name: value for name, value in item.items() if value})
    return json.dumps(items, ensure_ascii=False, indent=2) + "\n"


EXPORT_FORMATS: Final[dict[str, Callable[[Session], str]]] = {
    "markdown": _markdown,
    "html": _html,
    "json": _json,
    "bibtex": _bibtex,
    "ris": _ris,
    "csl": _csl,
}
"""The forms of an export, by name."""


def _sources(session: Session) -> dict[str, _QuotedPage]:
    """Return the pages that were quoted by address, in the order of their first
    quotes."""
    seen = {page.final_url: page for page in session.pages}
    quotes: dict[str, list[Evidence]] = {}
    for one in session.passages:
        quotes.setdefault(one.url, []).append(one)
    return {
        url: _QuotedPage(number, seen.get(url) or _unread(own[0]), tuple(own))
        for number, (url, own) in enumerate(quotes.items(), start=1)
    }


def _unread(one: Evidence) -> SeenPage:
    """Return the page of a quote that was taken from a search result."""
    return SeenPage(
        one.url, one.url, "", one.title, one.author, one.published, "", "", "", one.doi
    )


def _outcome(turn: Turn) -> list[str]:
    """Return the outcome of a question: each part, and what was not read."""
    if not turn.parts:
        return ["Not answered yet: ask again with the session."]
    several = len(turn.parts) > 1
    parts = (
        f"{f'{one.question} ' if several else ''}{SAID[one.verdict].capitalize()}: {one.reason}"
        for one in turn.parts
    )
    return [
        one_line(line)
        for line in chain(parts, (f"Not read: {missing}" for missing in turn.open))
    ]


def _label(one: Evidence, sources: dict[str, _QuotedPage]) -> str:
    source = sources[one.url]
    return f"{source.number}. {source.title}{f', {_place(one)[:-2]}' if _page_of(one) else ''}"


def _place(one: Evidence) -> str:
    return f"p. {_page_of(one)}: " if _page_of(one) else ""


def _page_of(one: Evidence) -> str:
    found = _PAGE.search(one.citation)
    return found.group(1) if found else ""


def _read_at(page: SeenPage) -> str:
    return f"(read {page.fetched_at})" if page.fetched_at else ""


def _date(text: str) -> list[str]:
    """Return year, month and day of an ISO date, as far as it has them."""
    found = _PARTIAL_DATE.match(text)
    return [part for part in found.groups() if part] if found else []


def _csl_date(text: str) -> dict[str, list[list[int]]]:
    return {"date-parts": [list(map(int, _date(text)))]} if _date(text) else {}


def _link(url: str) -> str:
    """Return an address that may be followed, without anything that ends a link; empty
    for any other."""
    return address(url) if _WEB_OR_FILE.match(url) else ""


def _text(text: str) -> str:
    return html.escape(visible(text))


def _html_link(label: str, url: str) -> str:
    link = html.escape(_link(url))
    return (
        f'<a href="{link}" rel="noopener noreferrer">{_text(label)}</a>'
        if link
        else _text(label)
    )


def _md(text: str) -> str:
    return _MARKDOWN_FIRST.sub(r"\1\\", _MARKDOWN.sub(r"\\\g<0>", one_line(text)))


def _md_link(label: str, url: str) -> str:
    return f"[{_md(label)}](<{_link(url)}>)" if _link(url) else _md(label)


def _tex(text: str) -> str:
    return visible(text).translate(_TEX)
