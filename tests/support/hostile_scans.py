"""Images and PDFs that are made to exhaust or to break who reads them, and what recognising a page costs."""

import io
import os
import struct
import sys
import zlib
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Final, cast

import anyio
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
from tests.support.pdf import make_pdf
from tests.support.scans import FONTS, as_bytes, printed
from tests.support.waiting import moment

WITHIN_SECONDS: Final = 15.0
"""Processor seconds: beside other work the clock says little."""
WITHIN_BYTES: Final = 100_000_000


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
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
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
    large = PdfReader(io.BytesIO(as_bytes([Image.new("RGB", (5_900, 5_900), "red")], "PDF")))
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
    tile.update({NameObject(name): NumberObject(value) for name, value in numbers.items()})
    tile.update({NameObject(name): FloatObject("0.0001") for name in ("/XStep", "/YStep")})
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
        await converter.page(Raw(make_pdf([[("Text", 11)]]), "file:///a.pdf", "file:///a.pdf"))
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
            await moment()

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
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
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
