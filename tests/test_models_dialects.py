"""Ollama, LM Studio, llama-server, vLLM and SGLang: each recognised, asked in its own way, its
model's thoughts kept out, and every failure one typed sentence."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from errors import ModelError
from models.protocols import Said
from tests.support.model_server import Remote, loopback_client
from tests.support.models import model_of

pytestmark = pytest.mark.anyio
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
ASKED = [Said("user", "6 x 7?")]
GOOD = '{"answer": 42}'


@dataclass(frozen=True)
class Kind:
    """A kind of server: how it is recognised, and where its chat is."""

    name: str
    entry: Mapping[str, object]
    path: str = "/v1/chat/completions"

    def serve(self, remote: Remote, *answers: Callable[[dict[str, object]], Response]) -> None:
        """Let a server of this kind answer with these in turn."""
        remote.reported["/v1/models"] = {"data": [{"id": "m", **self.entry}]}
        if self.name == "Ollama":
            info = {"general.architecture": "qwen3", "qwen3.context_length": 32_768}
            remote.will_at_root("/api/show", lambda _body: JSONResponse({"model_info": info}))
        remote.answers[self.path] = list(answers)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("Ollama", {"owned_by": "library"}, "/api/chat"),
        Kind("LM Studio", {"owned_by": "organization_owner"}),
        Kind("llama-server", {"owned_by": "llamacpp", "meta": {"n_ctx": 8_192}}),
        Kind("vLLM", {"owned_by": "vllm", "max_model_len": 8_192}),
        Kind("SGLang", {"owned_by": "sglang", "max_model_len": 8_192}),
    )
}


def says(
    text: str | None, *, ended: str = "stop", thoughts: str = "", field: str = "reasoning_content"
) -> Callable[[dict[str, object]], Response]:
    """Return an answer in the form of the call that is made."""

    def answer(body: dict[str, object]) -> Response:
        message: dict[str, object] = {"role": "assistant", "content": text}
        if "options" in body:
            reported = {"message": {**message, **({"thinking": thoughts} if thoughts else {})}}
            counts = {"prompt_eval_count": 9, "eval_count": 3}
            return JSONResponse({**reported, "done": True, "done_reason": ended, **counts})
        message |= {field: thoughts} if thoughts else {}
        usage = {"prompt_tokens": 9, "completion_tokens": 3}
        return JSONResponse(
            {"choices": [{"message": message, "finish_reason": ended}], "usage": usage}
        )

    return answer


async def asked(remote: Remote, **more: Any) -> str:
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{remote.url}#m", http=http)
        return str(await generator.generate(ASKED, max_tokens=20, **more))


@pytest.mark.parametrize("name", KINDS)
async def test_each_server_is_recognised_and_takes_a_schema_in_its_own_way(
    remote: Remote, name: str
) -> None:
    KINDS[name].serve(remote, says(GOOD))
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{remote.url}#m", http=http)
        found = await generator.generate(ASKED, max_tokens=20, schema=SCHEMA)
        assert generator.server == ("" if name == "LM Studio" else name)
        assert generator.tokens == 12
    assert json.loads(found) == {"answer": 42}
    path, body, _ = next(one for one in remote.asked if one[0] == KINDS[name].path)
    assert path == KINDS[name].path
    if name == "Ollama":
        assert (body["format"], body["think"], body["stream"]) == (SCHEMA, False, False)
        assert body["options"] == {
            "num_predict": 20,
            "num_ctx": 8_192,
            "temperature": 0.0,
        }
        return
    form = body["response_format"]
    assert isinstance(form, dict)
    assert form["json_schema"]["schema"] == SCHEMA
    switched = {"enable_thinking": False, "thinking": False}
    assert body.get("chat_template_kwargs") == (None if name == "LM Studio" else switched)


async def test_an_ollama_model_of_another_publisher_is_recognised_all_the_same(
    remote: Remote,
) -> None:
    Kind("Ollama", {"owned_by": "hf.co"}, "/api/chat").serve(remote, says("Paris."))
    assert await asked(remote) == "Paris."
    assert "/api/chat" in [path for path, _, _ in remote.asked]


@pytest.mark.parametrize("name", ["vLLM", "LM Studio", "llama-server"])
async def test_a_server_that_refuses_a_schema_is_given_it_in_words_from_then_on(
    remote: Remote, name: str
) -> None:
    def refuse(body: dict[str, object]) -> Response:
        refused = JSONResponse({"error": "response_format is unknown"}, status_code=400)
        return refused if "response_format" in body else says(GOOD)(body)

    KINDS[name].serve(remote, refuse)
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{remote.url}#m", http=http)
        for _ in range(2):
            assert await generator.generate(ASKED, max_tokens=20, schema=SCHEMA) == GOOD
    assert len([path for path, _, _ in remote.asked if path == KINDS[name].path]) == 3
    messages = remote.asked[-1][1]["messages"]
    assert isinstance(messages, list)
    assert json.dumps(SCHEMA) in messages[-1]["content"]


FORMS = {
    "tags": f"<think>\nSix sevens…\n</think>\n\n{GOOD}",
    "opened in the prompt": f"Six sevens…\n</think>\n{GOOD}",
    "Magistral": f"[THINK]Six sevens…[/THINK]{GOOD}",
    "gpt-oss": f"<|channel|>analysis<|message|>Six…<|end|><|start|>assistant<|channel|>final"
    f"<|message|>{GOOD}",
    "fence and words": f"<think>6</think>Here it is:\n```json\n{GOOD}\n```\nAnything else?",
}


@pytest.mark.parametrize("form", FORMS)
async def test_thoughts_before_an_answer_are_no_part_of_it(remote: Remote, form: str) -> None:
    KINDS["LM Studio"].serve(remote, says(FORMS[form]))
    assert await asked(remote, schema=SCHEMA) == GOOD
    assert len([path for path, _, _ in remote.asked if path.endswith("completions")]) == 1


async def test_an_answer_may_speak_of_the_tags_of_thoughts(remote: Remote) -> None:
    KINDS["LM Studio"].serve(remote, says("Models end their thoughts with </think> and go on."))
    assert await asked(remote) == "Models end their thoughts with </think> and go on."


@pytest.mark.parametrize(
    "first",
    [
        says("<think>Let me see, six times", ended="length"),
        says("", ended="length", thoughts="Let me see"),
        says(None, ended="length", thoughts="Let me see", field="reasoning"),
        says("", ended="length"),
    ],
    ids=["unclosed", "reasoning_content", "null content", "nothing shown"],
)
async def test_a_model_whose_thoughts_took_all_tokens_is_given_room_from_then_on(
    remote: Remote, first: Callable[[dict[str, object]], Response]
) -> None:
    KINDS["LM Studio"].serve(remote, first, says(GOOD))
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{remote.url}#m", http=http)
        for _ in range(2):
            assert await generator.generate(ASKED, max_tokens=20, schema=SCHEMA) == GOOD
    sizes = [body["max_tokens"] for path, body, _ in remote.asked if "chat" in path]
    assert sizes == [20, 2_068, 2_068]


@pytest.mark.parametrize("name", KINDS)
async def test_thoughts_without_an_answer_are_one_typed_failure_with_the_models_words(
    remote: Remote, name: str
) -> None:
    thoughts = "" if name == "LM Studio" else "Wait, is it 42?"
    shown = "<think>Wait, is it 42?" if name == "LM Studio" else ""
    KINDS[name].serve(remote, says(shown, ended="length", thoughts=thoughts))
    with pytest.raises(ModelError, match=r"returned no answer.*finish_reason length") as caught:
        await asked(remote, schema=SCHEMA)
    assert "Wait, is it 42?" in str(caught.value)
    assert "thinking off" in caught.value.hint


@pytest.mark.parametrize("name", KINDS)
async def test_a_wrong_answer_is_repaired_once_and_then_fails_with_the_models_words(
    remote: Remote, name: str
) -> None:
    KINDS[name].serve(remote, says('{"answer": "plenty"}'))
    with pytest.raises(ModelError, match="plenty"):
        await asked(remote, schema=SCHEMA)
    bodies = [body for path, body, _ in remote.asked if path == KINDS[name].path]
    assert len(bodies) == 2
    repair = bodies[1]["messages"]
    assert isinstance(repair, list)
    assert "not of type 'integer'" in repair[-1]["content"]
    assert json.dumps(SCHEMA) in repair[-1]["content"]


async def test_a_model_that_is_let_to_think_gets_room_at_once(remote: Remote) -> None:
    KINDS["Ollama"].serve(remote, says("42", thoughts="six sevens"))
    options = "thinking=true n_ctx=16384 seed=7 temperature=0.2"
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{remote.url}#m", http=http, options=options)
        assert await generator.generate(ASKED, max_tokens=20) == "42"
        assert generator.context_tokens == 16_384
        assert "seed=7" in generator.name
    body = remote.asked[-1][1]
    assert body["think"] is True
    assert body["options"] == {
        "num_predict": 2_068,
        "temperature": 0.2,
        "seed": 7,
        "num_ctx": 16_384,
    }


async def test_an_option_set_to_its_usual_value_is_sent_and_shown_as_set(remote: Remote) -> None:
    """Ollama's own choice of `top_p` is .9 and of `top_k` 40: what is not set is not ours."""
    KINDS["Ollama"].serve(remote, says("42"))
    options = "top_p=1 seed=0 thinking=false n_threads=4"
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{remote.url}#m", http=http, options=options)
        await generator.generate(ASKED, max_tokens=20)
    assert remote.asked[-1][1]["options"] == {
        "num_predict": 20,
        "num_ctx": 8_192,
        "temperature": 0.0,
        "top_p": 1,
        "seed": 0,
    }
