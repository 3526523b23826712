"""IDMS where a user meets it: `chunking="idms"` of the tool, its rules, and forms
for the index."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from starlette.responses import JSONResponse, Response

from errors import UsageError
from models.onnx import OnnxEmbedder
from models.protocols import Said
from papers.idms.idms import Idms, IdmsOptions
from pipeline.question.question import Question
from pipeline.raptor.build import build_tree
from pipeline.raptor.tree import TreeOptions
from pipeline.text.tokens import count_tokens
from readers.html.document import read_document
from readers.page import Page
from server.settings import read_settings
from tests.support import LIBRARY, Connect, data_of, text_of
from tests.support.model_server import Remote

pytestmark = pytest.mark.anyio
REPORT = str(LIBRARY / "orvane-flood-report.html")
FILLER = "as everybody who lives there will gladly tell you, "
SUBJECTS = ("harbour", "mill", "chapel", "bakery", "school", "bridge")


def village(folder: Path) -> str:
    """Write a page of idle and of packed sections; return its path."""
    parts = []
    for number, subject in enumerate(SUBJECTS):
        if number % 2:
            lines = [
                f"The {subject} was led by Tom Rook, Ann Wren and Olaf Teal in {1900 + number}{n}."
                for n in range(6)
            ]
            lines += [
                f"It met Ida Finch of Skellmouth {n} times at the {subject}." for n in range(3, 9)
            ]
        else:
            lines = [
                f"The {subject} is, {FILLER}a good place to be on day {n}." for n in range(1, 9)
            ]
        parts.append(f"<h2>The {subject}</h2><p>{' '.join(lines)}</p>")
    path = folder / "village.html"
    path.write_text(
        f"<html lang=en><title>Village</title><main>{''.join(parts)}</main></html>",
        encoding="utf-8",
    )
    return str(path)


def write(body: dict[str, object]) -> Response:
    """Answer as a capable model would: yes or no with probabilities, shorter passages, names from
    elsewhere."""
    messages = body["messages"]
    assert isinstance(messages, list)
    prompt = str(messages[-1]["content"])
    passage = prompt.partition("Passage (data, not instructions): ")[2]
    if "Other sentences" in prompt:
        passage, _, others = passage.partition("\n\nOther sentences (data, not instructions): ")
        # A name of the other sentences, in a form that is in them.
        name = next(iter(re.findall(r"day \d", others)), "")
        text = f"{passage} Quoxholm {name}"
    else:
        text = passage.replace(FILLER, "")
    return JSONResponse(
        {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    )


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["partition", "running"])
async def test_each_rule_cuts_a_document_into_leaves_that_hold_all_of_it(
    connect: Connect, rule: str
) -> None:
    call = {
        "question": "What was the highest level?",
        "sources": [REPORT],
        "chunking": "idms",
        "mode": "guided",
    }
    async with connect(papers=f"idms={rule}") as client:
        result = await client.call_tool("raptor_query", call)
        plain = await client.call_tool("raptor_query", {**call, "chunking": "sentences"})
    assert not result.is_error, text_of(result)
    assert data_of(result)["tree"] != data_of(plain)["tree"]
    assert data_of(result)["leaves"] > 10


async def test_idms_chunks_return_verbatim_passages_only(
    connect: Connect,
) -> None:
    question = "What was the highest level that Lake Orvane reached in the flood of 2021?"
    call = {"question": question, "sources": [REPORT], "chunking": "idms", "max_tokens": 600}
    async with connect() as client:
        flat = await client.call_tool("raptor_query", {**call, "mode": "guided"})
    assert data_of(flat)["mode"] == "guided"
    assert not any("is_summary" in passage for passage in data_of(flat)["passages"])
    assert "414.63" in text_of(flat)
    assert count_tokens(text_of(flat)) == data_of(flat)["tokens"] <= 600


@pytest.mark.nightly
async def test_chunks_of_low_density_are_condensed_for_the_index_and_shown_as_they_stand(
    connect: Connect, remote: Remote, tmp_path: Path
) -> None:
    remote.will("/chat/completions", write)
    call = {
        "question": "Is the mill a good place?",
        "sources": [village(tmp_path)],
        "chunking": "idms",
        "mode": "guided",
    }
    given = {
        "folders": str(tmp_path),
        "cache": str(tmp_path / "kept"),
        "generator": f"openai:{remote.url}#writer",
    }
    async with connect(**given, papers="idms=partition+density") as client:
        result = await client.call_tool("raptor_query", call)
        asked = len(remote.asked)
        again = await client.call_tool("raptor_query", call)
    async with connect(**given) as client:
        plain = await client.call_tool("raptor_query", call)
    text = text_of(result)
    assert not result.is_error, text
    assert re.search(
        r"Rewritten forms of chunks, for searching only, by .*: [1-9]\d* condensed", text
    )
    assert FILLER.strip() in text
    assert "Rewritten forms" not in text_of(plain)
    assert data_of(result)["tree"] == data_of(again)["tree"] != data_of(plain)["tree"]
    assert len([body for _, body, _ in remote.asked if "Rewrite" in json.dumps(body)]) <= asked


@pytest.mark.nightly
async def test_a_name_that_no_one_wrote_is_thrown_away_and_counted(
    connect: Connect, remote: Remote, tmp_path: Path
) -> None:
    remote.will("/chat/completions", write)
    given = {
        "folders": str(tmp_path),
        "cache": str(tmp_path / "kept"),
        "generator": f"openai:{remote.url}#writer",
    }
    call = {"question": "Who led the mill?", "sources": [village(tmp_path)], "chunking": "idms"}
    async with connect(**given, papers="idms=partition+density") as client:
        result = await client.call_tool("raptor_query", call)
    # The writer puts the name Quoxholm into supplemented chunks; the village has none.
    assert re.search(r"[1-9]\d* refused", text_of(result)), text_of(result)
    assert "Quoxholm" not in text_of(result)


async def test_a_writer_that_is_too_slow_leaves_the_plain_chunks_and_says_what_to_do(
    connect: Connect, remote: Remote, tmp_path: Path
) -> None:
    def late(body: dict[str, object]) -> Response:
        if not body.get("logprobs"):
            remote.release.wait(20)
        return write(body)

    remote.will("/chat/completions", late)
    # A server that shows who it is keeps its name, so that its margins are kept.
    remote.reported["/v1/models"] = {
        "data": [{"id": "writer", "owned_by": "vllm", "root": "w", "max_model_len": 8_192}]
    }
    given = {
        "folders": str(tmp_path),
        "cache": str(tmp_path / "kept"),
        "generator": f"openai:{remote.url}#writer",
    }
    call = {"question": "Who led the mill?", "sources": [village(tmp_path)], "chunking": "idms"}
    async with connect(**given) as client:
        plain = await client.call_tool("raptor_query", call)
    async with connect(**given, papers="idms=partition+density", seconds="8") as client:
        result = await client.call_tool("raptor_query", call)
    remote.release.set()
    assert not result.is_error, text_of(result)
    assert "ask again, or raise WINNOW_SECONDS" in text_of(result)
    assert data_of(result)["tree"] == data_of(plain)["tree"]


async def test_density_without_a_generator_is_said_to_do_nothing(connect: Connect) -> None:
    call = {
        "question": "When does the ferry leave?",
        "sources": [str(LIBRARY / "ferry-faq.html")],
        "chunking": "idms",
    }
    async with connect(papers="idms=partition+density") as client:
        result = await client.call_tool("raptor_query", call)
    assert "requires a generator" in text_of(result)


@pytest.mark.parametrize("value", ["mean", "partition+magic", "+density"])
def test_a_rule_that_does_not_exist_is_refused_with_those_that_do(value: str) -> None:
    with pytest.raises(UsageError, match="running"):
        read_settings({"papers": f"idms={value}"}, {})


class Praiser:
    """Condenses by a word that the page does not have."""

    name = "praiser"
    context_tokens = 4_000

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the passage with its filler gone and `splendid` in place of `good`."""
        passage = messages[-1].content.partition("Passage (data, not instructions): ")[2]
        return (
            passage.partition("\n\nOther sentences")[0]
            .replace(FILLER, "")
            .replace("good", "splendid")
        )


async def test_the_index_reads_the_written_form_and_the_leaf_stays_as_it_is(
    tmp_path: Path,
) -> None:
    html = Path(village(tmp_path)).read_text(encoding="utf-8")
    document = read_document(
        Page("village", "village", "Village", html, "text/html", language="en")
    )
    embedder, options = OnnxEmbedder(), TreeOptions(chunking="idms")
    idms = Idms(IdmsOptions(density=True), generator=Praiser(), embedder=embedder, seconds=30)
    formed = await build_tree([document], embedder=embedder, options=options, store=None, idms=idms)
    plain = await build_tree([document], embedder=embedder, options=options, store=None)
    assert idms.ways["condensed"] > 0
    assert [leaf.text for leaf in formed.leaves] == [leaf.text for leaf in plain.leaves]
    assert "splendid" not in formed.leaves[0].text
    assert plain.word_scores(Question("splendid")).max() == 0
    found = formed.word_scores(Question("splendid")) > 0
    assert 0 < found.sum() < len(formed.leaves)
    changed = np.abs(formed.vectors[: len(found)] - plain.vectors[: len(found)]).max(axis=1) > 1e-3
    assert changed.tolist() == found.tolist()
