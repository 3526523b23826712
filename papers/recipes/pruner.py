"""Data that teaches a generator block paths: which block of a page bears on a question
(HtmlRAG §3.4.2, Figure 4).

A sample is the prompt that `papers/htmlrag/blocks.py` scores paths after, with some
blocks of a real page, and the path of the block that answers. The blocks are the gold
one and distractors of the same page, half of them the nearest by words, as the first
step leaves them; their size and the length of the HTML vary, as the paper's do.
Questions that no single block answers are left out, as in the paper. Not for: training
itself (`lora.py`)."""

import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from papers.htmlrag.blocks import (
    HEAD_WORDS,
    PROMPT,
    PaperBlocks,
    adjusted_pages,
    block_paths,
    numbered_html,
    paper_blocks,
)
from papers.recipes.sample import Part, Sample
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25
from pipeline.text.tokens import count_tokens
from prompts import load
from readers.html.document import read_document
from readers.page import Document, Page
from readers.tree import to_html
from train.reader.data import Split, own_rows, page_document, page_html

WORDS: Final = (16, 32, 64)
"""Words of a block: the second step's have at most 128 (§4.4), and smaller ones let
more rivals into a window."""
TAGS: Final = 8
"""Tokens of the tags of one block, those around it and others not counted."""
A_PAGE: Final = 8
"""Questions on a page that are taken: some have 40, which would weigh more than other
pages."""
HOLDS: Final = 0.8
"""Share of a gold text's words from which a block holds it: a row's gold text names its
columns, its block does not."""
TOKENS: Final = (80, 120, 160)
"""Lengths of a sample's HTML, by `count_tokens`. The paper's are 2,000 to 32,000: on a
processor a step over 400 tokens takes 5 seconds, and a run is shown there, not a model
to use."""
PRINTED_TOKENS: Final = (2_000, 4_000, 8_000, 16_000, 32_000)
FIRST: Final = 0
"""Number of the first of equal siblings, as the authors' pruners have it, and as Winnow
shows pages to a model whose name says `html-pruner`."""
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

    def blocks(
        self, page: str, words: int
    ) -> tuple[Document, PaperBlocks, BM25, list[set[str]]]:
        """Return a page with its blocks of at most so many words, their index, and the
        words of each."""
        if page != self._name or self._document is None:
            self._document = page_document(page)
            self._name, self._blocks = page, {}
        if words not in self._blocks:
            found = paper_blocks([self._document], max_words=words)
            texts = [block.text for block in found.blocks]
            self._blocks[words] = found, BM25(texts), [_words(text) for text in texts]
        return self._document, *self._blocks[words]


def path_answers(part: Part, seed: int) -> list[Sample]:
    """Return the samples of a part, whose answers are the paths alone: the loss is on
    path tokens."""
    made = path_samples(part, seed=seed)
    return [Sample(one.prompt, one.paths[one.gold], source="own") for one in made]


def printed_answers(part: Part, seed: int) -> list[Sample]:
    """Return the paper's samples: its lengths, its adjusted structure (§3.4.1), and paths
    followed by the block's content."""
    made = path_samples(part, printed=True, seed=seed)
    return [
        Sample(one.prompt, f"{one.paths[one.gold]}{one.content}", source="own")
        for one in made
    ]


def path_samples(
    split: Split, *, printed: bool = False, seed: int = 0
) -> Iterator[PathSample]:
    """Yield a sample for some questions on each page of a split in
    `train/reader/questions` that one block answers.

    Args:
        printed: Whether samples have the paper's lengths and its adjusted structure.
        seed: Of what is drawn; a sample depends on it and its own question alone.
    """
    pages = Pages()
    rows = [row for row in own_rows() if row["split"] == split]
    for _, asked in groupby(rows, key=lambda row: row["page"]):
        of_page = list(asked)
        chosen = random.Random(f"{seed}:{of_page[0]['page']}").sample(
            of_page, min(A_PAGE, len(of_page))
        )
        for row in chosen:
            if sample := _sample(row, pages, seed, printed=printed):
                yield sample


def write_library(folder: Path, split: Split, most: int = 0) -> int:
    """Write the pages of a split, at most so many and evenly spread (0: all), and the
    questions on them as `python -m bench run FOLDER` takes them; return how many questions.

    Only those whose gold texts are verbatim on their page: others could be kept and not
    be found. A twin, which is asked almost alike and not answered by the page, follows
    the question that has one.
    """
    library = folder / "library"
    library.mkdir(parents=True, exist_ok=True)
    lines = []
    texts: dict[str, str] = {}
    rows = [row for row in own_rows() if row["split"] == split]
    pages = list(dict.fromkeys(row["page"] for row in rows))
    few = {pages[place * len(pages) // most] for place in range(most)} or set(pages)
    for row in rows:
        if row["page"] not in few:
            continue
        name = f"{row['page']}.html"
        if name not in texts:
            html = page_html(row["page"])
            (library / name).write_text(html, encoding="utf-8")
            root = read_document(Page(name, name, "", html, "text/html")).root
            texts[name] = " ".join(to_html(root).split())
        if all(" ".join(gold.split()) in texts[name] for gold in row["gold"]):
            answers = [[gold] for gold in row["gold"]]
            lines.append(
                {"question": row["question"], "answers": answers, "pages": [name]}
            )
            lines += (
                [{"question": row["twin"], "answers": [], "pages": [name]}]
                if row["twin"]
                else []
            )
    written = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / "questions.jsonl").write_text(written, encoding="utf-8")
    return len(lines)


def _sample(
    row: dict[str, Any], pages: Pages, seed: int, *, printed: bool
) -> PathSample | None:
    rng = random.Random(f"{seed}:{row['page']}:{row['question']}")
    room = rng.choice(PRINTED_TOKENS if printed else TOKENS)
    words = rng.choice(WORDS)
    document, found, index, held = pages.blocks(row["page"], words)
    golds = [_words(text) for text in row["gold"]]
    hits = [
        sum(len(gold & block) >= HOLDS * len(gold) for gold in golds) for block in held
    ]
    most = max(hits, default=0)
    if not most or hits.count(most) > 1:
        return None
    gold = hits.index(most)
    scores = index.scores(Question(row["question"]))
    others = sorted(
        (i for i, count in enumerate(hits) if not count),
        key=lambda i: -float(scores[i]),
    )
    shown = [gold]
    room -= _cost(found, gold)
    while others and room > 0:
        other = others.pop(0 if rng.random() < 0.5 else rng.randrange(len(others)))
        cost = _cost(found, other)
        if cost <= room:
            shown.append(other)
            room -= cost
    if len(shown) < 2:
        return None
    shown.sort()
    part = PaperBlocks([0] * len(shown), [found.blocks[i] for i in shown], found.split)
    roots = [document.root]
    if printed:
        roots, part = adjusted_pages([document], part)
    html = numbered_html(roots, part, first=FIRST)
    content = " ".join(found.blocks[gold].text.split())
    paths = tuple(block_paths(part, first=FIRST))
    chosen = shown.index(gold)
    if found.blocks[gold].path in found.split[0]:
        # Its path ends in the head of its text already.
        content = " ".join(content.split()[HEAD_WORDS:])
    prompt = load(PROMPT).fill(html=html, question=" ".join(row["question"].split()))
    return PathSample(row["question"], row["page"], prompt, paths, chosen, content)


def _cost(found: PaperBlocks, number: int) -> int:
    return count_tokens(found.blocks[number].text) + TAGS


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


if __name__ == "__main__":
    from papers.recipes.lora import run_recipe

    sys.exit(run_recipe({"sft": path_answers, "printed": printed_answers}))
