"""The ways of fitting a page into a budget that `bench.html` compares ours with, each
with our own scorer or BM25.

    PYTHONPATH=. python -m bench.html_peers        which peers are installed

Every peer reads what our cleaning left of the page, so that cutting and choosing alone
are compared; trafilatura and htmlrag read the raw page. Chunks are taken best first
while they fit and shown in the order of the page."""

import asyncio
import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
import trafilatura

from bench.html_questions import Question, document, raw
from models.protocols import Embedder
from pipeline.question.question import Question as Asked
from pipeline.reading.relevance import score_texts
from pipeline.text.tokens import count_each, count_tokens, cut_to_tokens

CHUNK: Final = 400
"""Characters of a plain chunk, the strongest simple baseline of notes/htmlrag."""
SECTION: Final = 1000
"""Characters of a heading chunk, the usual choice with LangChain's splitters."""
WORDS: Final = 256
"""Words of htmlrag's blocks."""

Keep = Callable[[Question, int], str]


def truncated_html(question: Question, budget: int) -> str:
    """Return the beginning of the cleaned HTML."""
    return cut_to_tokens(document(question.page).html, budget)


def truncated_text(question: Question, budget: int) -> str:
    """Return the beginning of the text."""
    return cut_to_tokens(document(question.page).text, budget)


@lru_cache(maxsize=400)
def text_chunks(page: str) -> tuple[str, ...]:
    """Return the text in chunks of `CHUNK` characters, cut between words."""
    return tuple(_cut(document(page).text, CHUNK))


@lru_cache(maxsize=400)
def heading_chunks(page: str) -> tuple[str, ...]:
    """Return what is under each heading in chunks of `SECTION` characters, the headings
    in front of each."""
    chunks: list[str] = []
    path: tuple[str, ...] = ()
    parts: list[str] = []

    def close() -> None:
        head = " > ".join(path)
        chunks.extend(
            f"{head}\n{part}" if head else part
            for part in _cut("\n".join(parts), SECTION)
        )
        parts.clear()

    one = document(page)
    for block in one.blocks:
        if block.heading_path != path or block.kind == "heading":
            close()
            path = block.heading_path
        parts.append(one.text[block.start : block.end])
    close()
    return tuple(chunks)


@lru_cache(maxsize=400)
def trafilatura_chunks(page: str) -> tuple[str, ...]:
    """Return trafilatura's text, tables with it, in chunks of `CHUNK` characters."""
    return tuple(_cut(trafilatura.extract(raw(page), include_tables=True) or "", CHUNK))


def _cut(text: str, size: int) -> list[str]:
    found: list[str] = []
    words: list[str] = []
    length = 0
    for word in text.split():
        if words and length + len(word) > size:
            found.append(" ".join(words))
            words, length = [], 0
        words.append(word)
        length += len(word) + 1
    return [*found, " ".join(words)] if words else found


def best_chunks(
    cut: Callable[[str], tuple[str, ...]], embedder: Embedder | None
) -> Keep:
    """Return a peer that keeps the best chunks by BM25, with `embedder` fused with it
    as ours does."""

    @lru_cache(maxsize=1)  # one question is asked at all budgets before the next
    def ranked(question: Question) -> tuple[tuple[str, ...], list[int], list[int]]:
        chunks = cut(question.page)
        scores = asyncio.run(
            score_texts(chunks, Asked(question.text), embedder=embedder)
        )
        return (
            chunks,
            count_each(list(chunks)),
            [int(number) for number in np.argsort(-scores, kind="stable")],
        )

    def keep(question: Question, budget: int) -> str:
        if not cut(question.page):
            return ""
        chunks, sizes, order = ranked(question)
        kept: list[int] = []
        room = budget
        for number in order:
            if sizes[number] + 1 <= room:
                kept.append(number)
                room -= sizes[number] + 1
        return "\n".join(chunks[number] for number in sorted(kept))

    return keep


class _Tokens:
    """A text as htmlrag wants its tokens: a length, and slices from the front."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._count = count_tokens(text)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, part: slice) -> str:
        return cut_to_tokens(self._text, part.stop)


class _Tokenizer:
    """Our token counter with the methods that htmlrag calls on a tokenizer."""

    def encode(self, text: str, *, add_special_tokens: bool = False) -> range:
        """Return as many numbers as there are tokens."""
        return range(count_tokens(text) + add_special_tokens)

    def tokenize(self, text: str) -> _Tokens:
        """Return the tokens."""
        return _Tokens(text)

    def convert_tokens_to_string(self, tokens: str) -> str:
        """Return what a slice of the tokens reads."""
        return tokens


class _Tag(Protocol):
    def get_text(self) -> str:
        """Return the text below a node."""
        ...


class _HtmlRag(Protocol):
    """What is used of the package htmlrag."""

    def clean_html(self, html: str) -> str:
        """Return the page cleaned."""
        ...

    def build_block_tree(
        self, html: str, *, max_node_words: int
    ) -> tuple[list[tuple[_Tag, list[str], bool]], str]:
        """Return the blocks and the HTML that they point into."""
        ...


def htmlrag_package() -> _HtmlRag | None:
    """Return the package htmlrag, None where it or what it needs is not installed."""
    try:
        package: _HtmlRag = importlib.import_module("htmlrag")
    except ImportError:
        return None
    return package


def htmlrag(package: _HtmlRag, embedder: Embedder | None) -> Keep:
    """Return HtmlRAG's published cleaning, block tree and greedy pruning, its blocks
    ranked by our scorer."""
    prune = importlib.import_module("htmlrag.pruner").Pruner().prune_HTML

    @lru_cache(maxsize=2)
    def blocks(page: str) -> tuple[list[tuple[_Tag, list[str], bool]], str]:
        return package.build_block_tree(
            package.clean_html(raw(page)), max_node_words=WORDS
        )

    @lru_cache(maxsize=1)
    def ranked(question: Question) -> Sequence[int]:
        texts = [
            " ".join(tag.get_text().split()) for tag, _, _ in blocks(question.page)[0]
        ]
        scores = asyncio.run(
            score_texts(texts, Asked(question.text), embedder=embedder)
        )
        return [int(number) for number in np.argsort(-scores, kind="stable")]

    def keep(question: Question, budget: int) -> str:
        tree, html = blocks(question.page)
        try:
            return str(prune(html, tree, ranked(question), _Tokenizer(), budget))
        except AssertionError as error:  # its own check that paths fit the tree, which some pages do not pass
            print(f"  htmlrag: {question.page} at {budget}: {error}")
            return ""

    return keep


if __name__ == "__main__":
    print(
        "trafilatura: installed; htmlrag:",
        "installed" if htmlrag_package() else "not installed",
    )
