"""What a folder's search reads: every text by its content, packed ones too; the rest is counted,
and keys stay out."""

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from readers.secrets import is_secret
from readers.unpack import unpacked
from tests.support import Connect, text_of
from tests.support.key_forms import KEYS, NO_KEYS
from tests.support.waiting import bounded

pytestmark = pytest.mark.anyio

FACT: Final = "The fee of the lock is 31 crowns a night.\n"
OTHER: Final = "Boats keep to the right in the harbour of Arnvik.\n"
TEXTS: Final = {
    "README": FACT,
    "LICENSE": f"Copyright the harbour.\n\n{FACT}",
    "Makefile": f"# {FACT}all:\n\tmake lock\n",
    "lock.pod": f"=head1 NAME\n\n{FACT}",
    "lock.1": f".TH LOCK 1\n.SH NAME\nlock\n.SH FEES\n{FACT}",
    "gate.properties": f"# {FACT}gate.width=9.5\n",
    "gate.conf": f"# {FACT}[gate]\nwidth = 9.5\n",
    "gate.ini": f"; {FACT}[gate]\nwidth = 9.5\n",
    "gate.toml": f'note = "{FACT.strip()}"\n',
    "plan.ics": f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:{FACT.strip()}\nEND:VEVENT\nEND:VCALENDAR\n",
    "fee.pl": f"#!/usr/bin/perl\n# {FACT}print 31;\n",
    "gate.log.1": f"2026-11-26 08:00:00 INFO {FACT}",
}


async def found(connect: Connect, folder: Path, tool: str = "search_web") -> str:
    arguments: dict[str, object] = {"question": "What is the fee of the lock?"}
    arguments |= {"sources": [str(folder)]} if tool == "extract_relevant" else {}
    reported = {"folders": str(folder), "search": "folder"}
    async with connect(**reported) as client:
        return text_of(await client.call_tool(tool, arguments))


@pytest.mark.parametrize("tool", ["search_web", "extract_relevant"])
@pytest.mark.parametrize("name", TEXTS)
async def test_a_text_is_read_whatever_its_name_ends_with(
    connect: Connect, tmp_path: Path, name: str, tool: str
) -> None:
    (tmp_path / name).write_text(TEXTS[name], "utf-8")
    (tmp_path / "other.txt").write_text(OTHER, "utf-8")
    answer = await found(connect, tmp_path, tool)
    assert "31 crowns a night" in answer
    assert "not searched" not in answer


@pytest.mark.parametrize(
    ("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
@pytest.mark.parametrize("name", ["lock.log", "lock", "lock.html"])
async def test_a_packed_text_is_read(
    connect: Connect, tmp_path: Path, name: str, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    text = f"<html><body><p>{FACT}</p></body></html>" if name.endswith("html") else FACT
    (tmp_path / f"{name}.{ending}").write_bytes(pack(text.encode()))
    (tmp_path / "other.txt").write_text(OTHER, "utf-8")
    for tool in ("search_web", "extract_relevant"):
        answer = await found(connect, tmp_path, tool)
        assert "31 crowns a night" in answer
        assert "<p>" not in answer


def test_streams_of_one_packed_file_take_time_by_their_number() -> None:
    """With what is after each copied for it, 32,000 took 45 times as long as 4,000."""
    with bounded():
        assert unpacked(gzip.compress(b"") * 320_000) == b""


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("a.gz", lambda: gzip.compress(b"a" * 100_000_000), "unpacks to more than"),
        ("a.xz", lambda: lzma.compress(b"a" * 60_000_000), "unpacks to more than"),
        ("a.bz2", lambda: bz2.compress(OTHER.encode() * 50_000)[:-300], "truncated"),
        (
            "a.log.gz",
            lambda: gzip.compress(random.Random(7).randbytes(9_000).hex().encode())[:-40],
            "truncated",
        ),
    ],
    ids=["gz", "xz", "bz2", "log.gz"],
)
async def test_a_packed_file_that_is_a_bomb_or_cut_is_refused_in_words(
    connect: Connect, tmp_path: Path, name: str, body: Callable[[], bytes], said: str
) -> None:
    (tmp_path / name).write_bytes(body())
    async with connect(folders=str(tmp_path)) as client:
        result = await client.call_tool("fetch_and_prune_html", {"sources": [str(tmp_path / name)]})
    assert result.is_error
    assert said in text_of(result)


async def test_files_that_are_no_text_are_counted_by_their_endings(
    connect: Connect, tmp_path: Path
) -> None:
    draw = random.Random(3)
    (tmp_path / "other.txt").write_text(OTHER, "utf-8")
    for number in range(3):
        (tmp_path / f"{number}.bin").write_bytes(draw.randbytes(4_000))
    (tmp_path / "old.pub").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(3_000))
    (tmp_path / "photo.gif").write_bytes(b"GIF89a" + draw.randbytes(500))
    (tmp_path / "core").write_bytes(draw.randbytes(2_000))
    counted = "6 files not searched: .bin 3, without ending 1, .gif 1, .pub 1"
    for tool in ("search_web", "extract_relevant"):
        answer = await found(connect, tmp_path, tool)
        assert counted in answer
        assert "None:" not in answer
    async with connect(folders=str(tmp_path)) as client:
        listed = await client.call_tool(
            "fetch_and_prune_html", {"sources": [str(tmp_path)], "part": "files"}
        )
    assert counted in text_of(listed)


async def test_pictures_beside_texts_leave_a_verdict_as_it_is(
    connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / "other.txt").write_text(OTHER, "utf-8")
    (tmp_path / "photo.gif").write_bytes(b"GIF89a" + bytes(500))
    answer = await found(connect, tmp_path, "extract_relevant")
    assert "None:" in answer
    assert "1 file not searched: .gif 1" in answer


# Keys


@pytest.mark.parametrize("name", KEYS)
async def test_a_file_of_keys_is_neither_searched_nor_read_whatever_it_is_called(
    connect: Connect, tmp_path: Path, name: str
) -> None:
    (tmp_path / "notes.txt").write_bytes(KEYS[name])
    (tmp_path / "other.txt").write_text("The private key of the lock costs a fee.\n", "utf-8")
    words = KEYS[name].decode("utf-8", "replace").replace("\x00", "").split()
    inside = max(words, key=lambda word: (any(map(str.isdigit, word)), len(word)))[:40]
    async with connect(folders=str(tmp_path), search="folder") as client:
        read = await client.call_tool(
            "fetch_and_prune_html", {"sources": [str(tmp_path / "notes.txt")]}
        )
        searched = await client.call_tool("search_web", {"question": f"private key fee {inside}"})
    assert read.is_error
    assert "adding the file itself to WINNOW_FOLDERS" in text_of(read)
    assert inside not in text_of(searched).partition("Quoted")[2]


async def test_a_file_of_keys_that_a_person_names_is_read(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(KEYS["pgpass"])
    async with connect(folders=str(tmp_path / "notes.txt")) as client:
        read = await client.call_tool(
            "fetch_and_prune_html", {"sources": [str(tmp_path / "notes.txt")]}
        )
    assert "localhost:5432:shop" in text_of(read)


@pytest.mark.parametrize(
    "line", [b"\n", b"\r\n", b"#\n", b" \n", b"[client]\n", b"kind: Secret\n", b"+ ", b"a_"]
)
@pytest.mark.parametrize(
    "head", [b"", b"kind: Config\n", b"x -----BEGIN PRIVATE KEY-----", b"-----BEGIN "]
)
def test_keys_are_looked_for_in_time_by_the_bytes(head: bytes, line: bytes) -> None:
    """Thirty empty lines at the beginning took seconds, and forty took hours."""

    with bounded():
        assert not is_secret(line * 40 + b"?")
        assert not is_secret(head + line * 400_000 + b"?")


@pytest.mark.parametrize("name", NO_KEYS)
def test_a_text_that_only_mentions_keys_is_none(name: str) -> None:
    assert not is_secret(NO_KEYS[name])


def test_no_file_of_this_checkout_is_taken_for_keys() -> None:
    root = Path(__file__).resolve().parents[1]
    files = [
        path
        for top in ("docs", "examples", "pipeline", "server", "tests")
        for path in (root / top).rglob("*.*")
    ]
    written = [
        path for path in files if path.is_file() and path.suffix != ".pyc"
    ]  # which hold the keys of these tests
    assert [path.name for path in written if is_secret(path.read_bytes())] == []
