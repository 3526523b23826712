"""PARSER by a generator: one answer held to a JSON schema gives need, queries, names and time (zero-index §3.1).

The rules run first and stay in force where they are surer: the raw request is always the first query, and names must
stand in the request letter by letter. A bad or late answer leaves the rules' result with the reason. Not for: the rules
(`parse.py`).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, TypedDict, cast

from cache.store import Store
from errors import ModelError
from models.protocols import Generator
from pipeline.documents import Freshness, ParsedRequest, SearchQuery
from pipeline.messages import Asking, Said, ask
from pipeline.search.parse import LONGEST_QUERY, MAX_QUERIES, parse_request
from pipeline.text.frame import one_line
from pipeline.text.names import MAX_ENTITIES
from prompts import load

PROMPT: Final = "parse_request"
ANSWER_TOKENS: Final = 400
"""Room for three queries, twelve names and two sentences."""
LONGEST_REQUEST: Final = 2_000
"""Characters of the request and of the conversation's end that the model is shown."""
_LANGUAGES: Final = (
    "ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv nl no pl pt ro ru sk sl sr sv th tr uk "
    "vi zh"
)
_TEXT: Final[dict[str, object]] = {"type": "string", "maxLength": 200}
SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "need_search": {"type": "boolean"},
        "reason": _TEXT,
        "standalone": {"type": "string", "maxLength": LONGEST_QUERY},
        "entities": {"type": "array", "items": {"type": "string", "maxLength": 80}, "maxItems": 6},
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
    "required": ["need_search", "reason", "standalone", "entities", "freshness", "queries"],
    "additionalProperties": False,
}
_WORD: Final = re.compile(r"\w+")


class _Query(TypedDict):
    text: str
    language: str


class _Answer(TypedDict):
    need_search: bool
    reason: str
    standalone: str
    entities: list[str]
    freshness: Freshness
    queries: list[_Query]


@dataclass(frozen=True, slots=True)
class Parser:
    """What the parser needs from outside."""

    generator: Generator | None
    store: Store | None
    seconds: float
    """Time for the model's answer."""


async def parse(question: str, parser: Parser, *, today: date, context: str = "") -> ParsedRequest:
    """Return what to search for `question`: by the generator where there is one, else by rules.

    `made_by` tells which; where a generator failed, `fallback` has the reason.
    """
    rules = parse_request(question, today=today, context=context)
    if parser.generator is None or not question.strip():
        return rules
    prompt = load(PROMPT)
    text = prompt.fill(
        date=today.isoformat(),
        request=_shown(question[:LONGEST_REQUEST]),
        context=_shown(context[-LONGEST_REQUEST:]) or "(none)",
    )
    asking = Asking(ANSWER_TOKENS, parser.seconds, prompt.version, SCHEMA)
    try:
        reply = await ask(parser.generator, [Said("user", text)], asking, store=parser.store)
        return merged(rules, cast(_Answer, json.loads(reply)), context=context)
    except ModelError as error:
        return replace(rules, fallback=f"The generator did not parse the request, rules did: {error}")


def merged(rules: ParsedRequest, said: _Answer, *, context: str) -> ParsedRequest:
    """Return the model's answer in the rules' type, checked against the request.

    Raises:
        ModelError: It has nothing in common with the request, so that following it would search for something else.
    """
    request = rules.request.strip()
    known = _words(f"{request} {context}")
    names = [name for name in map(one_line, said["entities"]) if name and name in request]
    entities = [*rules.entities, *(n for n in names if not any(n in kept for kept in rules.entities))]
    standalone = one_line(said["standalone"])
    # A form that has lost the request's names or half of its words is no form of it.
    lost = [name for name in entities if name in request and name not in standalone]
    own = _words(request)
    if lost or 2 * len(own & _words(standalone)) < len(own):
        standalone = rules.standalone
    queries = [_query(one) for one in said["queries"]]
    queries = [one for one in queries if one.text and _bears(one, request, known)]
    if not queries:
        raise ModelError("none of its queries has a word of the request.", hint="Set a larger model.")
    # A freshness found by rule is surer than a guess. A guess narrows all queries but the raw request: SmolLM2-135M
    # narrowed 7 of 8 requests that name no time (`winnow eval --steps parse`), and what is filtered out is lost.
    first = rules.queries[0]
    freshness = first.freshness if first.freshness != "any" else said["freshness"]
    others = [replace(one, freshness=freshness) for one in (replace(first, text=standalone), *queries)]
    texts = [first, *others]
    distinct = {one.text.casefold(): one for one in reversed(texts)}
    order = dict.fromkeys(one.text.casefold() for one in texts)
    return ParsedRequest(
        request=rules.request,
        need_search=said["need_search"],
        reason=one_line(said["reason"]) or rules.reason,
        queries=tuple(distinct[key] for key in order)[:MAX_QUERIES],
        entities=tuple(dict.fromkeys(entities))[:MAX_ENTITIES],
        standalone=standalone or rules.standalone,
        made_by="model",
    )


def _query(said: _Query) -> SearchQuery:
    return SearchQuery(one_line(said["text"])[:LONGEST_QUERY], said["language"])


def _bears(query: SearchQuery, request: str, known: frozenset[str]) -> bool:
    """Whether a query shares a word with the request, or is a translation, which need not."""
    words: Sequence[str] = sorted(_words(query.text))
    return any(word in known for word in words) or not request.isascii()


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text.casefold()) if len(word) > 2 or not word.isascii())


def _shown(text: str) -> str:
    """A text on one line, so that it cannot look like a part of the prompt."""
    return one_line(text)
