"""Real pages, mutated: pruning must neither crash nor go over its budget, nor write HTML that does not nest."""

import asyncio
import random
import re
from collections.abc import Sequence
from typing import Final

from pipeline.evidence.forms import Form
from pipeline.prune.prune import Pruned, PruneOptions, prune
from pipeline.question.question import Question
from pipeline.reading.relevance import Blend
from pipeline.text.tokens import count_tokens
from readers.html.document import read_document
from readers.page import Document, Page

LONGEST: Final = 6000
"""Characters of a page that is mutated: a window of a real page, so that thousands of
cases take minutes."""
BITS: Final = (
    "<table><tr><th>a<th>b<tr><td rowspan=9999 colspan=9999>x<td>y|z",
    "<ul><li>one<ul><li>two<ol start=7><li>three",
    "</div></div></table></p>",
    "<pre>```\n~~~\n<b>&lt;p&gt;</pre>",
    "<h1></h1><h6>deep",
    "&amp;&#0;&#xfffff;&bogus;\x00\uffff",
    "<dl><dt>t<dd>d<dd>e",
    "<a href='javascript:x'>l</a><a href='//h/p?q=1#f'>m</a>",
    "天地玄黄宇宙洪荒" * 9,
    "e\u0301\u202e\u200b",
    "a" * 700,
    "<p>" * 40,
    "<!--",
    "<script>",
    "|",
)
QUERIES: Final = (
    "",
    "which one was the first",
    "who is the author",
    "price in 2025 after it",
    "天地",
    "\ud800 |",
)
FORMS: Final[tuple[Form, ...]] = ("html", "markdown", "text")
_TAG: Final = re.compile(r"<(/?)([a-z]+\d?)(?: value=\d+)?>")
_WRITTEN: Final = frozenset(
    {
        "dd",
        "dl",
        "dt",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "li",
        "ol",
        "p",
        "pre",
        "table",
        "td",
        "th",
        "tr",
        "ul",
    }
)


def mutated(html: str, draw: random.Random) -> str:
    """Return a window of a page with a few cuts, copies and hostile bits."""
    begin = draw.randrange(max(1, len(html) - LONGEST))
    text = html[begin : begin + draw.randrange(1, LONGEST)]
    for _ in range(draw.randrange(6)):
        a, b = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
        b = min(b, a + 800)
        kind = draw.randrange(4)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:b] + text[a:b] + text[b:]
        elif kind == 2:
            text = text[:a] + draw.choice(BITS) + text[a:]
        else:
            text = text[:a] + text[a:b][::-1] + text[b:]
    return text


def nests(html: str) -> bool:
    """Whether all elements are closed in order, and no other tag than ours is there."""
    opened: list[str] = []
    for closing, tag in _TAG.findall(html):
        if not closing:
            if tag not in _WRITTEN:
                return False
            opened.append(tag)
        elif not opened or opened.pop() != tag:
            return False
    return not opened and "<" not in _TAG.sub("", html)


def complaint(documents: Sequence[Document], options: PruneOptions, result: Pruned) -> str:
    """Return what is wrong with a result, empty where nothing is."""
    text = "\n".join(page.text for page in result.pages)
    if result.tokens != count_tokens(text):
        return f"{count_tokens(text)} tokens, said to be {result.tokens}"
    if result.tokens > result.budget or (
        options.max_tokens is not None and result.budget != options.max_tokens
    ):
        return f"{result.tokens} tokens in a budget of {options.max_tokens} ({result.budget})"
    if any(list(page.kept) != sorted(set(page.kept)) for page in result.pages):
        return "not in document order"
    if (
        not result.pages
        and result.budget >= 20
        and options.part == 1
        and any(one.blocks for one in documents)
    ):
        return "empty, though there is text"
    if options.format == "html":
        return next(
            (f"does not nest: {page.text[:200]}" for page in result.pages if not nests(page.text)),
            "",
        )
    return ""


def one_case(sources: Sequence[str], draw: random.Random) -> str:
    """Prune one to three mutated pages in a drawn way; return what is wrong, empty
    where nothing is."""
    texts = [mutated(draw.choice(sources), draw) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    documents = [
        read_document(Page("http://a/b", "http://a/b", "", text, "application/octet-stream"))
        for text in texts
    ]
    budget = draw.choice((None, 0, 1, 5, draw.randrange(300), draw.randrange(3000)))
    part = draw.choice((1, 1, 2))
    options = PruneOptions(budget, draw.choice(FORMS), part=part)
    query = draw.choice(QUERIES)
    result = asyncio.run(prune(documents, Question(query), options=options, reader=Blend(None)))
    wrong = complaint(documents, options, result)
    return f"{wrong} ({options}, query {query!r})" if wrong else ""
