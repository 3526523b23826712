"""Search without a key: who is asked with which settings, what a person is reported, and a fresh
machine as a process."""

import json
from pathlib import Path

import pytest

from errors import UsageError
from server.settings import read_settings
from tests.support import LIBRARY
from tests.support.pdf import make_pdf
from tests.support.providers import Reply
from tests.support.simulated_web import QUESTION, TAVILY, json_reply, web, winnow
from tests.test_search_scholarly import OPENALEX

WIKIPEDIA = {
    "query": {
        "search": [
            {
                "title": "Lake Orvane",
                "snippet": "Lake Orvane is 213 metres deep, the deepest of all.",
            }
        ]
    }
}


@pytest.mark.parametrize("search", ["none,wikipedia", "auto,folder", "academia"])
def test_what_cannot_be_combined_is_refused(search: str) -> None:
    with pytest.raises(UsageError, match="search"):
        read_settings({"search": search}, {})


def test_an_address_to_be_reached_at_is_checked_and_not_shown() -> None:
    assert "ann@" not in repr(read_settings({"keys": "contact=ann@example.org"}, {}))
    with pytest.raises(UsageError, match=r"ann@example\.org"):
        read_settings({"keys": "contact=ann@"}, {})


BUSY = Reply(429, json.dumps({"detail": {"error": "Too many requests."}}).encode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ({"api.tavily.com": json_reply(TAVILY)}, ["api.tavily.com"]),
        (
            {"api.tavily.com": BUSY, "en.wikipedia.org": json_reply(WIKIPEDIA)},
            ["api.tavily.com", "en.wikipedia.org"],
        ),
    ],
    ids=["the first answers", "a busy one falls to the next"],
)
def test_a_fresh_machine_searches_and_says_that_it_does_so_without_a_key(
    answers: dict[str, Reply], asked: list[str]
) -> None:
    with web(answers) as state:
        run = winnow(state, "research", QUESTION)
    assert run.returncode == 0, run.stderr
    assert "213 metres" in run.stdout
    assert "keyless ones were used" in run.stdout
    assert list(dict.fromkeys(state.asked)) == asked


@pytest.mark.slow
def test_a_fresh_machine_whose_providers_all_fail_names_each_with_its_failure() -> None:
    with web({}) as state:
        run = winnow(state, "research", QUESTION)
    assert run.returncode != 0
    for provider in ("tavily-keyless", "wikipedia"):
        assert f"{provider}: bad_response" in run.stdout + run.stderr


@pytest.mark.slow
def test_the_doctor_says_how_it_searches_and_what_is_better() -> None:
    with web({"api.tavily.com": json_reply({}), "en.wikipedia.org": json_reply({})}) as state:
        bare = winnow(state, "doctor").stdout
        folder = winnow(state, "doctor", "--folder", str(LIBRARY)).stdout
    assert "WINNOW_KEYS=brave=KEY" in bare
    assert "WINNOW_SEARCH=none" in bare
    assert "https://en.wikipedia.org responds with status 200" in bare
    assert "WINNOW_SEARCH=keyless,folder" in folder
    assert "wikipedia.org" not in folder


@pytest.mark.slow
def test_research_on_research_reads_the_free_pdf_and_cites_the_work(tmp_path: Path) -> None:
    text = "The deepest place of Lake Orvane was sounded at 213 metres in May 2024."
    host = "en.wikipedia.org"  # one that is played
    pdf = f"https://{host}/orvane.pdf"
    work = json.loads(json.dumps(OPENALEX))
    work["results"][0] |= {"best_oa_location": {"is_oa": True, "pdf_url": pdf}}
    answers = {
        "api.tavily.com": json_reply({**TAVILY, "results": []}),
        "api.openalex.org": json_reply(work),
        host: Reply(200, make_pdf([[(text, 12)]]), {"content-type": "application/pdf"}),
    }
    with web(answers) as state:
        state.environment |= {
            "WINNOW_PROXY": f"{state.environment['HTTPS_PROXY']} resolves",
        }
        question = f"What do recent studies on Lake Orvane say? {QUESTION}"
        reported = json.loads(winnow(state, "research", question, "--json").stdout)
        shown = winnow(state, "research", question, "--set", f"cache={tmp_path}").stdout
        entry = winnow(
            state, "sessions", "export", reported["session"], "--format", "bibtex"
        ).stdout
    assert "sounded at 213 metres" in shown
    assert "doi:10.1234/orvane.2024.7" in shown
    assert "Ada Lind; Bo Marr" in shown
    assert "author = {{Ada Lind} and {Bo Marr}}" in entry
    assert "doi = {10.1234/orvane.2024.7}" in entry
