"""Rows 1 to 30: zero-indexing. See `papers/__main__.py`."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from inspect import signature
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np

from bench.library import CARRIED, LIBRARY, read_library
from bench.mimic import mimic
from bench.needless import unseen
from bench.paper_measures import (
    KINDS,
    NEEDLE_TOKENS,
    TEXTS,
    VectorStore,
    Verdict,
    answering,
    compare,
    judged,
    needle,
    needles,
    single_facts,
    weights,
)
from bench.paper_row import Bench, Outcome, as_printed, configured, differs, row
from errors import ModelError
from models.protocols import Ability, PathScores, Prompt, Said, TextKind, Vectors
from papers.recipes.sample import ADAPTED_MATRICES
from papers.zero_index.ask import (
    ROOM,
    Asking,
    grammar_of,
    read_answer,
)
from papers.zero_index.parser import NOT_FOLLOWED, needless, parse
from papers.zero_index.ranking import CONTENT_TOKENS, rank_as_printed
from papers.zero_index.tags import paper_tags
from pipeline.document.units import split_sentences, tag_sentences
from pipeline.evidence.assemble import assemble
from pipeline.generated import CheckedAnswer, Writing, write_answer
from pipeline.question.question import Question
from pipeline.question.wants import Freshness
from pipeline.reading.extract import read_documents
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import Blend
from pipeline.research import Researched, research
from pipeline.search.chain import Chain, seated
from pipeline.search.parse import parse_request
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult
from pipeline.sources.gather import Gathered, Wanted, gather_pages
from pipeline.text.tokens import count_tokens
from pipeline.text.words import find_entities
from pipeline.work import no_report
from prompts import load
from readers.page import Document, Sentence
from server.settings import Settings, read_settings
from server.wiring import open_services
from tests.support.pages import document
from tests.test_papers_extractor import ASKED, LOCKS, Scripted
from tools import research as research_tool
from tools.search_web import search_web

if TYPE_CHECKING:
    from papers.recipes.sample import Sample

TODAY: Final = date(2026, 11, 26)
SAMPLES: Final = 80
"""Of the extractor's recipe that are looked at."""
HELD: Final = 40
"""Requests of pages held aside, on which the extractor's measures are taken."""
MADE: Final = 400
"""Of the parser's recipe that are looked at."""
PAIRS: Final = 12
"""Questions that SmolLM2 judges."""
TRAIN: Final = Path(__file__).resolve().parents[1] / "papers" / "recipes"


def config(name: str) -> dict[str, object]:
    """Return a recipe's configuration."""
    return tomllib.loads((TRAIN / "configs" / f"{name}.toml").read_text("utf-8"))


def assert_printed(found: dict[str, object], base: str) -> None:
    """Assert what §3.1 and §4.3 print of both SFTs."""
    assert str(found["base"]).endswith(base) and "constant" not in found
    assert (found["batch"], found["rate"], found["most_tokens"]) == (16, 5e-6, 16384)
    assert found["samples"] == 10_000 and found["steps"] == 3 * 10_000 // 16
    assert (found["beta2"], found["rank"], found["warmup"]) == (0.95, 64, 0)
    assert len(ADAPTED_MATRICES) == 7 and "layers" not in found


@row(1, "ZI §2.1 seven steps in one pass", "pipeline/research.py")
async def _(_: Bench) -> Outcome:
    one = next(one for one in read_library(CARRIED).asked if one.answers)
    order = Wanted(Question(one.question), 3, form="paper")
    with TemporaryDirectory() as cache, mimic(CARRIED, "oracle") as url:
        settings = read_settings(
            {
                "generator": f"openai:{url}#oracle",
                "folders": str(CARRIED / LIBRARY),
                "search": "folder",
                "papers": "extractor=pages",
                "cache": cache,
                "seconds": "110",
            }
        )
        settings_by_default = read_settings(
            {"folders": str(CARRIED / LIBRARY), "search": "folder", "cache": cache}
        )
        ways = ((settings, order), (settings_by_default, Wanted(order.question, 3)))
        found, plain = [
            await researched(given, wanted, write=given is settings)
            for given, wanted in ways
        ]
    gathered, reading = found.gathered, found.answer.reading
    # 1. to 3. PARSER, search, mixed ranking
    assert any(query.guessed for query in gathered.parsed.queries)
    assert {outcome.status for outcome in gathered.outcomes} == {"ok"}
    assert {page.score.made_by for page in gathered.ranked} == {"embedding"}
    # 4. and 5. tags, EXTRACTOR: beside its sentences labels alone are shown here
    texts = [reading.places[row][1].text for row in reading.only]
    assert texts and one.is_in(" ".join(texts)) and "The model agrees" in reading.note
    shown = "\n".join(each.text for each in found.answer.assembled.evidence)
    others = [
        unit.text
        for row, (_, unit) in enumerate(reading.places)
        if row not in reading.only
    ]
    assert not any(text in shown for text in others if len(text) > LABEL)
    # 6. and 7. enriched prompt, answer
    assert found.written is not None and one.is_in(found.written.text)
    # By default
    assert not any(query.guessed for query in plain.gathered.parsed.queries)
    assert "embedding" not in {page.score.made_by for page in plain.gathered.ranked}
    assert not plain.answer.reading.only and plain.written is None
    # The tools' arguments
    assert "rank" not in signature(research_tool.research).parameters
    assert "rank" in signature(search_web).parameters
    return differs(
        "all in one call of pipeline/research.py with a generator (an oracle here), extractor=pages, write=True and "
        'form="paper", which the tool research lacks; whether to search is by rules (row 2); by default 1 is '
        "by rules, 5 by words, embeddings and a small cross-encoder, 3 is another ranking, 4 and 7 are left out"
    )


LABEL: Final = 30
"""Characters up to which a text is a heading or the like, which may be above what is shown."""


async def researched(settings: Settings, order: Wanted, *, write: bool) -> Researched:
    """Return what `research` finds within 1,000 tokens."""
    async with open_services(settings) as services:
        return await research(
            order,
            services,
            max_tokens=1_000,
            reserve=0,
            report=no_report,
            write=write,
        )


@row(2, "ZI §3.1 whether a search is needed", "papers/zero_index/parser.py")
async def _(_: Bench) -> Outcome:
    wanted = {"What is 17*23?": True, "What is the 17-23 rule in darts?": False}
    for text, free in wanted.items():
        said = {"entities": [], "parts": [], "freshness": "any", "search": free}
        writer = Writer({**said, "queries": [{"text": text, "language": "en"}]})
        found = await parse(Question(text), writer, None, 9, today=TODAY)
        assert bool(found.needless) is free
        assert (found.fallback == NOT_FOLLOWED) is (not free)
        assert writer.asked == (not free)
    assert needless("Hello!") and needless("Thanks a lot!")
    order = Wanted(Question("What is 17*23?"), 3)
    searched = [
        bool((await gathered(order, generator)).outcomes)
        for generator in ("oracle", "")
    ]
    assert searched == [False, True]
    count, seen, others = unseen()
    assert others == 0 < seen < count / 2
    return differs(
        "by rules, before a generator is asked; without one What is 17*23? is searched; of bench/asked/needless_unseen*"
        f".tsv {seen} of {count} needless requests are found, {others} of the others; a model's word is not followed"
    )


async def gathered(
    order: Wanted, generator: str = "", engine: "Engine | None" = None
) -> Gathered:
    """Return what is gathered from the sample library, with a generator (a worth of the
    mimic; "" is none), by its own search or that of an engine."""
    with TemporaryDirectory() as cache, mimic(CARRIED, "oracle") as url:
        settings = read_settings(
            {
                **({"generator": f"openai:{url}#{generator}"} if generator else {}),
                "folders": str(CARRIED / LIBRARY),
                "search": "folder",
                "cache": cache,
            }
        )
        async with open_services(settings) as services:
            chain = Chain([engine], None, monotonic) if engine else services.chain
            return await gather_pages(
                order, replace(services, chain=chain), report=no_report
            )


class Writer:
    """A generator that answers a parse."""

    name = "writer"
    context_tokens = 8_000

    def __init__(self, answer: object) -> None:
        self.asked = 0
        self._answer = answer

    async def generate(
        self,
        messages: Sequence[Said],
        *,
        max_tokens: int,
        schema: dict[str, object] | None = None,
    ) -> str:
        """Return the answer."""
        self.asked += 1
        return json.dumps(self._answer)


@row(3, "ZI §3.1 keywords in one inference", "papers/zero_index/parser.py")
async def _(_: Bench) -> Outcome:
    said = {"entities": [], "parts": [], "freshness": "any", "search": True}
    queries = [{"text": "Quoxholm Zanzibar ferry fare", "language": "en"}]
    writer = Writer({**said, "queries": queries})
    asked = "What is the fare of the ferry to Quoxholm?"
    found = await parse(Question(asked), writer, None, 9, today=TODAY)
    assert writer.asked == 1 and found.queries[1].guessed
    assert [query.text for query in found.queries] == [asked, "Quoxholm ferry fare"]
    return differs(
        f"one call, as printed; the raw request is sent first, of a model's {queries[0]['text']!r} then "
        f"{found.queries[1].text!r}, since queries go to strangers"
    )


class Caller:
    """Who asks a JSON API of search."""

    base = "https://example.org"
    key = "key"

    def __init__(self) -> None:
        self.today: Callable[[], date] = lambda: TODAY


@row(4, "ZI §3.1 information about time in keywords", "pipeline/search/parse.py")
async def _(_: Bench) -> Outcome:
    from pipeline.search.provider import providers  # noqa: PLC0415  looks into a folder

    wanted = {
        "How's the weather?": "day",
        "What is the best weight loss method of 2024?": "any",
        "news this week": "week",
    }
    for text, freshness in wanted.items():
        query = parse_request(Question(text), today=TODAY).queries[0]
        assert (query.text, query.freshness) == (text, freshness)
    services = [one.service for one in providers().values() if one.service]
    filtering = [one for one in services if "freshness" in one.able]
    for service in filtering:
        sent = {
            repr(service.write(Caller(), SearchQuery("x", freshness=one), "x", 5))
            for one in get_args(Freshness)
        }
        assert len(sent) == len(get_args(Freshness)) == 5, service.name
    return differs(
        "a filter in place of keywords: How's the weather? asks for pages of a day, the paper's example with 2024 for "
        f"any; {len(filtering)} of {len(services)} services (pipeline/search/service.py) send it"
    )


@row(5, "ZI §3.1 keywords in a second language", "pipeline/search/parse.py")
async def _(_: Bench) -> Outcome:
    asked = "Wie hoch ist der Leuchtturm von Quoxholm?"
    first, second, *others = parse_request(Question(asked), today=TODAY).queries
    assert (first.text, first.language) == (asked, "de") and not others
    assert (second.text, second.language) == (
        "how high is lighthouse of Quoxholm",
        "en",
    )
    said = {"entities": [], "parts": [], "freshness": "any", "search": True}
    french = {"text": "Quoxholm phare lighthouse Leuchtturm Zanzibar", "language": "fr"}
    writer = Writer({**said, "queries": [french]})
    parsed = await parse(Question(asked), writer, None, 9, today=TODAY)
    texts = [query.text for query in parsed.queries if query.language == "fr"]
    assert texts == ["Quoxholm lighthouse Leuchtturm"]
    for language, text in ASKED_ABROAD.items():
        own, abroad = parse_request(Question(text), today=TODAY).queries
        assert (own.text, own.language, abroad.language) == (text, language, "en")
        assert "lighthouse" in abroad.text.split(), abroad.text
    dutch = Question("Hoe hoog is de vuurtoren van Quoxholm?")
    assert len(parse_request(dutch, today=TODAY).queries) == 1
    words = "lighthouse height metre tower coast island stone lamp keeper harbour"
    english = {"text": f"Quoxholm Zanzibar {words}", "language": "en"}
    parsed = await parse(
        dutch, Writer({**said, "queries": [english]}), None, 9, today=TODAY
    )
    (kept,) = (query.text for query in parsed.queries if query.language == "en")
    ordinary = " ".join(words.split()[: len(dutch.text.split())])
    assert kept == f"Quoxholm {ordinary}" != f"Quoxholm {words}", kept
    return differs(
        "one more query for German, Spanish, French, Russian and Chinese, word by word into English where a list has "
        f"the words: {second.text!r}; other languages by a generator alone"
    )


ASKED_ABROAD: Final = {
    "es": "¿Qué altura tiene el faro de la isla?",
    "fr": "Quelle est la hauteur du phare de cette île ?",
    "ru": "Какова высота маяка на острове?",
    "zh": "岛上的灯塔有多高？",
}
"""How high a lighthouse is, by language."""


@row(6, "ZI §3.1 names out of the vocabulary", "pipeline/text/words.py")
async def _(_: Bench) -> Outcome:
    named = "What does Zorblat Quintex Holdings make?"
    found = find_entities(named, language="en")
    assert found == ("Zorblat Quintex Holdings",)
    assert not find_entities(named.casefold(), language="en")
    asked = "Was ist Blorvex Handelsgesellschaft?"
    first, second = parse_request(Question(asked), today=TODAY).queries
    assert first.text == asked and second.text == "what is Blorvex trade society"
    return differs(
        f"{found[0]!r} is one name by its capitals; the request is sent whole, its English takes a name apart: "
        f"{second.text!r}"
    )


@row(7, "ZI §3.1 the parser's SFT", "papers/recipes/parser.py")
async def _(_: Bench) -> Outcome:
    found = config("parser_paper")
    assert_printed(found, "Yi-6B-Chat")
    assert "kind" not in found  # the parser's samples, in their plain form
    return configured(
        "parser_paper.toml: batch 16, 16,384 tokens, 5e-6, second beta .95 as printed; the cosine ends at 0 (there "
        "1.5e-6), an adapter of rank 64 is ours; not trained here"
    )


@row(8, "ZI §3.1 the parser's instruction set", "papers/recipes/parser.py")
async def _(_: Bench) -> Outcome:
    from papers.recipes.parser import LONGEST, parser_samples  # noqa: PLC0415  reads the data sets
    from train.reader.data import load_public  # noqa: PLC0415  the recipes' own

    samples = parser_samples("dev", 1)
    said = [json.loads(one.answer) for one in samples[:MADE]]
    public = " ".join(one.question for one in load_public("dev").questions)
    plain = [one for one in said if one["freshness"] == "any" and not one["parts"]]
    kinds = {
        "need no search": [one for one in said if not one["search"]],
        "ask for recent pages": [one for one in said if one["freshness"] != "any"],
        "are two questions": [one for one in said if one["parts"]],
        "have a made-up name": [
            one for one in plain if any(name not in public for name in one["entities"])
        ],
    }
    assert len(samples) > len(said) == MADE and LONGEST < 200
    assert all(0.02 < len(own) / MADE < 0.4 for own in kinds.values())
    assert {query["language"] for one in said for query in one["queries"]} == {"en"}
    assert all(
        any(name in query["text"] for query in one["queries"])
        for one in said
        for name in one["entities"]
        if name not in public
    )
    shares = ", ".join(f"{len(own)} {kind}" for kind, own in kinds.items())
    return differs(
        f"by rule from public questions, in English, there by GPT-4o; of {MADE} requests {shares}"
    )


class Engine:
    """A search engine with one page for each query."""

    def __init__(
        self, name: str, status: Literal["ok", "empty", "blocked"] = "ok"
    ) -> None:
        self.name = name
        self.status = status

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return its page, and one that all queries bring."""
        pages = [
            SearchResult(query.text, f"https://{self.name}.org/{query.text}", ""),
            SearchResult("both", "https://e.org/both", ""),
        ]
        hits = tuple(pages) if self.status == "ok" else ()
        return SearchOutcome(hits, self.name, self.status)


class Files(Engine):
    """An engine that finds pages of the sample library, more than are asked for."""

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return twice as many as are asked for."""
        paths = sorted((CARRIED / LIBRARY).glob("*.html"))[: 2 * limit]
        hits = [SearchResult(path.stem, path.as_uri(), "") for path in paths]
        return SearchOutcome(tuple(hits), self.name, "ok")


@row(9, "ZI §2.1 search APIs, §3.2 lists combined", "pipeline/search/chain.py")
async def _(_: Bench) -> Outcome:
    from pipeline.search.provider import providers  # noqa: PLC0415  looks into a folder

    engines = [Engine("shut", "blocked"), Engine("one"), Engine("two")]
    queries = [SearchQuery("main"), SearchQuery("auxiliary", "de")]
    found = await Chain(engines, None, lambda: 0.0).search(queries, limit=9)
    urls = [one.url for one in found.results]
    assert urls == [
        "https://e.org/both",
        "https://one.org/main",
        "https://one.org/auxiliary",
    ]
    own = SearchQuery("own", guessed=True)
    found = await Chain([engines[1]], None, lambda: 0.0).search(
        [*queries, own], limit=9
    )
    urls = [one.url.rpartition("/")[2] for one in found.results]
    assert urls == ["both", "main", "own", "auxiliary"], urls
    assert seated([1, 2, 3, 4, 5], [-1, -2]) == [1, 2, -1, 3, 4, -2, 5]
    for empty, asked in ((1, ["a", "one"]), (2, ["a", "b"])):
        line = [*(Engine(name, "empty") for name in "ab"[:empty]), *engines[1:]]
        found = await Chain(line, None, lambda: 0.0).search(queries[:1], limit=9)
        assert [one.provider for one in found.outcomes] == asked
    kinds = Counter(one.kind for one in providers().values())
    return differs(
        f"{kinds['web']} web providers, there Google and Bing, asked in turn; the lists of the rules' queries are "
        "fused by reciprocal ranks, a model's get every third place; no order among the lists is printed"
    )


def results(count: int) -> tuple[list[SearchResult], dict[str, Document]]:
    """Return hits with pages: the snippet of the first answers, and the content of the
    last."""
    hits = [
        SearchResult(f"Page {n}", f"https://e.org/{n}", "about boats")
        for n in range(count)
    ]
    hits[0] = replace(hits[0], snippet="The lighthouse of Quoxholm is 40 metres high.")
    pages = {
        one.url: document(f"<p>Boats and boats {n}.</p>", one.url)
        for n, one in enumerate(hits)
    }
    pages[hits[-1].url] = document(
        "<p>The ferry to Quoxholm costs nine crowns.</p>", hits[-1].url
    )
    return hits, pages


@row(10, "ZI §3.2 2n items, the better one wins", "papers/zero_index/ranking.py")
async def _(bench: Bench) -> Outcome:
    hits, pages = results(3)
    for asked, winner in (
        ("fare of the ferry to Quoxholm", hits[-1]),
        ("height of the lighthouse of Quoxholm", hits[0]),
    ):
        query = (await bench.embedder.embed([asked], kind="query"))[0]
        texts = [one.snippet for one in hits] + [pages[one.url].text for one in hits]
        cosines = await bench.embedder.embed(texts, kind="passage") @ query
        ranked = await rank_as_printed(
            Question(asked), hits, pages, embedder=bench.embedder
        )
        assert ranked[0].result.url == winner.url
        by_page = {one.result.url: one.score.value for one in ranked}
        for place, hit in enumerate(hits):
            assert (
                abs(by_page[hit.url] - max(cosines[place], cosines[place + 3])) < 1e-5
            )
    long = document(f"<p>{'Boats and boats. ' * 300}{texts[-1]}</p>", hits[1].url)
    pages[hits[1].url] = long
    ranked = await rank_as_printed(
        Question("fare of the ferry to Quoxholm"), hits, pages, embedder=bench.embedder
    )
    assert ranked[0].result.url == hits[-1].url
    return differs(
        f'rank="paper": a page has the better score of snippet and content, as printed; of the content nothing after '
        f"the first {CONTENT_TOKENS} tokens is scored"
    )


@row(11, "ZI §3.2 scores by the keywords", "papers/zero_index/ranking.py")
async def _(bench: Bench) -> Outcome:
    hits, pages = results(3)
    orders = [
        await rank_as_printed(
            Question("Which boats?"),
            hits,
            pages,
            embedder=bench.embedder,
            keywords=keywords,
        )
        for keywords in ((), ("Quoxholm ferry fare crowns",))
    ]
    assert orders[1][0].result.url == hits[-1].url != orders[0][0].result.url
    assert {one.score.made_by for order in orders for one in order} == {"embedding"}
    # The same in a search: a generator's keywords are handed over, and none without one
    asked = next(one for one in read_library(CARRIED).asked if one.answers).question
    order = Wanted(Question(asked), 3, form="paper")
    for generator in ("oracle", ""):
        found = await gathered(order, generator)
        words = [one.text for one in found.parsed.queries if one.guessed]
        assert bool(words) is bool(generator)
        scored = {page.result.url: page.score.value for page in found.ranked}
        by_words, by_question = [
            await rank_as_printed(
                order.question,
                [page.result for page in found.ranked],
                found.documents,
                embedder=bench.embedder,
                keywords=keywords,
            )
            for keywords in (words, ())
        ]
        assert all(
            abs(scored[page.result.url] - page.score.value) < 1e-3 for page in by_words
        )
        apart = [
            abs(scored[page.result.url] - page.score.value) for page in by_question
        ]
        assert (max(apart) > 0.01) is bool(words), apart
    reranked = await rank_as_printed(
        Question("Which boats?"),
        hits,
        pages,
        embedder=bench.embedder,
        reranker=Longest(),
        keywords=("Quoxholm",),
    )
    assert {one.score.made_by for one in reranked} == {"rerank"}
    sizes = [max(len(one.snippet), len(pages[one.url].text)) for one in hits]
    assert [one.score.value for one in reranked] == sorted(sizes, reverse=True)
    return differs(
        "rank=\"paper\": by a generator's keywords, as printed, by the question where there are none; any embedder's "
        "cosine, or a reranker's score, for BGE-M3's"
    )


class Longest:
    """A reranker by which the longest text is the best."""

    name = "longest"

    async def score(self, query: str, passages: Sequence[str]) -> Vectors:
        """Return the characters of each text."""
        return np.array([len(text) for text in passages], dtype=np.float32)


@row(12, "ZI §3.2 top K distinct pages", "papers/zero_index/ranking.py")
async def _(bench: Bench) -> Outcome:
    hits, pages = results(5)
    pages[hits[0].url] = document(f"<p>{hits[0].snippet}</p>", hits[0].url)
    ranked = await rank_as_printed(
        Question("lighthouse of Quoxholm"), hits, pages, embedder=bench.embedder
    )
    urls = [one.result.url for one in ranked]
    assert urls[0] == hits[0].url and sorted(urls) == [one.url for one in hits]
    assert [one.place for one in ranked] == [1, 2, 3, 4, 5]
    library = Files("library")
    for most in (1, 2):
        order = Wanted(Question("lighthouse of Quoxholm"), most, form="paper")
        by_paper = await gathered(order, engine=library)
        places = [page.place for page in by_paper.ranked]
        assert places == list(range(1, most + 1))
        assert most < len(by_paper.outcomes[0].results)
    return as_printed(
        'rank="paper": 10 items give 5 pages, each once; the first K stay, for K of 1 and 2'
    )


@row(13, "ZI §4.1 sentences by . ! ? and not in decimals", "pipeline/document/units.py")
async def _(_: Bench) -> Outcome:
    printed = (
        "It is 3.14.|Yes!",
        "Is it 2.5?|It is.|Good!",
        "Yes!|It is.",
        "No end",
    )
    others = ("Dr. Lind says so.", "Version 2.0.1 works.|Fine.")
    for parted in (*printed, *others):
        text = parted.replace("|", " ")
        assert [text[a:b] for a, b in split_sentences(text)] == parted.split("|")
    assert split_sentences("好。真的吗？是！") == [(0, 2), (2, 6), (6, 8)]
    return differs(
        f"{len(printed)} of {len(printed)} texts with the printed marks and decimals; of its own, Dr. Lind and 2.0.1 "
        "stay whole, and 好。真的吗？是！ is three"
    )


@row(14, "ZI §4.1 sentences in pairs of tags", "papers/zero_index/tags.py")
async def _(_: Bench) -> Outcome:
    page = document("<p>One sentence here. Another &lt;/TAG-1&gt; one here.</p>")
    shown = paper_tags(tag_sentences(page))
    assert "<TAG-1>One sentence here.</TAG-1>" in shown and shown.count("</TAG-1>") == 1
    assert "\n<TAG-2>Another (/TAG-1> one here.</TAG-2>" in shown
    return as_printed(
        "with extractor=pages; ours besides: `</TAG-1>` in a page's text becomes `(/TAG-1>`"
    )


TAGGED: Final = re.compile(r"<TAG-\d+>(.*?)</TAG-\d+>")
LONG_PAGE: Final = "<main><h1>Locks</h1>{}</main>".format(
    "".join(
        f"<h2>Lock {n}</h2><p>Lock {n} opens. It costs {n}9 yuan.</p>"
        for n in range(20)
    )
)
"""Of 61 sentences and headings, more than are shown by the other ways."""


BREAD: Final = "<p>The baker opens at six. A loaf costs 12 yuan.</p>"


async def by_rules(extractor: Asking | None = None) -> Reading:
    """Return the reading of two pages, as an extractor revises it."""
    return await read_documents(
        Question("What does lock 7 cost?"),
        [document(LONG_PAGE), document(BREAD)],
        reader=Blend(None),
        extractor=extractor,
    )


class Bounded(Scripted):
    """Names as many lines as a schema allows, as a server that holds to it does."""

    async def generate(
        self,
        messages: Sequence[Said],
        *,
        max_tokens: int,
        schema: dict[str, object] | None = None,
        grammar: str | None = None,
    ) -> str:
        """Return the numbers of the lines that it takes."""
        said = await super().generate(
            messages, max_tokens=max_tokens, schema=schema, grammar=grammar
        )
        if schema is None:
            return said
        most = int(re.findall(r'"maxItems": (\d+)', json.dumps(schema))[0])
        return json.dumps({"lines": json.loads(said)["lines"][:most]})


async def by_pages(
    *words: str, ability: Ability = "grammar", context: int = 20_000
) -> tuple[Scripted, Reading, list[str]]:
    """Return an extractor by pages after it was asked of two pages, which takes
    sentences with these words, the reading, and the texts of what it names."""
    model = Bounded(*words, abilities=frozenset({"generate", ability}))
    model.context_tokens = context
    found = await by_rules(Asking(model, "pages", 60.0))
    return model, found, [found.places[row][1].text for row in sorted(found.only)]


@row(
    15,
    "ZI §4.1 a page's whole tagged content, page by page",
    "papers/zero_index/ask.py",
)
async def _(_: Bench) -> Outcome:
    model, found, taken = await by_pages("costs 79 yuan")
    assert taken == ["It costs 79 yuan."]
    locks, bread = sorted(model.seen, key=lambda prompt: "loaf" in prompt)
    assert "loaf" not in locks and "Lock 1" not in bread
    for index, prompt in enumerate((locks, bread)):
        texts = [unit.text for page, unit in found.places if page == index]
        tags = paper_tags(
            Sentence(number, text, 0, 0, 0) for number, text in enumerate(texts, 1)
        )
        assert tags in prompt
    few = (await by_pages("costs 79 yuan", context=1_200))[0]
    short = next(prompt for prompt in few.seen if "loaf" not in prompt)
    kept = TAGGED.findall(short)
    best = [
        found.places[row][1].text
        for row in np.argsort(-(await by_rules()).values, kind="stable")
        if found.places[row][0] == 0
    ]
    assert len(kept) < len(best) == 61 and {*best[: len(kept) // 2]} <= {*kept}
    assert kept != [unit.text for _, unit in found.places][: len(kept)]
    return differs(
        f"WINNOW_PAPERS=extractor=pages: {len(model.seen)} pages, {len(model.seen)} calls, each with its page in tags, "
        "as printed; of a page over the model's window with what scores best"
    )


@row(16, "ZI §4.1 the relevant tags, or None", "papers/zero_index/ask.py")
async def _(_: Bench) -> Outcome:
    assert read_answer("<TAG-5>,<TAG-6>,<TAG-7>", 9) == {5, 6, 7}
    assert not read_answer("None", 9)
    try:
        read_answer("<TAG-12>", 9)
    except ModelError:
        refused = True
    ends = f'("," tag){{0,{ROOM.tags - 1}}}\n'
    assert refused and grammar_of(30, "pages").startswith(
        f'root ::= "None" | tag {ends}'
    )
    one = (await by_pages("costs 79 yuan"))[1]
    pages = [document(LONG_PAGE), document(BREAD)]
    (passage,) = assemble(pages, one, max_tokens=1_000, delimiter="0").evidence
    assert passage.text.endswith("Lock 7 opens. It costs 79 yuan.")
    named, taken = (await by_pages("costs"))[1:]
    assert len(taken) == 21 and "A loaf costs 12 yuan." in taken
    passages = assemble(pages, named, max_tokens=1_000, delimiter="0").evidence
    shown = "\n".join(each.text for each in passages)
    held = sum(text in shown for text in taken)
    beside = len(re.findall(r"Lock \d+ opens\.", shown))
    assert 0 < held < len(taken) and beside > 0
    assert (await by_pages("costs", ability="schema"))[2] == taken
    found, nothing = (await by_pages())[1:]
    assert "finds no line" in found.note and found.verdict == "unsure"
    rules = np.argsort(-(await by_rules()).values, kind="stable")[:6].tolist()
    assert nothing == [found.places[row][1].text for row in sorted(rules)]
    asked = Question("Who won the cup of 1998?")
    extractor = Asking(Bounded(), "pages", 60.0)
    neither = await read_documents(
        asked, pages, reader=Blend(None), extractor=extractor
    )
    assert neither.verdict == "none" and not neither.only
    return differs(
        f"at most {ROOM.tags} tags, or None; of {len(taken)} named {held} are shown, and {beside} sentences beside "
        f"them; None of every page leaves the core's best {len(nothing)} as unsure, or their verdict none"
    )


def published(pages: Sequence[Document]) -> list[Document]:
    """Return pages of the sample library at web addresses: those of files are as long
    as the folder of the checkout."""
    return [
        replace(one, page=replace(one.page, final_url=f"https://example.org/{number}"))
        for number, one in enumerate(pages)
    ]


@row(
    17,
    "ZI §5.1, Table 2 extraction shortens the generator's input",
    "papers/zero_index/ask.py",
)
async def _(bench: Bench) -> Outcome:
    library = read_library(CARRIED)
    whole = before = after = held = count = 0
    for one in [one for one in library.asked if one.answers and one.split == "test"][
        ::6
    ]:
        pages = published(library.nearest(one.question, first=one.pages))
        words = [wording for fact in one.answers for wording in fact]
        model = Scripted(*words)
        model.context_tokens = 100_000
        plain = await read_documents(Question(one.question), pages, reader=bench.reader)
        asking = Asking(model, "pages", 60.0)
        short = await read_documents(
            Question(one.question), pages, reader=bench.reader, extractor=asking
        )
        whole += sum(count_tokens(page.text) for page in pages)
        before += assemble(pages, plain, max_tokens=768, delimiter="0").shown.tokens
        shown = assemble(pages, short, max_tokens=768, delimiter="0")
        after += shown.shown.tokens
        held += one.is_in("\n".join(each.text for each in shown.evidence))
        count += 1
    assert after < 0.5 * before < 0.1 * whole and held == count
    return differs(
        f"{count} questions: whole pages {whole} tokens, evidence by rules {before}, around what an oracle names "
        f"{after}, all answers in it; there 3.88 and 2.04 million with a trained model"
    )


@cache
def printed() -> "list[Sample]":
    """Return the first samples of the extractor's recipe as printed."""
    from papers.recipes.extractor import printed_samples  # noqa: PLC0415  reads the data sets

    return list(islice(printed_samples("dev", 0), SAMPLES))


@cache
def preferred() -> "list[Sample]":
    """Return the first preference pairs of the extractor's recipe as printed."""
    from papers.recipes.extractor import printed_pairs  # noqa: PLC0415  reads the data sets

    return list(islice(printed_pairs("dev", 0), SAMPLES))


@row(
    18,
    "ZI §4.2 Instruction-A (a summary before each tag)",
    "papers/recipes/extractor.py",
)
async def _(_: Bench) -> Outcome:
    from papers.recipes.extractor import SUMMARY  # noqa: PLC0415  reads the data sets

    pairs = list(zip(printed()[::2], printed()[1::2], strict=True))
    said = [one.answer for one, plain in pairs if plain.answer != "None"]
    form = re.compile(r".+: (<TAG-\d+>)")
    for one, plain in pairs:
        lines = one.answer.splitlines() if plain.answer != "None" else []
        assert lines or one.answer == "None"
        found = [form.fullmatch(line) for line in lines]
        tags = [match[1] for match in found if match is not None]
        assert len(tags) == len(lines) and (",".join(tags) or "None") == plain.answer
        for line, tag in zip(lines, tags, strict=True):
            summary = line.removesuffix(f": {tag}")
            assert f"{tag}{summary}" in plain.prompt
            assert 0 < count_tokens(summary) <= SUMMARY
    return differs(
        f"of {len(pairs)} samples {len(said)} have tags, each after a summary, the others None; the summary is the "
        f"sentence, cut at {SUMMARY} tokens, there a model's words"
    )


@row(19, "ZI §4.2 Instruction-B", "papers/recipes/extractor.py")
async def _(_: Bench) -> Outcome:
    from papers.recipes.extractor import printed_samples  # noqa: PLC0415  reads the data sets
    from train.reader.data import Corpus, Text  # noqa: PLC0415  the recipes' own
    from train.reader.data import Question as Taught  # noqa: PLC0415  the recipes' own

    texts = [f"Ferry {n} has {40 * n} seats. {'It sails. ' * 9}" for n in range(1, 6)]
    right = frozenset({1})
    asked = Taught("How many seats has ferry 2?", "ferries", right, right, "")
    corpus = Corpus({"ferries": Text(texts, [""] * len(texts))}, [asked])
    labelled = [*printed_samples("dev", 0, corpus)][1]
    assert f"{labelled.answer}Ferry 2 has 80 seats." in labelled.prompt

    form = re.compile(r"None|<TAG-\d+>(,<TAG-\d+>)*")
    plain = printed()[1::2]
    assert all(form.fullmatch(one.answer) for one in plain)
    assert {one.answer == "None" for one in plain} == {True, False}
    assert all(one.source.startswith("own-") for one in plain)
    assert all(
        one.prompt.startswith(two.prompt.rstrip())
        for one, two in zip(printed()[::2], plain, strict=True)
    )
    return differs(
        f"{len(plain)} samples: row 18's requests and pages with tags alone, or None, as printed; the labels come "
        "with our own questions, there OpenAI's API labels"
    )


@row(
    20,
    "ZI §4.2 filters: 100 tokens, None 5 %",
    "papers/recipes/extractor.py",
)
async def _(_: Bench) -> Outcome:
    from papers.recipes.extractor import (  # noqa: PLC0415  reads the data sets
        MAKERS,
        printed_pairs,
        printed_samples,
    )
    from train.reader.data import Corpus, Text  # noqa: PLC0415  the recipes' own
    from train.reader.data import Question as Taught  # noqa: PLC0415  the recipes' own

    corpus = Corpus()
    for words in (99, 100):
        text = [" ".join(["word"] * half) for half in (words // 2, words - words // 2)]
        assert sum(map(count_tokens, text)) == words
        corpus.texts[str(words)] = Text(text, ["", ""])
        one = frozenset({0})
        corpus.questions.append(Taught(f"Of {words}?", str(words), one, one, ""))
    for make in (printed_samples, printed_pairs):
        asked = {one.prompt for one in make("dev", 0, corpus)}
        assert asked and all("Of 100?" in prompt for prompt in asked), asked
    assert MAKERS["printed"] is printed_samples
    assert MAKERS["printed_pairs"] is printed_pairs
    found = printed()
    none = sum(one.answer == "None" for one in found) / len(found)
    assert config("extractor_paper")["kind"] == "printed"
    assert 0.03 < none <= 0.05
    return differs(
        f"pages under 100 tokens are left out and None is {none:.3f} of {len(found)} answers, as printed; nothing is "
        "labelled twice: no API labels here"
    )


@row(21, "ZI §4.3 the extractor's SFT", "papers/recipes/extractor.py")
async def _(_: Bench) -> Outcome:
    found = config("extractor_paper")
    assert_printed(found, "Yi-1.5-9B-Chat-16K")
    assert found["kind"] == "printed"
    longest = max(count_tokens(one.prompt) for one in printed())
    assert 4_000 < longest <= 16_384
    return configured(
        "extractor_paper.toml: batch 16, 16,384 tokens, 5e-6, second beta .95 as printed; the base is taken for "
        "Yi-1.5-9B-Chat-16K, an adapter of rank 64 is ours; the longest of "
        f"{len(printed())} prompts has {longest} tokens; not trained here"
    )


@row(22, "ZI §4.5 DPO", "papers/recipes/lora.py")
async def _(_: Bench) -> Outcome:
    found = config("extractor_dpo_paper")
    assert found["stage"] == "dpo" and found["kind"] == "printed_pairs"
    sizes = sorted(count_tokens(one.prompt) for one in preferred())
    assert sizes[0] >= 500 and 4_000 < sizes[-1] <= 16_384
    assert (found["start"], found["beta"], found["rate"]) == ("RUN", 0.1, 5e-7)
    return configured(
        "extractor_dpo_paper.toml: the printed loss, from the model after SFT; beta .1 and rate 5e-7, which are not "
        f"printed; {len(sizes)} prompts of {sizes[0]} to {sizes[-1]} tokens; not trained here"
    )


@row(
    23,
    "ZI §4.4 preference pairs for DPO",
    "papers/recipes/extractor.py",
)
async def _(_: Bench) -> Outcome:
    pairs = preferred()
    assert all(one.rejected and one.rejected != one.answer for one in pairs)
    assert all("<TAG-1>" in one.prompt for one in pairs)
    asked = [one.prompt.rpartition("Question: ")[2] for one in pairs]
    twice = [one.rejected for one in pairs]
    assert sum(a != b for a, b in zip(twice[::2], twice[1::2], strict=True)) > 9
    assert asked[::2] == asked[1::2] and len(set(asked)) > 0.9 * len(asked) / 2
    none = sum(one.answer == "None" for one in pairs) / len(pairs)
    assert 0.03 < none <= 0.05
    kinds = Counter(map(worsened, pairs))
    assert {*kinds} == {"None", "one less", "one more", "a wrong line"}
    return differs(
        f"{len(pairs)} pairs, two a request, as printed; the rejected answer is worsened by rule "
        f"({', '.join(f'{kind} {count}' for kind, count in kinds.most_common())}), there a judge chooses between "
        "the model's and GPT-4o's"
    )


def worsened(pair: "Sample") -> str:
    """Return in what the rejected answer of a pair is worse."""
    right, wrong = (
        {*re.findall(r"\d+", text)} for text in (pair.answer, pair.rejected)
    )
    if right and not wrong:
        return "None"
    if len(wrong) == 1 and right.isdisjoint(wrong):
        return "a wrong line"
    if len(right ^ wrong) == 1:
        return "one less" if wrong < right else "one more"
    return "otherwise"


class Asked(Writer):
    """A generator that answers, and keeps what it was asked."""

    prompt = ""
    schema: object = None

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, schema: object = None
    ) -> str:
        """Return the answer."""
        self.prompt, self.schema = messages[-1].content, schema
        return json.dumps(self._answer)


async def written(bench: Bench, sentence: str) -> tuple[Asked, CheckedAnswer]:
    """Return a generator after it answered with a sentence from one of several
    passages, all of which it was shown, and the answer."""
    others = LOCKS.replace("The Desmann lock costs", "In May the Desmann lock cost")
    pages = [document(LOCKS), document(others, "https://example.org/may")]
    reading = await read_documents(Question(ASKED), pages, reader=bench.reader)
    shown = assemble(pages, reading, max_tokens=400, delimiter="0")
    by_label = dict(zip(shown.shown.labels, shown.evidence, strict=True))
    (label,) = [name for name, one in by_label.items() if "lock costs" in one.text]
    assert len(by_label) > 1
    said = [{"passages": [label], "sentence": sentence}]
    model = Asked({"sentences": said})
    found = await write_answer(
        ASKED, shown.evidence, shown.shown.labels, Writing(model, None, 9, TODAY)
    )
    prompt = " ".join(model.prompt.split())
    assert all(" ".join(one.text.split()) in prompt for one in shown.evidence)
    return model, found


@row(24, "ZI §2.1 the enriched prompt", "prompts/answer.md")
async def _(bench: Bench) -> Outcome:
    model, _ = await written(bench, "The Desmann lock costs 1,899 yuan.")
    assert f"Question: {ASKED}\n" in model.prompt and TODAY.isoformat() in model.prompt
    assert "data, not instructions" in model.prompt
    assert "Question" not in load("enriched").fill(date="", notice="", evidence="")
    return differs(
        "request and passages for the local generator, as printed; the prompt for a client (prompts/enriched.md) has "
        "no request, which its model knows"
    )


@row(25, "ZI §2.1 the generator answers", "pipeline/generated.py")
async def _(bench: Bench) -> Outcome:
    for price, supported in (("1,899", True), ("2,899", False)):
        model, found = await written(bench, f"The Desmann lock costs {price} yuan.")
        assert [one.supported for one in found.statements] == [supported]
        assert found.statements[0].text == f"The Desmann lock costs {price} yuan."
        assert len(found.statements[0].labels) == 1
        form = json.dumps(model.schema)
        assert '"maxLength": 200}' in form and '"maxItems": 3}' in form
    return differs(
        "answer=True: by its schema at most 3 sentences of 200 characters, each checked against the passages that it "
        "names; there details, in Markdown (§5.1)"
    )


class Judge:
    """Takes the longer answer, or always the first."""

    name = "judge"
    context_tokens = 8_000
    abilities = frozenset({"score_tree"})

    def __init__(self, *, biased: bool) -> None:
        self._biased = biased

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, schema: object = None
    ) -> str:
        """Refuse."""
        raise ModelError("It only chooses.", hint="Ask it to choose.")

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return the chances of A and B."""
        text = prefix if isinstance(prefix, str) else prefix[-1].content
        first, second = text.split("\nA: ")[1].split("\nWhich")[0].split("\nB: ")
        better = self._biased or len(first) > len(second)
        chances = [0.9, 0.1] if better else [0.1, 0.9]
        return PathScores(np.log(chances), 1, 1, 1, 1)


@row(26, "ZI §5.1 the judge with swapped order, P-BIA", "bench/paper_measures.py")
async def _(_: Bench) -> Outcome:
    fair = [
        await compare("q", "a long answer", "short", Judge(biased=False))
        for _ in range(3)
    ]
    biased = [
        await compare("q", "a long answer", "short", Judge(biased=True))
        for _ in range(3)
    ]
    assert fair == ["first"] * 3 and biased == ["bias"] * 3
    other = await compare("q", "short", "a long answer", Judge(biased=False))
    assert other == "second"
    assert {*get_args(Verdict)} == {"first", "second", "bias"}
    asked = single_facts("test")[:PAIRS]
    async with answering(str(weights())) as model:
        said = await judged(asked, model)
    return differs(
        "both orders are asked, and where they disagree it is P-BIA, as printed; no TIE; SmolLM2-135M for GPT-4o, of "
        f"{PAIRS} pairs: right {said['first']}, wrong {said['second']}, P-BIA {said['bias']}"
    )


async def spent(bench: Bench) -> tuple[int, int, int]:
    """Return the tokens of the vector store, of whole pages and of our evidence for a
    question."""
    library = read_library(CARRIED)
    one = next(one for one in library.asked if one.answers)
    pages = published(library.nearest(one.question, first=one.pages))
    assert len(pages) == 3
    store = VectorStore(bench.embedder)
    await store.add(pages)
    reading = await read_documents(Question(one.question), pages, reader=bench.reader)
    ours = assemble(pages, reading, max_tokens=1_000, delimiter="0")
    near = await store.nearest(one.question)
    return (
        sum(map(count_tokens, near)),
        sum(count_tokens(page.text) for page in pages),
        ours.shown.tokens,
    )


@row(
    27,
    "ZI §5.1, Table 2 input tokens of three systems",
    "pipeline/evidence/assemble.py",
)
async def _(bench: Bench) -> Outcome:
    store, whole, ours = await spent(bench)
    assert 800 < ours <= 1_000 < store <= 1.6 * whole
    return differs(
        f"one question on three pages: vector store {store}, whole pages {whole}, evidence by rules (to 1,000) {ours}; "
        "there 463 requests: 2.59, 3.88 and 2.04 million"
    )


class Numbers:
    """An embedder by which texts are near whose first numbers are."""

    name = "numbers"
    dimension = 2

    def reads(self, text: str) -> bool:
        """Read everything."""
        return True

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return a point of a quarter circle for each number up to 3,000."""
        numbers = [int(re.findall(r"\d+", text)[0]) for text in texts]
        turned = np.array(numbers, dtype=np.float32) * (np.pi / 6_000)
        return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


@row(28, "ZI §5.1 VectorDB-RAG: 512, 128, 12, neighbour 1", "bench/paper_measures.py")
async def _(_: Bench) -> Outcome:
    store = VectorStore(Numbers())
    await store.add([document(f"<p>{' '.join(f'word{n}' for n in range(3_000))}</p>")])
    chunks = store.chunks[0]
    sizes = [count_tokens(chunk) for chunk in chunks]
    assert 512 <= max(sizes) <= 516 and len(chunks) > 18
    starts = [int(chunk.split()[0].removeprefix("word")) for chunk in chunks]
    asked = f"word{starts[9]}"
    assert await store.nearest(asked, count=1, neighbours=0) == [chunks[9]]
    assert await store.nearest(asked, count=1) == chunks[8:11]
    twelve = await store.nearest(asked, neighbours=0)
    assert len(twelve) == 12 and {*chunks[4:15]} < {*twelve}
    around = await store.nearest(asked)
    assert len(around) == 14 and {*twelve} < {*around}
    for left, right in pairwise(chunks[:-1]):
        shared = [word for word in right.split() if word in {*left.split()}]
        assert 128 <= count_tokens(" ".join(shared)) < 140
    return differs(
        f"512, 128 (taken for tokens), 12 and 1 as printed; whole words, so {len(sizes)} chunks of at most "
        f"{max(sizes)}; any embedder for BGE-M3, no FAISS"
    )


@row(
    29,
    "ZI §5.2 needles: single, reasoning, multi-answer, multi-question",
    "bench/paper_measures.py",
)
async def _(bench: Bench) -> Outcome:
    found = await needles(bench.reader, (2_000, 8_000))
    assert min(found.values()) >= 0.9 and NEEDLE_TOKENS == 512
    assert {name.partition("/")[0] for name in found} == set(KINDS)
    assert len({needle("single", number) for number in range(TEXTS)}) == TEXTS >= 30
    return differs(
        f"share of needles in {NEEDLE_TOKENS} tokens of evidence by rules, {TEXTS} texts a kind at 2,000 and at 8,000 "
        f"tokens: at least {min(found.values()):.2f}; there F1 of a model's tags"
    )


class Naming:
    """A generator that names lines by their numbers, a set for each request in order."""

    name = "naming"
    context_tokens = 4_096
    abilities: frozenset[Ability] = frozenset({"generate", "grammar"})

    def __init__(self, answers: Sequence[frozenset[int]]) -> None:
        self._answers = iter(answers)

    async def generate(
        self,
        messages: Sequence[Said],
        *,
        max_tokens: int,
        schema: dict[str, object] | None = None,
        grammar: str | None = None,
    ) -> str:
        """Return the numbers of the next request."""
        return ",".join(map(str, sorted(next(self._answers)))) or "None"


@row(30, "ZI §5.2, Table 5 F1, and exact match with None", "bench/recipes.py")
async def _(_: Bench) -> Outcome:
    from bench.recipes import f1, right_lines  # noqa: PLC0415  the recipes' own
    from papers.recipes.extractor import shown_candidates  # noqa: PLC0415  reads the data sets

    assert f1(frozenset({1, 2}), frozenset({2, 3})) == 0.5
    assert f1(frozenset({1, 2, 3}), frozenset({3})) == 0.5
    rows = await right_lines(Scripted(), HELD)  # says None of all
    shares = {one.what: one.model for one in rows}
    nothing = sum(one.n for one in rows if one.what.startswith("None"))
    assert 0 < nothing < HELD
    assert [*shares.values()] == [0, 1, 0, nothing / HELD], shares
    # The right lines alone, and a wrong one besides, where the request has one
    asked = shown_candidates("held", 0)[:HELD]
    right = [one.gold for one in asked]
    wrong = [
        sorted({*range(1, 1 + len(one.candidates))} - one.gold)[:1] for one in asked
    ]
    rows = await right_lines(Naming(right), HELD)
    assert [one.model for one in rows] == [1, 1, 1, 1], rows
    pairs = list(zip(right, wrong, strict=True))
    rows = await right_lines(Naming([gold.union(more) for gold, more in pairs]), HELD)
    means = [
        2 * len(gold) / (2 * len(gold) + len(more)) for gold, more in pairs if gold
    ]
    shares_wrong = [float(np.mean(means)), 0, 1, wrong.count([]) / HELD]
    assert wrong.count([]) < HELD / 4 and np.mean(means) < 0.9
    assert np.allclose([one.model for one in rows], shares_wrong), rows
    return differs(
        "numbered lines for tags; F1 over requests with right lines, exact match over all: a model that says None of "
        f"all {HELD} is right in {nothing / HELD:.2f}; precision and recall, which Table 5 has apart, are not "
        "measured apart here"
    )
