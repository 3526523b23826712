"""Files with random damage: each is read, or refused by an error of ours, within
bounds; nothing else ends a call.

    python -m bench.mutated                  2,000 files
    python -m bench.mutated --check          20,000 files; exit code 1 where one crashes, hangs or raises another error
    python -m bench.mutated --seed 7         other damage
    python -m bench.mutated --check --kept FILE   goes on from what FILE has, and adds to it

The files are those of `bench/documents.py`, old Office files, and a PDF, mail, RTF, JSON
and a chat written by hand. Where pandoc is installed, ODT, EPUB and a notebook as well.
Damage: bytes changed,
cut, doubled, put in; of a zip the same inside of one of its parts, which is packed
again. One process reads them, and another where it ended or took too long; then its
hundred is read file by file. Not for: files made to exhaust us
(`tests/support/hostile_files.py`)."""

import argparse
import functools
import io
import json
import shutil
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from bench.documents import Known, by_pandoc, samples
from errors import WinnowError
from readers.convert import Raw, to_page
from tests.support.pdf import make_pdf

FEW, MANY = 2_000, 20_000
CHUNK: Final = 100
"""Files between two notes of what was read."""
SECONDS: Final = 10.0
"""Processor time of one file, all of which are small."""
PATIENCE: Final = 300.0
"""Seconds by the clock for a hundred files, and for one that is read alone; a hundred
take 3."""
SEED: Final = 42
_MAIL: Final = (
    b"From: Edda <e@example.org>\r\nSubject: =?utf-8?q?Br=C3=BCcke?=\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\nContent-Type: text/html\r\n\r\n<p>Boats leave.</p>\r\n'
    b"--x\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\nQm9hdHMu\r\n--x--\r\n"
)
_RTF: Final = (
    rb"{\rtf1\ansi{\fonttbl{\f0 Times;}}\f0 Boats leave at nine."
    rb"{\footnote Or ten.}\par\trowd\cellx9 a\cell\row}"
)
_OLD_FILES: Final = (
    Path(__file__).resolve().parents[1] / "tests" / "support" / "old_office.zip"
)
"""Of the extra `office-legacy`; refused without it."""
_JSON: Final = b'[{"name": "Arn", "tons": 5}, {"name": "Holt", "tons": 7.5}, {"name": "Wick", "tons": null}]'

_CHAT: Final = (
    b'[{"title": "Boats", "mapping": {"a": {"parent": "r", "message": {"author": {"role": "user"}, '
    b'"create_time": 1.7e9, "content": {"parts": ["When?"]}}}}, "current_node": "a"}, {"messages": '
    b'[{"from_id": "1", "from": "Arn", "date": "2026-01-02T03:04:05", "text": ["At ", {"text": "9"}]}]}]'
)
_THREAD: Final = (
    b"Subject: Re: Boats\r\nMIME-Version: 1.0\r\n\r\nAt nine.\r\n\r\nOn Monday Arn wrote:\r\n"
    b"> At ten?\r\n>\r\n> Holt wrote:\r\n>> When?\r\n"
)


class Outcome(NamedTuple):
    """How one file came out."""

    number: int
    name: str
    what: str
    """`read`, `refused`, or what went wrong."""


@functools.cache
def originals() -> list[tuple[str, bytes]]:
    """Return whole files by name, the same ones each time."""
    made = [(one.name, one.body) for one in samples(20)]
    text = [[(f"Line {number} of the report", 12) for number in range(20)]] * 2
    made += [
        ("a.pdf", make_pdf(text)),
        ("a.eml", _MAIL),
        ("a.rtf", _RTF),
        ("a.json", _JSON),
        ("chat.json", _CHAT),
        (
            "a.mbox",
            b"From a@b.example\n" + _MAIL + b"\n" + b"From b@b.example\n" + _THREAD,
        ),
        ("thread.eml", _THREAD),
    ]
    with zipfile.ZipFile(_OLD_FILES) as archive:
        made += [(name, archive.read(name)) for name in archive.namelist()]
    if shutil.which("pandoc"):
        made += [
            (f"a.{form}", by_pandoc(form)(Known(Random(1))))
            for form in ("odt", "epub", "ipynb")
        ]
    return made


def damaged(body: bytes, draw: Random) -> bytes:
    """Return a file with damage: of a zip half of the time inside of one part."""
    if body.startswith(b"PK") and draw.random() < 0.5:
        return _part_damaged(body, draw)
    found = bytearray(body)
    for _ in range(draw.choice((1, 1, 3, 20))):
        at = draw.randrange(len(found) + 1)
        length = draw.choice((1, 2, 8, 100))
        match draw.randrange(5):
            case 0:
                found[at : at + length] = draw.randbytes(length)
            case 1:
                del found[at : at + length]
            case 2:
                found[at:at] = found[at : at + length] * draw.choice((1, 50))
            case 3:
                found[at:at] = draw.choice(
                    (
                        b"\0",
                        b"<",
                        b"]]>",
                        b"\xff\xfe",
                        b"9" * 20,
                        b"<!--",
                        b"&#0;",
                        b"{" * 99,
                    )
                )
            case _:
                del found[at + length :]
    return bytes(found)


def _part_damaged(body: bytes, draw: Random) -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(body)) as given,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        names = given.namelist()
        hit = draw.choice(names)
        for name in names:
            part = given.read(name)
            made.writestr(name, damaged(part, draw) if name == hit else part)
    return out.getvalue()


def outcomes(first: int, count: int, seed: int) -> list[Outcome]:
    """Read `count` damaged files from number `first` on."""
    made = originals()
    return [_outcome(made, number, seed) for number in range(first, first + count)]


def _outcome(made: list[tuple[str, bytes]], number: int, seed: int) -> Outcome:
    draw = Random(f"{seed} {number}")
    name, body = made[number % len(made)]
    hurt = damaged(body, draw)
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries, about the damage
            to_page(Raw(hurt, f"file:///{name}", f"file:///{name}", name=name))
        what = "read"
    except WinnowError:
        what = "refused"
    except Exception as error:  # noqa: BLE001  what is looked for
        what = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - began
    return Outcome(number, name, f"{seconds:.1f} s" if seconds > SECONDS else what)


class _Readers:
    """A process that reads, and the next one where it ended or hung."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1)

    def outcomes(self, first: int, count: int, seed: int) -> list[Outcome]:
        """Return how `count` files came out, of which one may end the process or
        hang."""
        try:
            return self._pool.submit(outcomes, first, count, seed).result(PATIENCE)
        except (BrokenProcessPool, TimeoutError) as error:
            for process in list(
                self._pool._processes.values()
            ):  # no public way to end one
                process.kill()
            self._pool.shutdown()
            self._pool = ProcessPoolExecutor(1)
            if count > 1:
                alone = range(first, first + count)
                return [
                    one for number in alone for one in self.outcomes(number, 1, seed)
                ]
            ended = isinstance(error, BrokenProcessPool)
            return [Outcome(first, "", "ended the process" if ended else "hung")]

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown()


def check(count: int, seed: int, kept: Path | None = None) -> Iterator[Outcome]:
    """Yield how each file came out; those that `kept` has, a line of JSON each, are not
    read."""
    known = _known(kept, seed)
    yield from (one for number, one in known.items() if number < count)
    readers = _Readers()
    for first in range(0, count, CHUNK):
        if first in known:
            continue
        found = readers.outcomes(first, min(CHUNK, count - first), seed)
        if kept is not None:
            with kept.open("a", encoding="utf-8") as out:
                out.writelines(f"{json.dumps([seed, *one])}\n" for one in found)
        yield from found
    readers.close()


def _known(kept: Path | None, seed: int) -> dict[int, Outcome]:
    if kept is None or not kept.exists():
        return {}
    rows = map(json.loads, kept.read_text(encoding="utf-8").splitlines())
    return {row[1]: Outcome(*row[1:]) for row in rows if row[0] == seed}


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="20,000 files; exit code 1 where one comes out wrong",
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--kept", type=Path, help="file of what was read, to go on from"
    )
    options = parser.parse_args()
    found = list(check(MANY if options.check else FEW, options.seed, options.kept))
    wrong = [one for one in found if one.what not in {"read", "refused"}]
    print(Counter(one.what for one in found if one not in wrong))
    for one in wrong:
        print(f"WRONG {one.number} {one.name}: {one.what}")
    return int(bool(wrong) and options.check)


if __name__ == "__main__":
    sys.exit(main())
