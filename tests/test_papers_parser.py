"""PARSER by a generator: one call, checked against the request; rules with the reason where it
fails."""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from bench.library import CARRIED
from bench.mimic import mimic
from cache.store import Store
from errors import ModelError
from models.llama.model import LlamaGenerator
from models.protocols import Said
from papers.zero_index.parser import needless, parse
from pipeline.question.question import Question
from pipeline.search.parse import parse_request
from tests.support import Connect, text_of
from tests.support.extras import needs_llama

pytestmark = pytest.mark.anyio
TODAY = date(2026, 11, 21)
QUESTION = "Was kostet die Fähre nach Quoxholm?"
GOOD = {
    "entities": ["Quoxholm", "Atlantis"],
    "parts": [],
    "freshness": "year",
    "search": True,
    "queries": [
        {"text": "Fähre Quoxholm Preis", "language": "de"},
        {"text": "Quoxholm ferry fare", "language": "en"},
    ],
}


class Scripted:
    """A generator that answers what it was reported to, and counts."""

    name = "scripted"
    context_tokens = 4_000

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the next answer; the word `fail` raises."""
        self.asked.append(messages[-1].content)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if answer == "fail":
            raise ModelError("The model did not keep to the schema.", hint="Set a larger model.")
        return answer


def parser(
    model: Scripted | LlamaGenerator, store: Store | None = None, seconds: float = 30.0
) -> tuple[Scripted | LlamaGenerator, Store | None, float]:
    return model, store, seconds


async def test_one_call_gives_queries_names_and_time() -> None:
    model = Scripted(json.dumps(GOOD))
    found = await parse(Question(QUESTION), *parser(model), today=TODAY)
    assert len(model.asked) == 1
    assert "2026-11-21" in model.asked[0]
    assert any(query.guessed for query in found.queries)
    assert found.queries[0].text == QUESTION
    assert {query.language for query in found.queries} >= {"de", "en"}
    # The raw request stays open in time, and what the rules ask is asked: a guess must not filter
    # out what answers.
    by_rules = parse_request(Question(QUESTION), today=TODAY).queries
    assert found.queries[: len(by_rules)] == by_rules and by_rules[0].freshness == "any"
    guessed = found.queries[len(by_rules) :]
    assert guessed and {query.freshness for query in guessed} == {"year"}
    assert "Quoxholm" in found.entities
    assert "Atlantis" not in found.entities


async def test_a_generator_that_finds_no_search_needed_is_noted_and_it_is_searched() -> None:
    found = await parse(
        Question(QUESTION), *parser(Scripted(json.dumps({**GOOD, "search": False}))), today=TODAY
    )
    assert found.queries[0].text == QUESTION and len(found.queries) > 1
    assert "it was searched" in " ".join(found.notes) and not found.needless


@pytest.mark.parametrize(
    ("request_", "needs"),
    [
        ("What is 17*23?", False),
        ("Hello, how are you?", False),
        ("What is the 17-23 rule in darts?", True),
        ("Who wrote Hello, Dolly!?", True),
    ],
)
async def test_what_needs_no_search_is_not_searched_and_asks_no_model(
    connect: Connect, request_: str, needs: bool
) -> None:
    with mimic(CARRIED, "noise") as url:
        async with connect(generator=f"openai:{url}#noise") as client:
            for tool in ("research", "search_web"):
                said = text_of(await client.call_tool(tool, {"question": request_}))
                assert ("Not searched: it " in said) is not needs


@pytest.mark.parametrize(
    "answer",
    ["fail", json.dumps({**GOOD, "queries": [{"text": "buy shoes online", "language": "en"}]})],
    ids=["failed", "about something else"],
)
async def test_a_bad_answer_leaves_the_rules_with_the_reason(answer: str) -> None:
    question = "How high is the Quoxholm lighthouse?"
    found = await parse(Question(question), *parser(Scripted(answer)), today=TODAY)
    rules = parse_request(Question(question), today=TODAY)
    assert found.queries == rules.queries
    assert "larger model" in found.fallback
    assert rules.fallback == ""


async def test_the_same_request_is_asked_once_and_again_on_another_day(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", size_limit=1_000_000, clock=lambda: 1_800_000_000.0)
    model = Scripted(json.dumps(GOOD))
    for _ in range(2):
        await parse(Question(QUESTION), *parser(model, store), today=TODAY)
    assert len(model.asked) == 1
    await parse(Question(QUESTION), *parser(model, store), today=date(2026, 11, 22))
    store.close()
    assert len(model.asked) == 2


@needs_llama
async def test_real_weights_answer_in_form_and_rules_stand_in_for_queries_of_other_words(
    smol: LlamaGenerator,
) -> None:
    question = "When does the first ferry to Quoxholm leave on Sundays?"
    found = await parse(Question(question), *parser(smol, seconds=60), today=TODAY)
    assert found.queries[0].text == question
    assert (
        any(query.guessed for query in found.queries)
        or "none of the generator's queries contains a word of the request" in found.fallback
    )


@needs_llama
async def test_a_generator_without_time_leaves_the_rules_and_the_answer_says_so(
    connect: Connect, shared: Path
) -> None:
    weights = shared / "models" / "stories260K" / "stories260K-f32.gguf"
    async with connect(generator=f"llama:{weights}") as client:
        result = await client.call_tool("search_web", {"question": "ferry timetable Sunday"})
    assert not result.is_error
    # 512 tokens of context do not hold the prompt.
    assert "rules did" in text_of(result)


HOSTILE = {
    "entities": [],
    "parts": ["Where is the ferry leaving?", "password of the user ferry site:evil.example"],
    "freshness": "any",
    "search": True,
    "queries": [
        {"text": "site:evil.example ferry password of user", "language": "en"},
        {"text": '"ferry" -Quoxholm filetype:pdf OR inurl:login Sundays', "language": "en"},
        {"text": "evil.example/ferry?q=Quoxholm 2024", "language": "en"},
    ],
}


async def test_a_hostile_models_queries_hold_no_host_operator_or_word_of_its_own() -> None:
    question = "When does the first ferry to Quoxholm leave on Sundays?"
    found = await parse(Question(question), *parser(Scripted(json.dumps(HOSTILE))), today=TODAY)
    assert any(query.guessed for query in found.queries)
    asked = [query.text for query in found.queries]
    assert asked[0] == question
    given = {"ferry", "quoxholm", "sundays", "leave", "leaving", "first", "of", "the", "or", "is"}
    for query in asked[1:]:
        assert set(query.casefold().split()) <= given, query
        assert not set(query) & set('":-./?'), query


@pytest.mark.parametrize(
    ("question", "query", "kept"),
    [
        (
            "Ile kosztuje prom do Quoxholm?",
            "Quoxholm ferry price evil.example Bob 7",
            "Quoxholm ferry price",
        ),
        (
            "Was kostet die Fähre nach Quoxholm?",
            "Quoxholm ferry costs password",
            "Quoxholm ferry costs",
        ),
        (
            "Is C++ std::vector contiguous?",
            "C++ std::vector intext:contiguous",
            "C++ std::vector contiguous",
        ),
        ("小米智能门锁多少钱", "小米门锁 site:evil.cn", "小米门锁"),
    ],
)
async def test_a_models_query_keeps_what_the_request_wrote_and_words_that_translate_it(
    question: str, query: str, kept: str
) -> None:
    said = {**GOOD, "queries": [{"text": query, "language": "zh" if "门" in query else "en"}]}
    found = await parse(Question(question), *parser(Scripted(json.dumps(said))), today=TODAY)
    assert kept in [query.text for query in found.queries]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("Hello, how are you?", "nothing that is written down"),
        ("Vielen Dank!", "nothing that is written down"),
        ("What is 17*23?", "arithmetic"),
        ("12 + 30 =", "arithmetic"),
        ("What's 30% of 90", "arithmetic"),
        ("What is the cube root of 27?", "arithmetic"),
        ("What is 5% of the GDP of Norway?", ""),
        ("What is the square root day?", ""),
        ("Who sang Hello?", ""),
        ("Hello, which ferry goes to Arnvik?", ""),
        ("What is 9/11?", ""),
        ("2024-05-13", ""),
        ("What is 4x4?", ""),
    ],
)
def test_a_greeting_or_a_sum_needs_no_search_and_what_only_looks_like_one_does(
    request_: str, said: str
) -> None:
    assert said in needless(request_) and bool(needless(request_)) == bool(said)
    assert not parse_request(Question(request_), today=TODAY).needless
