"""What scores keep of the prompt before: all that the next one shares, and nothing that it does not."""

import importlib
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from models.llama import LlamaGenerator
from pipeline.segment.judge import Judge
from tests.llama_reference import Said, plain_scores

needs_llama = pytest.mark.skipif(find_spec("llama_cpp") is None, reason="the extra llama is not installed")
pytestmark = [needs_llama, pytest.mark.anyio]
Floats = NDArray[np.float64]
STORY = "Once upon a time there was a little girl named Lily."
WIDTH, LAYERS, INNER, STATE, RANK, KERNEL, HEADS = 64, 2, 128, 8, 4, 4, 4


@pytest.fixture
def weights(shared: Path) -> Path:
    """A base model of 260 000 parameters in 32-bit floats."""
    return shared / "models" / "stories260K" / "stories260K-f32.gguf"


@pytest.fixture
async def merging(weights: Path, tmp_path: Path) -> AsyncIterator[LlamaGenerator]:
    """The same weights with one token for a full stop and the line's end behind it, as Llama 3 and Qwen have it."""
    target = tmp_path / "merging.gguf"
    length = (2).to_bytes(8, "little")
    data = weights.read_bytes()
    assert data.count(length + "ñ".encode()) == 1
    target.write_bytes(data.replace(length + "ñ".encode(), length + b".\n"))
    model = LlamaGenerator(target)
    yield model
    await model.aclose()


def write_stateful(source: Path, target: Path, *, hybrid: bool) -> None:
    """Write a model with a state, random weights, and the vocabulary of `source`: Mamba, or Jamba of Mamba and
    attention by turns."""
    gguf = importlib.import_module("gguf")
    fields = gguf.GGUFReader(source).fields
    writer = gguf.GGUFWriter(target, "jamba" if hybrid else "mamba")
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER if hybrid else 0)
    writer.add_head_count(HEADS if hybrid else 0)
    if hybrid:
        writer.add_head_count_kv([0, HEADS] * (LAYERS // 2))
    writer.add_block_count(LAYERS)
    writer.add_ssm_conv_kernel(KERNEL)
    writer.add_ssm_inner_size(INNER)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(RANK)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    for name in ("list:tokens", "scores:scores", "types:token_type"):
        method, field = name.split(":")
        getattr(writer, f"add_token_{method}")(fields[f"tokenizer.ggml.{field}"].contents())
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for name, values in _tensors(hybrid=hybrid).items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(*, hybrid: bool) -> dict[str, Floats]:
    chance = np.random.default_rng(7)

    def drawn(rows: int, columns: int) -> Floats:
        return chance.normal(0, columns**-0.5, (rows, columns))

    tensors: dict[str, Floats] = {
        "output_norm.weight": np.ones(WIDTH),
        "token_embd.weight": chance.normal(0, 1, (512, WIDTH)),
    }
    for number in range(LAYERS):
        block = f"blk.{number}"
        tensors[f"{block}.attn_norm.weight"] = np.ones(WIDTH)
        if hybrid:
            tensors[f"{block}.ffn_norm.weight"] = np.ones(WIDTH)
            tensors |= {f"{block}.ffn_{name}.weight": drawn(INNER, WIDTH) for name in ("gate", "up")}
            tensors[f"{block}.ffn_down.weight"] = drawn(WIDTH, INNER)
        if hybrid and number % 2:
            tensors |= {f"{block}.attn_{name}.weight": drawn(WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
            continue
        shapes = {"in": (2 * INNER, WIDTH), "conv1d": (INNER, KERNEL), "x": (RANK + 2 * STATE, INNER)}
        shapes |= {"dt": (INNER, RANK), "out": (WIDTH, INNER)}
        tensors |= {f"{block}.ssm_{name}.weight": drawn(*shape) for name, shape in shapes.items()}
        tensors |= {f"{block}.ssm_conv1d.bias": np.zeros(INNER), f"{block}.ssm_dt.bias": np.full(INNER, -3.0)}
        tensors |= {f"{block}.ssm_a": -np.tile(np.arange(1.0, STATE + 1), (INNER, 1)), f"{block}.ssm_d": np.ones(INNER)}
        if hybrid:
            sizes = {"dt": RANK, "b": STATE, "c": STATE}
            tensors |= {f"{block}.ssm_{name}_norm.weight": np.ones(size) for name, size in sizes.items()}
    return tensors


async def test_a_prompt_that_parts_from_the_one_before_costs_the_rest_alone(
    stories: LlamaGenerator, weights: Path
) -> None:
    first = await stories.score_tree(f"{STORY} She went to the", [" park", " sea"])
    other = await stories.score_tree(f"{STORY} Her friend", [" ran", " was red"])
    assert other.evaluated_tokens < first.evaluated_tokens / 2
    plain = plain_scores(weights, f"{STORY} Her friend", [" ran", " was red"])
    assert np.abs(other.log_probabilities - plain).max() < 1e-3


async def test_a_prompt_that_is_the_beginning_of_the_one_before_is_read_again_at_its_end(
    stories: LlamaGenerator, weights: Path
) -> None:
    await stories.score_tree(f"{STORY} She went to the", [" park", " sea"])
    shorter = await stories.score_tree(STORY, [" She", " He"])
    assert shorter.evaluated_tokens == 1
    assert np.abs(shorter.log_probabilities - plain_scores(weights, STORY, [" She", " He"])).max() < 1e-3


async def test_a_prompt_that_goes_the_way_of_the_last_path_finds_it_evaluated(
    stories: LlamaGenerator, weights: Path
) -> None:
    along = " She went to the park. It was a big park"
    first = await stories.score_tree(STORY, [" He ran home.", f"{along}. She saw"])
    longer = await stories.score_tree(STORY + along, [" with", " and"])
    assert longer.evaluated_tokens <= 2 < first.tree_tokens
    assert np.abs(longer.log_probabilities - plain_scores(weights, STORY + along, [" with", " and"])).max() < 1e-3


async def test_a_growing_text_is_not_read_anew_where_a_token_spans_the_lines(merging: LlamaGenerator) -> None:
    texts = ["The cat sat.", "It was red.", "Tom ran.", "The sun set.", "The dog saw a cat."]
    first = await merging.score_tree("\n".join(texts[:3]), [" Yes", " No"])
    second = await merging.score_tree("\n".join(texts[:4]), [" Yes", " No"])
    third = await merging.score_tree("\n".join(texts), [" Yes", " No"])
    assert first.prefix_tokens < second.prefix_tokens < third.prefix_tokens
    assert third.evaluated_tokens < third.prefix_tokens - first.prefix_tokens + third.tree_tokens


async def tokens(model: LlamaGenerator) -> int:
    """Return the tokens that went through it so far."""
    return int(str((await model.counters())["tokens"]))


@pytest.fixture(params=[False, True], ids=["mamba", "jamba"])
def stateful(request: pytest.FixtureRequest, weights: Path, tmp_path: Path) -> Path:
    """A file of a model that cannot go back to an earlier place of a sequence."""
    write_stateful(weights, tmp_path / "stateful.gguf", hybrid=request.param)
    return tmp_path / "stateful.gguf"


async def test_a_model_with_a_state_scores_as_whole_prompts_do(stateful: Path) -> None:
    model = LlamaGenerator(stateful)
    prompts = [STORY, f"{STORY} She went", f"{STORY} Her friend", STORY]
    paths = [" to the park. It", " to the sea", " home", " ran and ran."]
    try:
        for prompt in prompts:
            found = await model.score_tree(prompt, paths)
            assert np.abs(found.log_probabilities - plain_scores(stateful, prompt, paths)).max() < 1e-3
        many = await model.score_tree(STORY, [f" park {letter} the {letter}" for letter in "abcdefghijkl"])
        judged = await Judge(model, store=None, seconds=60).margins(["The cat sat.", "It was red.", "Tom ran."])
    finally:
        await model.aclose()
    assert len(set(many.log_probabilities)) == 12
    assert np.isfinite(judged.margins).all()


async def test_a_model_with_a_state_writes_the_same_after_a_beginning_that_was_kept(stateful: Path) -> None:
    async def told(model: LlamaGenerator, end: str) -> str:
        return await model.generate([Said("user", STORY * 3 + end)], max_tokens=9)

    ends = [" One day", " She saw a cat", " Her mom", " It"]
    kept, alone, spent_alone = LlamaGenerator(stateful), [], 0
    try:
        one_after_another = [await told(kept, end) for end in ends]
        spent = await tokens(kept)
    finally:
        await kept.aclose()
    for end in ends:
        fresh = LlamaGenerator(stateful)
        alone.append(await told(fresh, end))
        spent_alone += await tokens(fresh)
        await fresh.aclose()
    assert one_after_another == alone
    assert spent < 0.7 * spent_alone
