"""A written answer: each sentence checked against the passages that it cites, failures reported,
the budget kept."""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, Response

from errors import ContextExceeded
from models.llama.model import LlamaGenerator
from models.protocols import Said
from models.remote.openai import OpenAIGenerator
from models.remote.server import Endpoint
from pipeline.generated import MARKED, NO_ANSWER, Writing, checked, write_answer
from pipeline.text.tokens import count_tokens
from readers.page import Evidence, Score
from tests.support import Connect, data_of, text_of
from tests.support.extras import needs_llama
from tests.support.llama_reference import smol_weights
from tests.support.model_server import loopback_client, model_server

pytestmark = pytest.mark.anyio
PASSAGES = {
    "1a": "The lighthouse of Quoxholm was built in 1868 and is 43 metres tall.",
    "2a": "Anna Lind kept the lighthouse until 1931.",
}


def reply(*sentences: tuple[str, str]) -> str:
    """Return what a model answers: each sentence after the labels that it cites."""
    rows = [{"passages": labels.split(), "sentence": text} for labels, text in sentences]
    return json.dumps({"sentences": rows})


@pytest.mark.parametrize(
    ("labels", "sentence", "supported"),
    [
        ("1a", "The lighthouse of Quoxholm was built in 1868.", True),
        ("1a", "The lighthouse was built in 1968.", False),
        ("", "The lighthouse of Quoxholm was built in 1868.", False),
        ("9z", "The lighthouse of Quoxholm was built in 1868.", False),
        ("2a", "Anna Lind kept the lighthouse until 1931.", True),
        ("2a", "Until 1931 the lighthouse was kept by Bertil Holm.", False),
        ("1a", "Bananas contain a lot of potassium and fibre.", False),
        (
            "1a 2a",
            "Built in 1868, the lighthouse of Quoxholm was kept by Anna Lind until 1931.",
            True,
        ),
    ],
)
def test_a_sentence_has_support_only_where_its_passages_hold_it(
    labels: str, sentence: str, supported: bool
) -> None:
    (found,) = checked(reply((labels, sentence)), PASSAGES)
    assert found.supported == supported
    assert bool(found.reason) != supported


def test_a_sentence_said_twice_is_shown_once() -> None:
    assert len(checked(reply(*[("1a", "It is 43 metres tall.")] * 3), PASSAGES)) == 1


class Writer:
    """Answers what it was reported to, and takes no more than so many passages."""

    name = "writer"
    context_tokens = 4_000

    def __init__(self, answer: str, most: int = 99) -> None:
        self.answer = answer
        self.most = most
        self.asked: list[str] = []

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the answer, or refuse a prompt of too many passages."""
        self.asked.append(messages[-1].content)
        if messages[-1].content.count("\n[") > self.most:
            raise ContextExceeded("Too long.", hint="Shorten it.")
        return self.answer


def evidence(text: str) -> Evidence:
    return Evidence(text, "http://a/", "A", "html", (1,), Score(1.0, "bm25"), "http://a/")


def writing(model: Writer) -> Writing:
    return Writing(model, None, 30.0, date(2026, 11, 21))


async def test_what_was_made_up_is_marked_in_the_text() -> None:
    model = Writer(
        reply(("1a", "The lighthouse was built in 1868."), ("1a", "It fell down in 1999."))
    )
    found = await write_answer("When?", [evidence(PASSAGES["1a"])], ["1a"], writing(model))
    assert found.text.count(MARKED) == 1
    assert found.text.endswith(f"[1a] {MARKED}")
    assert "2026-11-21" in model.asked[0]


async def test_evidence_is_fitted_to_the_context_and_the_number_shown_is_reported() -> None:
    many = [evidence(f"Passage number {n}.") for n in range(20)]
    model = Writer(reply(("1b", "Passage number 1.")), most=5)
    found = await write_answer(
        "Which?", many, [f"1{chr(97 + n)}" for n in range(20)], writing(model)
    )
    assert 0 < found.shown <= 5
    assert found.statements[0].supported


@pytest.mark.parametrize("server", ["llama-server", "Ollama"])
async def test_a_server_that_cannot_take_all_evidence_is_shown_less_of_it(server: str) -> None:
    def answer(body: dict[str, object]) -> Response:
        messages = body["messages"]
        assert isinstance(messages, list)
        over = messages[-1]["content"].count("\n[") > 5
        if over and server == "llama-server":
            fault = {
                "error": {
                    "message": "request (900 tokens) exceeds the available context size (512 "
                    "tokens)"
                }
            }
            return JSONResponse(fault, status_code=400)
        # Ollama cuts the prompt to its window and says nothing.
        message = {
            "role": "assistant",
            "content": reply(("1b", "Ships." if over else "Passage number 1.")),
        }
        usage = {"prompt_tokens": 512 if over else 300}
        return JSONResponse(
            {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        )

    many = [evidence(f"Passage number {n}.") for n in range(20)]
    with model_server() as remote:
        remote.reported["/v1/models"] = {"data": [{"id": "m", "owned_by": "library"}]}
        info = {"general.architecture": "m", "m.context_length": 512}
        remote.will_at_root("/api/show", lambda _body: JSONResponse({"model_info": info}))
        remote.will_at_root("/api/chat", answer)
        remote.will("/chat/completions", answer)
        async with loopback_client() as http:
            model = OpenAIGenerator(Endpoint(http, remote.url, "m"))
            labels = [f"1{chr(97 + n)}" for n in range(20)]
            found = await write_answer(
                "Which?", many, labels, Writing(model, None, 30.0, date(2026, 11, 21))
            )
    assert 0 < found.shown <= 5
    assert found.statements[0].supported


async def test_a_model_that_finds_no_answer_or_fails_says_so() -> None:
    nothing = await write_answer("When?", [evidence("Rain.")], ["1a"], writing(Writer(reply())))
    refused = await write_answer("When?", [evidence("Rain.")], ["1a"], writing(Writer("", most=0)))
    assert nothing.text == NO_ANSWER
    assert "No answer was written" in refused.text


async def test_without_a_generator_research_says_why_there_is_no_answer(connect: Connect) -> None:
    call = {
        "question": "When does the first ferry leave on Sundays?",
        "answer": True,
        "max_tokens": 600,
    }
    async with connect() as client:
        result = await client.call_tool("research", call)
    assert text_of(result).startswith("No answer was written: no generator is set")
    assert count_tokens(text_of(result)) == data_of(result)["tokens"] <= 600
    assert data_of(result)["passages"]


@needs_llama
@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [
        "When was the lighthouse built?",
        "Who kept the lighthouse until 1931?",
        "How tall is the lighthouse?",
    ],
)
async def test_a_small_model_puts_a_label_that_was_shown_behind_each_sentence(
    question: str,
) -> None:
    model = LlamaGenerator(smol_weights())
    try:
        shown = [evidence(text) for text in PASSAGES.values()]
        given = Writing(model, None, 300.0, date(2026, 11, 21))
        found = await write_answer(question, shown, list(PASSAGES), given)
    finally:
        await model.aclose()
    assert found.failure == ""
    assert found.statements
    assert all(one.labels and set(one.labels) <= PASSAGES.keys() for one in found.statements)


@needs_llama
async def test_real_weights_answer_within_the_budget_and_every_sentence_is_checked(
    connect: Connect,
) -> None:
    weights: Path = smol_weights()
    call = {
        "question": "When does the first ferry leave on Sundays?",
        "answer": True,
        "max_tokens": 700,
    }
    async with connect(generator=f"llama:{weights}", seconds="100") as client:
        result = await client.call_tool("research", call)
    assert not result.is_error, text_of(result)
    text = text_of(result)
    assert count_tokens(text) == data_of(result)["tokens"] <= 700
    assert text.startswith(("Answer by SmolLM2", "No answer was written"))
    for one in data_of(result).get("answer", []):
        assert one["supported"] == (not one["reason"])
