"""IDMS boundaries by a wrapped model an OpenAI-compatible server: probabilities from the tokens
that it lists."""

from collections.abc import Callable, Mapping, Sequence

import pytest
from starlette.responses import JSONResponse, Response

from errors import ModelError
from models.protocols import abilities_of
from models.remote.openai import OpenAIGenerator
from models.remote.server import Endpoint
from papers.idms.idms import Idms, Judge
from pipeline.document.page import Sentence
from tests.support import LIBRARY, Connect, text_of
from tests.support.model_server import Remote, listed, loopback_client

pytestmark = pytest.mark.anyio
TEXTS = [f"The heron {verb} by the pond." for verb in ("waits", "fishes", "sleeps")]
TEXTS += [f"Our tax form {verb} the office." for verb in ("reaches", "leaves", "bores")]
SENTENCES = [
    Sentence(i + 1, text, i * 1000, i * 1000 + len(text), 0) for i, text in enumerate(TEXTS)
]
Listing = Mapping[str, float]


def judging(likely: Listing, unlikely: Listing) -> Callable[[dict[str, object]], Response]:
    """Answer with `likely` where the next sentence begins as the last one, else with `unlikely`."""

    def answer(body: dict[str, object]) -> Response:
        prompt = str(_messages(body)[-1]["content"])
        before, _, after = prompt.partition("\n\nNext sentence: ")
        same = after.startswith(before.splitlines()[-1][:5])
        return listed(likely if same else unlikely)

    return answer


def _messages(body: dict[str, object]) -> Sequence[Mapping[str, object]]:
    messages = body["messages"]
    assert isinstance(messages, list)
    return messages


async def test_margins_are_the_difference_of_the_listed_probabilities(remote: Remote) -> None:
    remote.will(
        "/chat/completions",
        judging({"Yes": 0.6, "No": 0.2, "It": 0.1}, {"No": 0.8, "Yes": 0.08, "I": 0.02}),
    )
    async with loopback_client() as http:
        model = OpenAIGenerator(Endpoint(http, remote.url, "m"))
        judged = await Judge(model, store=None, seconds=30).margins(TEXTS)
        idms = Idms(generator=model, seconds=30)
        found = await idms.ranges(SENTENCES, embedder=None, minimum=0, maximum=500)
    # Shares of the two answers alone: (.6 - .2) / .8 and (.08 - .8) / .88.
    assert judged == pytest.approx([0.5, 0.5, -0.72 / 0.88, 0.5, 0.5])
    assert [start for start, _ in found] == [0, 3]
    _, body, _ = remote.asked[0]
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 20)


async def test_an_answer_that_is_not_listed_has_at_most_the_least_listed_probability(
    remote: Remote,
) -> None:
    likely = {"Yes": 0.7, "It": 0.2, "Sure": 0.04}
    unlikely = {"No": 0.7, "It": 0.2, "Not": 0.04}
    remote.will("/chat/completions", judging(likely, unlikely))
    async with loopback_client() as http:
        judged = await Judge(
            OpenAIGenerator(Endpoint(http, remote.url, "m")), store=None, seconds=30
        ).margins(TEXTS)
    share = (0.7 - 0.04) / 0.74
    assert judged == pytest.approx([share, share, -share, share, share])


async def test_where_neither_answer_is_listed_embeddings_cut_and_the_reason_names_what_was(
    remote: Remote,
) -> None:
    other = {"<think>": 0.9, "Okay": 0.1}
    remote.will("/chat/completions", judging(other, other))
    async with loopback_client() as http:
        model = OpenAIGenerator(Endpoint(http, remote.url, "m"))
        with pytest.raises(ModelError, match="<think>"):
            await Judge(model, store=None, seconds=30).margins(TEXTS)
        idms = Idms(generator=model, seconds=30)
        found = await idms.ranges(SENTENCES, embedder=None, minimum=0, maximum=500)
    assert (
        "Boundaries by embeddings: The options ['Yes', 'No'] cannot be distinguished"
        in idms.notes[0]
    )
    assert found[-1][1] == len(TEXTS)


async def test_a_server_that_lists_nothing_is_asked_once_and_named_from_then_on(
    remote: Remote,
) -> None:
    answer = {
        "choices": [{"message": {"role": "assistant", "content": "Yes"}, "finish_reason": "stop"}]
    }
    remote.will("/chat/completions", lambda _body: JSONResponse(answer))
    async with loopback_client() as http:
        model = OpenAIGenerator(Endpoint(http, remote.url, "m"))
        idms = Idms(generator=model, seconds=30)
        await idms.ranges(SENTENCES, embedder=None, minimum=0, maximum=500)
        asked = len(remote.asked)
        later = Idms(generator=model, seconds=5)
    assert "returns no log-probabilities" in idms.notes[0]
    assert "choose" not in abilities_of(model)
    assert asked == 1
    assert any("returns no probabilities" in line for line in later.notes)


async def test_the_tool_cuts_by_a_servers_probabilities_and_says_so(
    connect: Connect, remote: Remote
) -> None:
    remote.will("/chat/completions", judging({"Yes": 0.9, "No": 0.1}, {"No": 0.7, "Yes": 0.3}))
    call = {
        "question": "When does the ferry leave?",
        "sources": [str(LIBRARY / "ferry-faq.html")],
        "chunking": "idms",
    }
    async with connect(generator=f"openai:{remote.url}#judge", papers="idms=running") as client:
        result = await client.call_tool("raptor_query", call)
    assert not result.is_error, text_of(result)
    assert "Boundaries by" in text_of(result)
    assert any("Next sentence:" in str(body["messages"]) for _, body, _ in remote.asked)
