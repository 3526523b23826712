"""The sources of a session as RIS."""

from typing import Final

from extras.exported import date_parts, link_of, quoted_pages
from pipeline.session.export import Export
from pipeline.session.session import Session
from pipeline.text.frame import one_line


def _ris(session: Session) -> str:
    lines = []
    for source in quoted_pages(session).values():
        date = date_parts(source.page.published)
        fields = [
            ("ID", source.key),
            ("TI", source.title),
            *(("AU", name) for name in source.authors),
            ("PY", "".join(date[:1])),
            ("DA", "/".join(date)),
            ("DO", source.page.doi),
            ("LA", source.page.language),
            ("SP", source.pages),
            ("UR", link_of(source.page.final_url)),
            ("Y2", "/".join(date_parts(source.page.fetched_at))),
            *(("N1", note) for note in source.notes),
        ]
        lines += [
            f"TY  - {'JOUR' if source.page.doi else 'ELEC'}",
            *(f"{tag}  - {one_line(value)}" for tag, value in fields if value),
            "ER  - ",
            "",
        ]
    return "\r\n".join(lines)


EXPORT: Final = Export("ris", _ris)
