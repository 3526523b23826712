"""FlagEmbedding with a tiny checkpoint of random weights in BGE-M3's layout, made here; skipped without the package."""

from pathlib import Path

import anyio
import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from errors import ModelError
from models.flag import FlagEmbedder, FlagReranker

pytest.importorskip("FlagEmbedding", reason="the extra flag (FlagEmbedding on torch) is not installed")
torch = pytest.importorskip("torch", reason="the extra flag (FlagEmbedding on torch) is not installed")
transformers = pytest.importorskip("transformers", reason="the extra flag (FlagEmbedding on torch) is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # torch and transformers warn about their own parts

WIDTH = 64
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}


def _tokenizer() -> object:
    letters = [chr(code) for code in (*range(32, 127), *range(192, 256), 0x6771, 0x4EAC)]
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(letter, -5.0) for letter in letters if letter != " "] + [("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=1_100, **SPECIAL)


def _config(labels: int) -> object:
    return transformers.XLMRobertaConfig(
        vocab_size=400,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=1_102,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        num_labels=labels,
    )


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of two layers with BGE-M3's two further heads."""
    folder = tmp_path_factory.mktemp("bge")
    torch.manual_seed(1)
    transformers.XLMRobertaModel(_config(2)).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)  # type: ignore[attr-defined]  # transformers is not installed where types are checked
    torch.save(torch.nn.Linear(WIDTH, 1).state_dict(), folder / "sparse_linear.pt")
    torch.save(torch.nn.Linear(WIDTH, WIDTH).state_dict(), folder / "colbert_linear.pt")
    return folder


@pytest.fixture(scope="module")
def cross_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder of two layers with one output."""
    folder = tmp_path_factory.mktemp("reranker")
    torch.manual_seed(2)
    transformers.XLMRobertaForSequenceClassification(_config(1)).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)  # type: ignore[attr-defined]  # as above
    return folder


@pytest.mark.anyio
async def test_vectors_are_unit_rows_in_order(checkpoint: Path) -> None:
    embedder = FlagEmbedder(str(checkpoint))
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
    embedder = FlagEmbedder(str(checkpoint))
    start = "ab " * 240  # about 720 tokens of letters and blanks
    one, other = await embedder.embed([start + "zzzz" * 20, start + "qqqq" * 20], kind="passage")
    assert not np.allclose(one, other, atol=1e-6)


@pytest.mark.anyio
async def test_a_reranker_gives_one_score_a_text(cross_checkpoint: Path) -> None:
    reranker = FlagReranker(str(cross_checkpoint))
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
    embedder = FlagEmbedder(str(checkpoint))
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
    embedder = FlagEmbedder("winnow-no-such-owner/no-such-model")
    with pytest.raises(ModelError, match="nothing is downloaded") as caught:
        await embedder.embed(["text"], kind="query")
    assert caught.value.hint.endswith("hf download winnow-no-such-owner/no-such-model")


@pytest.mark.anyio
async def test_a_folder_that_is_no_model_is_a_model_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"hidden_size": 64}')
    with pytest.raises(ModelError, match="cannot load"):
        await FlagEmbedder(str(tmp_path)).embed(["text"], kind="query")
