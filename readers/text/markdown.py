"""Markdown to HTML, as its renderers draw it: HTML inside it is markup, so that what it
hides is hidden.

Comments go; elements that HTML knows, or that have attributes, are elements. A name in
angle brackets that is none (`<T>`, `<your name>`) is text. Every element is closed
where the text ends. Not for: what is visible then, which is asked of HTML from anywhere
(`readers/html/clean.py`), nor front matter (`markup.py`)."""

import re
from functools import partial
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from readers.converted import escape, unplaced
from readers.html.guard import parse
from readers.tree import tags

_markdown: Final = MarkdownIt("commonmark", {"html": True}).enable(
    ["table", "strikethrough"]
)
_ELEMENTS: Final = tags(
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo big "
    "blockquote body br button canvas caption center cite code col colgroup data datalist dd "
    "del details dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form "
    "frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd "
    "label legend li link main map mark marquee math menu meta meter nav nobr noembed noframes "
    "noscript object ol optgroup option output p param picture pre progress q rp rt ruby s samp "
    "script search section select small source span strike strong style sub summary sup svg "
    "table tbody td template textarea tfoot th thead time title tr track tt u ul var video wbr "
    "xmp"
)
_SWALLOWING: Final = tags(
    "applet audio canvas datalist iframe map math noembed noframes noscript object script select "
    "style svg template "
    "textarea title video xmp"
)
"""Elements of which nothing, or no markup, is read up to their end tag."""
_HTML_TAG: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<[?!][^>]*>|<(/?)([a-zA-Z][\w:-]*)((?:\"[^\"]*\"|'[^']*'|[^\"'<>]|(?!))*+)>",
    re.DOTALL,
)
_HIDING_ATTRIBUTE: Final = re.compile(r"=|\b(?:hidden|popover)\b", re.IGNORECASE)
"""What attributes hold and placeholders do not."""
_END_TAG: Final = re.compile(r"</([a-zA-Z]+)")


def markdown_to_body(text: str, *, sheets: bool = True) -> str:
    """Return Markdown as the inside of an HTML page, all elements closed; without
    `sheets` its style sheets go."""
    tokens = _markdown.parse(text)
    ends = _last_ends(text) if "</" in text else {}
    styled = sheets and "<style" in text.lower()
    has_html = False
    for token in tokens:
        line = token.map[1] if token.map else 0
        if token.type == "html_block":
            has_html = True
            token.content = _marked(token.content, line, ends, every=styled)
        for child in token.children or ():
            if child.type == "html_inline":
                has_html = True
                child.content = _HTML_TAG.sub(
                    partial(_kept, every=styled), child.content
                )
        if token.type == "inline" and token.children:
            token.children += _closing(token.children, line, ends)
    body = str(_markdown.renderer.render(tokens, _markdown.options, {}))
    return _balanced(body, sheets=sheets) if has_html else body


def _last_ends(text: str) -> dict[str, int]:
    """Return for each name of an end tag the last line that has one."""
    lines = enumerate(text.split("\n"))
    return {
        name.lower(): number
        for number, line in lines
        for name in _END_TAG.findall(line)
    }


def _marked(html: str, line: int, ends: dict[str, int], *, every: bool) -> str:
    """Return a block of HTML with placeholders as text, with unclosed elements
    closed."""
    html = _HTML_TAG.sub(partial(_kept, every=every), html)
    return html + "".join(
        f"</{name}>" for name in _opened(html) if ends.get(name, -1) < line
    )


def _closing(inline: list[Token], line: int, ends: dict[str, int]) -> list[Token]:
    html = "".join(token.content for token in inline if token.type == "html_inline")
    names = [name for name in _opened(html) if ends.get(name, -1) < line]
    return [Token("html_inline", "", 0, content=f"</{name}>") for name in names]


def _opened(html: str) -> list[str]:
    """Return the swallowing elements that are open at the end of some HTML, the
    innermost first."""
    opened: list[str] = []
    for closing, written, _ in _HTML_TAG.findall(html):
        if (name := written.lower()) not in _SWALLOWING:
            continue
        if not closing:
            opened.append(name)
        elif name in opened:
            opened.remove(name)
    return opened[::-1]


def _kept(tag_match: re.Match[str], *, every: bool) -> str:
    """Return a tag as markup, a placeholder as text, nothing of a comment."""
    if tag_match[2] is None:
        return ""
    name = tag_match[2].lower()
    if name == "title":
        return f"<{tag_match[1]}template>"  # its place is the tab of a browser
    if name == "plaintext" or not (
        every
        or name in _ELEMENTS
        or tag_match[1]
        or _HIDING_ATTRIBUTE.search(tag_match[3])
    ):
        return escape(tag_match[0])
    return unplaced(tag_match[0])


def _balanced(html: str, *, sheets: bool) -> str:
    root = parse(f"<!DOCTYPE html><body>{html}")
    body = root.css_first("body") if root is not None else None
    if body is None:
        return ""
    for node in body.css("script" if sheets else "script, style, link"):
        node.decompose()
    return body.inner_html or ""
