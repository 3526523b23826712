"""What a person sets for a role: each option reaches llama.cpp."""

from pathlib import Path

import pytest

from errors import ModelError, UsageError
from models.llama.model import LlamaGenerator
from models.llama.placement import Device, Weights, place
from models.protocols import Said
from models.tuning import Tuning, read_tuning
from server.settings import read_settings
from tests.support.extras import need, needs_llama
from tests.support.llama_reference import smol_weights

GIGABYTE = 1_000_000_000
TWO = [
    Device("CUDA", "big", 24 * GIGABYTE, number="CUDA0"),
    Device("CUDA", "small", 8 * GIGABYTE, number="CUDA1"),
]
WEIGHTS = Weights(layers=33, file_bytes=30 * GIGABYTE, context_bytes=GIGABYTE)


def placed(text: str, devices: list[Device] = TWO) -> tuple[int, tuple[str, ...], str]:
    found = place(
        WEIGHTS, devices, backends=["CUDA"], cores=16, tuning=read_tuning(text, "generator")
    )
    return found.gpu_layers, found.devices, found.reason


def test_layers_and_devices_go_where_they_were_set() -> None:
    layers, devices, reason = placed("")
    assert (devices, 0 < layers < 33) == (("CUDA0",), True)
    assert "set" not in reason
    layers, devices, reason = placed("layers=5")
    assert (layers, devices) == (5, ("CUDA0",))
    assert reason.startswith("layers=5 was set; ")
    assert placed("layers=all")[0] == -1
    assert placed("layers=0")[:2] == (0, ())
    together, devices, reason = placed("devices=cuda1,CUDA0 split=1,3")
    assert devices == ("CUDA1", "CUDA0")
    assert together > layers
    assert "8.0 GB free and CUDA (big)" in reason


def test_a_device_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ModelError, match="Vulkan0") as caught:
        placed("devices=Vulkan0")
    assert "CUDA0, CUDA1" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("kv=q9", "one of f32, f16"),
        ("context=12", "a number from 256"),
        ("speed=9", "NAME=VALUE with layers"),
        ("split=1,2", "one share for each device"),
        ("temperature", "NAME=VALUE"),
    ],
)
def test_a_wrong_option_is_refused_with_what_would_be_right(text: str, reported: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings({"generator_options": text}, {})
    assert reported in caught.value.hint


def test_an_encoder_has_no_options_of_writers() -> None:
    with pytest.raises(UsageError):
        read_settings({"embedder_options": "temperature=1"}, {})
    assert read_settings({"embedder_options": "context=256"}, {}).embedder_options.context == 256


def weights() -> Path:
    need("llama")
    return smol_weights()


@needs_llama
@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("text", ["kv=q8_0 context=512", "threads=1 batch=256 mmap=off flash=on"])
async def test_a_model_answers_with_options_and_says_what_it_was_made_with(text: str) -> None:
    model = LlamaGenerator(weights(), tuning=read_tuning(text, "generator"))
    try:
        said = await model.generate([Said("user", "Name the capital of France.")], max_tokens=12)
        facts = model.placement
    finally:
        await model.aclose()
    assert "Paris" in said
    if "kv" in text:
        assert (facts["kv"], facts["context"]) == ("q8_0", 512)
    else:
        assert (facts["threads"], facts["batch"]) == (1, 256)


ASKED = [Said("user", "Repeat this list twice: alder, birch, cedar, dogwood, elm, fir, gorse.")]


async def written(tuning: Tuning, count: int = 1) -> tuple[list[str], int]:
    model = LlamaGenerator(weights(), tuning=tuning)
    try:
        texts = [await model.generate(ASKED, max_tokens=48) for _ in range(count)]
        guessed = int(str((await model.counters())["guessed"]))
    finally:
        await model.aclose()
    return texts, guessed


@needs_llama
@pytest.mark.slow
@pytest.mark.anyio
async def test_guessing_ahead_gives_the_same_answer_in_fewer_batches() -> None:
    plain, none = await written(Tuning())
    ahead, guessed = await written(Tuning(speculate=8))
    assert ahead == plain
    assert none == 0
    assert guessed > 5


@needs_llama
@pytest.mark.slow
@pytest.mark.anyio
async def test_a_seed_gives_the_same_draw_and_another_seed_another() -> None:
    one, _ = await written(Tuning(temperature=1.0, seed=1, top_p=0.9), count=2)
    other, _ = await written(Tuning(temperature=1.0, seed=2, top_p=0.9))
    likeliest, _ = await written(Tuning(temperature=1.0, top_k=1))
    greedy, _ = await written(Tuning())
    assert one[0] == one[1]
    assert one[0] != other[0]
    assert likeliest == greedy
