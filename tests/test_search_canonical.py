"""One page, many addresses."""

import pytest

from pipeline.search.chain import canonical_url


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
        ("https://e.org/a", "https://e.org/a?amp=1"),
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
