"""Takes a draft apart: quotations, statements, references, and which references each
cites.

A draft is Markdown, HTML or plain text. A statement's citations are the marks in its
sentence or right after it: `[1]`, `[1a]`, `[^note]`, `[2, 5]`, a link, an address. Where
nothing is cited, every sentence is a statement about all sources. Not for: looking them
up (`check.py`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from pipeline.document.units import split_sentences
from pipeline.text.words import raw_words
from readers.html.document import read_document
from readers.page import Page
from readers.text.markdown import markdown_to_body

LEAST_WORDS: Final = 3
"""Words of a quotation; fewer are a term, a title or irony."""
_URL: Final = r"(?:https?|file)://(?:[^\s<>\"'`|\\^{}()⁂]|\([^\s()]*\))*(?:[^\s<>\"'`|\\^{}().,;:!?\]⁂]|\([^\s()]*\))"
_DRAFT_ADDRESS: Final = re.compile(_URL)
_MARK: Final = re.compile(r"\[(\^?[\w.-]{1,12}(?:\s*[,;]\s*\^?[\w.-]{1,12}){0,9})\]")
_REFERENCE: Final = re.compile(
    rf"^\s{{0,8}}(?:[-*]\s+)?(?:\[(\^?[\w.-]{{1,12}})\]:?|(\d{{1,3}})[.)])\s+([^\n]*?{_URL}[^\n]*)$",
    re.MULTILINE,
)
"""A line of the list of references: its mark, what it says, its address."""
_DOI_NAMED: Final = re.compile(r"\bdoi:\s*(?=10\.\d{4,9}/)", re.IGNORECASE)
_QUOTATION: Final = re.compile(
    r"“([^”]{4,2000})”|„([^“”]{4,2000})[“”]|«\s?([^»]{4,2000}?)\s?»|"
    r"»\s?([^«]{4,2000}?)\s?«|「([^」]{2,1000})」|『([^』]{2,1000})』|"
    r"(?<![\w\"])\"([^\"]{4,2000})\"(?![\w\"])"
)
_CITATION: Final = re.compile(r"\[([^\[\]⁂]*)⁂(\d+)\]")
"""What replaces citations in a block: words of a link, number of an address."""
_ASIDE: Final = re.compile(r"\(\s*((?:\[[^\[\]⁂]*⁂\d+\][\s,;]*)+)\)")
"""Links in brackets by themselves, which cite and state nothing."""
_MARK_AFTER: Final = re.compile(
    r"([.!?…。！？][\"”»』」]*)((?:\s*\[⁂\d+\])+|\s*\[[^\[\]⁂]*⁂\d+\]\s*$)"
)
_BLOCK_TAG: Final = re.compile(r"(</?(?:p|li|div|td|ol|ul|h\d)\b[^>]*>)")


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
    references: Mapping[str, str]
    """Addresses of the sources that it names: what it calls each, "" for no title."""
    uncited: int = 0
    """Statements that are left out, since others cite a source and they cite none."""


def read_draft(text: str) -> Draft:
    """Take a draft apart. Headings, tables and code state nothing.

    Quotations and statements of fewer than `LEAST_WORDS` words are dropped. Where some
    statements cite a source, those that cite none are only counted."""
    text = _DOI_NAMED.sub("https://doi.org/", text.replace("\r\n", "\n"))
    is_html = text.lstrip().startswith("<") and "</" in text
    # 1. The list of references, which contains no statements
    body, listed, titles = _without_references(
        _BLOCK_TAG.sub(r"\n\1\n", text) if is_html else text
    )
    # 2. Blocks of text, in which every citation is a mark with the number of its address
    addresses: dict[str, int] = {}
    blocks = list(_blocks(body if is_html else markdown_to_body(body), addresses))
    blocks = [(_numbered(block, listed, addresses), quoted) for block, quoted in blocks]
    urls = list(addresses)
    # 3. Quotations and sentences, each with what it cites
    quotes: list[CitedText] = []
    statements: list[CitedText] = []
    for number, (block, quoted) in enumerate(blocks):
        if quoted:
            following = blocks[number + 1][0] if number + 1 < len(blocks) else ""
            cited = _cited(block, urls) or _cited(following, urls)
            quotes.append(CitedText(_unmarked(block).strip(' "“”„«»—'), cited))
            continue
        for start, stop in split_sentences(block):
            sentence, cited = (
                _unmarked(block[start:stop]),
                _cited(block[start:stop], urls),
            )
            spans = [
                next(filter(None, groups)) for groups in _QUOTATION.findall(sentence)
            ]
            quotes += [CitedText(span, cited) for span in spans]
            # What is mostly a quotation is looked up as one, word for word
            words = len(raw_words(sentence))
            unquoted = words - sum(len(raw_words(span)) for span in spans)
            if unquoted >= max(LEAST_WORDS, words / 2):
                statements.append(CitedText(sentence, cited))
    long_quotes = (
        quote for quote in quotes if len(raw_words(quote.text)) >= LEAST_WORDS
    )
    cited_statements = [statement for statement in statements if statement.cited]
    return Draft(
        tuple(dict.fromkeys(long_quotes)),
        tuple(cited_statements or statements),
        dict.fromkeys(urls, "") | titles,
        len(statements) - len(cited_statements) if cited_statements else 0,
    )


def _without_references(text: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return a draft without its list of references, the addresses of that list by
    mark, and what the list calls each address.

    A numbered line is a reference where its number is cited; else it is an item with a
    link."""
    marks = _MARK.findall(_REFERENCE.sub("", text))
    cited = {label for labels in marks for label in re.findall(r"\d+", labels)}
    listed: dict[str, str] = {}
    titles: dict[str, str] = {}

    def taken(line: re.Match[str]) -> str:
        if not line[1] and line[2] not in cited:
            return line[0]
        words = re.sub(r"<[^>]*>|[\[\]()*_`]+", " ", _DRAFT_ADDRESS.sub(" ", line[3]))
        url = _DRAFT_ADDRESS.findall(line[3])[0]
        listed[line[1] or line[2]] = url
        titles[url] = " ".join(words.split()).strip(' .,:;—–-"“”<>')
        return ""

    return _REFERENCE.sub(taken, text), listed, titles


def _blocks(html: str, addresses: dict[str, int]) -> Iterator[tuple[str, bool]]:
    """Yield paragraphs and items, and whether each is a quotation; links are citations,
    whose `addresses` are numbered."""
    tree = LexborHTMLParser(html)
    for node in tree.css("nav, template"):
        node.decompose()
    for node in tree.css("a[href^=http], a[href^=file]"):
        words = re.sub(r"[\[\]⁂]", " ", node.text(strip=True))
        words = words if any(map(str.isalpha, words)) and "://" not in words else ""
        number = addresses.setdefault(node.attributes["href"] or "", len(addresses))
        node.replace_with(f"[{words}⁂{number}]")
    for node in tree.css("q"):
        node.replace_with(f"“{node.text(strip=True)}”")
    page = Page("", "", "", tree.html or "", "text/html")
    for block in read_document(page).blocks:
        if block.start >= 0 and block.kind in {
            "paragraph",
            "item",
            "definition",
            "block",
        }:
            yield " ".join(block.text.split()), "/blockquote" in block.path


def _numbered(text: str, listed: Mapping[str, str], addresses: dict[str, int]) -> str:
    """Return a block with bare addresses and marks of the list as citations, before the
    full stop that they follow. Numbers that the list lacks are dropped."""

    def citation(url: str) -> str:
        return f"[⁂{addresses.setdefault(url, len(addresses))}]"

    def of_list(mark: re.Match[str]) -> str:
        labels = re.split(r"\s*[,;]\s*", mark[1])
        # `[1a]` is a passage of page 1, as our own answers number them.
        urls = [
            listed.get(label) or listed.get(label.rstrip("abcdefghijklmnopqrstuvwxyz"))
            for label in labels
        ]
        citations = "".join(map(citation, filter(None, urls)))
        return citations or ("" if re.search(r"\d|\^", mark[1]) else mark[0])

    text = _DRAFT_ADDRESS.sub(lambda address: citation(address[0]), text)
    text = _MARK.sub(of_list, text)
    text = _ASIDE.sub(lambda aside: _CITATION.sub(r"[⁂\2]", aside[1]), text)
    return _MARK_AFTER.sub(r"\2\1", text)


def _cited(text: str, urls: list[str]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(urls[int(citation[2])] for citation in _CITATION.finditer(text))
    )


def _unmarked(text: str) -> str:
    words = " ".join(_CITATION.sub(r"\1", text).split())
    return re.sub(r" (?=[.,](?:\s|$))", "", words)
