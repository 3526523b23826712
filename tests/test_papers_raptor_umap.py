"""The mixture over dimensions that UMAP reduced."""

import pytest

from papers.raptor.cluster import cluster
from tests.support.extras import need
from tests.test_papers_raptor_cluster import layer, themes


@pytest.mark.slow
def test_umap_reduces_for_the_mixture_and_two_runs_agree() -> None:
    need("umap")
    vectors = themes(5, 24, noise=0.3)
    clusters = cluster(layer(vectors), "umap")
    assert clusters == cluster(layer(vectors), "umap")
    assert {i for group in clusters for i in group} == set(range(len(vectors)))
    pure = sum(len({i % 5 for i in group}) == 1 for group in clusters)
    assert pure >= 0.8 * len(clusters)
