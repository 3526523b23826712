"""Grammars of schemas: an answer keeps the lengths of its texts."""

import json
from typing import Any

import pytest

from models.protocols import Said
from tests.support.extras import LLAMA

pytestmark = [*LLAMA]


@pytest.mark.anyio
@pytest.mark.parametrize("most", [7, 300])
async def test_an_answer_is_held_to_the_length_of_its_text(stories: Any, most: int) -> None:
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
