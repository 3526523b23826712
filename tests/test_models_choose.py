"""Spec strings: what each names, and what a wrong one is reported."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from errors import UsageError
from models.backend import Resources
from models.catalogue import MODELS, Role
from models.choose import choose, forms_of
from models.llama.model import LlamaEmbedder, LlamaGenerator, LlamaReranker
from models.onnx import OnnxEmbedder
from models.pair import PairedEmbedder
from models.remote.openai import OpenAIEmbedder, OpenAIGenerator, OpenAIReranker
from tests.support.extras import need
from tests.support.model_server import loopback_client
from train.embedder.texts import varied_texts

ROLES: tuple[Role, ...] = ("embedder", "reranker", "generator")
RESOURCES = Resources(loopback_client(), downloads=Path("no-such-folder"))


def test_auto_takes_the_embedded_model_and_says_why() -> None:
    chosen = choose("embedder", "auto", RESOURCES)
    assert isinstance(chosen.model, PairedEmbedder)
    assert isinstance(chosen.model.first, OnnxEmbedder)
    assert not chosen.model.first.loaded
    assert "all-MiniLM-L6-v2" in chosen.reason


def test_auto_takes_no_reranker_and_no_generator_and_says_why() -> None:
    for chosen in (choose("reranker", "auto", RESOURCES), choose("generator", "auto", RESOURCES)):
        assert chosen.model is None
        assert chosen.reason.startswith("auto: no ")


def test_none_is_no_model() -> None:
    assert choose("embedder", "none", RESOURCES).model is None
    assert choose("reranker", " none ", RESOURCES).model is None
    assert choose("generator", "none", RESOURCES).model is None


def test_the_embedded_model_can_be_named_and_a_folder_is_refused(tmp_path: Path) -> None:
    assert isinstance(choose("embedder", "onnx:embedded", RESOURCES).model, OnnxEmbedder)
    with pytest.raises(UsageError, match="is not a model for the embedder"):
        choose("embedder", f"onnx:{tmp_path}", RESOURCES)


@pytest.mark.parametrize(
    "spec", ["", "gguf", "best", "onnx:", "llama:", "none:x", "auto:x", "torch:x", "openai:"]
)
@pytest.mark.parametrize("role", ROLES)
def test_an_unknown_spec_is_reported_the_forms(spec: str, role: Role) -> None:
    with pytest.raises(UsageError) as caught:
        choose(role, spec, RESOURCES)
    assert forms_of(role) in caught.value.hint


def test_a_backend_without_the_role_is_refused() -> None:
    with pytest.raises(UsageError):
        choose("reranker", "onnx:embedded", RESOURCES)
    with pytest.raises(UsageError):
        choose("generator", "flag:BAAI/bge-m3", RESOURCES)


def test_a_remote_model_is_named_by_address_and_model_without_its_key() -> None:
    spec = "openai:http://127.0.0.1:11434/v1#nomic-embed-text"
    embedder = choose("embedder", spec, Resources(RESOURCES.http, "sk-very-secret"))
    assert isinstance(embedder.model, OpenAIEmbedder)
    assert embedder.model.name.startswith("nomic-embed-text:openai:http://127.0.0.1:11434/v1")
    assert isinstance(choose("reranker", spec, RESOURCES).model, OpenAIReranker)
    assert isinstance(choose("generator", spec, RESOURCES).model, OpenAIGenerator)
    assert "secret" not in repr(embedder) + embedder.reason + repr(vars(embedder.model))


@pytest.mark.parametrize(
    "rest", ["http://127.0.0.1/v1", "ftp://a/b#m", "#m", "http://me:pw@host/v1#m", "http://[::1#m"]
)
def test_a_remote_spec_without_address_or_model_is_refused(rest: str) -> None:
    with pytest.raises(UsageError):
        choose("generator", f"openai:{rest}", RESOURCES)


@pytest.mark.parametrize("key", ["sk-new\nline", "sk with blanks", "sk-ключ"])
def test_a_key_that_cannot_be_a_header_is_refused_unseen(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose("generator", "openai:http://127.0.0.1/v1#m", Resources(RESOURCES.http, key))
    assert key not in str(caught.value)


def test_a_gguf_file_serves_both_roles(tmp_path: Path) -> None:
    need("llama")
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    assert isinstance(choose("embedder", f"llama:{path}", RESOURCES).model, LlamaEmbedder)
    assert isinstance(choose("generator", f"llama:{path}", RESOURCES).model, LlamaGenerator)
    assert isinstance(choose("reranker", f"llama:{path}", RESOURCES).model, LlamaReranker)


def _pulled(folder: Path, repository: str, file: str) -> Path:
    path = folder / f"models--{repository.replace('/', '--')}" / "snapshots" / "0123abcd" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    return path


def test_auto_takes_what_was_pulled_for_a_role_and_says_so(tmp_path: Path) -> None:
    need("llama")
    for name in ("bge-m3-q8", "bge-reranker-v2-m3-q4", "smollm3-3b-q4", "html-pruner-llama-1b-q8"):
        _pulled(tmp_path, MODELS[name].repository, MODELS[name].file)
    resources = Resources(RESOURCES.http, downloads=tmp_path)
    embedder, reranker = (
        choose("embedder", "auto", resources),
        choose("reranker", "auto", resources),
    )
    generator = choose("generator", "auto", resources)
    assert isinstance(embedder.model, LlamaEmbedder)
    assert isinstance(reranker.model, LlamaReranker)
    assert isinstance(generator.model, LlamaGenerator)
    assert "SmolLM3-Q4_K_M.gguf pulled" in generator.reason


def test_a_pruner_that_writes_no_answers_is_never_the_writer_by_itself(tmp_path: Path) -> None:
    pruner = MODELS["html-pruner-llama-1b-q8"]
    _pulled(tmp_path, pruner.repository, pruner.file)
    assert choose("generator", "auto", Resources(RESOURCES.http, downloads=tmp_path)).model is None
    if find_spec("llama_cpp") is not None:
        assert (
            choose("generator", pruner.spec, Resources(RESOURCES.http, downloads=tmp_path)).model
            is not None
        )


def test_a_gguf_that_is_nowhere_is_refused_with_the_command_that_gets_it() -> None:
    need("llama")
    with pytest.raises(UsageError, match="never downloads") as caught:
        choose("generator", "llama:winnow-no-such-owner/no-such-repo/model-q8_0.gguf", RESOURCES)
    assert caught.value.hint.endswith(
        "winnow models pull winnow-no-such-owner/no-such-repo/model-q8_0.gguf"
    )
    with pytest.raises(UsageError, match="file not found"):
        choose("generator", "llama:/no/such/file.gguf", RESOURCES)


def test_the_texts_of_the_fidelity_figure_are_two_hundred_and_varied() -> None:
    texts = varied_texts()
    assert len(texts) == 200
    assert texts == varied_texts()
    assert max(len(text.split()) for text in texts) >= 250
    assert len(set(texts)) == 200
