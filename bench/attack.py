"""The attack set, made again: how many tries of each kind, and how many came through.

    python -m bench.attack             every group in full: some ten minutes of one core
    python -m bench.attack --check     every group in its quick form, a minute; exit code 1 where anything came through
    python -m bench.attack --group NAME [--seed N]

Groups are those of `docs/security.md`, with at least as many tries as the set that was tried from
outside. Tries are drawn by `--seed` and their number, so that a fault comes again. Nothing leaves
loopback, and nothing needs root: what does, or needs a name server of its own, is listed as skipped
with its reason. Not for: orders in pages about the question (`bench/injection.py`), nor what a test
says about one case (`tests/test_attacks.py`, `tests/test_outside.py`).
"""

import argparse
import contextlib
import random
import re
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

import anyio

from bench.attack_http import try_shares, try_tokens
from errors import NARROW, SourceError, WinnowError, narrow, said, unopened
from pipeline.documents import Page
from pipeline.evidence.cite import cite
from pipeline.fetch.address import check_url, checked_addresses
from pipeline.fetch.connect import pinned_client
from pipeline.fetch.files import Files, allowed_path
from pipeline.fetch.limits import FetchLimits
from pipeline.html.document import read_document
from pipeline.read.convert import Raw, to_page
from pipeline.read.sniff import media_type
from pipeline.tables.table import rows_as
from tests.support import LIBRARY
from tests.support.attacks import (
    BAD,
    FACT,
    FILL,
    HIDDEN_DOCX,
    HIDDEN_HTML,
    HIDDEN_PDF,
    SECRET_FILES,
)
from tests.support.hidden_forms import HIDDEN_CSS, HIDDEN_MARKDOWN
from tests.support.hostile_files import HOSTILE

QUICK: Final = 0.05
"""Part of the tries of the large groups in the quick form."""
INNER: Final = (
    *(
        "127.0.0.1",
        "10.1.2.3",
        "172.16.5.4",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104  an address to refuse
    ),
    *(
        "::1",
        "::ffff:10.0.0.1",
        "fd00::1",
        "fe80::1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "224.0.0.1",
        "168.63.129.16",
    ),
)
SKIPPED: Final = {
    "rendered browser": "tests/test_fetch_browser.py has the forms; each takes a Chromium of 1 to "
    "6 s",
    "full disks, read-only caches": "need mounts, which are root's",
    "process life, kill -9, signals": "tests/test_stdio.py and tests/test_cache_processes.py "
    "start the processes",
    "clock jumps, other users": "need root",
    "name servers that flip": "a resolver that flips is passed in instead (group rebinding)",
}
_FRAME: Final = re.compile("«([0-9]{12})»(?:\n.*?\n| [^\n]*? )«/\\1»", re.DOTALL)


class Group(NamedTuple):
    """One kind of try."""

    least: int
    """Tries in full."""
    attack: Callable[[random.Random, int], Iterator[str]]
    """Takes the dice and a number of tries; yields for each what came through, empty for none."""


def _hosts(rng: random.Random, address: str) -> list[str]:
    """Spellings of an address."""
    if ":" in address:
        return [f"[{address}]", f"[{address.upper()}]"]
    octets = list(map(int, address.split(".")))
    number = int.from_bytes(bytes(octets))
    forms = [
        address,
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(hex(one) for one in octets),
        f"{address}.",
    ]
    forms += [
        ".".join(f"0{one:o}" for one in octets),
        f"{octets[0]}.{number % 2**24}",
        f"[::ffff:{address}]",
    ]
    wide = "".join(chr(0xFF10 + int(one)) if one.isdigit() else "。" for one in address)
    return [
        *forms,
        wide,
        f"user@{address}",
        f"{address}%00.example",
        f"x.example@{address}",
        rng.choice(forms),
    ]


def urls(rng: random.Random, count: int) -> Iterator[str]:
    """Addresses inside, in every spelling: refused before a connection, by form or by what they
    resolve to."""
    limits = FetchLimits()
    for _ in range(count):
        address = rng.choice(INNER)
        host = rng.choice(_hosts(rng, address))
        scheme = rng.choice(("http", "https", "HTTP", "hTTp"))
        port = rng.choice(("", ":80", ":8080", ":443"))
        url = f"{scheme}://{host}{port}{rng.choice(('/', '/a?b', '', '/%2e%2e/'))}"
        yield "" if _is_refused(url, address, limits) else url


def _is_refused(url: str, address: str, limits: FetchLimits) -> bool:
    async def resolve(_host: str, _port: int) -> list[str]:
        return [address]

    async def checked() -> None:
        target = check_url(url, limits)
        await checked_addresses(target.host, target.port, limits, resolve)

    try:
        anyio.run(checked)
    except SourceError:
        return True
    return False


def rebinding(rng: random.Random, count: int) -> Iterator[str]:
    """A public page's own site, whose name leads inside later: asked at the page's address
    alone."""
    inside = FetchLimits(allow_loopback=True)
    for _ in range(count):
        public = f"{rng.choice((1, 8, 93, 151))}.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"

        async def asked(public: str = public) -> str:
            async with pinned_client(public, inside, None) as client:
                backend = client._transport._pool._network_backend  # type: ignore[attr-defined]  # where it would connect
                found = await checked_addresses("a.example", 80, backend._limits, backend._resolve)
                with contextlib.suppress(WinnowError):
                    found += await checked_addresses(
                        rng.choice(INNER), 80, backend._limits, backend._resolve
                    )
                return "" if found == [public] else f"{public}: {found}"

        yield anyio.run(asked)


def paths(rng: random.Random, count: int) -> Iterator[str]:
    """Names of files outside of a folder, or hidden in it: links, dots, encodings, devices."""
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
        names += [name for name in SECRET_FILES if name not in {"renamed.txt", "server.pem"}]
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


def keys(rng: random.Random, count: int) -> Iterator[str]:
    """Private keys under innocent names, after other lines, in other encodings."""
    with tempfile.TemporaryDirectory() as place:
        for number in range(count):
            kind = rng.choice(("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA "))
            lines = "\n".join(
                "".join(rng.choices("ABCDEFabcdef0123456789+/", k=64))
                for _ in range(rng.randrange(3, 9))
            )
            key = f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----\n"
            before = rng.choice(
                (
                    "",
                    "Bag Attributes\n    a: b\n",
                    "# my notes\n\n",
                    "-----BEGIN CERTIFICATE-----\nMII\n",
                )
            )
            path = Path(place, f"{number}{rng.choice(('.txt', '.md', '.crt', '.log', '.json'))}")
            path.write_text(before + key, encoding=rng.choice(("utf-8", "utf-8-sig", "utf-16")))
            try:
                anyio.run(Files([Path(place).resolve()]).read, path, (1, 0))
                yield f"{kind}key behind {before[:12]!r} in {path.suffix}"
            except SourceError:
                yield ""


def hidden(rng: random.Random, _count: int) -> Iterator[str]:
    """Text that no reader sees, in pages and files."""
    forms: dict[str, tuple[bytes, str]] = {}
    for name, form in (HIDDEN_HTML | HIDDEN_CSS).items():
        page = f"<title>Harbour</title><h1>Harbour</h1><p>{FACT}</p>{form.format(bad=BAD)}<p>{FILL}</p>"
        forms[name] = page.encode(), "a.html"
    for name, form in HIDDEN_MARKDOWN.items():
        forms[f"Markdown: {name}"] = (
            f"# Harbour\n\n{FACT}\n\n{form.format(bad=BAD)}\n\n{FILL}\n".encode(),
            "a.md",
        )
    forms |= {f"PDF: {name}": (body, "a.pdf") for name, body in HIDDEN_PDF.items()}
    forms |= {f"Word: {name}": (body, "a.docx") for name, body in HIDDEN_DOCX.items()}
    for name in rng.sample(sorted(forms), len(forms)):
        body, file = forms[name]
        shown = read_document(
            to_page(Raw(body, f"file:///{file}", f"file:///{file}", name=file))
        ).text
        yield name if "PWNED" in shown or "1871" not in shown else ""


def outside(rng: random.Random, count: int) -> Iterator[str]:
    """Words of strangers in types, addresses, links and what servers say, in lines of ours."""
    words = BAD.split()
    for _ in range(count):
        some = rng.sample(words, rng.randrange(5, len(words) + 1)) * rng.randrange(1, 4)
        sign = rng.choice(" -_./+%20,;:|")
        prose = sign.join(some)
        shown = [
            narrow(
                f"{rng.choice(('http', 'ftp', 'x-y'))}://{'h' * rng.randrange(1, 200)}/{'x' * NARROW}{prose}PWNED"
            ),
            _FRAME.sub(
                "", unopened(f"It said: {said(f'PWNED {prose}')}"[: rng.randrange(30, 400)])
            ),
        ]
        kind = media_type(
            b"\0\1\2" * 50, content_type=f"{rng.choice(('image', 'audio', 'x'))}/{prose}PWNED"
        )
        html = f"<p>{FACT}</p><p>{prose} {prose}</p><p>{prose} {FILL} {prose}</p>"
        document = read_document(
            Page("https://a.example/", "https://a.example/", "", html, "text/html")
        )
        links = [
            cite(document, one.start, one.end).partition("#:~:text=")[2]
            for one in document.blocks[1:]
        ]
        long = [
            link for link in links if len(re.split(r"[\s\-/|,]+", unquote(link).strip("-, "))) > 8
        ]
        came = [text for text in (*shown, kind) if "PWNED" in unquote(text)] + long
        yield came[0] if came else ""


def exports(rng: random.Random, count: int) -> Iterator[str]:
    """Cells of CSV that a spreadsheet would compute."""
    for _ in range(count):
        what = rng.choice(("cmd|x", "SUM(A1)", "a+1", "HYPERLINK()"))
        cell = f"{rng.choice(('', ' ', chr(9)))}{rng.choice('=+-@＝＋|')}{what}"
        row = rows_as("csv", ["a"], [[cell]]).split("\n", 1)[1].lstrip('"')
        yield "" if row.startswith("'") else cell


def fuzz(rng: random.Random, count: int) -> Iterator[str]:
    """Real and made files with bytes changed, cut, doubled: read, or refused in words, in bounded
    time."""
    seeds = {path.name: path.read_bytes() for path in LIBRARY.rglob("*") if path.is_file()}
    seeds |= {
        "h.html": HIDDEN_HTML["hidden"].encode() * 20,
        "a.pdf": HIDDEN_PDF["white ink"],
        "a.docx": HIDDEN_DOCX["vanish"],
    }
    names = sorted(seeds)
    for _ in range(count):
        name = rng.choice(names)
        body = bytearray(seeds[name][:200_000])
        for _ in range(rng.randrange(1, 12)):
            at = rng.randrange(len(body) or 1)
            match rng.randrange(4):
                case 0:
                    body[at : at + 1] = bytes([rng.randrange(256)])
                case 1:
                    del body[at : at + rng.randrange(1, 400)]
                case 2:
                    body[at:at] = body[at : at + rng.randrange(1, 400)]
                case _:
                    body = body[: at + 1]
        began = time.process_time()
        try:
            read_document(
                to_page(Raw(bytes(body), f"file:///{name}", f"file:///{name}", name=name))
            )
        except SourceError:
            pass
        except (
            zipfile.BadZipFile,
            RecursionError,
            MemoryError,
            ValueError,
            LookupError,
            TypeError,
        ) as error:
            yield f"{name}: {type(error).__name__}"
            continue
        yield (
            f"{name}: {time.process_time() - began:.1f} s"
            if time.process_time() - began > 8
            else ""
        )


def bombs(rng: random.Random, count: int) -> Iterator[str]:
    """Files that unpack, nest or repeat without end, small enough to be read in this process."""
    small = [
        name for name in sorted(HOSTILE) if "bomb" in name.lower() or "entit" in name.lower()
    ] or sorted(HOSTILE)
    for name in small[:count]:
        file, made = HOSTILE[name]
        began = time.process_time()
        with contextlib.suppress(SourceError):
            to_page(Raw(made(), f"file:///{file}", f"file:///{file}", name=file))
        yield name if time.process_time() - began > 20 else ""
    for depth in range(max(0, count - len(small))):
        body = BytesIO()
        with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(
                "word/document.xml", b"<w:p>" + b"A" * (40_000_000 + 1_000_000 * rng.randrange(3))
            )
        try:
            to_page(Raw(body.getvalue(), "file:///a.docx", "file:///a.docx", name="a.docx"))
            yield f"archive {depth} was unpacked"
        except SourceError:
            yield ""


GROUPS: Final = {
    "URL forms and redirects": Group(303, urls),
    "rebinding": Group(26, rebinding),
    "paths and links": Group(263, paths),
    "keys under other names": Group(60, keys),
    "hidden text": Group(158, hidden),
    "words outside the frame": Group(812, outside),
    "CSV exports": Group(40, exports),
    "sessions, streams, guesses": Group(131, try_shares),
    "access tokens": Group(65, try_tokens),
    "mutated files": Group(20_996, fuzz),
    "bombs": Group(8, bombs),
}
LARGE: Final = 400
"""Tries from which the quick form takes a part."""


def main() -> int:
    """Try the groups; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else ""
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="the quick form; exit code 1 where something came through",
    )
    parser.add_argument("--group", choices=GROUPS)
    parser.add_argument("--seed", type=int, default=44)
    args = parser.parse_args()
    failed = 0
    print(f"{'group':<28}{'tried':>8}{'held':>8}{'through':>9}{'CPU s':>8}")
    for name, group in GROUPS.items():
        if args.group not in {None, name}:
            continue
        count = (
            max(20, int(QUICK * group.least)) if args.check and group.least > LARGE else group.least
        )
        began = time.process_time()
        found = list(group.attack(random.Random(f"{args.seed} {name}"), count))
        through = [what for what in found if what]
        failed += len(through)
        spent = time.process_time() - began
        print(
            f"{name:<28}{len(found):>8}{len(found) - len(through):>8}{len(through):>9}{spent:>8.1f}",
            flush=True,
        )
        for what in dict.fromkeys(through[:8]):
            print(f"  through: {what[:160]}")
    for name, why in SKIPPED.items():
        print(f"{name}: skipped; {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
