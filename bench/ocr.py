"""Scans: whether questions find the words of scanned pages, how hostile images end,
what recognising costs.

Pages are drawn when it runs: three fonts at 150 to 300 dpi with a scanner's noise, as
PNG, JPEG, TIFF, WebP and PDF, of places that do not exist. `--languages` adds a table
of pages in German and, where Debian's fonts-noto-cjk are installed, in Chinese."""

import argparse
import importlib.util
import io
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import anyio
from mcp import Client
from PIL import Image
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    StreamObject,
)

from errors import SourceUnreadable
from models.pipe import memory_of
from pipeline.conversion.converter import Converter
from readers.convert import Raw
from server.app import build_server
from server.settings import read_settings
from tests.support import text_of
from tests.support.pdf import make_pdf
from tests.support.scans import CHINESE, FONTS, as_bytes, printed

FLOOR: Final = 0.90
"""Of the questions whose words are shown within `BUDGET` tokens."""
BUDGET: Final = 512
KINDS: Final = ("PDF", "PNG", "JPEG", "TIFF", "WEBP")
DPI: Final = (150, 200, 300)
WITHIN_SECONDS: Final = 15.0
"""Processor seconds: beside other work the clock says little."""
WITHIN_BYTES: Final = 100_000_000
PLACES: Final = (
    "Orvane",
    "Telmark",
    "Quillin",
    "Bresk",
    "Hadlow",
    "Istvar",
    "Merrin",
    "Coldane",
    "Rufford",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the words that answer it."""

    question: str
    words: str
    file: str
    where: str
    """Language or kind, font and dots per inch."""


def english(place: str, number: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the lines of a page on a place, and its questions with their words."""
    year, depth, name = (
        1812 + 17 * number,
        f"{41 + 13 * number}.{number}",
        f"Ada {place}sen",
    )
    lines = [
        f"# The harbour of {place}",
        "",
        f"The lighthouse of {place} was built in {year} on the northern pier.",
        "It is made of grey granite, and its lamp turns once a minute.",
        "Ships from the islands see it from far away in clear nights.",
        "",
        f"The basin in front of the old quay is {depth} metres deep at low tide.",
        "Larger vessels wait outside until the water has risen again.",
        "",
        f"Since the reform the port has been led by {name}, who came from the",
        "customs office and knows each of the pilots by name.",
    ]
    asked = [
        (f"When was the lighthouse of {place} built?", str(year)),
        (f"How deep is the basin at the old quay of {place}?", depth),
        (f"Who has led the port of {place} since the reform?", name),
    ]
    return lines, asked


def german(place: str, number: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the same in German, with its own letters."""
    year, height = 1790 + 19 * number, f"{300 + 21 * number}"
    lines = [
        f"# Das Schloss über {place}",
        "",
        f"Das Schloss von {place} wurde im Jahr {year} für die Fürstin Änne Größ errichtet.",
        "Später diente es als Schule, heute gehört es der Gemeinde.",
        "",
        f"Der Hügel, auf dem es steht, ist {height} Meter hoch und von Weinbergen umgeben.",
    ]
    asked = [
        (f"Wann wurde das Schloss von {place} errichtet?", str(year)),
        ("Wie hoch ist der Hügel, auf dem das Schloss steht?", height),
        ("Für wen wurde das Schloss errichtet?", "Änne Größ"),
    ]
    return lines, asked


def chinese(place: str, number: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the same in Chinese."""
    year, depth = 1790 + 19 * number, f"{30 + 7 * number}"
    lines = [
        "# 港口概况",
        "",
        f"灯塔建于{year}年，由灰色花岗岩砌成。",
        f"旧码头前的港池深{depth}米，大船须等待涨潮。",
        "港务局长是李明华，他原来在海关工作。",
    ]
    asked = [
        ("灯塔建于哪一年？", str(year)),
        ("旧码头前的港池有多深？", depth),
        ("港务局长是谁？", "李明华"),
    ]
    return lines, asked


def draw(folder: Path) -> list[Asked]:
    """Write a page for each font and resolution into `folder`; return what is asked of
    them."""
    asked = []
    for number, place in enumerate(PLACES):
        font, dpi = list(FONTS)[number % 3], DPI[number // 3]
        kind = KINDS[number % len(KINDS)]
        lines, questions = english(place, number)
        file = folder / f"{place.lower()}.{kind.lower()}"
        file.write_bytes(
            as_bytes([printed(lines, font=FONTS[font], dpi=dpi)], kind, dpi=dpi)
        )
        asked += [
            Asked(question, words, file.name, f"{kind}, {font}, {dpi} dpi")
            for question, words in questions
        ]
    return asked


def draw_languages(folder: Path) -> list[Asked]:
    """Write pages in other languages into `folder`; return what is asked of them."""
    asked = []
    made = [(german, name, font) for name, font in FONTS.items()]
    made += [(chinese, "Noto Sans CJK", CHINESE)] if CHINESE.exists() else []
    for number, (write, name, font) in enumerate(made):
        for dpi in DPI[::2]:
            lines, questions = write(PLACES[number], number)
            file = folder / f"{write.__name__}-{number}-{dpi}.png"
            file.write_bytes(
                as_bytes([printed(lines, font=font, dpi=dpi)], "PNG", dpi=dpi)
            )
            asked += [
                Asked(
                    question, words, file.name, f"{write.__name__}, {name}, {dpi} dpi"
                )
                for question, words in questions
            ]
    return asked


async def found(folder: Path, asked: list[Asked]) -> list[Asked]:
    """Return the questions whose words are not shown, each asked of its own file by
    `extract_relevant`."""
    missing = []
    settings = read_settings(
        {"folders": str(folder), "cache": str(folder / ".cache"), "seconds": "300"}, {}
    )
    async with Client(build_server(settings)) as client:
        for one in asked:
            given = {
                "question": one.question,
                "sources": [str(folder / one.file)],
                "max_tokens": BUDGET,
            }
            shown = text_of(await client.call_tool("extract_relevant", given))
            if one.words not in shown or "[recognised]" not in shown:
                missing.append(one)
    return missing


def png(width: int, height: int) -> bytes:
    """Return a PNG that says that it has so many pixels, all black and packed into
    little."""
    rows = (
        zlib.compress(bytes(1 + width // 8))
        if width * height > 10**9
        else zlib.compress(bytes((1 + width // 8) * height))
    )
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)),
        (b"IDAT", rows),
        (b"IEND", b""),
    )
    written = (
        struct.pack(">I", len(data))
        + name
        + data
        + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


def hostile() -> Iterator[tuple[str, bytes]]:
    """Yield images and PDFs that are made to exhaust or to break anyone who reads them,
    by name."""
    yield "PNG of 60,000 × 60,000", png(60_000, 60_000)
    yield "PNG of 20,000 × 20,000", png(20_000, 20_000)
    page = as_bytes([printed(["# Nothing", "to see"], font=FONTS["sans"])], "PNG")
    yield "truncated PNG", page[: len(page) // 2]
    yield (
        "truncated JPEG",
        as_bytes([printed(["# Nothing", "to see"], font=FONTS["sans"])], "JPEG")[:900],
    )
    yield (
        "TIFF whose directory leads to itself",
        b"II*\x00\x08\x00\x00\x00\x00\x00\x08\x00\x00\x00",
    )
    yield "PNG by its first bytes alone", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
    yield (
        "WebP by its first bytes alone",
        b"RIFF\xff\xff\xff\x7fWEBPVP8 " + bytes(range(256)) * 40,
    )
    pdf = as_bytes([Image.new("L", (400, 400), 1)], "PDF")
    yield "PDF of an image of 90,000 × 90,000", pdf.replace(b"400", b"90000")
    yield "PDF of a damaged image", pdf.replace(b"stream\n", b"stream\nxxxxxxxx", 1)
    yield "PNG of nothing but noise", _noise()
    yield (
        "PNG of 6,000 × 6,000 in colours",
        as_bytes([Image.new("RGB", (6_000, 6_000), "red")], "PNG"),
    )
    large = PdfReader(
        io.BytesIO(as_bytes([Image.new("RGB", (5_900, 5_900), "red")], "PDF"))
    )
    yield (
        "PDF that shows one large image a thousand times",
        _shown(large, b"/image Do " * 1_000),
    )
    yield (
        "PDF of a pattern without end",
        _shown(large, b"/Pattern cs /P scn 0 0 5900 5900 re f /image Do"),
    )


def _shown(reader: PdfReader, content: bytes) -> bytes:
    """Return a PDF of one page with other content, that knows a pattern of very many
    very small tiles."""
    writer = PdfWriter(clone_from=reader)
    page = writer.pages[0]
    tile = StreamObject()
    tile.set_data(b"0 0 1 1 re f")
    numbers = {"/PatternType": 1, "/PaintType": 1, "/TilingType": 1}
    tile.update(
        {NameObject(name): NumberObject(value) for name, value in numbers.items()}
    )
    tile.update(
        {NameObject(name): FloatObject("0.0001") for name in ("/XStep", "/YStep")}
    )
    tile[NameObject("/BBox")] = ArrayObject(map(NumberObject, (0, 0, 1, 1)))
    tile[NameObject("/Resources")] = DictionaryObject()
    pattern = DictionaryObject({NameObject("/P"): writer._add_object(tile)})
    cast(DictionaryObject, page["/Resources"])[NameObject("/Pattern")] = pattern
    stream = StreamObject()
    stream.set_data(content)
    page[NameObject("/Contents")] = writer._add_object(stream)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _noise() -> bytes:
    out = io.BytesIO()
    Image.effect_noise((1_400, 1_400), 200).save(out, "PNG")
    return out.getvalue()


async def ended(base: int) -> list[str]:
    """Return what is wrong with how hostile files ended, one after the other in a
    process that runs."""
    async with aclosing(Converter(None, processes=1)) as converter:
        await converter.page(
            Raw(make_pdf([[("Text", 11)]]), "file:///a.pdf", "file:///a.pdf")
        )
        return list(
            filter(
                None,
                [await _ended(name, body, base, converter) for name, body in hostile()],
            )
        )


async def _ended(name: str, body: bytes, base: int, converter: Converter) -> str:
    most, spent = 0, {pid: -seconds_of(pid) for pid in converter.pids}
    ended = dict.fromkeys(converter.pids, 0.0)

    async def watch() -> None:
        nonlocal most
        while True:
            for pid in converter.pids:
                most, ended[pid] = (
                    max(most, memory_of(pid)[1]),
                    seconds_of(pid) or ended.get(pid, 0.0),
                )
            await anyio.sleep(0.01)

    said = "it was read"
    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            await converter.page(Raw(body, f"file:///{name}", f"file:///{name}"))
        except SourceUnreadable as error:
            said = error.what
        group.cancel_scope.cancel()
    took = sum(ended.values()) + sum(spent.values())
    sys.stdout.write(f"  {name}: {took:.1f} s, {(most - base) / 1e6:+.0f} MB: {said}\n")
    bad = took > WITHIN_SECONDS or most - base > WITHIN_BYTES
    return (
        f"{name} took {took:.1f} s and {(most - base) / 1e6:.0f} MB beyond the models"
        if bad
        else ""
    )


def seconds_of(pid: int) -> float:
    """Return the processor seconds of a process, 0 for one that is gone."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="ascii")
            .rpartition(")")[2]
            .split()
        )
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def cost() -> tuple[float, int]:
    """Return the processor seconds of a dense page of A4 at 200 dpi, and the bytes that
    its process had at most."""
    lines = [
        f"Line {n}: the committee of the northern harbours met again to speak about its dues."
        for n in range(50)
    ]
    body = as_bytes([printed(lines, font=FONTS["serif"], dpi=200)], "PNG")
    async with aclosing(Converter(None, processes=1)) as converter:
        await converter.page(Raw(body, "file:///a.png", "file:///a.png"))
        (pid,) = converter.pids
        peak = (
            Path(f"/proc/{pid}/status")
            .read_text(encoding="ascii")
            .partition("VmHWM:")[2]
            .split()[0]
        )
        return seconds_of(pid), int(peak) * 1024


def recall(draw_pages: Callable[[Path], list[Asked]]) -> float:
    """Return the share of questions whose words are shown, and print those that are
    not."""
    with tempfile.TemporaryDirectory() as name:
        asked = draw_pages(Path(name))
        missing = anyio.run(found, Path(name), asked)
    for one in missing:
        sys.stdout.write(f"  not shown: {one.words} ({one.question}; {one.where})\n")
    share = 1 - len(missing) / len(asked)
    sys.stdout.write(
        f"recall at {BUDGET} tokens: {share:.2f} of {len(asked)} questions\n"
    )
    return share


def main() -> int:
    """Print recall, what a page costs, and how hostile files end; with --check what
    falls short counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="exit 1 naming each line that falls short"
    )
    parser.add_argument(
        "--languages", action="store_true", help="German and Chinese pages besides"
    )
    given = parser.parse_args()
    if importlib.util.find_spec("rapidocr") is None:
        sys.stdout.write("skipped: the extra ocr is not installed\n")
        return 0
    share = recall(draw)
    bad = [] if share >= FLOOR else [f"recall is {share:.2f}, below {FLOOR}"]
    seconds, base = anyio.run(cost)
    sys.stdout.write(
        f"a dense page: {seconds:.1f} processor seconds with starting, {base / 1e6:.0f} MB at "
        f"most\n"
    )
    bad += anyio.run(ended, base)
    if given.languages:
        recall(draw_languages)
    sys.stdout.write("".join(f"short: {line}\n" for line in bad))
    return 1 if bad and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
