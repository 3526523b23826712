"""Scores of paths, token sequences that share beginnings. Pure; knows no model.

A token must go through the model only where a path goes on after it: the probability of
a path's last token is read at the token before (HtmlRAG, arXiv 2411.02959, §3.4.2). Not
for: evaluating (`models/llama/process.py`)."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Beginning = tuple[int, ...]


def grow(paths: Sequence[Sequence[int]]) -> dict[Beginning, list[int]]:
    """Return the tokens that paths have after each beginning, which comes after its own
    beginnings; depth first where paths that begin alike are neighbours."""
    tree: dict[Beginning, list[int]] = {}
    for path in paths:
        for length, token in enumerate(path):
            tokens = tree.setdefault(tuple(path[:length]), [])
            if token not in tokens:
                tokens.append(token)
    return tree


def score_paths(
    tree: Mapping[Beginning, Sequence[int]],
    logits_after: Callable[[Beginning], NDArray[np.float32]],
    *,
    among_siblings: bool,
) -> dict[Beginning, float]:
    """Return the log-probability of each beginning in a tree of `grow`, and of each path,
    from the logits [vocabulary] after a beginning.

    With `among_siblings` each token is soft-maxed over the tokens that some path has
    there, else over the vocabulary; one without rivals is certain, and needs no
    logits."""
    scores: dict[Beginning, float] = {(): 0.0}
    for beginning, tokens in tree.items():
        if among_siblings and len(tokens) == 1:
            scores[(*beginning, tokens[0])] = scores[beginning]
            continue
        logits = logits_after(beginning)
        rivals = logits[list(tokens)] if among_siblings else logits
        highest = float(rivals.max())
        total = highest + float(np.log(np.exp(rivals - highest).sum(dtype=np.float64)))
        for token in tokens:
            scores[(*beginning, token)] = (
                scores[beginning] + float(logits[token]) - total
            )
    return scores
