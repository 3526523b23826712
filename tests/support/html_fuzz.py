"""Mutated pages and what must hold of each: no crash, no lost word, no budget overrun.

Real pages are read from ../shared/data/pages where they are; otherwise only the fragments below are mutated."""

import asyncio
import gzip
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from papers.htmlrag.block_tree import block_tree
from pipeline.evidence.forms import Form
from pipeline.prune.prune import PruneOptions, prune
from pipeline.question.question import Question
from pipeline.reading.relevance import Blend
from pipeline.text.tokens import count_tokens
from readers.html.blocks import content_blocks
from readers.html.clean import clean
from readers.html.document import read_document
from readers.page import Page
from readers.tree import text_of, walk
from tests.support.pages import resolve

PAGES: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "pages"
LONGEST: Final = 4_000
"""Characters of a case before mutation."""
ENOUGH: Final = 20
"""Tokens from which something of a page with text must be kept."""
FRAGMENTS: Final = (
    "<table><caption>c</caption><tr><th>Year<th>Title<tr><td "
    "rowspan=3>1999<td>One<tr><td>Two</table>",
    "<dl><dt>term<dd>meaning <p>more</dl>",
    "<ul><li>one<ul><li>two</ul><li>three</ul>",
    "<pre><code>def f():\n    return 1\n\n\nx = 2</code></pre>",
    "<h2>Head</h2><p>Text with <a href=/x>link</a> and <b>bold.</b> 天地玄黄 宇宙洪荒。",
    "<table><tr><td><table><tr><td>in<td>ner</table><td>x</table>",
    "<select><option>a<option>b</select><button>go</button><details><summary>s</summary>d</details>",
)
SPLINTERS: Final = (
    "<",
    ">",
    "</",
    "<!--",
    "-->",
    "<!",
    "<?",
    '"',
    "'",
    "=",
    "&",
    "&lt",
    "&#x110000;",
    "\0",
    "\ufeff",
    "\u202e",
    "\ud800",
    "<div>" * 300,
    "</div>" * 50,
    "<table>",
    "</table>",
    "<tr>",
    "<td colspan=99999 rowspan=-1>",
    "<p>",
    "<b a=1>",
    "<script>",
    "</script>",
    "<style>.x{display:none}",
    "</style>",
    "<textarea>",
    "<title>",
    "<svg>",
    "<math>",
    "<template>",
    "<plaintext>",
    "<frameset>",
    "<select>",
    "<li>",
    "<pre>\n\n",
    "<br><br>",
    "|",
    "```",
    "<h1>",
    "<dt>",
    "<dd>",
    "<caption>",
)


def seeds() -> list[str]:
    """Return the fragments and, where the data is, every eighth real page."""
    paths = sorted(PAGES.glob("*.html.gz"))[::8]
    return [
        *FRAGMENTS,
        *(gzip.decompress(path.read_bytes()).decode("utf-8", "replace") for path in paths),
    ]


def cases(count: int, sources: Sequence[str], *, seed: int = 0) -> Iterator[str]:
    """Yield `count` mutated pieces of `sources`; the same seed gives the same cases."""
    chance = random.Random(seed)
    for _ in range(count):
        source = chance.choice(sources)
        begin = chance.randrange(max(1, len(source) - LONGEST // 2))
        html = source[begin : begin + chance.randrange(1, LONGEST)]
        for _ in range(chance.randrange(6)):
            html = _mutated(html, chance)
        yield html


def _mutated(html: str, chance: random.Random) -> str:
    left, right = sorted((chance.randrange(len(html) + 1), chance.randrange(len(html) + 1)))
    part = html[left:right]
    kind = chance.randrange(5)
    if kind == 0:
        return html[:left] + html[right:]
    if kind == 1:
        return html[:right] + part[:500] + html[right:]
    if kind == 2:
        return html[right:] + part + html[:left]
    if kind == 3:
        return html[:left] + chance.choice(FRAGMENTS) + html[left:]
    return html[:left] + chance.choice(SPLINTERS) + html[left:]


def examine(html: str, *, seed: int) -> None:
    """Read, cut and prune one page.

    Raises:
        AssertionError: A word is lost, a path leads nowhere, a budget is overrun, or
    nothing is kept."""
    chance = random.Random(seed)
    root = clean(html)
    every = _signs(text_of(root))
    blocks = block_tree(root, max_words=chance.choice([1, 5, 40, 256]))
    assert sum((_signs(block.text) for block in blocks), Counter()) == every, (
        "a block tree that is no partition"
    )
    assert len({block.path for block in blocks}) == len(blocks), "two blocks under one path"
    assert all(resolve(root, block.path) is not None for block in blocks), (
        "a path that leads nowhere"
    )
    document = read_document(Page("u", "u", "", html, "text/html"))
    if document.root is not None and not document.page.notes:
        titles = sum(
            (_signs(text_of(node)) for node in walk(document.root) if node.tag == "title"),
            Counter(),
        )
        text, units = content_blocks(document.root)
        have = _signs(text)
        carried = sum(
            (_signs(unit.cells[n]) for unit in units for n in unit.carried if n < len(unit.cells)),
            Counter(),
        )
        assert not (every - titles) - have, "a content unit that lost text"
        reported = sum(
            (_signs(node.attrs.get("alt", "")) for node in walk(document.root)),
            Counter(),
        )
        assert not (have - every) - titles - reported - carried, "a content unit that doubled text"
    budget = chance.choice([0, 1, 7, 30, 120, 1000])
    form: Form = chance.choice(["html", "markdown", "text"])
    options = PruneOptions(max_tokens=budget, format=form)
    result = asyncio.run(
        prune(
            [document],
            Question(chance.choice(["", "one title", "year"])),
            options=options,
            reader=Blend(None),
        )
    )
    tokens = count_tokens("\n".join(page.text for page in result.pages))
    assert tokens <= budget, f"{tokens} tokens in a budget of {budget} ({form})"
    assert result.pages or budget < ENOUGH or not document.blocks, (
        f"empty at {budget} tokens ({form})"
    )


def _signs(text: str) -> Counter[str]:
    return Counter(filter(str.isalnum, text))
