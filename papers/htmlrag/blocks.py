"""HtmlRAG's two steps: the lowest blocks of the block tree are deleted (Algorithm 2),
then finer ones (Algorithm 3).

Algorithm 3 (§3.4.2) takes a generator's
probabilities of block paths for scores: paths become a token tree by the model's own
tokenizer; a token without rivals has probability 1, rivals share a soft-max, and a
block's score is the sum of its tokens' log-probabilities. The model layer evaluates
shared beginnings once. The authors' pruners as GGUF fit: their prompt is
`prompts/prune_html.md`, and their code numbers equal siblings from 0 where the paper
prints 1, so the model's name decides. Not for: choosing by the scores (`prune.py`),
token trees (`models/llama/token_tree.py`)."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Final

import numpy as np

from cancellation import check_cancelled
from errors import ContextExceeded, ModelError
from models.protocols import Generator, PathScores, Said, TreeScorer, tree_scorer
from papers.htmlrag.block_tree import PAPER_WORDS, block_tree
from papers.htmlrag.structure import compressed, unwrapped
from pipeline.messages import SHRINK, shrinking, within
from pipeline.reading.bm25 import Floats
from pipeline.text.tokens import count_tokens
from pipeline.work import in_thread
from prompts import load
from readers.page import Block, Document
from readers.tree import Node, label_children, to_html, walk

PROMPT: Final = "prune_html"
HEAD_WORDS: Final = 4
"""Words of the text after a path that ends at an opened node, which the paths of its
children go on from."""
PROMPT_BUDGETS: Final = 2
"""Tokens of HTML in one prompt, over those of the budget (HtmlRAG §4.6.4: 8K of 4K)."""
FEWEST_SHOWN: Final = 1_500
"""Tokens of HTML that a prompt holds whatever the budget: at 256 tokens an oracle keeps
the answers of .897 of 58 test questions with so many, of .845 with 512."""
_PRUNERS: Final = ("html-pruner", "htmlpruner")


@dataclass(slots=True)
class PaperBlocks:
    """The blocks of several pages, as one list."""

    documents: list[int] = field(default_factory=list)
    """Index of the document, for each block."""
    blocks: list[Block] = field(default_factory=list)
    split: dict[int, set[str]] = field(default_factory=dict)
    """By document, the paths of nodes that were opened: a block there is the node's own
    text only."""


def paper_blocks(
    documents: Sequence[Document], *, max_words: int = PAPER_WORDS
) -> PaperBlocks:
    """Return the blocks of each document's block tree."""
    found = PaperBlocks()
    for number, document in enumerate(documents):
        blocks = block_tree(document.root, max_words=max_words)
        found.blocks.extend(blocks)
        found.documents.extend([number] * len(blocks))
        found.split[number] = ancestors(block.path for block in blocks)
    return found


def finer_blocks(
    documents: Sequence[Document],
    found: PaperBlocks,
    kept: Sequence[int],
    *,
    max_words: int = PAPER_WORDS // 2,
) -> PaperBlocks:
    """Return the blocks of at most `max_words` words that the `kept` blocks of `found`
    are made of.

    Algorithm 1 at fewer words only cuts further, so each finer block lies in exactly
    one block of the first step. They come in the order of `kept`."""
    finer = paper_blocks(documents, max_words=max_words)
    places = {
        (found.documents[number], found.blocks[number].path): place
        for place, number in enumerate(kept)
    }
    inside: list[tuple[int, int, Block]] = []
    for index, block in zip(finer.documents, finer.blocks, strict=True):
        # A node that was split in the first step has only its own text.
        above = ancestors([block.path]) - found.split[index]
        own = [places.get((index, path)) for path in (block.path, *above)]
        inside += [(place, index, block) for place in own if place is not None]
    inside.sort(key=lambda one: one[0])
    return PaperBlocks(
        [one[1] for one in inside], [one[2] for one in inside], finer.split
    )


def keep_within(
    documents: Sequence[Document],
    found: PaperBlocks,
    order: Sequence[int],
    max_tokens: int,
) -> tuple[list[int], dict[int, str]]:
    """Delete blocks, lowest first, until what remains is within `max_tokens`; repair
    the structure.

    Args:
        order: Indices of the blocks that may be kept, best first.
        max_tokens: Budget for the HTML of all pages joined by line breaks.

    Returns: The blocks that are kept, best first, and the HTML by document; none where
        not even the best fits. The number of deletions is found by bisection (the
        length falls with each one), then settled one by one.
    """

    def is_over(count: int) -> bool:
        check_cancelled()
        return (
            count_tokens("\n".join(_texts(documents, found, order[:count]).values()))
            > max_tokens
        )

    kept = bisect_left(range(1, len(order) + 1), True, key=is_over)
    while kept and is_over(kept):
        kept -= 1
    return list(order[:kept]), _texts(documents, found, order[:kept])


def _texts(
    documents: Sequence[Document], found: PaperBlocks, kept: Sequence[int]
) -> dict[int, str]:
    return {
        page: to_html(_adjusted(documents[page].root, paths, found.split[page])[0])
        for page, paths in _paths_by_page(found, kept).items()
    }


def _paths_by_page(found: PaperBlocks, numbers: Iterable[int]) -> dict[int, set[str]]:
    """Return the paths of the blocks `numbers` on each page, in the order of pages."""
    paths: dict[int, set[str]] = {}
    for number in numbers:
        paths.setdefault(found.documents[number], set()).add(found.blocks[number].path)
    return dict(sorted(paths.items()))


def _adjusted(
    root: Node, paths: set[str], split: set[str]
) -> tuple[Node, dict[str, Node]]:
    """Return a tree of the blocks at `paths` only, its structure adjusted again (§3.4.1):
    no emptied parents, no single-nested tags; and what each node on the way to them became.

    A block that is a whole node keeps all below it; one that is the text of a node in
    `split` keeps the text alone. Recursive, since a cleaned tree is at most
    `html.tree.MAX_DEPTH` deep."""
    inner = ancestors(paths)
    became: dict[str, Node] = {}

    def left(node: Node, path: str) -> Node:
        if path in paths and path not in split:
            return compressed(node)
        made = Node(node.tag, node.attrs)
        labels = iter(label_children(node))
        for child in node.children:
            if isinstance(child, str):
                made.children.extend([child] if path in paths else [])
                continue
            name = f"{path}/{next(labels)}"
            if (name in paths or name in inner) and (
                kept := unwrapped(left(child, name))
            ):
                made.children.append(kept)
                became[name] = kept
        return made

    became[root.tag] = made = left(root, root.tag)
    return made, became


def adjusted_pages(
    documents: Sequence[Document], found: PaperBlocks
) -> tuple[list[Node], PaperBlocks]:
    """Return the trees that the second step is shown, and the blocks of `found` with their
    paths there: of a page with such blocks these only, adjusted again; of any other page
    its own tree."""
    roots = [document.root for document in documents]
    moved: dict[tuple[int, str], str] = {}
    split: dict[int, set[str]] = {}
    for page, paths in _paths_by_page(found, range(len(found.blocks))).items():
        opened = found.split[page]
        roots[page], became = _adjusted(roots[page], paths, opened)
        places = _places(roots[page])
        moved |= {(page, path): places[id(node)] for path, node in became.items()}
        split[page] = {moved[page, path] for path in paths & opened}
    blocks = [
        replace(block, path=moved[page, block.path])
        for page, block in zip(found.documents, found.blocks, strict=True)
    ]
    return roots, PaperBlocks(found.documents, blocks, split)


def _places(root: Node) -> dict[int, str]:
    """Return the path of each node below `root`, and its own, by its `id`."""
    places = {id(root): root.tag}
    for node in walk(root):
        children = (child for child in node.children if isinstance(child, Node))
        for child, label in zip(children, label_children(node), strict=True):
            places[id(child)] = f"{places[id(node)]}/{label}"
    return places


def ancestors(paths: Iterable[str]) -> set[str]:
    """Return the paths above `paths`."""
    above: set[str] = set()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in above:
            above.add(parent)
            parent = parent.rpartition("/")[0]
    return above


def kept_units(document: Document, paths: set[str], split: set[str]) -> tuple[int, ...]:
    """Return the indices of the content units in the kept blocks of one page."""
    whole, own = paths - split, paths & split
    kept: list[int] = []
    for number, block in enumerate(document.blocks):
        parent, _, step = block.path.rpartition("/")
        is_own = parent in own and step.removeprefix("text").isdigit()
        if is_own or not whole.isdisjoint((block.path, *ancestors([block.path]))):
            kept.append(number)
    return tuple(kept)


# By generation


@dataclass(frozen=True, slots=True)
class PathRanking:
    """Finer blocks with their scores."""

    blocks: PaperBlocks
    scores: Floats
    """One a block [n], in nats for a generator, higher is better."""
    shown: int
    """Blocks of the first step that the scorer was shown; 0 where it scored nothing."""
    total: int
    failure: str = ""


def is_pruner(name: str) -> bool:
    """Whether a model was trained to prune HTML, by its name."""
    return any(part in name.lower() for part in _PRUNERS)


class PathScorer:
    """Scores the finer blocks of the second step by a generator's probabilities of
    their paths."""

    def __init__(
        self,
        model: TreeScorer,
        documents: Sequence[Document],
        *,
        context_tokens: int,
        seconds: float,
    ) -> None:
        """Score blocks of `documents` by `model`, whose context has `context_tokens` of
        its own, within `seconds`."""
        self._model = model
        self._seconds = seconds
        self._documents = documents
        self.name = model.name
        # Tokenizers split markup finer than the one that we count with.
        self.max_tokens = int(context_tokens * SHRINK)
        trained = is_pruner(model.name)
        self._first = 0 if trained else 1
        self.cost: PathScores | None = None
        """What the last call evaluated."""

    async def score(self, query: str, found: PaperBlocks) -> Floats:
        """Return log P(path) of each block among the paths of all [n].

        Raises:
            ContextExceeded: The HTML is longer than the model's context.
            ModelError: The model failed, or gave no scores in time.
        """
        roots, shown = await in_thread(adjusted_pages, self._documents, found)
        paths = block_paths(shown, first=self._first)
        html = await in_thread(numbered_html, roots, shown, first=self._first)
        text = load(PROMPT).fill(html=html, question=" ".join(query.split()))
        call = self._model.score_tree([Said("user", text)], paths, among_siblings=True)
        self.cost = await within(self._seconds, call, model=self.name)
        return self.cost.log_probabilities.astype(np.float32)


def path_scorer(
    generator: Generator | None, documents: Sequence[Document], *, seconds: float
) -> PathScorer | None:
    """Return the scorer that `generator` makes possible, None where there is none that
    can score paths."""
    model = tree_scorer(generator)
    if generator is None or model is None:
        return None
    return PathScorer(
        model, documents, context_tokens=generator.context_tokens, seconds=seconds
    )


async def rank_finer(
    documents: Sequence[Document],
    query: str,
    found: PaperBlocks,
    order: Sequence[int],
    scorer: PathScorer,
    *,
    budget: int,
    max_words: int = PAPER_WORDS // 2,
) -> PathRanking:
    """Return the finer blocks of what `scorer` can be shown of the first step's
    survivors, with their scores.

    The input is fitted by leaving out whole blocks of the first step, lowest first;
    `PathRanking` has their number.

    Args:
        order: Their indices, best first.
        budget: Tokens that the answer has; the scorer is shown `PROMPT_BUDGETS` times as many,
            `FEWEST_SHOWN` at least.
        max_words: Words of a finer block.

    A model that fails, or has no room for a single block, scores nothing; the reason is
    in the result."""
    failure = "its context has no room for a block of these pages"
    for limit in shrinking(
        min(scorer.max_tokens, max(FEWEST_SHOWN, PROMPT_BUDGETS * budget))
    ):
        kept, _ = await in_thread(keep_within, documents, found, order, limit)
        if not kept:
            break
        finer = await in_thread(
            finer_blocks, documents, found, kept, max_words=max_words
        )
        try:
            scores = await scorer.score(query, finer)
        except ContextExceeded:
            continue
        except ModelError as error:
            failure = str(error)
            break
        return PathRanking(finer, scores, len(kept), len(found.blocks))
    return PathRanking(
        PaperBlocks(), np.zeros(0, dtype=np.float32), 0, len(found.blocks), failure
    )


def block_paths(found: PaperBlocks, *, first: int) -> list[str]:
    """Return each block's path as a model writes it: `<html><body><div2><p>`.

    Pages are equal siblings at the top. A block that is the text of an opened node ends
    in the head of that text, since its path alone begins the paths of the node's
    children."""
    roots = _roots(found, first=first)
    paths = []
    for document, block in zip(found.documents, found.blocks, strict=True):
        steps = [
            roots[document],
            *(_label(step, first) for step in block.path.split("/")[1:]),
        ]
        opened = block.path in found.split.get(document, ())
        head = " ".join(block.text.split()[:HEAD_WORDS]) if opened else ""
        paths.append("".join(f"<{step}>" for step in steps) + head)
    return paths


def numbered_html(roots: Sequence[Node], found: PaperBlocks, *, first: int) -> str:
    """Return the blocks of `found`, which are in the trees `roots` of their pages, as HTML
    whose tags are numbered down to the blocks, as in their paths; pages one after
    another."""
    names = _roots(found, first=first)
    pages = []
    for page, paths in _paths_by_page(found, range(len(found.blocks))).items():
        whole, inner = paths - found.split.get(page, set()), ancestors(paths)
        root = roots[page]
        pages.append(
            _numbered(root, root.tag, names[page], (paths, whole, inner), first)
        )
    return "\n".join(pages)


def _roots(found: PaperBlocks, *, first: int) -> dict[int, str]:
    named: dict[int, str] = {}
    for document, block in zip(found.documents, found.blocks, strict=True):
        named.setdefault(document, block.path.split("/", 1)[0])
    if len(named) == 1:
        return named
    return {
        document: f"{named[document]}{number}"
        for number, document in enumerate(sorted(named), start=first)
    }


def _label(step: str, first: int) -> str:
    """A step of `Block.path`, whose numbers begin at 1, in the model's numbering; `h1`
    to `h6` alone are names."""
    name = step.rstrip("0123456789")
    number = step[len(name) :]
    if name == "h" and number:
        # The first digit is the heading's level.
        name, number = name + number[0], number[1:]
    return f"{name}{int(number) - 1 + first}" if number else step


def _numbered(
    node: Node,
    path: str,
    name: str,
    kept: tuple[set[str], set[str], set[str]],
    first: int,
) -> str:
    """Return path to node for all blocks, for whole-node blocks, and for their
    ancestors.

    Recursive, since a cleaned tree is at most `html.tree.MAX_DEPTH` deep.
    """
    wanted, whole, inner = kept
    labels = iter(label_children(node))
    parts: list[str] = []
    for child in node.children:
        if isinstance(child, str):
            parts.extend([escape(child, quote=False)] if path in wanted else [])
        elif path in whole:
            parts.append(to_html(child))
        else:
            step = next(labels)
            if (below := f"{path}/{step}") in wanted or below in inner:
                parts.append(_numbered(child, below, _label(step, first), kept, first))
    return f"<{name}>{''.join(parts)}</{name}>"
