"""The part of the attack set that is files: names that lead out of a folder, files with
random damage, bombs, and folders full of what is not a document.

Not for: hidden text, keys and exchanged folders (`bench/attack_hidden.py`).
"""

import contextlib
import io
import json
import os
import random
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import anyio
from mcp import Client

from bench.mutated import check, damaged
from errors import SourceError, WinnowError
from pipeline.fetch.files import allowed_path
from readers.convert import Raw, to_page
from readers.html.document import read_document
from server.app import build_server
from server.settings import read_settings
from tests.support import LIBRARY
from tests.support.attacks import FACT, HIDDEN_HTML, SECRET_FILES
from tests.support.hidden_forms import HIDDEN_CSS, HIDDEN_MARKDOWN
from tests.support.hostile_files import HOSTILE

PAGES_SHARE: Final = 0.3
"""Part of the mutated files that are pages, Markdown and text; the others are
documents."""
SECONDS: Final = 8.0
"""Processor time of one mutated page, all of which are small."""
BOMB_SECONDS: Final = 20.0
"""Processor time of one bomb on a shared machine; the worst takes some 6 s."""


def paths(rng: random.Random, count: int) -> Iterator[str]:
    """Names of files outside of a folder, or hidden in it: links, dots, encodings,
    devices."""
    with tempfile.TemporaryDirectory() as place:
        root, outer = Path(place, "inner"), Path(place, "outer.md")
        (root / "below").mkdir(parents=True)
        outer.write_text("secret")
        for name in SECRET_FILES:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("secret")
        (root / "link.md").symlink_to(outer)
        (root / "folder").symlink_to(place)
        names = [
            "link.md",
            "folder/outer.md",
            "../outer.md",
            "below/../../outer.md",
            str(outer),
            "/etc/passwd",
        ]
        names += ["/proc/self/environ", "/dev/zero", "/proc/1/cmdline"]
        names += ["folder/below/../../outer.md", "below/\0x", "~/x"]
        names += [name for name in SECRET_FILES if name not in _INNOCENT]
        for _ in range(count):
            name = rng.choice(names)
            name = (
                rng.choice(("", "./", "below/../", ".//")) + name
                if not name.startswith(("/", "~"))
                else name
            )
            try:
                found = allowed_path(Path(name), roots=[root.resolve()])
                yield name if found.is_file() else ""
            except (WinnowError, ValueError):
                yield ""


def mutated(rng: random.Random, count: int) -> Iterator[str]:
    """Pages, Markdown, text and documents with bytes changed, cut, doubled: each is
    read, or refused in words, in bounded time."""
    pages = round(PAGES_SHARE * count)
    yield from _pages(rng, pages)
    for one in check(count - pages, rng.randrange(10**6)):
        yield (
            ""
            if one.what in {"read", "refused"}
            else f"{one.number} {one.name}: {one.what}"
        )


def _pages(rng: random.Random, count: int) -> Iterator[str]:
    seeds = {
        path.name: path.read_bytes() for path in LIBRARY.rglob("*") if path.is_file()
    }
    forms = {"css": HIDDEN_CSS, "html": HIDDEN_HTML, "md": HIDDEN_MARKDOWN}
    for ending, table in forms.items():
        for number, form in enumerate(table.values()):
            name = f"{ending}{number}.{ending.replace('css', 'html')}"
            seeds[name] = f"<p>{FACT}</p>\n\n{form.format(bad=FACT)}".encode() * 3
    names = sorted(seeds)
    for _ in range(count):
        name = rng.choice(names)
        body = damaged(seeds[name][:200_000], rng)
        began = time.process_time()
        try:
            read_document(
                to_page(Raw(body, f"file:///{name}", f"file:///{name}", name=name))
            )
        except SourceError:
            pass
        except Exception as error:  # noqa: BLE001  what is looked for
            yield f"{name}: {type(error).__name__}: {error}"
            continue
        spent = time.process_time() - began
        yield f"{name}: {spent:.1f} s" if spent > SECONDS else ""


def _zip(**parts: bytes) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name.replace("__", "/").replace("_x", ".x"), part)
    return body.getvalue()


def _gzip(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(bytes(size)) + packer.flush()


def _pdf(size: int) -> bytes:
    stream = zlib.compress(b"(a) Tj " * (size // 7))
    head = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "
    page = b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>endobj "
    packed = b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (
        len(stream),
        stream,
    )
    return head + page + b"4 0 obj" + packed + b" endobj\ntrailer<</Root 1 0 R>>"


_LAUGHS: Final = "".join(
    f'<!ENTITY {chr(98 + step)} "{f"&{chr(97 + step)};" * 10}">' for step in range(9)
)
_OUTER: Final = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>%s'
_DEEP: Final = 60_000
_MADE: Final[dict[str, Callable[[int], tuple[str, bytes]]]] = {
    "a Word part of zeros": lambda n: (
        "a.docx",
        _zip(word__document_xml=b"A" * (20 + n) * 10**6),
    ),
    "a sheet of zeros": lambda n: (
        "a.xlsx",
        _zip(xl__workbook_xml=b" " * (40 + n) * 10**6),
    ),
    "a packed page": lambda n: ("a.html.gz", _gzip((40 + n) * 10**6)),
    "packed twice": lambda n: ("a.gz", _gzip(10**6) + _gzip(n * 10**6)),
    "a PDF stream": lambda n: ("a.pdf", _pdf((20 + 4 * n) * 10**6)),
    "elements in elements": lambda n: ("a.html", b"<div>" * (n + 1) * _DEEP),
    "quotations in quotations": lambda n: ("a.md", b">" * (n + 1) * _DEEP + b" a"),
    "lists in lists": lambda n: (
        "a.md",
        b"".join(b" " * k + b"- a\n" for k in range(200 * (n + 1))),
    ),
    "open marks": lambda n: ("a.md", b"*_[`<" * (n + 1) * 20_000),
    "open links": lambda n: ("a.md", b"[a](" * (n + 1) * 20_000),
    "arrays in arrays": lambda n: ("a.json", b"[" * (n + 1) * _DEEP),
    "one long line": lambda n: ("a.txt", b"harbour " * (n + 1) * 400_000),
    "cells of a table": lambda n: (
        "a.html",
        b"<table>" + b"<tr><td>a" * (n + 1) * 20_000,
    ),
    "spans": lambda n: (
        "a.html",
        b"<table><tr><td colspan=9999 rowspan=9999>a" * 20 * (n + 1),
    ),
    "attributes": lambda n: ("a.html", b"<p " + b"a%d=b " % n * 100_000 + b">x"),
    "rules of style": lambda n: (
        "a.html",
        b"<style>" + b"p:not(:not(" * 9_000 * (n + 1) + b"</style><p>a",
    ),
    "selectors": lambda n: (
        "a.html",
        b"<style>%s</style>%s"
        % (b"* * * * p{color:red}" * 900 * (n + 1), b"<div>" * 200),
    ),
    "entities": lambda n: (
        "a.xml",
        f'<!DOCTYPE x [<!ENTITY a "{"ha" * (n + 1)}">{_LAUGHS}]><x>&k;</x>'.encode(),
    ),
    "an entity of a file": lambda n: (
        "a.svg",
        _OUTER % (b"<svg><text>&a;%d</text></svg>" % n),
    ),
    "columns of CSV": lambda n: ("a.csv", b"a," * (n + 1) * 200_000),
    "rows of CSV": lambda n: ("a.csv", b'"a\n' * (n + 1) * 200_000),
    "anchors of YAML": lambda n: (
        "a.yaml",
        b"a: &a [x,x]\n" + b"b: &a [*a,*a]\n" * 5_000 * (n + 1),
    ),
}


def bombs(rng: random.Random, count: int) -> Iterator[str]:
    """Files that unpack, nest or repeat without end: each is read or refused in bounded
    time and memory."""
    tries: list[tuple[str, Callable[[], tuple[str, bytes]]]] = [
        (name, lambda file=file, made=made: (file, made()))  # type: ignore[misc]
        for name, (file, made) in HOSTILE.items()
    ]
    tries += [
        (f"{name} {size}", lambda make=make, size=size: make(size))  # type: ignore[misc]
        for size in range(4)
        for name, make in _MADE.items()
    ]
    for name, made in rng.sample(tries, min(count, len(tries))):
        file, body = made()
        began, text = time.process_time(), ""
        try:
            text = to_page(
                Raw(body, f"file:///{file}", f"file:///{file}", name=file)
            ).html
        except SourceError:
            pass
        except Exception as error:  # noqa: BLE001  what is looked for
            yield f"{name}: {type(error).__name__}: {error}"
            continue
        spent = time.process_time() - began
        yield (
            "a local file in it"
            if "root:" in text
            else f"{name}: {spent:.0f} s"
            if spent > BOMB_SECONDS
            else ""
        )


_INNOCENT: Final = frozenset({"renamed.txt", "server.pem"})
"""Files that are keys by what they hold only."""


def _fill(folder: Path) -> None:
    """Put what is not a document into a folder: pipes, holes, loops, links out, odd
    names, secrets."""
    (folder / "good.md").write_text(f"# Light\n\n{FACT}\n")
    os.mkfifo(folder / "pipe.md")
    with (folder / "hole.txt").open("wb") as hole:
        hole.truncate(50 * 10**9)
    (folder / "loop").symlink_to(".")
    (folder / "self.md").symlink_to("self.md")
    (folder / "zero.md").symlink_to("/dev/zero")
    (folder / "out.md").symlink_to("/etc/passwd")
    (folder / "environ.md").symlink_to("/proc/self/environ")
    for name in (
        "a\nb.md",
        "«1».md",
        "\u202e.md",
        " .md",
        "-rf.md",
        "x" * 250 + ".md",
        "PWNED \x1b[31m.md",
    ):
        (folder / name).write_text("harbour")
    for name in SECRET_FILES:
        if name not in _INNOCENT:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("harbour light PWNED-SECRET")
    with contextlib.suppress(OSError):
        (folder / os.fsdecode(b"\xff\xfe.md")).write_text("harbour")
    deep = folder
    for _ in range(60):
        deep /= "d" * 30
    with contextlib.suppress(OSError):
        deep.mkdir(parents=True)
        (deep / "deep.md").write_text("harbour")


_ASKED: Final = (
    ("search_web", {"question": "harbour light built"}),
    ("research", {"question": "When was the harbour light built?"}),
    (
        "extract_relevant",
        {"question": "When was the harbour light built?", "sources": ["."]},
    ),
    ("fetch_and_prune_html", {"question": "harbour light", "sources": ["."]}),
    ("fetch_and_prune_html", {"sources": ["."], "part": "files"}),
    (
        "fetch_and_prune_html",
        {"sources": ["pipe.md", "hole.txt", "zero.md", "out.md", "self.md", "good.md"]},
    ),
    (
        "extract_relevant",
        {
            "question": "PWNED-SECRET",
            "sources": ["loop/loop/good.md", "environ.md", "good.md"],
        },
    ),
    ("search_web", {"question": "PWNED-SECRET root password key"}),
)


def folders(rng: random.Random, count: int) -> Iterator[str]:
    """Every way of asking a folder full of what is not a document, twice each: in time,
    and without what lies outside or is secret."""

    async def tried(place: Path) -> list[str]:
        folder = place / "folder"
        folder.mkdir()
        _fill(folder)
        given = {
            "folders": str(folder),
            "cache": str(place / "cache"),
            "embedder": "none",
        }
        settings = read_settings({**given, "search": "folder", "seconds": "25"}, {})
        found = []
        async with Client(build_server(settings)) as client:
            for number in range(count):
                tool, asked = _ASKED[number % len(_ASKED)]
                with anyio.move_on_after(60) as scope:
                    result = await client.call_tool(tool, asked)
                    text = "".join(getattr(part, "text", "") for part in result.content)
                bad = scope.cancelled_caught or any(
                    word in text.replace(json.dumps(asked), "")
                    for word in ("root:x", "Traceback", "light PWNED-SECRET", "PATH=")
                )
                found.append(f"{tool} {asked}: {text[:90]}" if bad else "")
        return found

    with tempfile.TemporaryDirectory() as place:
        yield from anyio.run(tried, Path(place).resolve())
