"""A tree of the tokens that paths share, cut into parts that fit one batch. Pure; knows
no model.

A node's own token must go through the model only where a path goes on after it: the
probability of a path's last token is read at the token before (HtmlRAG, arXiv
2411.02959, §3.4.2). Not for: evaluating (`models/llama/decode.py`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class TokenNode:
    """One token after those above it; `children` are keyed by token."""

    token: int
    depth: int
    """0 for the first token of a path."""
    parent: "TokenNode | None"
    children: "dict[int, TokenNode]" = field(default_factory=dict)
    score: float = 0.0
    """Log-probability of the path to here, from the prefix on."""

    def weighs(self, *, among_siblings: bool) -> bool:
        """Whether its children's scores need its logits: one without rivals is certain
        among siblings."""
        return len(self.children) > among_siblings


@dataclass(frozen=True, slots=True)
class TokenTree:
    """The tree of some paths."""

    root: TokenNode
    """Node of the prefix; its children are the first tokens."""
    ends: tuple[TokenNode, ...]
    """The last node of each path, in the order of the paths."""
    size: int
    """Nodes below the root."""
    forks: int
    """Nodes with two children or more."""
    apart: int
    """Tokens of the paths, each counted by itself."""


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Nodes that go through the model in one batch, parents first, each with the
    sequences below it."""

    nodes: tuple[TokenNode, ...]
    sequences: tuple[tuple[int, ...], ...]
    count: int
    """Sequences in use, numbered from 0."""

    def line(self, number: int) -> list[int]:
        """Return the tokens of one sequence, from the prefix on."""
        pairs = zip(self.nodes, self.sequences, strict=True)
        return [node.token for node, numbers in pairs if number in numbers]


def grow(paths: Sequence[Sequence[int]]) -> TokenTree:
    """Return the tree of the token lists `paths`, none of them empty."""
    root = TokenNode(-1, -1, None)
    ends = []
    size = forks = 0
    for path in paths:
        node = root
        for depth, token in enumerate(path):
            if token not in node.children:
                forks += len(node.children) == 1
                node.children[token] = TokenNode(token, depth, node)
                size += 1
            node = node.children[token]
        ends.append(node)
    return TokenTree(root, tuple(ends), size, forks, sum(map(len, paths)))


def parts(
    tree: TokenTree, *, sequences: int, rows: int, shared: bool = True
) -> Iterator[TokenBatch]:
    """Yield the inner nodes in batches of at most `rows` tokens and `sequences` lines
    of descent.

    A batch that begins within a line repeats the nodes above; with room for all there
    is one batch and no repetition. Where no node may be `shared` by sequences, every
    line has all of its nodes. A path with more than `rows` inner nodes cannot fit; the
    caller refuses it."""
    chosen: list[tuple[TokenNode, list[int]]] = []
    seen: dict[int, list[int]] = {}
    count = 0
    for tip in _tips(tree.root):
        line = _line(tip)
        if chosen and (
            count == sequences
            or len(chosen) + sum(id(node) not in seen for node in line) > rows
        ):
            yield _part(chosen, count)
            chosen, seen, count = [], {}, 0
        for node in line:
            if id(node) in seen:
                seen[id(node)].append(count)
                continue
            chosen.append((node, [count]))
            if shared:
                seen[id(node)] = chosen[-1][1]
        count += 1
    if chosen:
        yield _part(chosen, count)


def read(
    node: TokenNode, logits: NDArray[np.float32] | None, *, among_siblings: bool
) -> None:
    """Set the scores of a node's children, sums of log-probabilities from the root on,
    from the logits [vocabulary] after it.

    Logits are None where the node weighs nothing: its children take its own score.
    With `among_siblings` each is soft-maxed over the children alone, else over the
    vocabulary."""
    if logits is None:
        for child in node.children.values():
            child.score = node.score
        return
    tokens = list(node.children)
    found = logits[tokens].astype(np.float64)
    over = logits[tokens] if among_siblings else logits
    highest = over.max()
    total = float(highest) + float(np.log(np.exp(over - highest).sum(dtype=np.float64)))
    for child, value in zip(node.children.values(), found, strict=True):
        child.score = node.score + float(value) - total


def _part(chosen: Sequence[tuple[TokenNode, list[int]]], count: int) -> TokenBatch:
    return TokenBatch(
        tuple(node for node, _ in chosen),
        tuple(tuple(numbers) for _, numbers in chosen),
        count,
    )


def _line(tip: TokenNode) -> list[TokenNode]:
    """Return the nodes from the prefix down to `tip`."""
    line = [tip]
    while line[-1].parent is not None and line[-1].parent.parent is not None:
        line.append(line[-1].parent)
    return line[::-1]


def _tips(root: TokenNode) -> Iterator[TokenNode]:
    """Yield, from left to right, the inner nodes below which no inner node is."""
    stack = [node for node in reversed(root.children.values()) if node.children]
    while stack:
        node = stack.pop()
        inner = [child for child in reversed(node.children.values()) if child.children]
        if inner:
            stack.extend(inner)
        else:
            yield node
