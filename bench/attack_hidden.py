"""Hidden text, keys under other names, and folders exchanged with links: groups of
`bench.attack`, and their alarms.

    python -m bench.attack_hidden            each group in full; exit code 1 where something comes through
    python -m bench.attack_hidden --check    reads of exchanged folders sampled
    python -m bench.attack_hidden --seen     what Chromium draws of each form of a page, pixel by pixel

False alarms: of ordinary files of ../shared/data and of this checkout none may be taken
for keys. Not for: the other groups (`bench/attack.py`)."""

import argparse
import os
import random
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import anyio

from errors import SourceError
from pipeline.fetch.files import MAX_FILE_BYTES, Files, read_file, read_raw
from pipeline.search.folder import FolderProvider
from pipeline.search.listing import list_files
from pipeline.search.query import SearchQuery
from readers.convert import Raw, to_page
from readers.html.document import read_document
from readers.secrets import is_secret
from tests.support.attacks import BAD, FACT, FILL, HIDDEN_DOCX, HIDDEN_HTML, HIDDEN_PDF
from tests.support.hidden_files import FILES
from tests.support.hidden_forms import FAINT, HIDDEN_CSS, HIDDEN_MARKDOWN, SEEN_CSS
from tests.support.key_forms import KEYS

ROOT: Final = Path(__file__).resolve().parents[1]
DATA: Final = ROOT.parent / "shared" / "data"
ATTACKS: Final = DATA / "field2" / "attack"
"""Files of an attack set, some of which are keys."""
CHROMIUM: Final = Path("/usr/bin/chromium")
DOCTYPE: Final = "<!doctype html>"
READS: Final = 41_192
"""Of exchanged folders in full, as many as were tried from outside."""
ORDINARY: Final = 2_000
ENCODINGS: Final = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
_NEEDS_MARK: Final = frozenset({"utf-16 unmarked", "utf-16", "mark of order"})
"""Forms that have an encoding of their own."""
_SWAP: Final = """() => { const walk = node => { for (const one of [...node.childNodes]) {
  if (one.nodeType === 3 && one.data.includes('PWNED') && !['STYLE', 'SCRIPT'].includes(node.nodeName))
    one.data = one.data.replace(/[A-Za-z0-9]/g, 'M');
  else { walk(one); if (one.shadowRoot) walk(one.shadowRoot); } } }; walk(document) }"""
"""Puts other letters into the text, so that a page that shows it looks another way."""


def page_of(form: str) -> str:
    """Return a page with a form in it."""
    body = form.format(bad=BAD)
    head = f"{DOCTYPE}<title>Harbour</title><h1>Harbour</h1>"
    return f"{head}<p>{FACT}</p>{body}<p>{FILL}</p>"


def hidden(rng: random.Random, _count: int = 0) -> Iterator[str]:
    """Text that no reader sees, in pages, Markdown and files, each form once."""
    forms: dict[str, tuple[bytes, str]] = {}
    for name, form in (HIDDEN_HTML | HIDDEN_CSS).items():
        page = (
            page_of(form) if name in HIDDEN_CSS else page_of(form).removeprefix(DOCTYPE)
        )
        forms[name] = page.encode(), "a.html"
    for name, form in HIDDEN_MARKDOWN.items():
        text = f"# Harbour\n\n{FACT}\n\n{form.format(bad=BAD)}"
        forms[f"Markdown: {name}"] = text.encode(), "a.md"
    for ending, made, _ in (("pdf", HIDDEN_PDF, {}), ("docx", HIDDEN_DOCX, {}), *FILES):
        forms |= {
            f"{ending}: {name}": (body, f"a.{ending}") for name, body in made.items()
        }
    for name in rng.sample(sorted(forms), len(forms)):
        body, file = forms[name]
        shown = read_document(
            to_page(Raw(body, f"file:///{file}", f"file:///{file}", name=file))
        ).text
        yield name if "PWNED" in shown or "1871" not in shown else ""


def keys(rng: random.Random, count: int = 0) -> Iterator[str]:
    """Files of keys under innocent names, in every encoding: read by name, counted by
    the search, found by it."""
    tries = [
        (name, coded)
        for name in KEYS
        for coded in ENCODINGS
        if coded == "utf-8" or name not in _NEEDS_MARK
    ]
    for name, coded in (
        rng.sample(tries, len(tries)) if not count else rng.choices(tries, k=count)
    ):
        with tempfile.TemporaryDirectory() as place:
            root = Path(place).resolve()
            path = (
                root
                / f"notes{rng.choice(('.txt', '.md', '.crt', '.log', '.json', ''))}"
            )
            body = KEYS[name]
            path.write_bytes(body if coded == "utf-8" else body.decode().encode(coded))
            yield _read_by(
                path, root, f"{name} as {coded} in {path.suffix or 'no ending'}"
            )


def _read_by(path: Path, root: Path, said: str) -> str:
    """Return which door reads a file of keys, empty for none."""

    async def named() -> None:
        await Files([root]).read(path)

    async def searched() -> bool:
        found = await FolderProvider([root], None).search(
            SearchQuery("key login cookie user"), limit=3
        )
        return bool(found.results)

    with suppress(SourceError):
        anyio.run(named)
        return f"{said}: by its name"
    with suppress(SourceError):
        read_raw(path, str(path), MAX_FILE_BYTES)
        return f"{said}: counted"
    return f"{said}: found" if anyio.run(searched) else ""


@contextmanager
def exchanged(place: Path) -> Iterator[Path]:
    """While open, a folder below the root in `place` is exchanged with a link to one
    outside, again and again."""
    root, outside = place / "root", place / "outside"
    for folder, said in ((root / "a", "inside"), (outside, "OUTSIDE")):
        folder.mkdir(parents=True)
        (folder / "note.md").write_text(f"# Note\n\n{said} of the folder\n")
    (outside / "other.md").write_text("OUTSIDE\n")
    (root / "link").symlink_to(outside, target_is_directory=True)
    ended = threading.Event()

    def exchange() -> None:
        while not ended.is_set():
            for one, other in (
                ("a", "kept"),
                ("link", "a"),
                ("a", "link"),
                ("kept", "a"),
            ):
                (root / one).rename(root / other)

    racing = threading.Thread(target=exchange)
    racing.start()
    try:
        yield root
    finally:
        ended.set()
        racing.join()


def _named(root: Path) -> str:
    return read_file(root / "a" / "note.md", roots=[root]).html


def _counted(root: Path) -> str:
    path = root / "a" / "note.md"
    return read_raw(path, str(path), MAX_FILE_BYTES).body.decode()


def _listed(root: Path) -> str:
    return (
        "OUTSIDE"
        if any("other" in file.path for file in list_files([root]).files)
        else ""
    )


DOORS: Final[Sequence[Callable[[Path], str]]] = (_named, _counted, _listed)
"""Ways of reading the exchanged folder below a root; each returns what it read."""


def races(rng: random.Random, count: int = READS) -> Iterator[str]:
    """Reads by name, as the search counts, and listings of a folder that is exchanged
    with a link meanwhile."""
    with (
        tempfile.TemporaryDirectory() as place,
        exchanged(Path(place).resolve()) as root,
    ):
        for _ in range(count):
            door = rng.choices(DOORS, weights=(4, 4, 1))[0]
            said = ""
            with suppress(SourceError):
                said = door(root)
            yield f"outside file by {door.__name__}" if "OUTSIDE" in said else ""


def alarms(rng: random.Random, count: int = ORDINARY) -> Iterator[str]:
    """Ordinary files of the data, of this checkout and of installed packages that are
    taken for keys."""
    found = [
        Path(top, name)
        for place in (ROOT, DATA, Path(sysconfig.get_path("purelib")))
        for top, _, names in os.walk(place)
        if place not in {ROOT, DATA} or ".venv" not in Path(top).parts
        for name in names
    ]
    kept = [
        path
        for path in found
        if not {".git", "__pycache__"} & {*path.parts}
        and ATTACKS not in path.parents
        and path.is_file()
    ]
    for path in rng.sample(sorted(kept), min(count, len(kept))):
        with path.open("rb") as file:
            yield str(path.name) if is_secret(file.read(MAX_FILE_BYTES)) else ""


GROUPS: Final[dict[str, tuple[int, Callable[[random.Random, int], Iterator[str]]]]] = {
    "hidden text": (0, hidden),
    "keys under other names": (0, keys),
    "folders exchanged": (READS, races),
    "ordinary files taken for keys": (ORDINARY, alarms),
}
"""Tries in full, 0 for one of each form."""


def seen() -> int:
    """Ask Chromium whether it draws the text of each form; return how many are not as
    they are listed."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  only where Chromium is asked

    wrong = 0
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, chromium_sandbox=False
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        for is_seen, forms in ((False, HIDDEN_CSS), (True, SEEN_CSS)):
            for name in sorted(forms.keys() - FAINT):
                page.set_content(page_of(forms[name]))
                before = page.screenshot(full_page=True)
                page.evaluate(_SWAP)
                if (before != page.screenshot(full_page=True)) is not is_seen:
                    wrong += 1
                    print(f"{name}: Chromium draws {'nothing' if is_seen else 'it'}")
        browser.close()
    print(
        f"{len(HIDDEN_CSS) + len(SEEN_CSS) - len(FAINT)} forms, {wrong} not as Chromium draws them"
    )
    return wrong


def main() -> int:
    """Try the groups; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="reads of exchanged folders sampled, a tenth",
    )
    parser.add_argument(
        "--seen", action="store_true", help="ask Chromium of each form of a page"
    )
    parser.add_argument("--seed", type=int, default=44)
    wanted = parser.parse_args()
    if wanted.seen:
        return min(seen(), 1)
    failed = 0
    for name, (least, attack) in GROUPS.items():
        count = least // 10 if wanted.check and least == READS else least
        began = time.process_time()
        through = list(attack(random.Random(wanted.seed), count))
        came = [one for one in through if one]
        failed += len(came)
        print(
            f"{name:32} tried {len(through):7} through {len(came):4} CPU s "
            f"{time.process_time() - began:6.1f}"
        )
        for one in dict.fromkeys(came[:8]):
            print(f"  {one}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
