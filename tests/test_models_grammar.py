"""Grammars of schemas: bounded texts stay shallow, so that long ones are held to their length and
not refused."""

import json
import re

import pytest

from models.llama.model import LlamaGenerator
from models.protocols import Said
from papers.idms.density import ENTITIES
from papers.zero_index.parser import REQUEST_SCHEMA
from tests.support.extras import LLAMA

pytestmark = [*LLAMA]


def depth(grammar: str) -> int:
    deepest = now = 0
    for bracket in re.findall(r"[()]", grammar):
        now += 1 if bracket == "(" else -1
        deepest = max(deepest, now)
    assert now == 0
    return deepest


@pytest.mark.parametrize("schema", [REQUEST_SCHEMA, ENTITIES], ids=["parse", "entities"])
def test_the_grammar_of_each_schema_of_ours_is_shallow(schema: dict[str, object]) -> None:
    from models.llama.native import schema_grammar  # noqa: PLC0415  only with the extra llama

    assert depth(schema_grammar(json.dumps(schema))) < 20


def test_lengths_and_optional_parts_around_them_keep_their_meaning() -> None:
    from models.llama.native import flat_lengths  # noqa: PLC0415  only with the extra llama

    assert flat_lengths(r'a ::= "x" (char (char (char)?)?)? "y"') == r'a ::= "x" char{0,3} "y"'
    assert flat_lengths(r"a ::= char char (char (char)?)?") == r"a ::= char char char{0,2}"
    assert flat_lengths(r'a ::= ("," (char (char)?)?)?') == r'a ::= ("," char{0,2})?'
    assert flat_lengths(r"a ::= (char | b)") == r"a ::= (char | b)"


@pytest.mark.anyio
@pytest.mark.parametrize("most", [7, 300])
async def test_an_answer_is_held_to_the_length_of_its_text(
    stories: LlamaGenerator, most: int
) -> None:
    text = {"type": "string", "minLength": 2, "maxLength": most}
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"story": text},
        "required": ["story"],
    }
    reply = await stories.generate(
        [Said("user", "Once upon a time")], max_tokens=400, schema=schema
    )
    assert 2 <= len(json.loads(reply)["story"]) <= most
