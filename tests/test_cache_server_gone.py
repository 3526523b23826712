"""A cache on a Redis server that goes and comes back, as a client of Winnow sees it."""

from pathlib import Path

import pytest

from tests.support import Site
from tests.support.cache_server import cache_server
from tests.support.waiting import wait_until
from tests.test_cache_doors import fill, serving, winnow

pytestmark = pytest.mark.slow


def test_a_cache_server_that_goes_and_comes_back_costs_no_answer(
    site: Site, tmp_path: Path
) -> None:
    with cache_server(tmp_path / "redis", "--requirepass", "open-sesame") as redis:
        cache, url = tmp_path / "cache", f"redis://:open-sesame@127.0.0.1:{redis.port}/1"
        pages = fill(site, 3)
        log = tmp_path / "log"
        with serving(cache, cache_url=url, log=f"file={log}") as server:
            assert "nine euros" in server.ask(pages[0])
            assert "nine euros" in server.ask(pages[0])
            assert len(site.asked) == 1
            assert (
                f"redis://127.0.0.1:{redis.port}/1"
                in winnow(cache, "cache", "path", cache_url=url).stdout
            )
            redis.stop()
            assert "nine euros" in server.ask(pages[1])
            gone = server.status()
            assert "cache: NOT USED" in gone
            redis.start()
            wait_until(
                lambda: (
                    "nine euros" in server.ask(pages[2])
                    and "cache: NOT USED" not in server.status()
                )
            )
            server.ask(pages[2])
            asked = len(site.asked)
            assert "nine euros" in server.ask(pages[2])
            assert len(site.asked) == asked
            assert "is used again" in log.read_text()
            reported = gone + server.status() + log.read_text()
        reported += (
            winnow(cache, "doctor", cache_url=url).stdout
            + winnow(cache, "cache", cache_url=url).stdout
        )
        redis.stop()
        refused = winnow(cache, "cache", cache_url=url)
        assert refused.returncode == 1
        assert "open-sesame" not in reported + refused.stdout + refused.stderr
        assert [path.name for path in cache.iterdir()] == [
            "own"
        ]  # what is made of a person's own files
