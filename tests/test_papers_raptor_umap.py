"""The paper's clusters: mixtures over principal components and over UMAP's points, on real leaves."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from models.onnx import OnnxEmbedder
from papers.raptor.cluster import Layer, cluster, principal_components
from papers.raptor.tree import Clustering
from pipeline.raptor.leaves import main_sentences, pack_sentences
from readers.html.document import read_document
from readers.page import Page
from tests.support import ROOT
from tests.support.extras import need
from tests.test_papers_raptor_cluster import layer, themes

LEAVES = 160
"""Of the sample library that are clustered."""


def texts_of(path: Path) -> list[str]:
    """The leaves of a page of the sample library."""
    page = Page(str(path), str(path), "", path.read_text("utf-8"), "text/html")
    document = read_document(page)
    sentences = main_sentences(document)
    return [
        " ".join(one.text for one in sentences[start:end])
        for start, end in pack_sentences(document, sentences, leaf_tokens=100)
    ]


@pytest.fixture
async def leaves() -> Layer:
    paths = sorted((ROOT / "examples" / "library").glob("*.html"))
    texts = [text for path in paths for text in texts_of(path)][:LEAVES]
    vectors = await OnnxEmbedder().embed(texts, kind="passage")
    return Layer(np.asarray(vectors, dtype=np.float32), [90] * len(texts), 10**6)


def printed_mixture(points: "np.ndarray[tuple[int, int], np.dtype[np.float64]]") -> list[list[int]]:
    """The clusters as the authors' code finds them: sizes by BIC with one seed, the fit with
    another, members above .1."""
    mixture = importlib.import_module("sklearn.mixture")
    sizes = range(1, min(50, len(points)))
    fits = [mixture.GaussianMixture(size, random_state=224).fit(points) for size in sizes]
    best = min(fits, key=lambda fit: float(fit.bic(points))).n_components
    chances = mixture.GaussianMixture(best, random_state=0).fit(points).predict_proba(points)
    return [np.flatnonzero(column > 0.1).tolist() for column in chances.T]


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore::UserWarning")
async def test_real_leaves_make_as_many_clusters_as_by_the_authors_code(leaves: Layer) -> None:
    """The old mixture, begun elsewhere, made two clusters of ninety leaves of a meeting."""
    need("papers")
    expected = 0
    for rough in printed_mixture(principal_components(leaves.vectors.astype(np.float64), 10)):
        part = leaves.vectors[rough].astype(np.float64)
        fine = [rough] if len(rough) < 12 else printed_mixture(principal_components(part, 10))
        expected += len([own for own in fine if own])
    found = cluster(leaves, "gmm")
    assert abs(len(found) - expected) <= 0.2 * expected
    assert 3 <= np.mean([len(own) for own in found]) <= 12


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gmm", "umap"])
def test_themes_are_kept_together_and_two_runs_agree(method: Clustering) -> None:
    need("papers")
    vectors = themes(5, 24, noise=0.3)
    clusters = cluster(layer(vectors), method)
    assert clusters == cluster(layer(vectors), method)
    assert {i for group in clusters for i in group} == set(range(len(vectors)))
    pure = sum(len({i % 5 for i in group}) == 1 for group in clusters)
    assert pure >= 0.8 * len(clusters)
