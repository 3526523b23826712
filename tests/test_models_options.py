"""What a person sets for models: each option reaches llama.cpp."""

from pathlib import Path

import pytest

from errors import UsageError
from models.protocols import Said
from server.settings import read_settings
from tests.support.extras import need, needs_llama
from tests.support.llama_reference import smol_weights
from tests.support.models import model_of

ASKED = [Said("user", "Name the capital of France.")]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("n_ctx=many", "use a number"),
        ("tensor_split=[3", "or a list"),
        ("speed=9", "NAME=VALUE with n_ctx"),
        ("temperature", "use a number"),
    ],
)
def test_a_wrong_option_is_refused_with_what_would_be_right(text: str, reported: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings({"model_options": text}, {})
    assert reported in caught.value.hint


def weights() -> Path:
    need("llama")
    return smol_weights()


async def written(text: str, count: int = 1) -> list[str]:
    model = model_of("generator", f"llama:{weights()}", options=text)
    try:
        return [await model.generate(ASKED, max_tokens=24) for _ in range(count)]
    finally:
        await model.aclose()


@needs_llama
@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize(
    "text",
    [
        "n_threads=1 n_batch=256 use_mmap=false",
        "flash_attn=true type_k=8 type_v=8 n_gpu_layers=0 main_gpu=0",
    ],
)
async def test_a_model_answers_with_arguments_of_llama_cpp(text: str) -> None:
    assert "Paris" in (await written(text))[0]


@needs_llama
@pytest.mark.anyio
async def test_a_context_that_is_set_is_the_models() -> None:
    model = model_of("generator", f"llama:{weights()}", options="n_ctx=1024")
    assert model.context_tokens == 1_024
    assert model.name.endswith(":n_ctx=1024")


@needs_llama
@pytest.mark.slow
@pytest.mark.anyio
async def test_a_seed_gives_the_same_draw_and_another_seed_another() -> None:
    one = await written("temperature=1.5 seed=1 top_p=0.99", count=2)
    other = await written("temperature=1.5 seed=2 top_p=0.99")
    likeliest = await written("temperature=1.0 top_k=1")
    assert one[0] == one[1]
    assert one[0] != other[0]
    assert likeliest == await written("")
