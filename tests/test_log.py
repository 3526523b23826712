"""The log on stderr: few bytes an hour, and no one has to read them."""

import io
import logging

from server.process import DROPPED, HOUR, LOG_BYTES, Sparing
from tests.support import Clock


def test_an_hour_of_warnings_stays_below_its_bytes_and_the_next_hour_begins_again() -> None:
    stream, clock = io.StringIO(), Clock()
    log = logging.Logger("spared")
    log.addHandler(Sparing(stream, clock=clock))
    for number in range(1000):
        log.warning("page %d could not be read for a long and sad reason", number)
        clock.now += 3
    written = stream.getvalue()
    assert 0.9 * LOG_BYTES < len(written.encode()) <= LOG_BYTES
    assert written.count(DROPPED) == 1
    assert written.splitlines()[0] == "page 0 could not be read for a long and sad reason"
    clock.now += HOUR
    log.warning("another hour")
    assert stream.getvalue().endswith("another hour\n")


def test_a_traceback_that_is_longer_than_the_hour_allows_is_dropped_whole() -> None:
    stream = io.StringIO()
    log = logging.Logger("spared")
    log.addHandler(Sparing(stream, clock=Clock()))
    log.warning("x" * 2 * LOG_BYTES)
    assert stream.getvalue() == DROPPED
