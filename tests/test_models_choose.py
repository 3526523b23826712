"""Spec strings: what each names, and what a wrong one is reported."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import pytest

from errors import UsageError
from tests.support.extras import need
from tests.support.models import chosen, model_of, pull
from train.embedder.texts import varied_texts

ROLES: tuple[Literal["embedder", "reranker", "generator"], ...] = (
    "embedder",
    "reranker",
    "generator",
)


def test_auto_takes_the_embedded_model_and_says_why() -> None:
    model = model_of("embedder", "auto")
    assert not model.first.loaded
    assert model.first.name.startswith("all-MiniLM-L6-v2:")
    assert "all-MiniLM-L6-v2" in chosen("embedder", "auto").reason


@pytest.mark.parametrize("role", ["reranker", "generator"])
def test_auto_takes_no_reranker_and_no_generator_and_says_why(
    role: Literal["reranker", "generator"],
) -> None:
    found = chosen(role, "auto")
    assert found.model is None
    assert found.reason.startswith("auto: no ")


@pytest.mark.parametrize("role", ROLES)
def test_none_is_no_model(role: Literal["embedder", "reranker", "generator"]) -> None:
    assert model_of(role, " none ") is None


def test_the_embedded_model_can_be_named_and_a_folder_is_refused(tmp_path: Path) -> None:
    assert model_of("embedder", "onnx:embedded").name.startswith("all-MiniLM-L6-v2:")
    with pytest.raises(UsageError, match="is not a model for the embedder"):
        model_of("embedder", f"onnx:{tmp_path}")


@pytest.mark.parametrize(
    "spec", ["", "gguf", "best", "onnx:", "llama:", "none:x", "auto:x", "torch:x", "openai:"]
)
@pytest.mark.parametrize("role", ROLES)
def test_an_unknown_spec_is_reported_the_forms(
    spec: str, role: Literal["embedder", "reranker", "generator"]
) -> None:
    with pytest.raises(UsageError) as caught:
        model_of(role, spec)
    for form in ("auto", "none", "openai:http://127.0.0.1:", "llama:FILE.gguf"):
        assert form in caught.value.hint


def test_a_backend_without_the_role_is_refused() -> None:
    with pytest.raises(UsageError):
        model_of("reranker", "onnx:embedded")
    with pytest.raises(UsageError):
        model_of("generator", "flag:BAAI/bge-m3")


@pytest.mark.parametrize("role", ROLES)
def test_a_remote_model_is_named_by_address_and_model_without_its_key(
    role: Literal["embedder", "reranker", "generator"],
) -> None:
    spec = "openai:http://127.0.0.1:11434/v1#nomic-embed-text"
    found = chosen(role, spec, key="sk-very-secret")
    model = model_of(role, spec)
    assert model.name.startswith("nomic-embed-text:openai:http://127.0.0.1:11434/v1")
    assert "secret" not in repr(found) + found.reason + repr(vars(found.model))


@pytest.mark.parametrize(
    "rest", ["http://127.0.0.1/v1", "ftp://a/b#m", "#m", "http://me:pw@host/v1#m", "http://[::1#m"]
)
def test_a_remote_spec_without_address_or_model_is_refused(rest: str) -> None:
    with pytest.raises(UsageError):
        model_of("generator", f"openai:{rest}")


@pytest.mark.parametrize("key", ["sk-new\nline", "sk with blanks", "sk-ключ"])
def test_a_key_that_cannot_be_a_header_is_refused_unseen(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        model_of("generator", "openai:http://127.0.0.1/v1#m", key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("role", "can"), [("embedder", "embed"), ("reranker", "score"), ("generator", "generate")]
)
def test_a_gguf_file_serves_each_role(
    tmp_path: Path, role: Literal["embedder", "reranker", "generator"], can: str
) -> None:
    need("llama")
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    assert hasattr(model_of(role, f"llama:{path}"), can)


def test_auto_takes_what_was_pulled_for_a_role_and_says_so(tmp_path: Path) -> None:
    need("llama")
    for name in ("bge-m3-q8", "bge-reranker-v2-m3-q4", "smollm3-3b-q4", "html-pruner-llama-1b-q8"):
        pull(tmp_path, name)
    reasons = [chosen(role, "auto", downloads=tmp_path).reason for role in ROLES]
    for file, reason in zip(("bge-m3", "reranker", "SmolLM3-Q4_K_M.gguf"), reasons, strict=True):
        assert file in reason and "pulled for this role" in reason


def test_a_pruner_that_writes_no_answers_is_never_the_writer_by_itself(tmp_path: Path) -> None:
    spec = pull(tmp_path, "html-pruner-llama-1b-q8")
    assert chosen("generator", "auto", downloads=tmp_path).model is None
    if find_spec("llama_cpp") is not None:
        assert chosen("generator", spec, downloads=tmp_path).model is not None


def test_a_gguf_that_is_nowhere_is_refused_with_the_command_that_gets_it() -> None:
    need("llama")
    with pytest.raises(UsageError, match="never downloads") as caught:
        model_of("generator", "llama:winnow-no-such-owner/no-such-repo/model-q8_0.gguf")
    assert caught.value.hint.endswith(
        "winnow models pull winnow-no-such-owner/no-such-repo/model-q8_0.gguf"
    )
    with pytest.raises(UsageError, match="file not found"):
        model_of("generator", "llama:/no/such/file.gguf")


def test_the_texts_of_the_fidelity_figure_are_two_hundred_and_varied() -> None:
    texts = varied_texts()
    assert len(texts) == 200
    assert texts == varied_texts()
    assert max(len(text.split()) for text in texts) >= 250
    assert len(set(texts)) == 200
