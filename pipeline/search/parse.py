"""PARSER: what to search for a request, in which language, how fresh (zero-index §3.1).

The raw request is always the first query, because rewriting it by rules finds less
(mean reciprocal rank .831 against .850); what rules can add is a short form of a long
request, and one in English, word for word. Not for: what the rules know
of a request (`pipeline/question`), or a model's queries
(`papers/zero_index/parser.py`).
"""

from collections.abc import Iterable
from datetime import date
from typing import Final

from pipeline.document.units import split_sentences
from pipeline.question.question import Question
from pipeline.question.wants import asks_for_research
from pipeline.search.query import ParsedRequest, SearchQuery
from pipeline.work import traced

LONGEST_QUERY: Final = 300
"""Characters from which a request gets a short query besides: providers cut at about
400."""


@traced("parse")
def parse_request(question: Question, *, today: date) -> ParsedRequest:
    """Return what to search for `question`."""
    language, freshness = question.spoken, question.freshness(today)
    scholarly = asks_for_research(question.text)
    queries = [
        SearchQuery(
            question.text, language, freshness, scholarly=scholarly, asked=question
        )
    ]
    short = question
    if len(question.text) > LONGEST_QUERY:
        short = Question(_short_form(question))
        queries.append(SearchQuery(short.text, language, freshness, asked=short))
    english = short.translated_to("en")
    if english is not short:
        # Questions of XQuAD put to BM25 over its English paragraphs, gold among the first five of
        # 300, by the request alone and with its English fused: German .587, .910; Russian .180,
        # .870; Chinese .153, .920.
        query = SearchQuery(english.text, "en", freshness, scholarly=scholarly)
        queries.insert(1, query)
    return ParsedRequest(first_distinct(queries), question.entities)


def first_distinct(queries: Iterable[SearchQuery]) -> tuple[SearchQuery, ...]:
    """Return the first of each of `queries` with different words or periods."""
    distinct: dict[tuple[str, str], SearchQuery] = {}
    for query in queries:
        distinct.setdefault((query.text.casefold(), query.freshness), query)
    return tuple(distinct.values())


def _short_form(question: Question) -> str:
    """The last question of a long request, else its first sentence, with the names that
    it leaves out, cut to a provider's limit."""
    text = question.text
    sentences = [text[start:stop].strip() for start, stop in split_sentences(text)]
    questions = [line for line in sentences if line.endswith(("?", "？"))]
    short = (questions[-1] if questions else sentences[0])[:LONGEST_QUERY]
    for name in question.entities:
        if name not in short and len(short) + len(name) < LONGEST_QUERY:
            short += f" {name}"
    return short
