"""Pages in the cache: handles name them, and only whole pages come back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cache.store import Store
from pipeline.fetch.handles import (
    find_page,
    is_handle,
    keep_page,
    page_from_bytes,
    page_handle,
    page_to_bytes,
)
from readers.convert import content_hash
from readers.page import Page
from tests.support import Clock

HTML = "<p>Salt of Piran</p>"
PAGE = Page(
    url="https://example.org/a#x",
    final_url="https://example.org/a",
    title="Salt",
    html=HTML,
    media_type="text/html",
    language="en",
    fetched_at="2026-01-02T03:04:05+00:00",
    content_hash=content_hash(HTML),
    author="A. Bonin",
    published="2024-05-06",
    notes=("cut", "guessed"),
    hidden=8,
)


def test_a_kept_page_is_found_by_its_handle_with_every_field(store: Store) -> None:
    handle = keep_page(store, PAGE)
    assert handle.startswith("winnow://page/")
    assert len(handle) == len("winnow://page/") + 24
    assert find_page(store, handle) == PAGE
    assert find_page(store, handle.removeprefix("winnow://page/")) == PAGE


def test_equal_text_at_two_places_has_two_handles_and_keeps_both_addresses(store: Store) -> None:
    other = replace(PAGE, final_url="https://mirror.example/a")
    first, second = keep_page(store, PAGE), keep_page(store, other)
    assert first != second
    assert find_page(store, first) == PAGE
    assert find_page(store, second) == other


def test_the_first_part_of_a_handle_is_the_hash_of_the_content() -> None:
    assert page_handle(PAGE).startswith(f"winnow://page/{PAGE.content_hash[:12]}")


@pytest.mark.parametrize(
    "handle",
    ["", "winnow://page/", "winnow://page/" + "0" * 24, "winnow://tree/" + "0" * 24, "../x", "é"],
)
def test_an_unknown_handle_finds_nothing(store: Store, handle: str) -> None:
    keep_page(store, PAGE)
    assert find_page(store, handle) is None


def test_an_expired_handle_finds_nothing(store: Store) -> None:
    assert find_page(store, keep_page(store, PAGE, seconds=-1)) is None


def test_only_page_handles_are_taken_for_such() -> None:
    assert is_handle(page_handle(PAGE))
    assert not is_handle("https://example.org/winnow://page/")


page_texts = st.text(max_size=50)


@given(page_texts, page_texts, st.lists(page_texts, max_size=3), st.integers(0, 10**9))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30
)
def test_any_page_survives_the_cache(
    store: Store, url: str, html: str, notes: list[str], tokens: int
) -> None:
    page = replace(
        PAGE,
        final_url=url,
        html=html,
        content_hash=content_hash(html),
        notes=tuple(notes),
        hidden=tokens,
    )
    assert find_page(store, keep_page(store, page)) == page


@pytest.mark.parametrize(
    "value", [b"", b"\n", b"1\n", b"{}\n{}\n", b"[]\n\n", b"\xff\n\n\xff", b"[" * 90_000]
)
def test_bytes_of_another_form_are_no_page(value: bytes) -> None:
    assert page_from_bytes(value) is None


def test_a_page_that_lacks_a_field_or_has_it_in_another_type_is_no_page() -> None:
    facts, asked, html = page_to_bytes(PAGE).split(b"\n", 2)
    changed: dict[str, object] | list[object]
    for place, line in enumerate((facts, asked)):
        whole = json.loads(line)
        for name in whole:
            for changed in (
                {key: whole[key] for key in whole if key != name},
                {**whole, name: {"not": "this"}},
                [],
            ):
                lines = [facts, asked, html]
                lines[place] = json.dumps(changed).encode()
                assert page_from_bytes(b"\n".join(lines)) is None


def test_a_page_of_equal_text_whose_facts_changed_is_written_again(store: Store) -> None:
    handle = keep_page(store, PAGE)
    better = replace(PAGE, author="A. Bonin and C. Vidal", notes=())
    assert keep_page(store, better) == handle
    assert find_page(store, handle) == better


def test_a_page_in_use_never_expires(
    tmp_path: Path,
) -> None:
    clock = Clock()
    store = Store(tmp_path / "pages", size_limit=10_000_000, clock=clock)
    handle = keep_page(store, PAGE)
    for _ in range(20):
        clock.now += 4 * 86_400
        assert keep_page(store, PAGE) == handle
        assert find_page(store, handle) == PAGE
    store.close()
