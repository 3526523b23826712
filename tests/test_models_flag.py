"""FlagEmbedding with a tiny checkpoint of random weights in BGE-M3's layout, made here; skipped
without the package."""

from pathlib import Path

import anyio
import numpy as np
import pytest

from errors import ModelError
from tests.support.bge_checkpoint import WIDTH, convert_checkpoint, make_checkpoint
from tests.support.extras import need
from tests.support.model_server import loopback_client
from tests.support.models import model_of
from tests.support.real_servers import serving

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.slow,
    pytest.mark.needs("flag"),
]  # torch and transformers warn about their own parts

TEXTS = [
    "a boat leaves at noon",
    "trains",
    "The ferry takes two hours. " * 8,
    "Fahrkarten kosten 14 Kronen",
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of two layers with BGE-M3's two further heads."""
    folder = tmp_path_factory.mktemp("bge")
    make_checkpoint(folder, reranker=False, seed=1)
    return folder


@pytest.fixture(scope="module")
def cross_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder of two layers with one output."""
    folder = tmp_path_factory.mktemp("reranker")
    make_checkpoint(folder, reranker=True, seed=2)
    return folder


@pytest.mark.anyio
async def test_vectors_are_unit_rows_in_order(checkpoint: Path) -> None:
    embedder = model_of("embedder", f"flag:{checkpoint}")
    assert embedder.dimension == WIDTH
    texts = ["a boat", "", "東京", "\ud800", *[f"{number} trains" for number in range(60)]]
    found = await embedder.embed(texts, kind="passage")
    assert found.shape == (64, WIDTH)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    alone = await embedder.embed(["59 trains"], kind="query")
    assert found[-1] @ alone[0] > 0.9999
    assert (await embedder.embed([], kind="query")).shape == (0, WIDTH)


@pytest.mark.anyio
async def test_a_passage_is_read_beyond_512_tokens(checkpoint: Path) -> None:
    embedder = model_of("embedder", f"flag:{checkpoint}")
    start = "ab " * 240  # about 720 tokens of letters and blanks
    one, other = await embedder.embed([start + "zzzz" * 20, start + "qqqq" * 20], kind="passage")
    assert not np.allclose(one, other, atol=1e-6)


@pytest.mark.anyio
async def test_a_reranker_gives_one_score_a_text(cross_checkpoint: Path) -> None:
    reranker = model_of("reranker", f"flag:{cross_checkpoint}")
    texts = [f"{number} trains" for number in range(40)]
    scores = await reranker.score("when do trains leave", texts)
    assert scores.shape == (40,)
    assert scores.dtype == np.float32
    assert ((scores > 0) & (scores < 1)).all()
    again = await reranker.score("when do trains leave", texts[7:8])
    assert np.allclose(scores[7], again[0], atol=1e-4)
    assert (await reranker.score("q", [])).shape == (0,)


@pytest.mark.anyio
async def test_four_tasks_at_once_get_their_own_vectors(checkpoint: Path) -> None:
    embedder = model_of("embedder", f"flag:{checkpoint}")
    expected = await embedder.embed([f"{number} boats" for number in range(4)], kind="passage")
    found = np.zeros_like(expected)

    async def ask(place: int) -> None:
        found[place] = (await embedder.embed([f"{place} boats"], kind="passage"))[0]

    async with anyio.create_task_group() as group:
        for place in range(4):
            group.start_soon(ask, place)
    assert (found * expected).sum(axis=1).min() > 0.9999


@pytest.mark.anyio
async def test_a_model_that_is_not_here_is_refused_with_the_command_that_gets_it() -> None:
    embedder = model_of("embedder", "flag:winnow-no-such-owner/no-such-model")
    with pytest.raises(ModelError, match="never downloads") as caught:
        await embedder.embed(["text"], kind="query")
    assert caught.value.hint.endswith("hf download winnow-no-such-owner/no-such-model")


@pytest.mark.anyio
async def test_a_folder_that_is_no_model_is_a_model_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"hidden_size": 64}')
    with pytest.raises(ModelError, match="cannot load"):
        await model_of("embedder", f"flag:{tmp_path}").embed(["text"], kind="query")


@pytest.mark.anyio
async def test_a_pair_is_read_beyond_512_tokens(cross_checkpoint: Path) -> None:
    start = "ab " * 240
    found = await model_of("reranker", f"flag:{cross_checkpoint}").score(
        "when", [start + "zzzz" * 20, start + "qqqq" * 20]
    )
    assert found[0] != found[1]


@pytest.mark.anyio
async def test_nothing_is_drawn_on_the_terminal(
    checkpoint: Path, cross_checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = [f"{number} trains" for number in range(64)]
    await model_of("reranker", f"flag:{cross_checkpoint}").score("when", texts)
    await model_of("embedder", f"flag:{checkpoint}").embed(texts, kind="passage")
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "%|" not in shown.err


@pytest.mark.anyio
async def test_other_weights_under_the_same_name_have_another_name_for_the_cache(
    tmp_path: Path,
) -> None:
    make_checkpoint(tmp_path, reranker=False, seed=3)
    before = model_of("embedder", f"flag:{tmp_path}").name
    assert model_of("embedder", f"flag:{tmp_path}").name == before
    make_checkpoint(tmp_path, reranker=False, seed=4)
    assert model_of("embedder", f"flag:{tmp_path}").name != before


@pytest.mark.anyio
async def test_the_same_weights_as_gguf_give_the_same_vectors(
    checkpoint: Path, tmp_path: Path
) -> None:
    need("llama")
    path = tmp_path / "twin.gguf"
    convert_checkpoint(checkpoint, path, reranker=False)
    twin = model_of("embedder", f"llama:{path}")
    try:
        found = await twin.embed(TEXTS, kind="passage")
    finally:
        await twin.aclose()
    expected = await model_of("embedder", f"flag:{checkpoint}").embed(TEXTS, kind="passage")
    assert (found * expected).sum(axis=1).min() > 0.9999


@pytest.mark.anyio
async def test_the_same_reranker_as_gguf_gives_the_same_scores(
    cross_checkpoint: Path, tmp_path: Path
) -> None:
    need("llama")
    path = tmp_path / "twin.gguf"
    convert_checkpoint(cross_checkpoint, path, reranker=True)
    twin = model_of("reranker", f"llama:{path}")
    try:
        logits = await twin.score("when do trains leave", TEXTS)
    finally:
        await twin.aclose()
    expected = await model_of("reranker", f"flag:{cross_checkpoint}").score(
        "when do trains leave", TEXTS
    )
    assert np.abs(1 / (1 + np.exp(-logits)) - expected).max() < 1e-3


@pytest.mark.anyio
async def test_the_same_reranker_behind_a_real_llama_server_gives_the_same_scores(
    cross_checkpoint: Path, tmp_path: Path
) -> None:
    convert_checkpoint(cross_checkpoint, tmp_path / "twin.gguf", reranker=True)
    with serving("llama-server", tmp_path / "twin.gguf", tmp_path / "log", role="reranker") as url:
        async with loopback_client() as http:
            reranker = model_of("reranker", f"openai:{url}#twin", http=http)
            logits = await reranker.score("when do trains leave", TEXTS * 10)
    expected = await model_of("reranker", f"flag:{cross_checkpoint}").score(
        "when do trains leave", TEXTS * 10
    )
    assert np.abs(1 / (1 + np.exp(-logits)) - expected).max() < 1e-3
