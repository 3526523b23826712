"""A session as Markdown."""

import re
from typing import Final

from extras.exported import label_of, link_of, outcome_of, quoted_pages, read_at
from pipeline.session.export import Export
from pipeline.session.session import Session
from pipeline.text.frame import one_line, opened

_MARKDOWN: Final = re.compile(r"[\\`*_\[\]<>#|~!&@$]|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""Characters that are markup anywhere, and what makes a link of a bare address."""
_MARKDOWN_FIRST: Final = re.compile(r"^(\d+(?=[.)])|(?=[-+=]))")
"""What begins a list or underlines a heading."""


def _markdown(session: Session) -> str:
    sources = quoted_pages(session)
    first_turn = session.turns[0]
    lines = [
        f"# {_md(first_turn.question)}",
        "",
        f"Session {session.handle}, begun {session.began}.",
    ]
    for turn in session.turns:
        lines += [
            "",
            f"## {_md(turn.question)}",
            "",
            *(f"- {_md(line)}" for line in outcome_of(turn)),
        ]
        for passage in turn.passages:
            lines += [
                "",
                *(f"> {_md(line)}  " for line in passage.text.splitlines()),
                ">",
            ]
            lines.append(
                f"> — {_md_link(label_of(passage, sources), passage.citation)}"
            )
    lines += ["", "## Sources", ""]
    for source in sources.values():
        url = opened(source.page.final_url)
        lines.append(
            f"{source.number}. {source.facts(_md)}. {_md_link(url, url)} "
            f"{_md(read_at(source.page))}".rstrip()
        )
    return "\n".join(lines) + "\n"


def _md(text: str) -> str:
    return _MARKDOWN_FIRST.sub(r"\1\\", _MARKDOWN.sub(r"\\\g<0>", one_line(text)))


def _md_link(label: str, url: str) -> str:
    return f"[{_md(label)}](<{link_of(url)}>)" if link_of(url) else _md(label)


EXPORT: Final = Export("markdown", _markdown)
