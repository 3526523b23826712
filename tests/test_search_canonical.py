"""One page, many addresses."""

import pytest

from pipeline.search.chain import canonical_url, distinct
from pipeline.search.query import SearchResult


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://e.org/a", "http://e.org/a"),
        ("https://e.org/a", "https://www.e.org/a/"),
        ("https://e.org/a", "https://E.ORG:443/a#part"),
        ("http://e.org/a", "http://e.org:80/a"),
        ("https://e.org/a", "https://e.org/a?utm_source=x&utm_medium=mail&fbclid=1&gclid=2"),
        ("https://e.org/a?b=1&c=2", "https://e.org/a?c=2&b=1"),
        ("https://e.org/a", "https://m.e.org/a"),
        ("https://e.org/a", "https://mobile.e.org/a"),
        ("https://de.wikipedia.org/wiki/See", "https://de.m.wikipedia.org/wiki/See"),
        ("https://e.org/a", "https://amp.e.org/a"),
        ("https://e.org/a", "https://e.org/a/amp/"),
        ("https://e.org/a", "https://e.org/amp/a"),
        ("https://e.org/a", "https://e.org/a.amp"),
        ("https://e.org/a", "https://e.org/a?amp=1"),
        ("https://e.org/a", "https://www.google.com/amp/s/e.org/a"),
        ("https://e.org/a", "https://e-org.cdn.ampproject.org/c/s/e.org/a"),
        ("https://e.org/docs/", "https://e.org/docs/index.html"),
        ("https://e.org/wiki/Zürich", "https://e.org/wiki/Z%C3%BCrich"),
        ("https://e.org", "https://e.org/"),
        ("https://e.org./a", "https://e.org/a"),
    ],
)
def test_addresses_of_one_page_share_a_key(one: str, other: str) -> None:
    assert canonical_url(one) == canonical_url(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://e.org/a", "https://e.org/b"),
        ("https://e.org/a", "https://e.org:8443/a"),
        ("https://e.org/a?id=1", "https://e.org/a?id=2"),
        ("https://e.org/a%2Fb", "https://e.org/a/b"),
        ("https://e.org/a%23b", "https://e.org/a#b"),
        ("https://e.org/a%3Fb", "https://e.org/a?b"),
        ("https://m.org/a", "https://org/a"),
        ("https://e.org/A", "https://e.org/a"),
        ("https://e.org/ramp", "https://e.org/r"),
        ("https://www.google.com/maps", "https://www.google.com/"),
        ("https://news.e.org/a", "https://e.org/a"),
        ("file:///a/b.html", "file:///a/c.html"),
    ],
)
def test_addresses_of_different_pages_do_not(one: str, other: str) -> None:
    assert canonical_url(one) != canonical_url(other)


@pytest.mark.parametrize(
    "url",
    ["", "http://[", "http://e.org:99999/a", "mailto:a@e.org", "http://", "::", "http://e.org/%ff"],
)
def test_odd_addresses_have_a_key_as_well(url: str) -> None:
    assert isinstance(canonical_url(url), str)


def _result(url: str, snippet: str) -> SearchResult:
    return SearchResult(title="t", url=url, snippet=snippet)


LONG = (
    "The ferry leaves Skellmouth harbour at 14:35 on winter weekdays and is at Brindle Quay "
    "fifty-two minutes later"
)


def test_a_mirror_with_the_same_snippet_is_dropped() -> None:
    kept = distinct(
        [_result("https://a.org/1", LONG), _result("https://b.org/2", LONG.upper() + "!")]
    )
    assert [result.url for result in kept] == ["https://a.org/1"]


def test_similar_but_different_snippets_are_both_kept() -> None:
    other = LONG.replace("14:35", "09:10").replace("winter", "summer").replace("fifty-two", "forty")
    assert len(distinct([_result("https://a.org/1", LONG), _result("https://b.org/2", other)])) == 2


def test_short_or_empty_snippets_never_merge_pages() -> None:
    kept = distinct(
        [
            _result("https://a.org/1", "Log in"),
            _result("https://b.org/2", "Log in"),
            _result("https://c.org", ""),
        ]
    )
    assert len(kept) == 3


def test_the_first_address_of_a_page_is_the_one_that_stays() -> None:
    kept = distinct(
        [_result("https://a.org/x?utm_source=q", "one"), _result("http://www.a.org/x", "two")]
    )
    assert [(result.url, result.snippet) for result in kept] == [
        ("https://a.org/x?utm_source=q", "one")
    ]
