"""Where an operator opened a private network: a page of a public address leads no one there, a
person's own word does."""

import json
from pathlib import Path

import pytest

from cache.store import open_stores
from errors import AddressRefused
from pipeline.fetch.address import names_inside
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits
from tests.support import Site
from tests.support.inward import FORMS, TARGETS, both
from tests.support.simulated_web import QUESTION, TAVILY, json_reply, web, winnow
from tests.support.web_site import Reply

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("target", TARGETS)
async def test_no_page_of_a_public_address_leads_inside(target: str) -> None:
    asked = {}
    async with both() as sites:
        for form in FORMS:
            asked[form] = await sites.led(form, target)
        assert sites.public.asked
    assert {form: paths for form, paths in asked.items() if paths} == {}


async def test_what_a_person_names_inside_is_read_and_leads_on_inside() -> None:
    async with both() as sites:
        sites.inner.routes |= {
            "/moved": Reply(b"", 302, {"Location": "/secret"}),
            "/out": Reply(b"", 302, {"Location": "http://a.winnow-site.org/back"}),
        }
        sites.public.routes["/back"] = Reply(b"", 302, {"Location": sites.inside()})
        for target in TARGETS:
            for path in ("/secret", "/moved"):
                page = await sites.fetcher.fetch(sites.inside(target, path))
                assert "4711" in page.html
                assert page.inside
        with pytest.raises(AddressRefused, match="redirects to a refused address"):
            await sites.fetcher.fetch(sites.inside(path="/out"))
        with pytest.raises(AddressRefused, match="leads to this internal address"):
            await sites.fetcher.fetch(sites.inside(), outside=True)


async def test_what_was_read_inside_is_not_given_to_a_page_from_outside(
    tmp_path: Path,
) -> None:
    async with both() as sites:
        stores = open_stores(tmp_path, size_limit=10**7)
        try:
            limits = FetchLimits(allow_loopback=True, respect_robots=False)
            async with open_fetcher(limits, pages=stores.pages) as fetcher:
                await fetcher.fetch(sites.inside())
                with pytest.raises(AddressRefused):
                    await fetcher.fetch(sites.inside(), outside=True)
                again = await fetcher.fetch(sites.inside())
        finally:
            stores.close()
    assert again.age >= 0


@pytest.mark.parametrize(
    ("service", "is_inside"),
    [
        ("http://127.0.0.1:8888", True),
        ("http://localhost/searx", True),
        ("http://searxng:8080", True),
        ("http://[fd00::7]/", True),
        ("http://search.corp", True),
        ("http://10.1.2.3", True),
        ("https://searx.example.org", False),
        ("https://93.184.216.34/", False),
        ("https://api.search.brave.com", False),
        ("https://127.0.0.1.nip.io", False),
    ],
)
def test_a_search_service_is_inside_by_the_form_of_its_address(
    service: str, *, is_inside: bool
) -> None:
    assert names_inside(service) is is_inside


@pytest.mark.slow
def test_no_result_of_a_public_search_service_leads_inside(site: Site) -> None:
    url = site.put("/admin", "<p>Lake Orvane is 213 metres deep, says the inner page.</p>")
    found = {**TAVILY["results"][0], "url": url}
    with web({"api.tavily.com": json_reply({"results": [found]})}) as state:
        state.environment["WINNOW_NETWORKS"] = "loopback"
        reported = json.loads(winnow(state, "research", QUESTION, "--json").stdout)
        named = winnow(state, "fetch", url, "--question", QUESTION).stdout
    assert site.asked.count("/admin") == 1
    assert "inner page" in named
    assert "inner page" not in json.dumps(reported)
