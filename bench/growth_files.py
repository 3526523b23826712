"""Whether each reader's processor time grows no faster than its file.

    python -m bench.growth_files            every format and shape, with its factor from n to 2n
    python -m bench.growth_files --check    exits 1 where one is over the bar
    python -m bench.growth_files --only docx,csv

A row reads the same shape (paragraphs, headings, items, rows of a table, notes, one long
paragraph …) at n and 2n, each by the least processor time of three. Formats that pandoc
writes need it; a row whose file is read in under `SHORT` seconds says nothing and is
made larger. Not for: hostile shapes of one part (`bench/growth.py`,
`tests/support/hostile_files.py`)."""

import argparse
import gc
import io
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

import openpyxl

from errors import SourceError
from readers import read
from tests.support.pdf import make_pdf

MOST: Final = 2.3
"""Factor from n to 2n of a row, measured once more where it is over: linear work with what
is fixed is under 2, squared work near 4."""
SHORT: Final = 0.15
"""Least processor seconds of reading at n."""
FIRST, LARGEST = 200, 102_400
"""Units of the first file tried, and of the last."""


class Row(NamedTuple):
    """A shape in a format."""

    name: str
    ending: str
    make: Callable[[int], bytes]


def words(number: int) -> str:
    """Return a sentence that differs from those beside it."""
    return f"Boat {number} leaves the quay of Orvane at {number % 24} and carries {number * 7} crates."


SHAPES: Final[Mapping[str, Callable[[int], str]]] = {
    "paragraphs": lambda n: "\n\n".join(map(words, range(n))),
    "headings": lambda n: "\n\n".join(f"## Berth {i}\n\n{words(i)}" for i in range(n)),
    "items": lambda n: "\n".join(f"- {words(i)}" for i in range(n)),
    "nested": lambda n: "\n".join(f"{'    ' * (i % 6)}- {words(i)}" for i in range(n)),
    "rows": lambda n: (
        "| a | b |\n|---|---|\n" + "\n".join(f"| {i} | {words(i)} |" for i in range(n))
    ),
    "notes": lambda n: "\n\n".join(
        f"{words(i)}[^{i}]\n\n[^{i}]: Note {i}." for i in range(n)
    ),
    "links": lambda n: "\n\n".join(
        f"[{words(i)}](https://a.example/{i})" for i in range(n)
    ),
    "one paragraph": lambda n: " ".join(map(words, range(n))),
    "styled": lambda n: " ".join(f"**{words(i)}** *{i}*" for i in range(n)),
}
"""Markdown of so many units."""
WRITTEN: Final = (
    *(
        (form, form)
        for form in ("docx", "odt", "epub", "rtf", "pptx", "ipynb", "org", "html")
    ),
    ("latex", "tex"),
)
"""Formats that pandoc writes, and their endings."""


def by_pandoc(form: str, shape: Callable[[int], str], units: int) -> bytes:
    """Return so many units of a shape in a format, as pandoc writes it."""
    command = [
        "pandoc",
        "-f",
        "markdown-yaml_metadata_block",
        "-t",
        form,
        "-s",
        "-o",
        "-",
    ]
    return subprocess.run(  # noqa: S603  a fixed command
        [*command, "--metadata", "title=Orvane"],
        input=_markdown(shape, units),
        capture_output=True,
        check=True,
    ).stdout


def _workbook(count: int) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for number in range(count):
        sheet.append([number, words(number), number / 3])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _joined(
    piece: Callable[[int], str], *, head: str = "", tail: str = ""
) -> Callable[[int], bytes]:
    return lambda n: (head + "".join(map(piece, range(n))) + tail).encode()


def _mail(number: int) -> str:
    return f"From: a@b.example\nSubject: {number}\nMessage-ID: <{number}@b>\n\n{words(number)}\n\n"


def _stamp(number: int) -> str:
    return f"{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000"


OTHERS: Final[Mapping[str, Callable[[int], bytes]]] = {
    "xlsx": _workbook,
    "csv": _joined(lambda i: f"{i},{words(i)}\n", head="number,text\n"),
    "tsv": _joined(lambda i: f"{i}\t{words(i)}\n", head="number\ttext\n"),
    "json": lambda n: json.dumps([{"a": i, "b": words(i)} for i in range(n)]).encode(),
    "nested.json": lambda n: json.dumps(
        {str(i): {"a": {"b": [words(i)]}} for i in range(n)}
    ).encode(),
    "chat.json": lambda n: json.dumps(
        [
            {"sender_name": "Ann", "timestamp_ms": i, "content": words(i)}
            for i in range(n)
        ]
    ).encode(),
    "jsonl": _joined(lambda i: json.dumps({"a": i, "b": words(i)}) + "\n"),
    "xml": _joined(lambda i: f"<a><b>{words(i)}</b></a>", head="<r>", tail="</r>"),
    "rss": _joined(
        lambda i: (
            f"<item><title>{i}</title><description>{words(i)}</description></item>"
        ),
        head="<rss><channel><title>a</title>",
        tail="</channel></rss>",
    ),
    "eml": lambda n: (_mail(0) + "\n".join(map(words, range(n)))).encode(),
    "quoted.eml": lambda n: (
        _mail(0)
        + "\n".join(
            f"{'>' * min(i, 200)} {words(i)}\n{'>' * min(i, 200)} A wrote:"
            for i in range(n)
        )
    ).encode(),
    "html.eml": lambda n: (
        "Subject: a\nMIME-Version: 1.0\nContent-Type: text/html\n\n"
        + "<p>A wrote:</p><blockquote>b" * n
    ).encode(),
    "mbox": _joined(lambda i: "From a@b.example Thu Jan  1 00:00:00 1970\n" + _mail(i)),
    "ics": _joined(
        lambda i: (
            f"BEGIN:VEVENT\nSUMMARY:{words(i)}\nDTSTART:20260101T{i % 24:02}0000\nEND:VEVENT\n"
        ),
        head="BEGIN:VCALENDAR\n",
        tail="END:VCALENDAR\n",
    ),
    "vtt": _joined(
        lambda i: f"{_stamp(i)} --> {_stamp(i + 1)}\n{words(i)}\n\n", head="WEBVTT\n\n"
    ),
    "srt": _joined(lambda i: f"{i}\n{_stamp(i)} --> {_stamp(i + 1)}\n{words(i)}\n\n"),
    "ass": _joined(
        lambda i: f"Dialogue: 0,{_stamp(i)},{_stamp(i + 1)},A,,0,0,0,,{words(i)}\n",
        head="[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n",
    ),
    "txt": _joined(lambda i: words(i) + "\n" + "\n" * (i % 5 == 0)),
    "py": _joined(lambda i: f"def f{i}():\n    return {i}\n\n"),
    "pdf": lambda n: make_pdf([[(words(i), 10)] * 40 for i in range(n // 40 + 1)]),
}
"""Files of so many units by their endings."""


def rows() -> Iterator[Row]:
    """Yield every row that can be made here."""
    for ending, make in OTHERS.items():
        yield Row(ending, ending, make)
    forms = WRITTEN if shutil.which("pandoc") else ()
    for shape, markdown in SHAPES.items():
        yield Row(f"md {shape}", "md", partial(_markdown, markdown))
        for form, ending in forms:
            yield Row(f"{ending} {shape}", ending, partial(by_pandoc, form, markdown))


def _markdown(shape: Callable[[int], str], units: int) -> bytes:
    return shape(units).encode()


def seconds(body: bytes, name: str) -> float:
    """Return the least processor time of three readings."""
    times = []
    gc.collect()
    gc.disable()  # collections come at steps of memory, not of the file
    try:
        for _ in range(3):
            began = time.process_time()
            read(body, name=name)
            times.append(time.process_time() - began)
    except SourceError as error:
        raise SystemExit(f"{name}: {error}") from error
    finally:
        gc.enable()
    return min(times)


def factor(row: Row) -> tuple[int, float, float]:
    """Return a number of units that takes long enough, and the seconds of it and of twice
    as many."""
    name, units = f"a.{row.ending}", FIRST
    before = seconds(row.make(units), name)
    while before < SHORT and units < LARGEST:
        units *= 2
        before = seconds(row.make(units), name)
    return units, before, seconds(row.make(2 * units), name)


def main() -> int:
    """Measure; return 1 where `--check` is asked for and a row is over the bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="exit code 1 over the bar")
    parser.add_argument("--only", default="", help="beginnings of rows, with commas")
    options = parser.parse_args()
    over = []
    for row in rows():
        if not row.name.startswith(tuple(options.only.split(","))):
            continue
        units, before, after = factor(row)
        if after > MOST * before:  # a busy machine; once more
            units, before, after = factor(row)
        print(
            f"{row.name:24}{units:8}{before:8.2f} s{after:8.2f} s  {after / before:.2f}",
            flush=True,
        )
        over += [row.name] if after > MOST * before else []
    print("over:", ", ".join(over) or "nothing")
    return int(bool(over) and options.check)


if __name__ == "__main__":
    sys.exit(main())
