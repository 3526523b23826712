"""The carried embedder of many languages: fidelity, meaning across languages, when it is loaded."""

import json
from pathlib import Path

import anyio
import numpy as np
import pytest

from models.backend import Resources
from models.choose import choose
from models.onnx import MULTILINGUAL, OnnxEmbedder
from models.pair import PairedEmbedder, fitting
from tests.support.model_server import loopback_client
from train.embedder.texts import varied_texts

ASKED = {
    "ru": "Сколько стоит входной билет для взрослого?",
    "de": "Wie viel kostet der Eintritt für Erwachsene?",
    "ar": "كم ثمن تذكرة الدخول للبالغين؟",
    "zh": "成人门票多少钱？",
}
TEXTS = (
    "Adults pay nine crowns at the gate, children half of that.",
    "The museum is closed on Mondays and on public holidays.",
    "Вход для взрослых обходится в девять крон, для детей — в половину.",
    "По понедельникам музей не работает.",
)


@pytest.fixture(scope="module")
def many() -> OnnxEmbedder:
    """The embedder, loaded at its first use."""
    return OnnxEmbedder(MULTILINGUAL)


@pytest.mark.anyio
@pytest.mark.slow
async def test_vectors_agree_with_the_float32_original(many: OnnxEmbedder) -> None:
    reference = np.load(MULTILINGUAL / "reference.npz")
    texts = varied_texts()
    found = await many.embed([texts[place] for place in reference["places"]], kind="passage")
    cosine = (found * reference["vectors"]).sum(axis=1)
    assert len(cosine) == 40
    assert cosine.mean() >= 0.99
    assert cosine.min() >= 0.95


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.parametrize("language", ASKED)
async def test_a_question_finds_what_answers_it_in_its_own_and_in_another_language(
    many: OnnxEmbedder, language: str
) -> None:
    (asked,) = await many.embed([ASKED[language]], kind="query")
    price, closed, price_ru, closed_ru = await many.embed(TEXTS, kind="passage") @ asked
    assert price > closed
    assert price_ru > closed_ru


@pytest.mark.anyio
@pytest.mark.slow
async def test_a_cancelled_call_ends_and_the_next_is_answered(many: OnnxEmbedder) -> None:
    with anyio.move_on_after(0.01) as scope:
        await many.embed(["Долгий текст о паромах. " * 60] * 200, kind="passage")
    assert scope.cancelled_caught
    assert (await many.embed(["паром"], kind="query")).shape == (1, 384)


def test_it_is_loaded_by_no_english_text_and_by_the_first_of_another_language() -> None:
    resources = Resources(loopback_client(), downloads=Path("no-such-folder"))
    pair = choose("embedder", "auto", resources).model
    assert isinstance(pair, PairedEmbedder)
    assert fitting(pair, ("en", ""), ("When does it sail?",)) is pair.first
    assert fitting(pair, ("en", "de"), ("When does it sail?",)) is pair.other
    assert fitting(pair, ("", ""), (ASKED["zh"],)) is pair.other
    assert fitting(None, ("ru",), ()) is None
    assert not any(isinstance(one, OnnxEmbedder) and one.loaded for one in (pair.first, pair.other))


def test_it_can_be_the_only_embedder() -> None:
    resources = Resources(loopback_client(), downloads=Path("no-such-folder"))
    only = choose("embedder", "onnx:multilingual", resources).model
    assert only is not None
    assert only.name.startswith("multilingual-e5-small:")
    assert only.reads(ASKED["ar"])
    assert fitting(only, ("en",), ()) is only


def test_the_folder_is_within_its_bound_and_names_its_source() -> None:
    sizes = [path.stat().st_size for path in MULTILINGUAL.iterdir()]
    assert sum(sizes) <= 45_000_000
    manifest = json.loads((MULTILINGUAL / "manifest.json").read_text("utf-8"))
    assert len(manifest["source_sha256"]) == 64
    assert "multilingual-e5-small" in (MULTILINGUAL.parent / "NOTICE").read_text("utf-8")
