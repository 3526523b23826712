"""Catalogues of research over loopback: what they send and read, when they are asked, and how they
are cited."""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import anyio
import httpx2
import pytest

from pipeline.question.question import Question
from pipeline.search.chain import Chain, Findings
from pipeline.search.parse import parse_request
from pipeline.search.query import SearchOutcome, SearchQuery
from pipeline.search.web_api import WebApi
from tests.support import Clock
from tests.support.model_server import loopback_client
from tests.support.providers import OWN, SCHOLARLY, SERVICES, SHARED, Loopback, Reply, loopback
from tests.support.search import ask_once
from tests.support.waiting import until
from tests.test_search_providers import sent

CONTACT = "ann@example.org"
PAPER = "10.1234/orvane.2024.7"
NAMES = "Ada Lind; Bo Marr"
OPENALEX = {
    "meta": {
        "count": 1,
        "db_response_time_ms": 21,
        "page": 1,
        "per_page": 10,
        "groups_count": None,
    },
    "results": [
        {
            "id": "https://openalex.org/W4390000001",
            "doi": f"https://doi.org/{PAPER.upper()}",
            "title": "Depth of Lake <i>Orvane</i>",
            "display_name": "Depth of Lake <i>Orvane</i>",
            "relevance_score": 321.5,
            "publication_year": 2024,
            "publication_date": "2024-05-03",
            "language": "en",
            "primary_location": {
                "is_oa": False,
                "landing_page_url": f"https://doi.org/{PAPER}",
                "pdf_url": None,
            },
            "open_access": {
                "is_oa": True,
                "oa_status": "green",
                "oa_url": "https://repo.example.org/orvane.pdf",
            },
            "best_oa_location": {"is_oa": True, "pdf_url": "https://repo.example.org/orvane.pdf"},
            "authorships": [
                {
                    "author_position": "first",
                    "author": {"id": "https://openalex.org/A1", "display_name": "Ada Lind"},
                },
                {
                    "author_position": "last",
                    "author": {"id": "https://openalex.org/A2", "display_name": "Bo Marr"},
                },
            ],
            "abstract_inverted_index": {
                "The": [0],
                "lake": [1],
                "is": [2],
                "213": [3],
                "m": [4],
                "deep.": [5],
            },
        }
    ],
    "group_by": [],
}
SEMANTIC_SCHOLAR = {
    "total": 1,
    "offset": 0,
    "data": [
        {
            "paperId": "649def34f8be52c8b66281af98ae884c09aef38b",
            "externalIds": {"MAG": "2963", "DOI": PAPER, "CorpusId": 4},
            "url": "https://www.semanticscholar.org/paper/649def34f8be52c8b66281af98ae884c09aef38b",
            "title": "Depth of Lake Orvane",
            "abstract": "The lake is 213 m deep.",
            "openAccessPdf": {
                "url": "https://repo.example.org/orvane.pdf",
                "status": "GREEN",
                "license": None,
            },
            "publicationDate": "2024-05-03",
            "authors": [
                {"authorId": "1", "name": "Ada Lind"},
                {"authorId": "2", "name": "Bo Marr"},
            ],
        }
    ],
}
CROSSREF = {
    "status": "ok",
    "message-type": "work-list",
    "message-version": "1.0.0",
    "message": {
        "facets": {},
        "total-results": 1,
        "items": [
            {
                "DOI": PAPER,
                "type": "journal-article",
                "title": ["Depth of Lake Orvane"],
                "author": [
                    {"given": "Ada", "family": "Lind", "sequence": "first", "affiliation": []},
                    {"name": "Bo Marr", "sequence": "additional", "affiliation": []},
                ],
                "issued": {"date-parts": [[2024, 5, 3]]},
                "abstract": "<jats:title>Abstract</jats:title><jats:p>The lake is 213 m "
                "deep.</jats:p>",
                "URL": f"https://doi.org/{PAPER}",
                "language": "en",
            }
        ],
        "items-per-page": 10,
    },
}
ARXIV = f"""<?xml version='1.0' encoding='UTF-8'?>
<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom"
 xmlns="http://www.w3.org/2005/Atom">
  <id>https://arxiv.org/api/cHxbiOdZaP56ODnBPIenZhzg5f8</id>
  <title>arXiv Query: search_query=all:orvane&amp;id_list=&amp;start=0&amp;max_results=10</title>
  <updated>2024-05-04T00:00:00Z</updated>
  <opensearch:totalResults>1</opensearch:totalResults>
  <entry>
    <id>http://arxiv.org/abs/2405.01234v2</id>
    <title>Depth of Lake
      Orvane</title>
    <updated>2024-06-01T10:00:00Z</updated>
    <link href="http://arxiv.org/abs/2405.01234v2" rel="alternate" type="text/html"/>
    <link href="http://arxiv.org/pdf/2405.01234v2" rel="related" type="application/pdf" title="pdf"/>
    <summary>The lake is
      213 m deep.</summary>
    <category term="physics.ao-ph" scheme="http://arxiv.org/schemas/atom"/>
    <published>2024-05-03T10:00:00Z</published>
    <arxiv:comment>12 pages</arxiv:comment>
    <author><name>Ada Lind</name></author>
    <author><name>Bo Marr</name></author>
    <arxiv:doi>{PAPER}</arxiv:doi>
  </entry>
</feed>"""
BODIES: dict[str, Any] = {
    "openalex": OPENALEX,
    "semanticscholar": SEMANTIC_SCHOLAR,
    "crossref": CROSSREF,
    "arxiv": ARXIV,
}
QUESTION = "What do recent studies on Lake Orvane say about its depth?"


@pytest.fixture
def api() -> Iterator[Loopback]:
    """A catalogue on loopback."""
    with loopback() as state:
        yield state


def serve(api: Loopback, body: Any) -> None:
    api.reply = Reply(200, (body if isinstance(body, str) else json.dumps(body)).encode())


def ask(name: str, api: Loopback, query: SearchQuery, contact: str = CONTACT) -> SearchOutcome:
    def catalogue(client: httpx2.AsyncClient) -> WebApi:
        return WebApi(
            SCHOLARLY[name], client, contact, base_url=api.address, today=lambda: date(2026, 11, 22)
        )

    return ask_once(catalogue, query)


@pytest.mark.parametrize("name", BODIES)
def test_a_work_is_read_with_title_abstract_authors_day_and_doi(api: Loopback, name: str) -> None:
    serve(api, BODIES[name])
    outcome = ask(name, api, SearchQuery(QUESTION))
    assert (outcome.status, outcome.reason, outcome.provider) == ("ok", "", name)
    (work,) = outcome.results
    assert work.title.rstrip(".") == "Depth of Lake Orvane"
    assert work.snippet.endswith("The lake is 213 m deep.")
    assert (work.author, work.doi, work.published) == (NAMES, PAPER, "2024-05-03")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("openalex", "https://repo.example.org/orvane.pdf"),
        ("semanticscholar", "https://repo.example.org/orvane.pdf"),
        ("crossref", f"https://doi.org/{PAPER}"),
        ("arxiv", "https://arxiv.org/pdf/2405.01234v2"),
    ],
)
def test_a_work_that_is_free_to_read_leads_to_its_pdf(
    api: Loopback, name: str, address: str
) -> None:
    serve(api, BODIES[name])
    assert [work.url for work in ask(name, api, SearchQuery(QUESTION)).results] == [address]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("openalex", {"best_oa_location": None, "open_access": {"is_oa": False, "oa_url": None}}),
        ("semanticscholar", {"openAccessPdf": {"url": "", "status": "CLOSED"}}),
    ],
)
def test_a_work_that_is_not_free_leads_to_its_doi(
    api: Loopback, name: str, change: dict[str, Any]
) -> None:
    body = json.loads(json.dumps(BODIES[name]))
    rows = body.get("results") or body.get("data")
    rows[0] |= change
    serve(api, body)
    (work,) = ask(name, api, SearchQuery(QUESTION)).results
    assert work.url.lower() == f"https://doi.org/{PAPER}"


def test_of_a_year_alone_the_year_is_reported(api: Loopback) -> None:
    body = json.loads(json.dumps(CROSSREF))
    body["message"]["items"][0]["issued"] = {"date-parts": [[2019]]}
    serve(api, body)
    assert ask("crossref", api, SearchQuery(QUESTION)).results[0].published == "2019"


@pytest.mark.parametrize("name", BODIES)
def test_a_question_is_sent_as_what_it_is_about_within_its_period(api: Loopback, name: str) -> None:
    serve(api, BODIES[name])
    ask(name, api, SearchQuery(QUESTION, since="2024-01-02", until="2024-12-31"))
    asked = " ".join(sent(api).values())
    assert all(word in asked for word in ("Orvane", "depth"))
    assert not any(word in asked.split() for word in ("What", "studies", "recent", "say"))
    assert "2024-01-02" in asked or "20240102" in asked
    assert "2024-12-31" in asked or "20241231" in asked


@pytest.mark.parametrize("name", BODIES)
def test_the_last_year_is_reported_in_days(api: Loopback, name: str) -> None:
    serve(api, BODIES[name])
    outcome = ask(name, api, SearchQuery(QUESTION, freshness="year"))
    assert outcome.reason == ""
    assert "2025-11-21" in (asked := " ".join(sent(api).values())) or "20251121" in asked


@pytest.mark.parametrize("name", BODIES)
def test_the_address_of_the_person_is_shown_to_the_catalogue_and_is_in_no_log(
    api: Loopback, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    serve(api, BODIES[name])
    ask(name, api, SearchQuery(QUESTION))
    assert f"mailto:{CONTACT}" in api.asked[0][2]["user-agent"]
    assert CONTACT not in api.asked[0][1]
    api.reply = Reply(429, json.dumps({"message": f"Too many requests by {CONTACT}"}).encode())
    assert CONTACT not in ask(name, api, SearchQuery(QUESTION)).reason
    sent_lines = [line for line in caplog.text.splitlines() if "httpcore" not in line]
    assert sent_lines
    assert not any(CONTACT in line for line in sent_lines)


def test_a_catalogue_that_asks_for_pauses_is_asked_one_request_at_a_time(api: Loopback) -> None:
    serve(api, SEMANTIC_SCHOLAR)
    resting = replace(SCHOLARLY["semanticscholar"], pause=3_600.0)
    answered: list[SearchOutcome] = []

    async def main() -> None:
        async with loopback_client() as client, anyio.create_task_group() as group:
            provider = WebApi(resting, client, base_url=api.address)

            async def ask_of(words: str) -> None:
                answered.append(await provider.search(SearchQuery(words), limit=1))

            for words in ("one", "two"):
                group.start_soon(ask_of, words)
            await until(lambda: answered)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

    anyio.run(main)
    assert (len(answered), len(api.asked)) == (1, 1)
    assert SCHOLARLY["semanticscholar"].pause >= 1.0


@pytest.mark.parametrize("name", SCHOLARLY)
def test_each_catalogue_is_tried_with_ten_failures_or_more(name: str) -> None:
    assert len({**OWN[name], **SHARED}) >= 10


@pytest.mark.parametrize(
    ("question", "scholarly"),
    [
        (QUESTION, True),
        ("Which randomized trials compared vitamin D with placebo?", True),
        ("summarise arXiv 2411.19478", True),
        ("Is 10.1234/orvane.2024.7 about lakes?", True),
        ("Welche Studien zeigen, dass Kaffee den Blutdruck senkt?", True),
        ("Where did Marie Curie study?", False),
        ("What does the Nightbird minibus cost?", False),
        ("Who publishes the newspaper in Skellmouth?", False),
    ],
)
def test_questions_for_published_research_are_distinguished_from_others(
    question: str, scholarly: bool
) -> None:
    assert (
        parse_request(Question(question), today=date(2026, 11, 22)).queries[0].scholarly
        == scholarly
    )


@pytest.mark.parametrize(("question", "asked"), [(QUESTION, 1), ("How deep is Lake Orvane?", 0)])
def test_catalogues_are_asked_beside_the_web_for_research_alone(
    api: Loopback, question: str, asked: int
) -> None:
    serve(api, OPENALEX)
    with loopback() as web:
        serve(
            web,
            {"results": [{"title": "Orvane", "url": "https://e.org/orvane", "content": "A lake."}]},
        )

        async def main() -> Findings:
            async with loopback_client() as client:
                catalogue = WebApi(SCHOLARLY["openalex"], client, base_url=api.address)
                from_web = WebApi(SERVICES["tavily"], client, base_url=web.address)
                chain = Chain([from_web], None, Clock(), scholarly=[catalogue])
                parsed = parse_request(Question(question), today=date(2026, 11, 22))
                return await chain.search(parsed.queries[:1], limit=10)

        found = anyio.run(main)
        assert len(web.asked) == 1
    assert len(api.asked) == asked
    assert [bool(result.doi) for result in found.results].count(True) == asked


def test_one_work_in_two_catalogues_is_one_result(api: Loopback) -> None:
    with loopback() as other:
        serve(api, CROSSREF)
        serve(other, SEMANTIC_SCHOLAR)

        async def main() -> Findings:
            async with loopback_client() as client:
                first = WebApi(SCHOLARLY["crossref"], client, base_url=api.address)
                second = WebApi(SCHOLARLY["semanticscholar"], client, base_url=other.address)
                return await Chain([first], None, Clock(), beside=[second]).search(
                    [SearchQuery("lake")], limit=10
                )

        (work,) = anyio.run(main).results
    assert set(work.engine.split("+")) == {"crossref", "semanticscholar"}
