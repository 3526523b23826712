"""The sources of a session as BibTeX."""

from typing import Final

from extras.exported import date_parts, link_of, quoted_pages
from pipeline.session.export import Export
from pipeline.session.session import Session
from pipeline.text.frame import visible

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


def _bibtex(session: Session) -> str:
    entries = []
    for source in quoted_pages(session).values():
        date = date_parts(source.page.published)
        fields = {
            # Double braces: names are not split into first and last, titles keep their
            # case.
            "author": " and ".join(f"{{{_tex(name)}}}" for name in source.authors),
            "title": f"{{{_tex(source.title)}}}",
            "year": "".join(date[:1]),
            "month": "".join(date[1:2]).lstrip("0"),
            "doi": _tex(source.page.doi),
            "language": _tex(source.page.language),
            "url": link_of(source.page.final_url),
            "urldate": _tex(source.page.fetched_at[:10]),
            "pages": source.pages,
            "annote": _tex("\n".join(source.notes)),
        }
        content = "".join(
            f",\n  {name} = {{{value}}}" for name, value in fields.items() if value
        )
        entries.append(f"@misc{{{source.key}{content}\n}}\n")
    return "\n".join(entries)


def _tex(text: str) -> str:
    return visible(text).translate(_TEX)


EXPORT: Final = Export("bibtex", _bibtex)
