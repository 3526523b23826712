"""Clusters: soft, capped, deterministic, within the window; also the Gaussian mixture."""

import itertools
import queue
import threading
from typing import Final

import anyio
import anyio.to_thread
import numpy as np
import pytest
from numpy.typing import NDArray

from cancellation import Stopped, stopped_by
from papers.raptor.cluster import (
    MOST_CHILDREN,
    Layer,
    cluster,
    principal_components,
    soft_mixture,
)
from papers.raptor.tree import Clustering
from pipeline.work import in_thread
from tests.support.waiting import bounded

Floats = NDArray[np.float32]
PAPERS: Final = pytest.mark.needs("papers")
METHODS: Final = ["kmeans", pytest.param("gmm", marks=PAPERS)]


def themes(count: int, each: int, noise: float = 0.5, seed: int = 1) -> Floats:
    """`count` themes of `each` unit vectors in 64 dimensions, interleaved."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(count, 64))
    rows = np.concatenate(
        [centres + noise * generator.normal(size=(count, 64)) for _ in range(each)]
    )
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def layer(vectors: Floats, tokens: int = 100, window: int = 3500) -> Layer:
    return Layer(vectors, [tokens] * len(vectors), window)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2, 3, 11, 12, 13, 100, 300])
def test_every_node_is_in_a_cluster_and_there_are_fewer_clusters_than_nodes(
    method: Clustering, n: int
) -> None:
    clusters = cluster(layer(themes(max(1, n // 8), 9)[:n]), method)
    assert {i for group in clusters for i in group} == set(
        range(min(n, len(themes(max(1, n // 8), 9))))
    )
    assert 0 < len(clusters) < n
    assert all(list(group) == sorted(set(group)) for group in clusters)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_vectors_give_the_same_clusters(method: Clustering) -> None:
    vectors = themes(20, 10)
    assert cluster(layer(vectors), method) == cluster(layer(vectors.copy()), method)


def test_no_cluster_of_several_is_over_the_window() -> None:
    vectors = themes(6, 20)
    for group in cluster(layer(vectors, tokens=400, window=1000), "kmeans"):
        assert len(group) <= 2


@PAPERS
def test_the_mixture_cuts_a_cluster_over_the_window_again() -> None:
    vectors = themes(2, 60, noise=0.2)
    wide = cluster(layer(vectors, tokens=10, window=100_000), "gmm")
    cut = cluster(layer(vectors, tokens=10, window=200), "gmm")
    assert max(map(len, wide)) > 20
    assert max(map(len, cut)) <= 20


def test_one_node_cannot_be_clustered() -> None:
    assert cluster(layer(themes(1, 1)), "kmeans") == []


def test_nodes_that_each_fill_the_window_cannot_be_clustered() -> None:
    assert cluster(layer(themes(5, 4), tokens=3000, window=3500), "kmeans") == []


@pytest.mark.parametrize("method", METHODS)
def test_equal_vectors_are_clustered_without_one_giant(method: Clustering) -> None:
    vectors = np.tile(themes(1, 1), (200, 1))
    clusters = cluster(layer(vectors), method)
    assert 1 < len(clusters) < 200
    assert max(map(len, clusters)) <= 35


def test_kmeans_keeps_themes_together_and_lets_nodes_between_two_join_both() -> None:
    vectors = themes(12, 8, noise=0.3)
    clusters = cluster(layer(vectors), "kmeans")
    pure = sum(len({i % 12 for i in group}) == 1 for group in clusters)
    assert pure >= len(clusters) * 0.6
    assert all(len(group) <= MOST_CHILDREN for group in clusters)
    between = vectors[0] + vectors[1]
    mixed = np.concatenate((themes(2, 20, noise=0.3), [between / np.linalg.norm(between)])).astype(
        np.float32
    )
    groups = cluster(layer(mixed), "kmeans")
    assert sum(map(len, groups)) > len(mixed)


@PAPERS
def test_bic_finds_about_as_many_themes_as_there_are() -> None:
    clusters = soft_mixture(themes(4, 40, noise=0.3))
    assert 3 <= len(clusters) <= 6
    assert soft_mixture(themes(1, 4)) == [[0, 1, 2, 3]]


@PAPERS
def test_nodes_between_two_themes_belong_to_both_by_the_mixture() -> None:
    vectors = themes(2, 60)
    shares = np.linspace(0.3, 0.7, 40)[:, None]
    between = shares * vectors[0:80:2] + (1 - shares) * vectors[1:81:2]
    mixed = np.concatenate(
        (vectors, between / np.linalg.norm(between, axis=1, keepdims=True))
    ).astype(np.float32)
    shared = [
        set(one) & set(other) for one, other in itertools.combinations(soft_mixture(mixed), 2)
    ]
    assert any(shared)


def test_components_keep_distances_of_flat_data() -> None:
    generator = np.random.default_rng(0)
    flat = generator.normal(size=(50, 3)) @ generator.normal(size=(3, 20))
    points = principal_components(flat, 3)
    true = np.linalg.norm(flat[:, None] - flat[None], axis=2)
    assert np.allclose(true, np.linalg.norm(points[:, None] - points[None], axis=2), atol=1e-6)
    few = principal_components(flat[:10], 3)
    assert np.allclose(
        np.linalg.norm(flat[:10, None] - flat[None, :10], axis=2),
        np.linalg.norm(few[:, None] - few[None], axis=2),
        atol=1e-6,
    )


@pytest.mark.slow
@pytest.mark.parametrize("alike", [0.0, 0.97], ids=["all different", "nearly all alike"])
def test_all_of_eight_thousand_nodes_are_in_a_cluster_of_few_children(alike: float) -> None:
    vectors = themes(1_000, 8)
    vectors[: int(alike * len(vectors))] = vectors[0]
    with bounded():
        clusters = cluster(layer(vectors), "kmeans")
    assert {i for group in clusters for i in group} == set(range(len(vectors)))
    assert max(map(len, clusters)) <= MOST_CHILDREN


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("method", "n"),
    [
        pytest.param("kmeans", 12_000, marks=pytest.mark.nightly),
        pytest.param("gmm", 200, marks=PAPERS),
    ],
)
async def test_a_cancelled_clustering_leaves_its_thread(method: Clustering, n: int) -> None:
    """It looks several times whether it was cancelled, and stops when it was: the thread begins its
    work when it has been, so that a loaded machine changes nothing.
    """
    large = layer(themes(n // 8, 8))
    looks = itertools.count()
    with stopped_by(lambda: next(looks) < 0):
        cluster(large, method)
    assert next(looks) > 4

    under_way, cancelled = threading.Event(), threading.Event()
    ended: queue.Queue[str] = queue.Queue()

    def work() -> None:
        under_way.set()
        cancelled.wait()
        try:
            cluster(large, method)
        except Stopped:
            ended.put("stopped")
            raise
        ended.put("finished")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(in_thread, work)
            await anyio.to_thread.run_sync(under_way.wait)
            group.cancel_scope.cancel()
        cancelled.set()
        assert await anyio.to_thread.run_sync(ended.get, abandon_on_cancel=True) == "stopped"
