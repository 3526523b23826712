"""PARSER by rules: what to search, in which language, how fresh, and whether at all (zero-index §3.1).

One pass gives all parts. The raw request is always the first query, because rewriting it by rules finds less (MRR .831
against .850, notes/zeroindex §5); what rules can add is a query for each part of a request with several, and one of
its names for engines that index in English. Without a model nothing is translated. Not for: the model's parser, which
gives the same type.
"""

import re
from datetime import date
from typing import Final

from pipeline.documents import Freshness, ParsedRequest, SearchQuery
from pipeline.search.freshness import freshness_of
from pipeline.search.need import needs_search
from pipeline.text.language import guess_language
from pipeline.text.names import find_entities
from pipeline.trace import traced

MAX_QUERIES: Final = 4
LONGEST_QUERY: Final = 300
"""Characters from which a request gets a short query besides: providers cut at about 400 (notes §1)."""
_QUESTION_END: Final = re.compile(r"(?<=[?？])\s*(?=\S)|(?<=[。！])\s*(?=[^。！]*[？?])")
_AND_QUESTION: Final = re.compile(
    r"[,;]?\s+(?:and|und|et|y|e|en|и|or|oder)\s+(?:also\s+|auch\s+|aussi\s+|también\s+)?(?=(?:who|what|when|where|"
    r"which|why|how|is there|does|did|"
    r"wer|was|wann|wo|warum|welche[rsnm]?|wie|qui|quand|où|pourquoi|comment|combien|quel(?:le)?s?|quién|qué|cuándo|"
    r"dónde|"
    r"cómo|cuánto|chi|cosa|quando|dove|perché|come|кто|что|когда|где|почему|как|сколько)\b)|;\s+",
    re.IGNORECASE,
)
_LIST_ITEM: Final = re.compile(r"(?:^|\n)\s*(?:\d{1,2}[.)]|[-*•])\s+([^\n]{8,200})")
_PRONOUN: Final = {
    "en": r"it|its|they|them|their|theirs|he|him|his|she|her|hers|this|these|those",
    "de": r"er|ihn|ihm|sie|ihr|ihre[nrsm]?|es|sein(?:e[nrsm]?)?|dessen|deren|dies(?:e[rsnm]?)?|dort|davon|dazu",
    "fr": r"il|elle|ils|elles|lui|leur|leurs|son|sa|ses|celui-ci|celle-ci|cela|ça|y|en",
    "es": r"él|ella|ellos|ellas|su|sus|esto|eso|este|esta|ese|esa|allí|lo",
    "it": r"lui|lei|loro|suo|sua|suoi|sue|questo|questa|quello|ci",
    "ru": r"он|она|оно|они|его|её|ее|их|ему|ей|им|это|там",
}
_NOBODY: Final = re.compile(
    r"\bwhat time is it\b|\bis it (?:true|possible|safe|legal|ok(?:ay)?|worth|hard|easy|better|raining|snowing)\b"
    r"|\bdoes it (?:matter|take|rain|snow)\b|\bgibt es\b|\bwie spät ist es\b|\b(?:ist|war) es (?:wahr|möglich)\b",
    re.IGNORECASE,
)
"""Pronouns that stand for nothing said before."""
_PRONOUN_CJK: Final = re.compile(
    r"它|他|她|其(?!他|它|实|中)|这个|那个|這個|那個|それ|彼(?!岸)|彼女|その|あれ|この(?=人|会社|製品)"
)
_ELLIPSIS: Final = re.compile(
    r"^(?:and|what about|how about|but|also|then|und|was ist mit|et|qu['’]en est-il|y|¿y|e|а|那么|那|では|じゃあ)\b",
    re.IGNORECASE,
)
_POSSESSIVE: Final = frozenset({"its", "his", "hers"})
_LOOSE: Final = frozenset({"this", "these", "those", "they", "them", "their", "theirs"})
_PERSON: Final = frozenset({"he", "him", "his", "she", "her", "hers"})
_OTHER_SCRIPTS: Final = frozenset({"ja", "ko", "zh", "el", "he", "ar", "hi", "th", "uk", "ru"})
_RECENT: Final = 2_000
"""Characters of the context, from its end, in which the subject is looked for."""
_SHORT: Final = 12
"""Words up to which a request may lean on what was said before; longer ones stand alone."""


@traced("parse")
def parse_request(question: str, *, today: date, context: str = "") -> ParsedRequest:
    """Return what to search for `question`.

    Args:
        question: The request as it came.
        today: Today's date, for telling the running year.
        context: What was said before, oldest first; its last named entity resolves a pronoun of `question`.
    """
    request = question.strip()
    language = guess_language(request)
    # 1. Need, names, time
    need, reason = needs_search(request)
    entities = find_entities(request, language=language)
    freshness = freshness_of(request, today=today)
    # 2. A form that stands alone
    standalone = _standalone(request, entities, context, language)
    # 3. Queries: the request itself, its standalone form, its parts, its names
    texts = [(request, language), (standalone, language)]
    texts += [(part, language) for part in _parts(standalone, language)]
    if len(request) > LONGEST_QUERY:
        texts.append((_short_form(request, entities), language))
    texts += _names_in_latin(request, entities, language)
    queries = _queries(texts, freshness)
    return ParsedRequest(
        request=question,
        need_search=need,
        reason=reason,
        queries=queries,
        entities=entities,
        standalone=standalone or question,
    )


def _queries(texts: list[tuple[str, str]], freshness: Freshness) -> tuple[SearchQuery, ...]:
    distinct = {text.casefold(): SearchQuery(text, language, freshness) for text, language in reversed(texts)}
    kept = dict.fromkeys(text.casefold() for text, _ in texts)
    return tuple(distinct[key] for key in kept)[:MAX_QUERIES]


def _parts(request: str, language: str) -> list[str]:
    """The questions of a request with several, each with the first one's name where it has none; else nothing."""
    listed = [item.strip() for item in _LIST_ITEM.findall(request)]
    pieces = (
        listed
        if len(listed) > 1
        else [part.strip() for sentence in _QUESTION_END.split(request) for part in _AND_QUESTION.split(sentence)]
    )
    pieces = [piece for piece in pieces if len(piece) >= 8 or (piece and not piece.isascii())]
    if len(pieces) < 2 or len(request) > 3 * LONGEST_QUERY:
        return []
    subject = ""
    parts = []
    for piece in pieces:
        own = find_entities(piece, language=language)
        parts.append(piece if own or not subject else _resolved(piece, subject, language))
        subject = own[-1] if own else subject
    return parts


def _standalone(request: str, entities: tuple[str, ...], context: str, language: str) -> str:
    """The request with its subject put in, where it has none of its own and the context names one; else as it is."""
    if not context.strip() or entities or len(request.split()) > _SHORT:
        return request
    recent = context[-_RECENT:]
    names = find_entities(recent, language=guess_language(recent))
    plain = _NOBODY.sub(" ", request)
    leans = _pronoun(language).search(plain) or _PRONOUN_CJK.search(request) or _ELLIPSIS.match(request)
    return _resolved(request, names[-1], language) if names and leans else request


def _pronoun(language: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{_PRONOUN.get(language, _PRONOUN['en'])})(?!\w)", re.IGNORECASE)


def _resolved(request: str, name: str, language: str) -> str:
    """`request` with its first pronoun replaced by `name` (English), or with `name` behind it."""
    match = _pronoun("en").search(request) if language in ("en", "") else None
    # A name is one thing: "they" rarely means it, and "this" may point at anything
    pointing = match is not None and match[0].lower() in _LOOSE
    wrong_kind = (
        match is not None and match[0].lower() in _PERSON and not re.fullmatch(r"[^\W\d_]+(?:[ -][^\W\d_]+)+", name)
    )
    if match is None or pointing or wrong_kind:
        return f"{request.rstrip(' ?？.')} ({name})" + ("?" if request.rstrip().endswith(("?", "？")) else "")
    possessive = match[0].lower() in _POSSESSIVE or (
        match[0].lower() == "her" and bool(re.match(r"\s+[a-z]{3,}", request[match.end() :]))
    )
    return request[: match.start()] + name + ("'s" if possessive else "") + request[match.end() :]


def _short_form(request: str, entities: tuple[str, ...]) -> str:
    """The last question of a long request with the names that it leaves out, within a provider's limit."""
    sentences = [part.strip() for part in re.split(r"(?<=[.!?。？！])\s+|\n+", request) if part.strip()]
    asked = next((part for part in reversed(sentences) if part.endswith(("?", "？"))), sentences[0])[:LONGEST_QUERY]
    for name in entities:
        if name not in asked and len(asked) + len(name) < LONGEST_QUERY:
            asked += f" {name}"
    return asked


def _names_in_latin(request: str, entities: tuple[str, ...], language: str) -> list[tuple[str, str]]:
    """A query of the Latin names and long numbers in a request of another script: what rules have for a translation.

    Measured as recall in the first five of an English engine: ru .180 to .223, zh .153 to .197. Where the script is
    Latin itself it brings nothing (de .587 to .583) and is left out.
    """
    if language not in _OTHER_SCRIPTS:
        return []
    names = [name for name in entities if re.search(r"[A-Za-z]", name)]
    numbers = [
        number for number in re.findall(r"(?<![\w.])\d{3,}(?!\w)", request) if not any(number in name for name in names)
    ]
    return [(" ".join([*names, *numbers]), "en")] if names else []
