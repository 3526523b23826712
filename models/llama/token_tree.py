"""A tree of the tokens that paths share, walked depth first. Pure; knows no model.

A node's own token must go through the model only where a path goes on after it: the
probability of a path's last token is read at the token before (HtmlRAG, arXiv
2411.02959, §3.4.2). Not for: evaluating (`models/llama/process.py`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class TokenNode:
    """One token after those above it; `children` are keyed by token."""

    token: int
    parent: "TokenNode | None"
    children: "dict[int, TokenNode]" = field(default_factory=dict)
    score: float = 0.0
    """Log-probability of the path to here, from the prefix on."""

    def weighs(self, *, among_siblings: bool) -> bool:
        """Whether its children's scores need its logits: one without rivals is certain
        among siblings."""
        return len(self.children) > among_siblings

    def line(self) -> list[int]:
        """Return the tokens from the prefix down to this one."""
        tokens: list[int] = []
        node = self
        while node.parent is not None:
            tokens.append(node.token)
            node = node.parent
        return tokens[::-1]


@dataclass(frozen=True, slots=True)
class TokenTree:
    """The tree of some paths."""

    root: TokenNode
    """Node of the prefix; its children are the first tokens."""
    ends: tuple[TokenNode, ...]
    """The last node of each path, in the order of the paths."""
    size: int
    """Nodes below the root."""
    apart: int
    """Tokens of the paths, each counted by itself."""

    def inner(self) -> Iterator[TokenNode]:
        """Yield the nodes that have children, each before those below it, depth
        first."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            if node.children:
                yield node
                stack.extend(reversed(node.children.values()))


def grow(paths: Sequence[Sequence[int]]) -> TokenTree:
    """Return the tree of the token lists `paths`, none of them empty."""
    root = TokenNode(-1, None)
    ends = []
    size = 0
    for path in paths:
        node = root
        for token in path:
            if token not in node.children:
                node.children[token] = TokenNode(token, node)
                size += 1
            node = node.children[token]
        ends.append(node)
    return TokenTree(root, tuple(ends), size, sum(map(len, paths)))


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
    child_logits = logits[tokens].astype(np.float64)
    rivals = logits[tokens] if among_siblings else logits
    highest = rivals.max()
    exponentials = np.exp(rivals - highest)
    total = float(highest) + float(np.log(exponentials.sum(dtype=np.float64)))
    for child, value in zip(node.children.values(), child_logits, strict=True):
        child.score = node.score + float(value) - total
