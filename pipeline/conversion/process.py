"""What runs in a process that converts documents: takes bytes, gives back a page, or
the pages of a PDF read so far.

A PDF is read in slices of processor time, so that another call's document comes
between, and what was read outlives this process: the caller holds it and sends it with
the next slice. Started by `models/worker.py` for `pipeline/conversion/converter.py`, never
imported by the server."""

import gc
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from cancellation import Stopped, stopped_by
from errors import SourceUnreadable
from models.pipe import Cancelled, Frame, IsCancelled, serve
from readers.convert import Raw, kind_of, to_page, unreadable
from readers.converted import Unreadable
from readers.format import format_of, formats
from readers.pdf.pdf_reading import READING_SECONDS, PdfReading

SLICE_SECONDS: Final = 0.2
"""Processor time for one answer: what a process that is killed costs at most, a page
that began before aside. Killed 20 times over 288 files, 1 s costs .4 s a kill, .2 s half
of it, of which the next process's start is most."""
NEW_OBJECTS: Final = 50_000
"""Objects between two collections of cycles, of which a reading makes hardly any; with
Python's 700 they take 5 % of it."""
OPEN_READINGS: Final = 2
"""PDFs whose tables of objects stay in memory between slices; reopening one takes up to
0.5 s."""


def main(text: str) -> None:
    """Convert what is asked until stdin ends or nothing is asked for long; `text` is
    JSON as `models.worker` sends."""
    arguments = json.loads(text)
    formats()  # other wheels' formats are read before memory is bounded
    gc.freeze()  # objects of imported modules are permanent
    gc.set_threshold(NEW_OBJECTS)
    serve(
        lambda: _Conversions().answer,
        memory_bytes=arguments["memory_bytes"],
    )


class _Conversions:
    def __init__(self) -> None:
        self._open: OrderedDict[str, PdfReading] = OrderedDict()

    def answer(self, frame: Frame, is_cancelled: IsCancelled) -> Frame:
        """Convert the document of a request; a `models.pipe.Answer`."""
        try:
            with stopped_by(is_cancelled):
                return self._converted(frame)
        except Stopped as error:
            raise Cancelled from error
        except SourceUnreadable as error:
            return Frame({"unreadable": error.what, "hint": error.hint})

    def _converted(self, frame: Frame) -> Frame:
        fields: dict[str, Any] = dict(frame.fields)
        size, key, remaining_seconds = (
            fields["bytes"],
            fields["key"],
            fields["left"] or READING_SECONDS,
        )
        first_page, last_page = fields["raw"].pop("span")
        notes = tuple(fields["raw"].pop("notes"))
        raw = Raw(
            frame.blob[:size],
            **fields["raw"],
            span=(first_page, last_page),
            notes=notes,
        )
        paged = format_of(kind_of(raw))
        if paged is None or not paged.paged:
            return _whole(raw)
        saved_pages = frame.blob[size:]
        saved_count = saved_pages.count(b"\n")
        began = time.thread_time()
        try:
            reading = self._reading(
                key,
                saved_count,
                lambda: paged.to_html(
                    raw.body, raw.span, saved_pages, ending=fields["ending"]
                ),
            )
        except Unreadable as error:
            raise unreadable(raw, error) from error
        if len(reading.pages) == saved_count:
            reading.read(
                SLICE_SECONDS,
                remaining_seconds=remaining_seconds,
                max_pages=fields["most"],
            )
        spent = time.thread_time() - began
        if reading.done or spent >= remaining_seconds:
            self._open.pop(key, None)
            return _whole(raw, reading)
        return Frame({"left": remaining_seconds - spent}, reading.kept(saved_count))

    def _reading(
        self, key: str, min_pages: int, open_new: Callable[[], PdfReading]
    ) -> PdfReading:
        """Return the reading as another slice left it, with at least the pages that the
        caller holds; else a new one by `open_new`, whose errors it passes on.

        Beyond `OPEN_READINGS` the oldest are dropped."""
        reading = self._open.pop(key, None)
        if reading is None or len(reading.pages) < min_pages:
            reading = open_new()
        self._open[key] = reading
        while len(self._open) > OPEN_READINGS:
            self._open.popitem(last=False)
        return reading


def _whole(raw: Raw, reading: PdfReading | None = None) -> Frame:
    fields = asdict(to_page(raw, pdf=reading))
    return Frame({"page": fields}, fields.pop("html").encode("utf-8", "surrogatepass"))
