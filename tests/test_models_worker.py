"""A model's process: turns, memory, crashes, pauses, idleness, and what would kill it refused."""

import os
import select
import signal
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np
import pytest

from errors import ModelError
from models.llama.model import LlamaGenerator, LlamaReranker
from models.pipe import memory_of
from models.protocols import Said
from models.text import instructed
from models.worker import Limits, Worker
from tests.support.extras import needs_llama
from tests.support.llama_reference import smol_weights, write_reranker

LONG = [Said("user", "Write a long story about the sea.")]
SHORT = [Said("user", "Once upon a time")]


@pytest.fixture
def minilm(shared: Path) -> Path:
    """An embedder's file."""
    return shared / "models" / "all-minilm-l6-v2-f16.gguf"


@pytest.fixture
def tiny(shared: Path) -> Path:
    """A generator's file."""
    return shared / "models" / "stories260K" / "stories260K-f32.gguf"


@needs_llama
@pytest.mark.anyio
async def test_sixteen_answers_at_once_are_those_of_one_at_a_time(stories: LlamaGenerator) -> None:
    asked = [[Said("user", f"The {animal} saw")] for animal in ("cat", "dog", "bird", "fish") * 4]
    alone = [await stories.generate(said, max_tokens=12) for said in asked]
    together = [""] * 16

    async def ask(place: int) -> None:
        together[place] = await stories.generate(asked[place], max_tokens=12)

    async with anyio.create_task_group() as group:
        for place in range(16):
            group.start_soon(ask, place)
    assert together == alone


@needs_llama
@pytest.mark.anyio
async def test_a_cancelled_answer_leaves_and_the_other_goes_on() -> None:
    model = LlamaGenerator(smol_weights())
    await model.generate(SHORT, max_tokens=1)
    answers = []

    async def other() -> None:
        answers.append(await model.generate(SHORT, max_tokens=30))

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        with anyio.move_on_after(0.3) as scope:
            await model.generate(LONG, max_tokens=4_000)
        assert scope.cancelled_caught
    assert len(answers) == 1
    await model.aclose()


@needs_llama
@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not hold a process to its address space"
)
@pytest.mark.anyio
@pytest.mark.parametrize("megabytes", [120, 250, 700])
async def test_a_process_over_its_memory_limit_is_reported_and_the_server_lives(
    megabytes: int,
) -> None:
    model = LlamaGenerator(smol_weights(), limits=Limits(memory_bytes=megabytes * 1_000_000))
    with pytest.raises(ModelError, match="memory"):
        await model.generate(SHORT, max_tokens=2)
    await model.aclose()


@needs_llama
@pytest.mark.anyio
async def test_a_model_whose_process_is_killed_is_loaded_again_by_the_next_call(tiny: Path) -> None:
    model = LlamaGenerator(tiny)
    await _die(model, "SIGKILL")
    assert await model.generate(SHORT, max_tokens=2)
    await model.aclose()


async def _die(model: LlamaGenerator, reported: str) -> None:
    """Kill the model's process at the start of a call."""

    async def ask() -> None:
        with pytest.raises(ModelError, match=reported):
            await model.generate(SHORT, max_tokens=400)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        while model.pid is None:
            await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        os.kill(model.pid, signal.SIGKILL)


@needs_llama
@pytest.mark.skipif(
    not hasattr(os, "pidfd_open"),
    reason="only Linux lets one wait for a process without reaping it",
)
@pytest.mark.anyio
async def test_an_idle_process_gives_its_memory_back_and_starts_again_unasked(tiny: Path) -> None:
    model = LlamaGenerator(tiny, limits=Limits(idle_seconds=0.05))
    first = await model.generate(SHORT, max_tokens=5)
    pid = model.pid
    if pid is not None:
        await anyio.to_thread.run_sync(_ended, pid)
    assert await model.generate(SHORT, max_tokens=5) == first
    await model.aclose()


def _ended(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([process], [], [], 20)[0]
    os.close(process)


@needs_llama
@pytest.mark.anyio
@pytest.mark.parametrize(
    "grammar",
    [
        "root ::= missing",
        "other ::= [a-z]",
        'root ::= "a',
        "root ::= root",
        "root ::= " + "(" * 9_000,
        "root\x00",
    ],
)
async def test_a_bad_grammar_is_refused_before_native_code(
    stories: LlamaGenerator, grammar: str
) -> None:
    await stories.generate(SHORT, max_tokens=1)
    pid = stories.pid
    with pytest.raises(ModelError, match="grammar"):
        await stories.generate(SHORT, max_tokens=5, grammar=grammar)
    assert await stories.generate(SHORT, max_tokens=1)
    assert stories.pid == pid


@needs_llama
@pytest.mark.anyio
async def test_a_grammar_holds_the_answer(stories: LlamaGenerator) -> None:
    assert await stories.generate(SHORT, max_tokens=9, grammar='root ::= "yes" | "no"') in (
        "yes",
        "no",
    )


@needs_llama
@pytest.mark.anyio
async def test_use_after_close_starts_another_process(stories: LlamaGenerator) -> None:
    first = await stories.generate(SHORT, max_tokens=5)
    pid = stories.pid
    await stories.aclose()
    assert await stories.generate(SHORT, max_tokens=5) == first
    assert stories.pid != pid


@needs_llama
@pytest.mark.anyio
async def test_closing_under_a_call_is_a_model_error_for_it(stories: LlamaGenerator) -> None:
    await stories.generate(SHORT, max_tokens=1)
    failures: list[str] = []

    async def ask() -> None:
        try:
            await stories.generate(SHORT, max_tokens=450)
        except ModelError as error:
            failures.append(error.what)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        await stories.aclose()
    assert "was closed" in failures[0]


@needs_llama
@pytest.mark.anyio
async def test_a_reranker_scores_pairs_together_and_long_ones_are_cut(
    minilm: Path, tmp_path: Path
) -> None:
    path = tmp_path / "reranker.gguf"
    write_reranker(minilm, path, np.random.default_rng(1).standard_normal(384).astype(np.float32))
    model = LlamaReranker(path)
    texts = ["A bridge crosses the river.", "Bread is baked.", "", "river bridge " * 4_000]
    found = await model.score("river bridge", texts)
    alone = np.array([(await model.score("river bridge", [text]))[0] for text in texts])
    other = await model.score("bread", texts)
    await model.aclose()
    assert found.shape == (4,)
    assert np.abs(found - alone).max() < 1e-3 * max(1, np.abs(found).max())
    assert np.abs(found - other).max() > 1e-2
    assert len(set(found.tolist())) == 4


@needs_llama
@pytest.mark.anyio
async def test_a_file_without_a_head_is_no_reranker(minilm: Path) -> None:
    model = LlamaReranker(minilm)
    with pytest.raises(ModelError, match="no classification head"):
        await model.score("query", ["text"])
    await model.aclose()


@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [
        ("nomic-embed-text-v1.5.Q8_0", "search_query: x", "search_document: x"),
        ("multilingual-e5-small-f16", "query: x", "passage: x"),
        ("bge-m3-Q8_0", "x", "x"),
        ("bge-small-en-v1.5", "Represent this sentence for searching relevant passages: x", "x"),
        ("embeddinggemma-300M-Q8_0", "task: search result | query: x", "title: none | text: x"),
        ("all-minilm-l6-v2-f16", "x", "x"),
    ],
)
def test_known_embedders_get_the_words_they_were_trained_with(
    name: str, query: str, passage: str
) -> None:
    assert instructed(["x"], "query", "", name) == [query]
    assert instructed(["x"], "passage", "", name) == [passage]


def test_instructions_of_qwen3_report_the_task() -> None:
    (prepared,) = instructed(["x"], "query", "Qwen3-Embedding-0.6B")
    assert prepared.startswith("Instruct: ")
    assert prepared.endswith("\nQuery:x")
    assert instructed(["x"], "passage", "Qwen3-Embedding-0.6B") == ["x"]


@pytest.mark.anyio
async def test_a_process_that_ends_at_its_start_is_reported_with_its_last_words() -> None:
    worker = Worker("no_such_module", {}, label="test model")
    with pytest.raises(ModelError, match=r"ended with status 1.*No module named"):
        await worker.call({"do": "embed"})
    await worker.aclose()


def test_where_memory_cannot_be_looked_up_it_is_unknown_and_nothing_is_limited_by_it() -> None:
    gone = 2**22 + 1  # above the largest number of a process
    assert memory_of(gone) == (0, 0)
    assert memory_of("self")[0] > 0 or not os.path.exists("/proc/self/statm")
