"""The sources of a session as CSL-JSON."""

import json
from typing import Final

from extras.exported import date_parts, link_of, quoted_pages
from pipeline.session.export import Export
from pipeline.session.session import Session


def _csl(session: Session) -> str:
    items = []
    for source in quoted_pages(session).values():
        item = {
            "id": source.key,
            "type": "article" if source.page.doi else "webpage",
            "title": source.title,
            "author": [{"literal": name} for name in source.authors],
            "issued": _csl_date(source.page.published),
            "accessed": _csl_date(source.page.fetched_at),
            "language": source.page.language,
            "URL": link_of(source.page.final_url),
            "DOI": source.page.doi,
            "page": source.pages,
            "note": "\n".join(source.notes),
        }
        items.append({name: value for name, value in item.items() if value})
    return json.dumps(items, ensure_ascii=False, indent=2) + "\n"


def _csl_date(text: str) -> dict[str, list[list[int]]]:
    return (
        {"date-parts": [list(map(int, date_parts(text)))]} if date_parts(text) else {}
    )


EXPORT: Final = Export("csl", _csl)
