"""Parses a draft: quotations, statements, references, and which references each cites.

A draft is Markdown or plain text: a report, or a model's answer. A statement's
citations are the marks in its sentence or right after it: `[1]`, `[1a]`, `[^note]`,
`[2, 5]`, a link, an address. Where nothing is cited, every sentence is a statement
about all sources. Not for: judging them (`check.py`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pipeline.document.units import split_sentences
from pipeline.text.words import raw_words

LEAST_WORDS: Final = 3
"""Words of a quotation; fewer are a term, a title or irony."""
_URL: Final = r"(?:https?|file)://(?:[^\s<>\"'`|\\^{}()]|\([^\s()]*\))*(?:[^\s<>\"'`|\\^{}().,;:!?\]]|\([^\s()]*\))"
_INLINE_LINK: Final = re.compile(
    rf"\[([^\[\]\n]{{0,300}})\]\(\s*<?({_URL})>?(?:\s+[\"'][^\n\"']*[\"'])?\s*\)"
)
_LINK_ASIDE: Final = re.compile(rf"\(\s*(?:{_INLINE_LINK.pattern}[\s,;]*)+\)")
"""A link in brackets by itself, which cites and states nothing."""
_BARE_URL: Final = re.compile(rf"<?({_URL})>?")
_REFERENCE_MARK: Final = re.compile(
    r"\[(\^?[\w.-]{1,12}(?:\s*[,;]\s*\^?[\w.-]{1,12}){0,9})\](?![(:\[])"
)
_REFERENCE: Final = re.compile(
    rf"^\s{{0,8}}(?:[-*]\s+)?(?:\[(\^?[\w.-]{{1,12}})\]:?|(\d{{1,3}})[.)])\s+([^\n]*?{_URL}[^\n]*)$",
    re.MULTILINE,
)
"""A line of the list of references: its mark, what it says, its address."""
DOI_ADDRESS: Final = re.compile(
    r"\bdoi\.org/(10\.\d{4,9}/[-._;()/:a-z0-9]{0,99}[a-z0-9])", re.IGNORECASE
)
"""Characters of a DOI that every catalog accepts; older DOIs with others are read as
addresses."""
_DOI_NAMED: Final = re.compile(r"\bdoi:\s*(?=10\.\d{4,9}/)", re.IGNORECASE)
_QUOTATION: Final = re.compile(
    r"“([^”\n]{4,2000})”|„([^“”\n]{4,2000})[“”]|«\s?([^»\n]{4,2000}?)\s?»|»\s?([^«\n]{4,2000}?)\s?«|「([^」\n]{2,1000})」|"
    r"『([^』\n]{2,1000})』|(?<![\w\"])\"([^\"\n]{4,2000})\"(?![\w\"])"
)
_BLOCK_QUOTE: Final = re.compile(r"(?:^[ \t]{0,3}>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_CODE_FENCE: Final = re.compile(
    r"^[ \t]{0,3}(```|~~~)[^\n]*\n.*?(?:^[ \t]{0,3}\1[^\n]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_LINE_MARK: Final = re.compile(r"^\s{0,8}(?:#{1,6}\s+|[-*+•]\s+|\d{1,3}[.)]\s+|>\s?)+")
_ONLY_MARKS: Final = re.compile(r"[\W\d_]*")
_EMPHASIS: Final = re.compile(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|`")


_TITLE_TAGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
_TEXT_TAGS: Final = ", ".join(
    ("p", "li", "dd", "dt", "td", "th", "figcaption", *_TITLE_TAGS)
)
_SIGNS: Final = {"blockquote": "> ", "li": "- ", **dict.fromkeys(_TITLE_TAGS, "# ")}
"""What begins a line of Markdown that was an element of HTML."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A source that a draft names."""

    url: str
    title: str = ""
    """What the draft calls it, empty where it gives the address only."""
    doi: str = ""


@dataclass(frozen=True, slots=True)
class CitedText:
    """A quotation or a statement of a draft, without its marks."""

    text: str
    cited: tuple[str, ...]
    """Addresses that it is said to be from; empty where it is said of none."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft's parts in order."""

    quotes: tuple[CitedText, ...]
    statements: tuple[CitedText, ...]
    references: tuple[Reference, ...]


def read_draft(text: str) -> Draft:
    """Take a draft apart: Markdown or plain text, whose code blocks are left out.

    Quotations and statements of fewer than `LEAST_WORDS` words are dropped. Where some
    statements cite a source, those that cite none are dropped, too."""
    text = _DOI_NAMED.sub(
        "https://doi.org/", _CODE_FENCE.sub("\n", text.replace("\r\n", "\n"))
    )
    # 1. The list of references, which contains no statements
    body, listed = _without_references(text)
    references = {url: _reference(url) for url in _addresses(body)} | {
        one.url: one for one in listed.values()
    }
    # 2. Quotations and sentences, each with what it cites
    quotes = list[CitedText]()
    statements = list[CitedText]()
    for passage in _passages(body):
        for sentence, cited in _sentences(passage, listed):
            quoted, stated = _quoted_and_stated(sentence)
            quotes += [CitedText(one, cited) for one in quoted]
            statements += [CitedText(one, cited) for one in stated]
    quotes += _block_quotes(body, listed)
    # 3. Where sentences carry marks, those without are the author's own
    marked = [one for one in statements if one.cited]
    kept = [one for one in quotes if len(raw_words(one.text)) >= LEAST_WORDS]
    return Draft(
        tuple(dict.fromkeys(kept)),
        tuple(marked or statements),
        tuple(references.values()),
    )


def _quoted_and_stated(sentence: str) -> tuple[list[str], list[str]]:
    """Return what a sentence quotes, and the sentence itself where it states something:
    what is mostly a quotation is judged as one, word for word."""
    quoted = [
        _plain(next(filter(None, found.groups())))
        for found in _QUOTATION.finditer(sentence)
    ]
    stated = _plain(sentence)
    words = len(raw_words(stated))
    own = words - sum(len(raw_words(one)) for one in quoted)
    return quoted, [stated] if own >= max(LEAST_WORDS, words / 2) else []


def _without_references(text: str) -> tuple[str, dict[str, Reference]]:
    """Return a draft without its list of references, and that list by number.

    A numbered line is a reference where its number is cited; else it is an item with a
    link."""
    named = {
        mark
        for found in _REFERENCE_MARK.finditer(_REFERENCE.sub("", text))
        for mark in re.findall(r"\d+", found[1])
    }
    entries = [
        found for found in _REFERENCE.finditer(text) if found[1] or found[2] in named
    ]
    listed = {found[1] or found[2]: _reference(found[3]) for found in entries}
    body = _REFERENCE.sub(
        lambda found: "" if found[1] or found[2] in named else found[0], text
    )
    return body, listed


def _block_quotes(body: str, listed: dict[str, Reference]) -> Iterator[CitedText]:
    """Yield quotations that are paragraphs of their own; one without a citation has
    those of the line after it."""
    for found in _BLOCK_QUOTE.finditer(body):
        lines = "\n".join(_LINE_MARK.sub("", line) for line in found[0].splitlines())
        following = body[found.end() :].lstrip().partition("\n")[0]
        cited = _cited(found[0], listed) or _cited(following, listed)
        yield CitedText(_plain(lines).strip(' \t“”"«»„'), cited)


def markdown_of(html: str) -> str:
    """Return a draft in HTML as Markdown: its paragraphs, items and quotations, links
    with their addresses.

    Scripts, styles, navigation, and text outside such elements are dropped."""
    tree = LexborHTMLParser(html)
    for node in tree.css("script, style, nav, template"):
        node.decompose()
    for node in tree.css("a[href]"):
        node.replace_with(f"[{node.text(strip=True)}]({node.attributes['href'] or ''})")
    for node in tree.css("q"):
        node.replace_with(f"“{node.text(strip=True)}”")
    blocks: list[str] = []
    for node in tree.css(f"{_TEXT_TAGS}, blockquote"):
        tag = node.tag or ""
        holds = any(inner.mem_id != node.mem_id for inner in node.css(_TEXT_TAGS))
        if (tag == "blockquote" or not holds) and not _is_in_quotation(node):
            said = " ".join(node.text(separator=" ").split())
            blocks.append(f"{_SIGNS.get(tag, '')}{said}")
    return "\n\n".join(blocks)


def _is_in_quotation(node: LexborNode) -> bool:
    above = node.parent
    while above is not None and above.tag != "blockquote":
        above = above.parent
    return above is not None


def _reference(line: str) -> Reference:
    found = _BARE_URL.search(line)
    url = found[1] if found else ""
    doi = DOI_ADDRESS.search(line)
    said = _plain(
        _BARE_URL.sub(" ", _INLINE_LINK.sub(lambda link: link[1], line))
    ).strip(' .,:;—–-()"“”')
    return Reference(url, said, doi[1].lower() if doi else "")


def _passages(body: str) -> Iterator[str]:
    """Yield paragraphs and items; headings, tables and block quotations are left out,
    since they state nothing by themselves."""
    gathered: list[str] = []
    for line in [*_BLOCK_QUOTE.sub("\n", body).splitlines(), ""]:
        starts = bool(_LINE_MARK.match(line)) or line.lstrip().startswith("|")
        if (starts or not line.strip()) and gathered:
            yield " ".join(gathered)
            gathered = []
        if line.strip() and not line.lstrip().startswith(("#", "|")):
            gathered.append(_LINE_MARK.sub("", line).strip())


def _sentences(
    passage: str, listed: dict[str, Reference]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each sentence with its citations; marks after its period belong to it."""
    pieces = [passage[start:end] for start, end in split_sentences(passage)]
    joined: list[str] = []
    for piece in pieces:
        mark = _REFERENCE_MARK.match(piece.lstrip()) or _INLINE_LINK.match(
            piece.lstrip()
        )
        unmarked = _BARE_URL.sub(
            " ", _REFERENCE_MARK.sub(" ", _INLINE_LINK.sub(" ", piece))
        )
        if joined and (
            _ONLY_MARKS.fullmatch(unmarked) or (mark and _cited(mark[0], listed))
        ):
            cut = (
                len(piece) - len(piece.lstrip()) + (mark.end() if mark else len(piece))
            )
            joined[-1] += f" {piece[:cut]}"
            joined += [piece[cut:]] if piece[cut:].strip() else []
        else:
            joined.append(piece)
    for piece in joined:
        yield piece, _cited(piece, listed)


def _cited(text: str, listed: dict[str, Reference]) -> tuple[str, ...]:
    """Return the addresses that marks, links and bare addresses in `text` lead to, each
    once.

    Marks that the list of references lacks are dropped."""
    marks = [
        part.strip()
        for found in _REFERENCE_MARK.finditer(text)
        for part in re.split(r"[,;]", found[1])
    ]
    # `[1a]` is a passage of page 1, as our own answers number them.
    named = [
        listed.get(mark) or listed.get(mark.rstrip("abcdefghijklmnopqrstuvwxyz"))
        for mark in marks
    ]
    return tuple(
        dict.fromkeys(
            [*(one.url for one in named if one and one.url), *_addresses(text)]
        )
    )


def _addresses(text: str) -> list[str]:
    """Return the addresses of links, then bare addresses."""
    return [found[2] for found in _INLINE_LINK.finditer(text)] + [
        found[1] for found in _BARE_URL.finditer(_INLINE_LINK.sub("", text))
    ]


def _plain(text: str) -> str:
    """Return words as a reader sees them: links by their words, no marks, no signs of
    emphasis."""
    text = _INLINE_LINK.sub(
        lambda link: "" if _ONLY_MARKS.fullmatch(link[1]) else link[1],
        _LINK_ASIDE.sub("", text),
    )
    return (
        " ".join(
            _EMPHASIS.sub(
                "", _BARE_URL.sub(" ", _REFERENCE_MARK.sub(" ", text))
            ).split()
        )
        .replace(" .", ".")
        .replace(" ,", ",")
    )
