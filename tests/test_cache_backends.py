"""What a store does, whichever place keeps its rows: a folder on disk, or a Valkey or Redis
server."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cache.store import Claim, JsonValue, Store, Stores, open_stores
from tests.support import Clock
from tests.support.cache_server import CacheServer, cache_server

pytestmark = pytest.mark.slow

Open = Callable[[], Stores]
RIGHTS = (
    "+ping +info +client +mget +get +set +del +unlink +strlen +scan +multi +exec +eval "
    "+evalsha +script"
)
"""Commands that a user of ours on a server needs; docs/http.md lists them."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CacheServer]:
    """One server for all tests here; each test empties its stores."""
    with cache_server(tmp_path_factory.mktemp("server"), "--maxmemory", "200mb") as running:
        yield running


@pytest.fixture(params=["folder", "server"])
def open_again(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Open]:
    """Return a function that opens the stores of one place, as each of several servers would."""
    url = request.getfixturevalue("server").url if request.param == "server" else ""
    opened: list[Stores] = []

    def open_one() -> Stores:
        opened.append(open_stores(tmp_path, size_limit=100_000_000, clock=clock, url=url))
        return opened[-1]

    open_one().clear()
    yield open_one
    for stores in opened:
        stores.close()


@pytest.fixture
def store(open_again: Open) -> Store:
    return open_again().pages


VALUES: list[JsonValue] = [
    {"a": [1, 2.5, None, True, "é"]},
    [],
    "text",
    0,
    False,
    "\ud800 lone",
    "x" * 200_000,
]


@pytest.mark.parametrize("value", VALUES)
def test_json_comes_back_as_it_was(store: Store, value: JsonValue) -> None:
    store.set_json("k", value)
    assert store.get_json("k") == value


@pytest.mark.parametrize("size", [0, 1, 1000, 32_767, 32_768, 3_000_000])
def test_bytes_of_any_size_come_back(store: Store, size: int) -> None:
    value = os.urandom(size)
    store.set_bytes("k", value)
    assert store.get_bytes("k") == value


@pytest.mark.parametrize(
    "key", ["", "a", "é", "\ud800", "k" * 100_000, "with\nbreak\x00zero", "http://example.org/?q=1"]
)
def test_any_text_is_a_key_of_its_own(store: Store, key: str) -> None:
    store.set_bytes(key, b"mine")
    store.set_bytes(key + "x", b"other")
    assert store.get_bytes(key) == b"mine"
    assert store.get_bytes(key + "x") == b"other"


def test_json_and_bytes_are_never_taken_for_each_other(store: Store) -> None:
    store.set_json("j", "[1]")
    store.set_bytes("b", b"[1]")
    assert store.get_bytes("j") is None
    assert store.get_json("b") is None


def test_values_expire_by_the_clock_that_was_passed_in(store: Store, clock: Clock) -> None:
    store.set_json("soon", 1, expire=10)
    store.set_bytes("late", b"2", expire=1000)
    store.set_many_bytes({"many": b"3"}, expire=10)
    store.set_json("ever", 4)
    clock.now += 9.9
    assert (store.get_json("soon"), store.get_bytes("many")) == (1, b"3")
    clock.now += 0.2
    assert (store.get_json("soon"), store.get_bytes("many")) == (None, None)
    assert (store.get_bytes("late"), store.get_json("ever")) == (b"2", 4)


def test_ten_thousand_small_values_are_read_in_one_call(store: Store) -> None:
    items = {f"text-{n}": os.urandom(768) for n in range(10_000)}
    store.set_many_bytes(items)
    assert store.get_many_bytes([*items, "unknown"]) == items


def test_what_one_server_keeps_another_finds(store: Store, open_again: Open) -> None:
    other = open_again().pages
    store.set_json("k", [1, 2])
    assert other.get_json("k") == [1, 2]
    other.set_json("k", 3)
    assert store.get_json("k") == 3


def test_stores_of_two_kinds_never_mix(open_again: Open) -> None:
    stores = open_again()
    stores.pages.set_bytes("k", b"page")
    stores.trees.set_bytes("k", b"tree")
    assert stores.scores.get_bytes("k") is None
    assert stores.pages.clear() == 1
    assert stores.trees.get_bytes("k") == b"tree"
    assert stores.clear() == 1


def test_clearing_forgets_everything_and_counts_it(store: Store) -> None:
    store.set_many_bytes({f"k{n}": b"v" * (n * 500) for n in range(100)})
    assert store.clear() == 100
    assert store.get_bytes("k1") is None
    assert store.stats().entries == 0


def test_the_figures_report_entries_and_bytes(store: Store) -> None:
    store.set_bytes("k", b"v" * 100_000)
    store.get_bytes("k")
    stats = store.stats()
    assert (stats.entries, stats.trouble) == (1, "")
    assert stats.bytes > 100_000


def test_a_value_lasts_as_long_as_it_was_promised_and_no_longer(store: Store, clock: Clock) -> None:
    values = {"small": b"abcdef", "large": b"abcdef" * 20_000}
    for key, value in values.items():
        store.set_bytes(key, value, expire=100)
    clock.now += 99
    assert store.get_many_bytes(values) == values
    clock.now += 2
    assert store.get_many_bytes(values) == {}


def test_one_of_many_gets_a_claim_and_the_next_one_after_it_is_given_back(
    store: Store, open_again: Open
) -> None:
    others = [store, *(open_again().pages for _ in range(3))]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            claims = list(pool.map(lambda n: others[n % 4].claim("job", seconds=30), range(16)))
            won = [(n, claim) for n, claim in enumerate(claims) if claim is not None]
            assert len(won) == 1
            number, claim = won[0]
            assert others[(number + 1) % 4].claim("job", seconds=30) is None
            another = others[number % 4].claim("another", seconds=30)
            assert another is not None
            others[number % 4].release(claim)
            others[number % 4].release(another)


def test_a_claim_that_no_one_gives_back_passes_to_the_next(
    store: Store, open_again: Open, clock: Clock
) -> None:
    first = store.claim("job", seconds=30)
    assert isinstance(first, Claim)
    assert open_again().pages.claim("job", seconds=30) is None
    clock.now += 31
    second = open_again().pages.claim("job", seconds=30)
    assert isinstance(second, Claim)
    store.release(first)  # which is no longer the first one's to give
    assert open_again().pages.claim("job", seconds=30) is None


def test_an_entry_of_another_key_is_never_served(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.set_bytes("b", b"of b")
    of_b = store._backend.get(["pages:2:b"])["pages:2:b"]
    store._backend.put({"pages:2:a": of_b}, expire=None)
    with caplog.at_level(logging.WARNING):
        assert store.get_bytes("a") is None
    assert "checksum" in caplog.text
    assert "checksum" in store.stats().trouble
    store._backend.put({"pages:2:a": of_b}, expire=None)
    assert store.get_many_bytes(["a"]) == {}


def test_what_is_read_while_others_replace_it_is_never_missing(
    store: Store, open_again: Open
) -> None:
    other = open_again().pages
    store.set_bytes("k", b"a" * 50_000)

    def write() -> None:
        for n in range(60):
            other.set_bytes("k", bytes([97 + n % 26]) * 50_000)

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while writer.is_alive():
        found = store.get_bytes("k")
        assert found is not None
        assert len(set(found)) == 1
        seen += 1
    writer.join()
    assert seen > 0


def test_a_server_that_is_full_keeps_nothing_more_and_says_so(tmp_path: Path) -> None:
    with cache_server(
        tmp_path / "server", "--maxmemory", "4mb", "--maxmemory-policy", "noeviction"
    ) as small:
        stores = open_stores(tmp_path, size_limit=1, url=small.url)
        kept = [n for n in range(40) if stores.pages.set_bytes(f"k{n}", bytes([n]) * 200_000)]
        assert 0 < len(kept) < 40
        for n in kept:
            assert stores.pages.get_bytes(f"k{n}") == bytes([n]) * 200_000
        stats = stores.pages.stats()
        assert "refused" in stats.trouble
        assert "noeviction" in stats.note
        assert "NOT USED" not in stats.trouble
        stores.close()


def test_a_server_that_hangs_is_left_alone_after_a_moment(tmp_path: Path) -> None:
    with cache_server(tmp_path / "server") as hung:
        stores = open_stores(tmp_path, size_limit=1, url=hung.url)
        stores.pages.set_bytes("k", b"v")
        assert hung.process is not None
        hung.process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(100):
                assert stores.pages.get_bytes("k") is None
            assert "cannot be used" in stores.pages.stats().trouble
        finally:
            hung.process.send_signal(signal.SIGCONT)
        stores.close()


def test_a_list_planted_under_a_key_of_ours_is_a_miss_and_leaves_with_the_rest(
    tmp_path: Path,
) -> None:
    with cache_server(tmp_path / "server") as running:
        stores = open_stores(tmp_path, size_limit=1, url=running.url)
        with socket.create_connection(("127.0.0.1", running.port)) as line:
            line.sendall(b"RPUSH winnow/pages:2:k 1\r\n")
            assert line.recv(100) == b":1\r\n"
        assert stores.pages.get_bytes("k") is None
        assert stores.pages.get_many_bytes(["k"]) == {}
        assert stores.pages.clear() == 1
        assert stores.pages.stats().entries == 0
        stores.close()


def test_a_server_with_tls_and_a_user_of_few_rights_keeps_everything(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="the test's certificate is made with cryptography")
    from tests.support.certificate import make_certificate  # noqa: PLC0415  its import skips the whole file

    pem = make_certificate(tmp_path, "localhost")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tls = ["--tls-port", str(port), "--tls-cert-file", str(pem), "--tls-key-file", str(pem)]
    tls += ["--tls-ca-cert-file", str(pem), "--tls-auth-clients", "no"]
    user = "winnow on >sesame ~winnow/* -@all " + RIGHTS
    with cache_server(tmp_path / "server", *tls, "--user", *user.split()):
        url = f"rediss://winnow:sesame@localhost:{port}/0?ssl_ca_certs={pem}"
        stores = open_stores(tmp_path / "own", size_limit=10_000_000, url=url)
        store = stores.pages
        store.set_json("a", {"kept": True})
        store.set_many_bytes({"b": b"1", "c": b"2"})
        claim = store.claim("work", seconds=60)
        assert claim is not None
        assert store.claim("work", seconds=60) is None
        store.release(store.renew(claim, seconds=60))
        assert store.get_json("a") == {"kept": True}
        assert store.get_many_bytes(["b", "c"]) == {"b": b"1", "c": b"2"}
        assert store.keys("a") == ["a"]
        assert (store.stats().entries, store.clear()) == (3, 3)
        assert store.stats().trouble == ""
        assert "sesame" not in stores.place
        stores.close()
        open_wide = open_stores(
            tmp_path / "other", size_limit=10_000_000, url=f"rediss://localhost:{port}/0"
        )
        assert "certificate" in open_wide.pages.stats().trouble.lower()
        open_wide.close()
