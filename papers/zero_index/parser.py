"""PARSER by a model: one answer held to a JSON schema adds queries, names, parts and
time to what the rules find (zero-index §3.1).

Names must occur verbatim in the request, and a bad or late answer leaves the rules'
result with the reason. Not for: the rules (`pipeline/search/parse.py`)."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Final, TypedDict, cast

from cache.store import Store
from errors import ModelError
from models.protocols import Generator, Said
from pipeline.messages import ANSWER_TOKENS, AskOptions, ask
from pipeline.question.question import Question
from pipeline.question.wants import Freshness
from pipeline.search.parse import LONGEST_QUERY, first_distinct, parse_request
from pipeline.search.query import ParsedRequest, SearchQuery
from pipeline.text.frame import one_line
from pipeline.text.words import (
    MAX_ENTITIES,
    REQUEST_CHARACTERS,
    any_of,
    fold,
    index_terms,
    is_cjk,
    raw_words,
    translates,
    words,
)
from pipeline.work import in_thread
from prompts import load

PROMPT: Final = "parse_request"
MAX_QUERIES: Final = 5
"""Queries of a request; each is put to each provider."""
_MOST_PARTS: Final = 4
"""Parts of a request that a model may name; each is searched for as well."""
_LANGUAGES: Final = (
    "ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv nl no pl pt ro ru sk "
    "sl sr sv th tr uk "
    "vi zh"
)
REQUEST_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "entities": {
            "type": "array",
            "items": {"type": "string", "maxLength": 80},
            "maxItems": 6,
        },
        "parts": {
            "type": "array",
            "items": {"type": "string", "maxLength": 300},
            "maxItems": _MOST_PARTS,
        },
        "freshness": {"enum": ["any", "day", "week", "month", "year"]},
        "search": {"type": "boolean"},
        "queries": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "maxLength": 160},
                    "language": {"enum": _LANGUAGES.split()},
                },
                "required": ["text", "language"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["entities", "parts", "freshness", "search", "queries"],
    "additionalProperties": False,
}
NOT_FOLLOWED: Final = "The model finds that this needs no search; it was searched."
_WORD: Final = re.compile(r"\w+")


class _Query(TypedDict):
    text: str
    language: str


class _Answer(TypedDict):
    entities: list[str]
    freshness: Freshness
    search: bool
    queries: list[_Query]
    parts: list[str]


async def parse(
    question: Question,
    generator: Generator,
    store: Store | None,
    seconds: float,
    *,
    today: date,
) -> ParsedRequest:
    """Return what to search for `question` by rules and, within `seconds`, by the
    generator, whose answers `store` keeps.

    What needs no search by `needless` has the reason, and no model is asked.
    Queries of the generator are `guessed`; where it failed, `fallback` has the reason.
    """
    rules = await in_thread(parse_request, question, today=today)
    if not question:
        return rules
    if reason := needless(question.text):
        return replace(rules, needless=reason)
    prompt = load(PROMPT)
    # On one line the request cannot look like a part of the prompt.
    text = prompt.fill(
        date=today.isoformat(), request=one_line(question.text[:REQUEST_CHARACTERS])
    )
    asking = AskOptions(ANSWER_TOKENS, seconds, prompt.version, REQUEST_SCHEMA)
    try:
        reply = await ask(generator, [Said("user", text)], asking, store=store)
        return _merged(question, rules, cast(_Answer, json.loads(reply)))
    except ModelError as error:
        return replace(
            rules,
            fallback=f"The generator did not parse the request, rules did: {error}",
        )


def _merged(question: Question, rules: ParsedRequest, said: _Answer) -> ParsedRequest:
    """Return what the rules found, followed by what the model's answer adds to it;
    queries, names and parts without words of the request are dropped.

    Raises `ModelError` where it has nothing in common with it, so that following it
    would search for something else."""
    first = rules.queries[0]
    known = _words(question.text)
    entities = _with_names(rules.entities, said["entities"], question.text)
    # A freshness found by rule is surer than a guess. A guess narrows all queries but the raw
    # request: SmolLM2-135M narrowed 7 of 8 requests that name no time (`bench.eval`,
    # in the history), and what is filtered out is lost.
    freshness = first.freshness if first.freshness != "any" else said["freshness"]
    held = _Held(question, rules)
    queries = [
        SearchQuery(text[:LONGEST_QUERY], one["language"], freshness, guessed=True)
        for one in said["queries"]
        if (text := held.kept(one["text"], one["language"]))
        and held.names(text, rules.entities)
    ]
    if not queries:
        raise ModelError(
            ("none of the generator's queries contains a word of the request."),
            hint="Set WINNOW_GENERATOR to a larger model.",
        )
    asked = [held.kept(part, first.language) for part in said["parts"]]
    parts = tuple(map(Question, _parts(asked, known)))
    queries = [
        *(
            SearchQuery(
                part.text, first.language, first.freshness, asked=part, guessed=True
            )
            for part in parts
        ),
        *queries,
    ]
    return ParsedRequest(
        first_distinct([*rules.queries, *queries])[:MAX_QUERIES],
        entities,
        # Not followed: SmolLM2-135M says so of nearly every request (`bench.needless`).
        fallback="" if said["search"] else NOT_FOLLOWED,
    )


def _with_names(
    known: Sequence[str], names: Iterable[str], request: str
) -> tuple[str, ...]:
    """Return known entities, followed by names that the request has and no known one
    contains; at most `MAX_ENTITIES`."""
    new = (
        name
        for name in map(one_line, names)
        if name and name in request and not any(name in one for one in known)
    )
    return tuple(dict.fromkeys((*known, *new)))[:MAX_ENTITIES]


def _is_ordinary(word: str, part: str) -> bool:
    """Whether a word is in small letters, and no piece of a host or a number."""
    return word.isalpha() and word.islower() and part.strip(",.?!") == word


class _Held:
    """Holds a model's queries to what the request, or the rules of its language, gave.

    A query goes to strangers. A model that is wrong, or that a page has turned, could
    send a person's search to a host, exclude pages by an operator, or search for
    something else; so what is sent are words of the request, of the rules' queries, of
    the word lists' translation, and stop words. Where no list translates the request's
    language, ordinary words of an English query pass too, as many as the request has:
    no names, hosts or numbers."""

    def __init__(self, question: Question, rules: ParsedRequest) -> None:
        self._spoken = question.spoken
        self._texts = [query.text for query in rules.queries]
        self._texts.append(question.translated_to("en").text)
        self._written = {
            part.casefold().strip(",.?!") for part in question.text.split()
        }
        self._signs = frozenset("".join(self._texts))
        self._folded = frozenset(
            fold(word) for text in self._texts for word in raw_words(text)
        )

    def kept(self, text: str, language: str) -> str:
        """Return what of a query in `language` may be sent; empty where none of it says
        anything."""
        given = self._terms(self._texts, language)
        foreign = language == "en" != self._spoken and not translates(self._spoken)
        left = len(self._folded) if foreign else 0
        parts: list[str] = []
        for part in one_line(text).split():
            # what a person wrote stays as it is: C++, 2.0.1, and operators of their own
            if part.casefold().strip(",.?!") in self._written:
                parts.append(part)
                continue
            for word in _WORD.findall(part):
                allowed = self._allowed(word, given, language)
                if allowed is not None:
                    parts.append(allowed)
                elif left and _is_ordinary(word, part):
                    parts.append(word)
                    left -= 1
        found = " ".join(filter(None, parts))
        return found if self._terms([found], language) or _words(found) else ""

    def _allowed(self, word: str, given: frozenset[str], language: str) -> str | None:
        """Return what of a word the request, its translation, or the stop words have;
        None where none has it."""
        if is_cjk(word):
            return "".join(sign for sign in word if sign in self._signs)
        terms = self._terms([word], language)
        if not terms:
            # a stop word; in capitals some engines read it as an operator
            return word.lower()
        return word if fold(word) in self._folded or terms <= given else None

    def names(self, text: str, entities: Iterable[str]) -> bool:
        """Whether a query names what the request is about, where that has a name; True
        where it has none.

        Of 58 test questions queries of four words drawn at random cost .05 of the pages
        that answer, by the places that they take."""
        own = [self._terms([name], self._spoken) for name in entities]
        said = self._terms([text], self._spoken)
        return not any(own) or any(said & terms for terms in own)

    def _terms(self, texts: Iterable[str], language: str) -> frozenset[str]:
        """Return the terms of `texts` as the request's language, the query's and
        English have them; stop words are none."""
        languages = {self._spoken or "en", language, "en"}
        return frozenset(
            term
            for one in languages
            for text in texts
            for term in index_terms(text, language=one)
        )


def _parts(said: list[str], known: frozenset[str]) -> tuple[str, ...]:
    """Return the parts that a model named, where each asks with words of the request
    and all ask for different ones."""
    parts = [part for part in map(one_line, said) if len(part) <= LONGEST_QUERY]
    asked = {known & _words(part) for part in parts}
    return tuple(parts) if 1 < len(parts) == len(asked) and all(asked) else ()


def _words(text: str) -> frozenset[str]:
    return frozenset(
        word
        for word in _WORD.findall(text.casefold())
        if len(word) > 2 or not word.isascii()
    )


# Whether a search is needed

_TALK: Final = re.compile(
    rf"[¿¡\s]*(?:{any_of(words('needless'))})"
    rf"(?:[\s,;.!?、，。！？]+(?:{any_of(words('needless'))}))*(?:[\s,]+winnow)?[\s,;.!?。！？…]*",
    re.IGNORECASE,
)
_ROOT_TEXT: Final = r"(?:the\s+)?(?:square|cube)\s+root\s+of\s+"
_OPERAND_TEXT: Final = rf"[-+(√\s]*(?:{_ROOT_TEXT})?\d[\d.,']*[)\s%²³!]*"
_SUM_QUESTION: Final = re.compile(
    rf"[¿\s]*(?P<asked>{any_of(words('sums.asking'))})?[:\s]*"
    rf"(?:{_OPERAND_TEXT}(?:(?:[-+*/×÷·^−–xX]|\*\*|(?<=%)of|(?<=%\s)of|{any_of(words('sums'))}){_OPERAND_TEXT})+|{_ROOT_TEXT}{_OPERAND_TEXT})"
    r"(?P<equals>=)?[\s?.!？]*",
    re.IGNORECASE,
)
_DATED: Final = re.compile(r"[\d.,']+(?:[-/xX–][\d.,']+)+")
"""Numbers that only these signs join without blanks: a date, a score, a telephone, a
size, 4x4."""


def needless(request: str) -> str:
    """Return why `request` needs no search, as the end of a sentence; empty where it
    may need one.

    In doubt it does: a search that was not needed costs seconds, one that is missing
    the answer (`python -m bench.needless`)."""
    text = " ".join(request.replace("’", "'").split())
    if _TALK.fullmatch(text):
        return "it asks for nothing that is written down"
    found = _SUM_QUESTION.fullmatch(text)
    if found is None:
        return ""
    said = text[found.end("asked") if found["asked"] else 0 :].strip(" ¿?.!？:")
    return "" if _DATED.fullmatch(said) and not found["equals"] else "it is arithmetic"
