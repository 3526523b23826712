"""PARSER by a generator: one answer held to a JSON schema gives queries, names and time (zero-index §3.1).

The rules run first and stay in force where they are surer: the raw request is always the first query, and names must
stand in the request letter by letter. A bad or late answer leaves the rules' result with the reason. Not for: the rules
(`parse.py`).
"""

import json
import re
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, TypedDict, cast

from cache.store import Store
from errors import ModelError
from models.protocols import Generator, Said
from pipeline.documents import Freshness, ParsedRequest, SearchQuery
from pipeline.messages import ANSWER_TOKENS, Asking, ask
from pipeline.search.parse import LONGEST_QUERY, first_distinct, parse_request
from pipeline.text.frame import one_line
from pipeline.text.language import LOOKED_AT
from pipeline.text.names import MAX_ENTITIES
from pipeline.text.parts import MOST_PARTS
from prompts import load

PROMPT: Final = "parse_request"
_LANGUAGES: Final = (
    "ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv nl no pl pt ro ru sk sl sr sv th tr uk "
    "vi zh"
)
SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "entities": {"type": "array", "items": {"type": "string", "maxLength": 80}, "maxItems": 6},
        "parts": {"type": "array", "items": {"type": "string", "maxLength": 300}, "maxItems": MOST_PARTS},
        "freshness": {"enum": ["any", "day", "week", "month", "year"]},
        "queries": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string", "maxLength": 160}, "language": {"enum": _LANGUAGES.split()}},
                "required": ["text", "language"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["entities", "parts", "freshness", "queries"],
    "additionalProperties": False,
}
_WORD: Final = re.compile(r"\w+")


class _Query(TypedDict):
    text: str
    language: str


class _Answer(TypedDict):
    entities: list[str]
    freshness: Freshness
    queries: list[_Query]
    parts: list[str]


@dataclass(frozen=True, slots=True)
class Parser:
    """What the parser needs from outside."""

    generator: Generator | None
    store: Store | None
    seconds: float


async def parse(question: str, parser: Parser, *, today: date) -> ParsedRequest:
    """Return what to search for `question`: by the generator where there is one, else by rules.

    `made_by` tells which; where a generator failed, `fallback` has the reason.
    """
    rules = parse_request(question, today=today)
    if parser.generator is None or not question.strip():
        return rules
    prompt = load(PROMPT)
    # On one line the request cannot look like a part of the prompt.
    text = prompt.fill(date=today.isoformat(), request=one_line(question[:LOOKED_AT]))
    asking = Asking(ANSWER_TOKENS, parser.seconds, prompt.version, SCHEMA)
    try:
        reply = await ask(parser.generator, [Said("user", text)], asking, store=parser.store)
        return merged(rules, cast(_Answer, json.loads(reply)))
    except ModelError as error:
        return replace(rules, fallback=f"The generator did not parse the request, rules did: {error}")


def merged(rules: ParsedRequest, said: _Answer) -> ParsedRequest:
    """Return the model's answer in the rules' type, checked against the request.

    Raises `ModelError` where it has nothing in common with it, so that following it would search for something else.
    """
    first = rules.queries[0]
    request = first.text
    known = _words(request)
    names = [name for name in map(one_line, said["entities"]) if name and name in request]
    entities = [*rules.entities, *(n for n in names if not any(n in kept for kept in rules.entities))]
    # A freshness found by rule is surer than a guess. A guess narrows all queries but the raw request: SmolLM2-135M
    # narrowed 7 of 8 requests that name no time (`winnow eval --steps parse`), and what is filtered out is lost.
    freshness = first.freshness if first.freshness != "any" else said["freshness"]
    queries = [
        SearchQuery(one_line(one["text"])[:LONGEST_QUERY], one["language"], freshness)
        for one in said["queries"]
        # A translation need not share a word with the request.
        if one_line(one["text"]) and (known & _words(one["text"]) or not request.isascii())
    ]
    if not queries:
        raise ModelError("none of its queries has a word of the request.", hint="Set a larger model.")
    parts = rules.parts or _parts(said["parts"], known)
    queries = [*(SearchQuery(part, first.language, first.freshness) for part in parts), *queries]
    return ParsedRequest(
        first_distinct([first, *queries]),
        tuple(dict.fromkeys(entities))[:MAX_ENTITIES],
        parts,
        made_by="model",
    )


def _parts(said: list[str], known: frozenset[str]) -> tuple[str, ...]:
    """Return the parts that a model named, where each asks with words of the request and all ask for different ones."""
    parts = [part for part in map(one_line, said) if len(part) <= LONGEST_QUERY]
    asked = {known & _words(part) for part in parts}
    return tuple(parts) if 1 < len(parts) == len(asked) and all(asked) else ()


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text.casefold()) if len(word) > 2 or not word.isascii())
