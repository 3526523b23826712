"""Data that teaches a generator block paths: which block of a page bears on a question (HtmlRAG §3.4.2, Figure 4).

A sample is the prompt that `pipeline/prune/paper.py` scores paths after, with some blocks of a real page, and the path
of the block that answers. The blocks are the gold one and distractors of the same page, half of them the nearest by
words, as the first step leaves them; their size and the length of the HTML vary, as the paper's do. Questions that no
single block answers are left out, as in the paper. Not for: training itself (`lora.py`).
"""

import gzip
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pipeline.documents import Document, Page
from pipeline.html.document import read_document
from pipeline.prune.paper import HEAD_WORDS, PROMPT, PaperBlocks, block_paths, numbered_html, paper_blocks
from pipeline.rank.bm25 import BM25
from pipeline.text.tokens import count_tokens
from prompts import load
from train.reader.data import SHARED, Split, own_rows

WORDS: Final = (32, 64, 128)
"""Words of a block; the second step's blocks have at most 128 (§4.4), and smaller ones let more rivals into a window."""
HOLDS: Final = 0.8
"""Share of a gold text's words from which a block holds it: a row's gold text names its columns, its block does not."""
FIRST: Final = 0
"""Number of the first of equal siblings, as the authors' pruners have it, and as Winnow shows pages to a model whose
name says `html-pruner`."""
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PathSample:
    """A prompt with the paths that a model chooses from."""

    question: str
    page: str
    prompt: str
    paths: tuple[str, ...]
    gold: int
    """Index of the path of the block that answers."""
    content: str
    """Its text; the paper lets the model go on with it."""


class Pages:
    """Pages of `../shared/data/pages`, each read once, with its blocks of each size."""

    def __init__(self) -> None:
        self._name = ""
        self._document: Document | None = None
        self._blocks: dict[int, tuple[PaperBlocks, BM25, list[set[str]]]] = {}

    def blocks(self, page: str, words: int) -> tuple[Document, PaperBlocks, BM25, list[set[str]]]:
        """Return a page with its blocks of at most so many words, their index, and the words of each."""
        if page != self._name or self._document is None:
            raw = gzip.decompress((SHARED / "pages" / f"{page}.html.gz").read_bytes()).decode("utf-8", "replace")
            self._document = read_document(Page(page, page, "", raw, "text/html"))
            self._name, self._blocks = page, {}
        if words not in self._blocks:
            found = paper_blocks([self._document], max_words=words)
            texts = [block.text for block in found.blocks]
            self._blocks[words] = found, BM25(texts), [_words(text) for text in texts]
        return self._document, *self._blocks[words]


def path_samples(split: Split, *, tokens: Sequence[int], seed: int) -> Iterator[PathSample]:
    """Yield a sample for each question of `train/reader/questions` with that split that one block answers.

    Args:
        tokens: Lengths of the HTML, by `count_tokens`, of which each sample draws one.
        seed: Of what is drawn; a sample depends on it and its own question alone.
    """
    pages = Pages()
    for row in own_rows():
        if row["split"] == split and (sample := _sample(row, pages, tokens, seed)):
            yield sample


def _sample(row: dict[str, Any], pages: Pages, tokens: Sequence[int], seed: int) -> PathSample | None:
    rng = random.Random(f"{seed}:{row['page']}:{row['question']}")
    room, words = rng.choice(tokens), rng.choice(WORDS)
    document, found, index, held = pages.blocks(row["page"], words)
    golds = [_words(text) for text in row["gold"]]
    hits = [sum(len(gold & block) >= HOLDS * len(gold) for gold in golds) for block in held]
    most = max(hits, default=0)
    if not most or hits.count(most) > 1:
        return None
    gold = hits.index(most)
    scores = index.scores(row["question"])
    others = sorted((i for i, count in enumerate(hits) if not count), key=lambda i: -float(scores[i]))
    shown = [gold]
    room -= _cost(document, found, gold)
    while others:
        other = others.pop(0 if rng.random() < 0.5 else rng.randrange(len(others)))
        cost = _cost(document, found, other)
        if cost > room:
            break
        shown.append(other)
        room -= cost
    if len(shown) < 2:
        return None
    shown.sort()
    part = PaperBlocks([0] * len(shown), [found.blocks[i] for i in shown], found.split)
    html = numbered_html([document], part, first=FIRST)
    content = " ".join(found.blocks[gold].text.split())
    paths = tuple(block_paths(part, first=FIRST))
    chosen = shown.index(gold)
    if found.blocks[gold].path in found.split[0]:
        # Its path ends in the head of its text already.
        content = " ".join(content.split()[HEAD_WORDS:])
    prompt = load(PROMPT).fill(html=html, question=" ".join(row["question"].split()))
    return PathSample(row["question"], row["page"], prompt, paths, chosen, content)


def _cost(document: Document, found: PaperBlocks, number: int) -> int:
    part = PaperBlocks([0], [found.blocks[number]], found.split)
    return count_tokens(numbered_html([document], part, first=FIRST))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
