"""PARSER by rules or a generator: what to search, in which language, and how fresh (zero-index §3.1).

The raw request is always the first query, because rewriting it by rules finds less (mean reciprocal rank .831 against
.850); what rules can add is a query for each part of a request with several, and one of its names for engines that
index in English. Without a model nothing is translated. With one, a single answer held to a JSON schema adds queries,
names and time; names must stand in the request letter by letter, and a bad or late answer leaves the rules' result with
the reason.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, TypedDict, cast

from cache.store import Store
from errors import ModelError
from models.protocols import Generator, Said
from pipeline.documents import Freshness, ParsedRequest, SearchQuery
from pipeline.messages import ANSWER_TOKENS, Asking, ask
from pipeline.text.frame import one_line
from pipeline.text.parts import MOST_PARTS, cut_parts
from pipeline.text.words import (
    LOOKED_AT,
    MAX_ENTITIES,
    OTHER_SCRIPTS,
    find_entities,
    guess_language,
    heard,
    whole_words,
    words,
)
from pipeline.work import in_thread, traced
from prompts import load

MAX_QUERIES: Final = 1 + MOST_PARTS
LONGEST_QUERY: Final = 300
"""Characters from which a request gets a short query besides: providers cut at about 400."""
_PERIODS: Final[dict[str, Freshness]] = {
    "freshness.day": "day",
    "freshness.week": "week",
    "freshness.month": "month",
    "freshness.daily": "day",
    "freshness.year": "year",
}
"""Sections of words; the first in this order that a request has a word of counts, so that the narrowest period wins.
`daily` holds what changes by the day without a word of time ("weather")."""
_SECTION_OF: Final = {word: section for section in reversed(_PERIODS) for word in words(section)}
_TIME: Final = whole_words(_SECTION_OF.keys() | words("freshness.none"))
"""All of them, with the phrases in which such a word is none of time ("electric current")."""
_CHANGING: Final = whole_words(words("freshness.changing"))
"""Words for what holds for some years at most: prices, records, ages, "last season"."""
_SCHOLARLY: Final = whole_words(words("scholarly"))
_IDENTIFIER: Final = re.compile(r"\b10\.\d{4,9}/\S+|\barxiv:?\s?\d{4}\.\d{4,5}", re.IGNORECASE)
"""A DOI, or an arXiv number."""
_YEAR_NUMBER: Final = re.compile(r"(?<![\d.,/$€£-])(1[5-9]\d\d|20\d\d)(?![\d,]|\.\d|[-/]\d{3})")
_FULL_DATE: Final = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b")


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


@traced("parse")
def parse_request(question: str, *, today: date) -> ParsedRequest:
    """Return what to search for `question`."""
    request = question.strip()
    language = guess_language(request)
    entities = find_entities(request, language=language)
    freshness = freshness_of(request, today=today)
    parts = cut_parts(request)
    scholarly = asks_for_research(request)
    queries = [SearchQuery(text, language, freshness, scholarly=scholarly) for text in (request, *parts)]
    if freshness == "any" and _changes(request):
        # Beside the request, not in its place: what changes is often told by pages that carry no date.
        queries.insert(1, SearchQuery(request, language, "year"))
    short = request
    if len(request) > LONGEST_QUERY:
        short = _short_form(request, entities)
        queries.append(SearchQuery(short, language, freshness))
    if english := _in_english(short, language, entities):
        queries.insert(1, SearchQuery(english, "en", freshness, scholarly=scholarly))
    return ParsedRequest(first_distinct(queries), entities, parts)


def first_distinct(queries: Iterable[SearchQuery]) -> tuple[SearchQuery, ...]:
    """Return the first `MAX_QUERIES` of `queries` with different words or periods."""
    kept: dict[tuple[str, str], SearchQuery] = {}
    for query in queries:
        kept.setdefault((query.text.casefold(), query.freshness), query)
    return tuple(kept.values())[:MAX_QUERIES]


def freshness_of(text: str, *, today: date) -> Freshness:
    """Return how recent results must be: the narrowest period that the words of `text` name, else `any`.

    It becomes a filter, never words: people write "latest" where they mean "no old pages", and a year added to the
    words narrows a search wrongly. A request that carries a date needs no filter, with one exception: "latest" beside
    the running year means this year.
    """
    named = {_SECTION_OF.get(" ".join(word.split())) for word in _TIME.findall(text.lower().replace("’", "'"))}
    found: Freshness = next((period for section, period in _PERIODS.items() if section in named), "any")
    if found == "any":
        return "any"
    years = [int(year) for year in _YEAR_NUMBER.findall(text)]
    if (years and max(years) != today.year) or _FULL_DATE.search(text):
        return "any"
    return "year" if years and found in ("month", "year") else found


def asks_for_research(text: str) -> bool:
    """Whether `text` asks for published research, by words such as "papers on", or by a DOI or an arXiv number."""
    return bool(_SCHOLARLY.search(text.lower().replace("’", "'")) or _IDENTIFIER.search(text))


def _changes(text: str) -> bool:
    """Whether `text` asks for what changes within years, without a word for the period or a date that it speaks of."""
    return bool(_CHANGING.search(text.lower())) and not _YEAR_NUMBER.search(text) and not _FULL_DATE.search(text)


def _short_form(request: str, entities: tuple[str, ...]) -> str:
    """The last question of a long request with the names that it leaves out, within a provider's limit."""
    sentences = [part.strip() for part in re.split(r"(?<=[.!?。？！])\s+|\n+", request) if part.strip()]
    asked = next((part for part in reversed(sentences) if part.endswith(("?", "？"))), sentences[0])[:LONGEST_QUERY]
    for name in entities:
        if name not in asked and len(asked) + len(name) < LONGEST_QUERY:
            asked += f" {name}"
    return asked


def _in_english(request: str, language: str, entities: tuple[str, ...]) -> str:
    """Return a request in another language word for word in English, or what of it is Latin where no list helps.

    Questions of XQuAD put to BM25 over its English paragraphs, gold among the first five of 300, by the request alone
    and with its English fused: German .587, .910; Russian .180, .870; Chinese .153, .920.
    """
    if (english := heard(request, "en")) != request or language not in OTHER_SCRIPTS:
        return english if english != request else ""
    names = [name for name in entities if re.search(r"[A-Za-z]", name)]
    numbers = [
        number for number in re.findall(r"(?<![\w.])\d{3,}(?!\w)", request) if not any(number in name for name in names)
    ]
    return " ".join([*names, *numbers]) if names else ""


# By a generator: the rules run first and stay in force where they are surer


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
    rules = await in_thread(parse_request, question, today=today)
    if parser.generator is None or not question.strip():
        return rules
    prompt = load(PROMPT)
    # On one line the request cannot look like a part of the prompt.
    text = prompt.fill(date=today.isoformat(), request=one_line(question[:LOOKED_AT]))
    asking = Asking(ANSWER_TOKENS, parser.seconds, prompt.version, SCHEMA)
    try:
        reply = await ask(parser.generator, [Said("user", text)], asking, store=parser.store)
        return _merged(rules, cast(_Answer, json.loads(reply)))
    except ModelError as error:
        return replace(rules, fallback=f"The generator did not parse the request, rules did: {error}")


def _merged(rules: ParsedRequest, said: _Answer) -> ParsedRequest:
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
