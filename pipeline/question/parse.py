"""PARSER: what a request asks part by part; what to search for it, in which language, how fresh
(zero-index §3.1).

Parts. Cut are sentences that ask, clauses that begin with a question word of their own behind
"and", lists of questions, and the sides of a comparison, by rules and the words of the request's
language. A question in doubt stays whole: read as two it may miss what only the whole of it says.

Sites that a question names are taken out of it (`pipeline/sources/sites.py` reads them).

Queries. The raw request is always the first, because rewriting it by rules finds less (mean
reciprocal rank .831 against .850); what rules can add is a query for each part of a request with
several, and one of its names for engines that index in English. Without a model nothing is
translated. With one, a single answer held to a JSON schema adds queries, names, parts and time;
names must stand in the request letter by letter, and a bad or late answer leaves the rules' result
with the reason.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Final, TypedDict, cast

from cache.store import Store
from errors import ModelError
from models.protocols import Generator, Said
from pipeline.document.page import Freshness, ParsedRequest, SearchQuery
from pipeline.messages import ANSWER_TOKENS, AskOptions, ask
from pipeline.question.sides import sides_of
from pipeline.text.frame import one_line
from pipeline.text.words import (
    LOOKED_AT,
    MAX_ENTITIES,
    OTHER_SCRIPTS,
    any_of,
    find_entities,
    fold,
    guess_language,
    heard,
    index_terms,
    is_cjk,
    raw_words,
    translates,
    whole_words,
    words,
)
from pipeline.work import in_thread, traced
from prompts import load

MOST_PARTS: Final = 4
"""Parts that are read apart; what follows is asked with the last."""
LONGEST: Final = 900
"""Characters from which a request is a story, whose sentences are not cut."""
_HEAD_WORDS: Final = 4
"""Words within which a question's own question word stands: "At what moments", "Do you know
who"."""
_SHORTEST: Final = 3
"""Words of a question; fewer hang on the one before ("And why?")."""
_OWN_WORDS: Final = 2
"""Words by which a part says what it is about; one with fewer leans on another ("and in what
year?"), and one without any ("and why?") is answered where that is."""
_MARKS: Final = "?？؟"
_SENTENCE: Final = re.compile(rf"(?<=[{_MARKS}])\s*(?=\S)")
_ITEM: Final = re.compile(r"(?:^|\n)\s*(?:\d{1,2}[.)]|[-*•])\s+([^\n]{8,200})")
_STOPS: Final = " \t\n,;，、；،؛"
_BARE: Final = 12
"""Characters of a side that is no name by its form: "北京和上海", "서울과 부산"."""
_LISTED: Final = re.compile(r"[,،、，]\s*$")
"""Behind a side of a comparison that further ones follow."""


@dataclass(frozen=True, slots=True)
class _Rules:
    """The patterns of one language."""

    language: str
    word: re.Pattern[str]
    """A question word."""
    joint: re.Pattern[str]
    """What stands between two questions of a sentence; the group is empty for a mere comma."""
    clause: re.Pattern[str] | None
    """The same where question words stand anywhere in a clause (Chinese, Japanese, Korean,
    Turkish), else None."""
    polar: re.Pattern[str]
    back: re.Pattern[str]
    """A word for what was named before."""
    sides: re.Pattern[str]
    """What stands between the sides of a comparison; the group is set where it alone says that they
    are compared."""
    bare: re.Pattern[str]
    """Two sides by what stands around them, in scripts that mark no names; the groups are the
    sides."""
    compared: re.Pattern[str]
    describing: re.Pattern[str]
    plural: re.Pattern[str]


def cut_parts(request: str) -> tuple[str, ...]:
    """Return the questions of `request` that must each be answered, to be understood alone; none
    where it is one."""
    request = request.strip()
    if len(request) > LONGEST:
        return ()
    rules = _rules(guess_language(request) or "en")
    items = [item.strip() for item in _ITEM.findall(request)]
    if len(items) > 1 and all(_asks(item, rules) for item in items):
        return _bounded(items)
    pieces = [
        piece
        for sentence in _sentences(request, rules)
        for piece in _clauses(sentence, rules)
    ]
    if len(pieces) < 2:
        sides = sides_of(request, rules.language)
        return _bounded(list(sides)) if sides else _compared(request, rules)
    whole = next(
        (piece for piece in pieces if _own_words(piece, rules) >= _OWN_WORDS), request
    )
    return _bounded([_with_subject(piece, whole, rules) for piece in pieces])


def question_word(text: str, language: str = "") -> str:
    """Return the first question word of a text, empty where there is none."""
    found = _rules(language or guess_language(text) or "en").word.search(text)
    return found[0] if found else ""


def describes(question: str) -> bool:
    """Whether a question describes something instead of naming it: "the film that was shot there",
    "whose"."""
    return bool(
        _rules(guess_language(question) or "en").describing.search(
            question.partition(" ")[2]
        )
    )


def _bounded(parts: list[str]) -> tuple[str, ...]:
    return (
        (*parts[: MOST_PARTS - 1], " ".join(parts[MOST_PARTS - 1 :]))
        if len(parts) > MOST_PARTS
        else tuple(parts)
    )


def _asks(text: str, rules: _Rules) -> bool:
    return text.endswith(tuple(_MARKS)) or bool(rules.word.search(text))


def _sentences(request: str, rules: _Rules) -> list[str]:
    """Return the sentences that ask, each with what only tells around it; the request where it is
    one."""
    found: list[str] = []
    telling = ""
    for sentence in _SENTENCE.split(request):
        enough = (
            len(sentence) > _SHORTEST
            if is_cjk(sentence)
            else len(sentence.split()) >= _SHORTEST
        )
        if enough and _asks(sentence, rules):
            found.append(f"{telling} {sentence}".strip())
            telling = ""
        elif found:
            found[-1] += f" {sentence}"
        else:
            telling = f"{telling} {sentence}".strip()
    return found or [request]


def _clauses(sentence: str, rules: _Rules) -> list[str]:
    """Return the questions that a sentence joins, in order; the sentence where it is one."""
    if rules.clause:
        clauses = rules.clause.split(sentence)
        alone = len(clauses) > 1 and all(
            len(one) > _SHORTEST and rules.word.search(one) for one in clauses
        )
        return clauses if alone else [sentence]
    joints = list(rules.joint.finditer(sentence))
    while joints and not joints[-1][1]:
        joints.pop()
    pieces: list[str] = []
    start = 0
    for joint in joints:
        left = sentence[start : joint.start()].strip(_STOPS)
        right = sentence[joint.end() :]
        apart = bool(joint[1]) and joint[0].startswith((",", ";"))
        if (
            _own_words(left, rules)
            and _own_words(right, rules)
            and _may_end(left, right, apart, rules)
        ):
            pieces.append(left)
            start = joint.end()
    return [*pieces, sentence[start:].strip(_STOPS)]


def _may_end(left: str, right: str, apart: bool, rules: _Rules) -> bool:
    """Whether a question may end before `right`, which begins with a question word or as one that
    wants yes or no.

    `apart` where more than a word stands between them.
    """
    own = rules.word.search(left)
    polar = rules.polar.match(left)
    if own is None or polar:
        at_head = bool(polar)
    else:
        above = left[: own.start()].rstrip()
        at_head = len(above.split()) < _HEAD_WORDS or above.endswith(
            (",", ";", ":", ".")
        )
    opening = rules.word.search(right)
    # "people who sail and who row": the same word inside the first question is no question of its
    # own without a comma
    inside = 0 if polar or own is None else own.end()
    again = opening is not None and opening[0].casefold() in (
        other[0].casefold() for other in rules.word.finditer(left, inside)
    )
    return at_head and (apart or not again)


def _with_subject(piece: str, whole: str, rules: _Rules) -> str:
    """Return a part with the question that it leans on, where it points back or says too little by
    itself."""
    own = _own_words(piece, rules)
    # A word that points back points, among twice as many, to something in the part itself.
    leans = is_cjk(piece) or own < (2 if rules.back.search(piece) else 1) * _OWN_WORDS
    return (
        f"{piece} ({whole.rstrip(f'{_MARKS} ')})" if leans and piece != whole else piece
    )


def _own_words(piece: str, rules: _Rules) -> int:
    """Return how many words a part has beside its question word that are no stop words."""
    return len(index_terms(rules.word.sub(" ", piece), language=rules.language))


def _compared(request: str, rules: _Rules) -> tuple[str, ...]:
    """Return a comparison once for each side, the others left out; nothing where none is."""
    for match in rules.sides.finditer(request):
        left, right = request[: match.start()], request[match.end() :]
        after = find_entities(right, language="")
        sides = _listed(left)
        if not sides or not after or not right.startswith(after[0]):
            continue
        if (
            match[1]
            and not left.startswith(sides[0])
            and left[left.index(sides[0]) - 2] not in ",:"
        ):
            # "Which singer is American, Mark King or Nick Hexum?"
            sides = sides[-1:]
        head = left[: left.rindex(sides[0])]
        if match[1] or rules.compared.search(request) or rules.plural.search(head):
            return _bounded(
                [f"{head}{side}{right[len(after[0]) :]}" for side in (*sides, after[0])]
            )
    found = rules.bare.search(request) if rules.compared.search(request) else None
    return (
        tuple(f"{side}{request[found.end() :]}" for side in found.groups())
        if found
        else ()
    )


def _listed(left: str) -> list[str]:
    """Return the names that a text ends with, commas between them, in order."""
    names = find_entities(left, language="")
    if not names or not left.endswith(names[-1]):
        return []
    above = left.removesuffix(names[-1])
    listed = _LISTED.search(above)
    return [*(_listed(above[: listed.start()]) if listed else []), names[-1]]


@cache
def _rules(language: str) -> _Rules:
    def of(section: str) -> str:
        return any_of(words(f"questions.{section}", language))

    flags = re.IGNORECASE
    asking = rf"(?:(?:{of('before')})\s+)?(?:{of('words')})(?!\w)"
    # "and in the second table, which …"
    placed = rf"(?:(?:{of('before')})\s[^,;?]{{3,60}},\s+)?"
    # Arabic writes its "and" with the word that follows.
    follows = rf"(?:\s+|(?<=\sو))(?=(?:{placed}{asking}|(?:{of('polar')})\b))"
    joint = rf"((?:[,;،؛]?\s+(?:{of('and')})|[;؛]){follows})|[,،]\s+(?={asking})"
    unparted = is_cjk(of("words"))
    joined = words("questions.joint", language)
    endings = "".join(
        rf"|(?<={ending})\s+" for ending in words("questions.ending", language)
    )
    also = whole_words(joined).pattern
    clause = rf"\s*(?:[，、；,;]\s*(?:{also})?|{also})\s*{endings}"
    sides = rf"({of('or')})|{of('and')}"
    return _Rules(
        language,
        word=re.compile(whole_words(words("questions.words", language)).pattern, flags),
        joint=re.compile(joint, flags),
        clause=re.compile(clause) if joined else None,
        polar=re.compile(rf"(?:{of('polar')})\b", flags),
        back=re.compile(rf"\b(?:{of('back')})\b", flags),
        sides=re.compile(
            rf"\s*(?:{sides})\s*"
            if unparted
            else rf",?\s+(?:{sides})\s+(?:(?:{of('article')})\s+)?",
            flags,
        ),
        bare=re.compile(
            rf"^(?:{of('compared')})?(.{{2,{_BARE}}}?)\s*(?:{of('and')})\s*(.{{2,{_BARE}}}?)(?={of('after')})"
        ),
        compared=re.compile(
            whole_words(words("questions.compared", language)).pattern, flags
        ),
        describing=re.compile(rf"\b(?:{of('describing')})\b", flags),
        plural=re.compile(
            rf"\b(?:{of('plural')})\s+(?:(?:{of('article')})\s+)?$", flags
        ),
    )


# Sites

SITE: Final = "site:"
"""In front of the address of a whole site, as a source and in a question."""
_NAMED: Final = re.compile(rf"(?<!\S){SITE}(https?://\S+)\s*", re.IGNORECASE)


def inventory_of(request: str) -> str:
    """Return what documents are asked for about, as in `What do I have about tides?`; empty for any
    other request."""
    found = _INVENTORY.fullmatch(" ".join(request.replace("’", "'").split()))
    return found[1] if found else ""


def is_site(source: str) -> bool:
    """Return whether a source names a site."""
    return source[: len(SITE)].lower() == SITE


def split_sites(question: str) -> tuple[str, tuple[str, ...]]:
    """Return a question without the sites that it names as `site:https://…`, and these as
    sources."""
    sites = tuple(SITE + url for url in dict.fromkeys(_NAMED.findall(question)))
    return (
        (_NAMED.sub("", question).strip() or question, sites)
        if sites
        else (question, ())
    )


# Queries

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
"""Sections of words; the first in this order that a request has a word of counts, so that the
narrowest period wins. `daily` holds what changes by the day without a word of time ("weather")."""
_SECTION_OF: Final = {
    word: section for section in reversed(_PERIODS) for word in words(section)
}
_INVENTORY: Final = re.compile(
    rf"[¿\s]*(?:{any_of(words('inventory'))})\s+(\S.{{0,200}}?)[\s?.!？。]*",
    re.IGNORECASE,
)
"""Asks which documents there are about something, which its group holds."""
_TIME: Final = whole_words(_SECTION_OF.keys() | words("freshness.none"))
"""All of them, with the phrases in which such a word is none of time ("electric current")."""
_CHANGING: Final = whole_words(words("freshness.changing"))
"""Words for what holds for some years at most: prices, records, ages, "last season"."""
_SCHOLARLY: Final = whole_words(words("scholarly"))
_IDENTIFIER: Final = re.compile(
    r"\b10\.\d{4,9}/\S+|\barxiv:?\s?\d{4}\.\d{4,5}", re.IGNORECASE
)
"""A DOI, or an arXiv number."""
_YEAR_NUMBER: Final = re.compile(
    r"(?<![\d.,/$€£-])(1[5-9]\d\d|20\d\d)(?![\d,]|\.\d|[-/]\d{3})"
)
_FULL_DATE: Final = re.compile(
    r"\b\d{4}-\d{2}(?:-\d{2})?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
)


_TALK: Final = re.compile(
    rf"[¿¡\s]*(?:{any_of(words('needless'))})"
    rf"(?:[\s,;.!?、，。！？]+(?:{any_of(words('needless'))}))*(?:[\s,]+winnow)?[\s,;.!?。！？…]*",
    re.IGNORECASE,
)
_VALUE: Final = r"[-+(√\s]*\d[\d.,']*[)\s%²³!]*"
_SUM: Final = re.compile(
    rf"[¿\s]*(?P<asked>{any_of(words('sums.asking'))})?[:\s]*"
    rf"{_VALUE}(?:(?:[-+*/×÷·^−–xX]|\*\*|{any_of(words('sums'))}){_VALUE})+(?P<equals>=)?[\s?.!？]*",
    re.IGNORECASE,
)
_DATED: Final = re.compile(r"[\d.,']+(?:[-/xX–][\d.,']+)+")
"""Numbers that only these signs join without blanks: a date, a score, a telephone, a size, 4x4."""


PROMPT: Final = "parse_request"
_LANGUAGES: Final = (
    "ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv nl no pl pt ro ru sk "
    "sl sr sv th tr uk "
    "vi zh"
)
SCHEMA: Final[dict[str, object]] = {
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
            "maxItems": MOST_PARTS,
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
    queries = [
        SearchQuery(text, language, freshness, scholarly=scholarly)
        for text in (request, *parts)
    ]
    if freshness == "any" and _changes(request):
        # Beside the request, not in its place: what changes is often told by pages that carry no
        # date.
        queries.insert(1, SearchQuery(request, language, "year"))
    short = request
    if len(request) > LONGEST_QUERY:
        short = _short_form(request, entities)
        queries.append(SearchQuery(short, language, freshness))
    if english := _in_english(short, language, entities):
        queries.insert(1, SearchQuery(english, "en", freshness, scholarly=scholarly))
    return ParsedRequest(
        first_distinct(queries), entities, parts, needless=needless(request)
    )


def needless(request: str) -> str:
    """Return why `request` needs no search, as the end of a sentence; empty where it may need one.

    In doubt it does: a search that was not needed costs seconds, one that is missing the answer
    (`python -m bench.needless`).
    """
    text = " ".join(request.replace("’", "'").split())
    if _TALK.fullmatch(text):
        return "it asks for nothing that is written down"
    found = _SUM.fullmatch(text)
    if found is None:
        return ""
    said = text[found.end("asked") if found["asked"] else 0 :].strip(" ¿?.!？:")
    return "" if _DATED.fullmatch(said) and not found["equals"] else "it is arithmetic"


def first_distinct(queries: Iterable[SearchQuery]) -> tuple[SearchQuery, ...]:
    """Return the first `MAX_QUERIES` of `queries` with different words or periods."""
    kept: dict[tuple[str, str], SearchQuery] = {}
    for query in queries:
        kept.setdefault((query.text.casefold(), query.freshness), query)
    return tuple(kept.values())[:MAX_QUERIES]


def freshness_of(text: str, *, today: date) -> Freshness:
    """Return how recent results must be: the narrowest period that the words of `text` name, else
    `any`.

    It becomes a filter, never words: people write "latest" where they mean "no old pages", and a
    year added to the words narrows a search wrongly. A request that carries a date needs no filter,
    with one exception: "latest" beside the running year means this year.
    """
    named = {
        _SECTION_OF.get(" ".join(word.split()))
        for word in _TIME.findall(text.lower().replace("’", "'"))
    }
    found: Freshness = next(
        (period for section, period in _PERIODS.items() if section in named), "any"
    )
    if found == "any":
        return "any"
    years = [int(year) for year in _YEAR_NUMBER.findall(text)]
    if (years and max(years) != today.year) or _FULL_DATE.search(text):
        return "any"
    return "year" if years and found in ("month", "year") else found


def asks_for_research(text: str) -> bool:
    """Whether `text` asks for published research, by words such as "papers on", or by a DOI or an
    arXiv number."""
    return bool(
        _SCHOLARLY.search(text.lower().replace("’", "'")) or _IDENTIFIER.search(text)
    )


def _changes(text: str) -> bool:
    """Whether `text` asks for what changes within years, without a word for the period or a date
    that it speaks of."""
    return (
        bool(_CHANGING.search(text.lower()))
        and not _YEAR_NUMBER.search(text)
        and not _FULL_DATE.search(text)
    )


def _short_form(request: str, entities: tuple[str, ...]) -> str:
    """The last question of a long request with the names that it leaves out, within a provider's
    limit."""
    sentences = [
        part.strip()
        for part in re.split(r"(?<=[.!?。？！])\s+|\n+", request)
        if part.strip()
    ]
    asked = next(
        (part for part in reversed(sentences) if part.endswith(("?", "？"))),
        sentences[0],
    )[:LONGEST_QUERY]
    for name in entities:
        if name not in asked and len(asked) + len(name) < LONGEST_QUERY:
            asked += f" {name}"
    return asked


def _in_english(request: str, language: str, entities: tuple[str, ...]) -> str:
    """Return a request in another language word for word in English, or what of it is Latin where
    no list helps.

    Questions of XQuAD put to BM25 over its English paragraphs, gold among the first five of 300, by
    the request alone and with its English fused: German .587, .910; Russian .180, .870; Chinese
    .153, .920.
    """
    if (english := heard(request, "en")) != request or language not in OTHER_SCRIPTS:
        return english if english != request else ""
    names = [name for name in entities if re.search(r"[A-Za-z]", name)]
    numbers = [
        number
        for number in re.findall(r"(?<![\w.])\d{3,}(?!\w)", request)
        if not any(number in name for name in names)
    ]
    return " ".join([*names, *numbers]) if names else ""


# By a generator: the rules run first and stay in force where they are surer


class _Query(TypedDict):
    text: str
    language: str


class _Answer(TypedDict):
    entities: list[str]
    freshness: Freshness
    search: bool
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
    asking = AskOptions(ANSWER_TOKENS, parser.seconds, prompt.version, SCHEMA)
    try:
        reply = await ask(
            parser.generator, [Said("user", text)], asking, store=parser.store
        )
        return _merged(rules, cast(_Answer, json.loads(reply)))
    except ModelError as error:
        return replace(
            rules,
            fallback=f"The generator did not parse the request, rules did: {error}",
        )


def _merged(rules: ParsedRequest, said: _Answer) -> ParsedRequest:
    """Return the model's answer in the rules' type, checked against the request.

    Raises `ModelError` where it has nothing in common with it, so that following it would search
    for something else.
    """
    first = rules.queries[0]
    request = first.text
    known = _words(request)
    names = [
        name for name in map(one_line, said["entities"]) if name and name in request
    ]
    entities = [
        *rules.entities,
        *(n for n in names if not any(n in kept for kept in rules.entities)),
    ]
    # A freshness found by rule is surer than a guess. A guess narrows all queries but the raw
    # request: SmolLM2-135M narrowed 7 of 8 requests that name no time (`bench.eval --steps
    # parse`), and what is filtered out is lost.
    freshness = first.freshness if first.freshness != "any" else said["freshness"]
    held = _Held(rules)
    queries = [
        SearchQuery(text[:LONGEST_QUERY], one["language"], freshness, guessed=True)
        for one in said["queries"]
        if (text := held.kept(one["text"], one["language"]))
        and held.names(text, rules.entities)
    ]
    if not queries:
        raise ModelError(
            "none of its queries has a word of the request.", hint="Set a larger model."
        )
    asked = [held.kept(part, first.language) for part in said["parts"]]
    parts = () if rules.parts else _parts(asked, known)
    queries = [
        *(
            SearchQuery(part, first.language, first.freshness, guessed=True)
            for part in parts
        ),
        *queries,
    ]
    return ParsedRequest(
        first_distinct([*rules.queries, *queries]),
        tuple(dict.fromkeys(entities))[:MAX_ENTITIES],
        rules.parts or parts,
        made_by="model",
        needless=rules.needless
        or ("" if said["search"] else "the model finds that it needs none"),
    )


class _Held:
    """Holds a model's queries to what the request, or the rules of its language, gave.

    A query goes to strangers. A model that is wrong, or that a page has turned, could send a
    person's search to a host, exclude pages by an operator, or search for something else; so what
    is sent are words of the request, of the rules' queries, of the word lists' translation, and
    stop words. Where no list translates the request's language, ordinary words of an English query
    pass too, as many as the request has: no names, hosts or numbers.
    """

    def __init__(self, rules: ParsedRequest) -> None:
        self._request = rules.queries[0].text
        self._spoken = rules.queries[0].language
        self._texts = [query.text for query in rules.queries]
        self._texts += [
            heard(self._request, language) for language in ("en", self._spoken)
        ]
        self._written = {
            part.casefold().strip(",.?!") for part in self._request.split()
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
                if is_cjk(word):
                    parts.append("".join(sign for sign in word if sign in self._signs))
                elif not self._terms([word], language):
                    # a stop word; in capitals some engines read it as an operator
                    parts.append(word.lower())
                elif (
                    fold(word) in self._folded or self._terms([word], language) <= given
                ):
                    parts.append(word)
                elif (
                    left
                    and word.isalpha()
                    and word.islower()
                    and part.strip(",.?!") == word
                ):
                    parts.append(word)
                    left -= 1
        found = " ".join(filter(None, parts))
        return found if self._terms([found], language) or _words(found) else ""

    def names(self, text: str, entities: Iterable[str]) -> bool:
        """Whether a query names what the request is about, where that has a name.

        Of 58 test questions queries of four words drawn at random cost .05 of the pages that
        answer, by the places that they take (`python -m bench.eval --mimic noise`).
        """
        own = [self._terms([name], self._spoken) for name in entities]
        said = self._terms([text], self._spoken)
        return not any(own) or any(said & terms for terms in own)

    def _terms(self, texts: Iterable[str], language: str) -> frozenset[str]:
        """Return the terms of `texts` as the request's language, the query's and English have
        them; stop words are none."""
        languages = {self._spoken or "en", language, "en"}
        return frozenset(
            term
            for one in languages
            for text in texts
            for term in index_terms(text, language=one)
        )


def _parts(said: list[str], known: frozenset[str]) -> tuple[str, ...]:
    """Return the parts that a model named, where each asks with words of the request and all ask
    for different ones."""
    parts = [part for part in map(one_line, said) if len(part) <= LONGEST_QUERY]
    asked = {known & _words(part) for part in parts}
    return tuple(parts) if 1 < len(parts) == len(asked) and all(asked) else ()


def _words(text: str) -> frozenset[str]:
    return frozenset(
        word
        for word in _WORD.findall(text.casefold())
        if len(word) > 2 or not word.isascii()
    )
