"""A session as an HTML page that loads and runs nothing."""

import base64
import hashlib
import html
from typing import Final

from extras.exported import label_of, link_of, outcome_of, quoted_pages, read_at
from pipeline.session.export import Export
from pipeline.session.session import Session
from pipeline.text.frame import opened, visible

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


def _html(session: Session) -> str:
    sources = quoted_pages(session)
    first_turn = session.turns[0]
    lines = [
        f"{_EXPORT_HEAD}\n<title>{_text(first_turn.question)}</title><style>{_EXPORT_STYLE}</style></head><body>",
        f"<h1>{_text(first_turn.question)}</h1>\n<footer>Session {session.handle}, begun "
        f"{_text(session.began)}.</footer>",
    ]
    for turn in session.turns:
        content = "".join(f"<li>{_text(line)}</li>" for line in outcome_of(turn))
        lines.append(f"<h2>{_text(turn.question)}</h2>\n<ul>{content}</ul>")
        for passage in turn.passages:
            cited = _html_link(label_of(passage, sources), passage.citation)
            lines.append(
                f'<blockquote dir="auto"><p>{_text(passage.text)}</p><cite>{cited}</cite></blockquote>'
            )
    lines.append("<h2>Sources</h2>\n<ol>")
    for source in sources.values():
        url = opened(source.page.final_url)
        content = (
            f"<bdi>{source.facts(_text)}</bdi>. {_html_link(url, url)} "
            f"{_text(read_at(source.page))}"
        )
        lines.append(f"<li>{content.rstrip()}</li>")
    return "\n".join([*lines, "</ol></body></html>"]) + "\n"


def _text(text: str) -> str:
    return html.escape(visible(text))


def _html_link(label: str, url: str) -> str:
    link = html.escape(link_of(url))
    return (
        f'<a href="{link}" rel="noopener noreferrer">{_text(label)}</a>'
        if link
        else _text(label)
    )


EXPORT: Final = Export("html", _html)
