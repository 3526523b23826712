"""Files beside what is known of them: words that must come out, words that must not,
cells of tables.

    python -m bench.files FOLDER             each format: files, word F1, files refused
    python -m bench.files FOLDER --misses    and the files of an F1 below .8, and why others are refused
    python -m bench.files FOLDER --check     exit code 1 below the bars

A folder has `files.jsonl`, rows of `file` with `words` (a text), `forbidden` (words) and
`cells` (lists of neighbours in a row), each optional; or `ground_truth/KIND/NAME.txt`, as
xberg-io/test_documents has them (fetched for measuring only). F1 over words, each as
often unchanged there. Files over `LARGEST` are left out, and pictures, which need OCR.
Bars are for an environment with the extra `office-legacy` and without `ocr`, which reads
words of pictures in documents that no truth here has (.929 for .932).
Not for: files that we make (`bench/documents.py`)."""

import argparse
import json
import re
import sys
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from errors import WinnowError
from readers import read

F1: Final = 0.93
"""Least mean over the files that are read."""
REFUSED: Final = 5 / 339
"""Largest share of files that may be refused."""
LARGEST: Final = 5_000_000
LOW: Final = 0.8
_PICTURES: Final = frozenset(
    [
        ".png",
        ".jpg",
        ".jpeg",
        ".tif",
        ".tiff",
        ".webp",
        ".bmp",
        ".gif",
        ".jp2",
        ".pbm",
        ".pgm",
        ".ppm",
        ".pnm",
        ".svg",
    ]
)

_WORD: Final = re.compile(r"\w+")
_LEFT_OUT: Final = re.compile(
    r"(?:^|\|)[\s>|-]*(?:\(?(?:\d+|[a-z]|[ivx]+)[.)])+\s|\\[a-z]+(?:\{[\d.]+mu\})?|\[image\]",
    re.MULTILINE | re.IGNORECASE,
)
"""Numbers of list items, also in cells, commands of TeX with the space that they ask
for, and what pandoc writes for a picture in RTF."""
_SCRIPT: Final = re.compile(r"(?<=\w)[\^_]+(?=\w)")


class Known(NamedTuple):
    """A file, and what is known of it."""

    path: Path
    words: str = ""
    forbidden: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()


class Outcome(NamedTuple):
    """How a file came out."""

    known: Known
    f1: float
    """-1 where it is refused."""
    wrong: tuple[str, ...]
    """Why it is refused; forbidden words that came out, cells that did not."""


def words_of(text: str) -> Counter[str]:
    """Return the words of a text with their number, as both sides are compared."""
    plain = unicodedata.normalize("NFKC", text.replace("\u00ad", "").replace("-\n", ""))
    flat = _SCRIPT.sub("", _LEFT_OUT.sub(" ", plain))
    return Counter(word.casefold() for word in _WORD.findall(flat.replace("_", " ")))


def known_files(folder: Path) -> Iterator[Known]:
    """Yield the files of a folder of which something is known."""
    index = folder / "files.jsonl"
    if index.exists():
        for line in index.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            cells = tuple(map(tuple, row.get("cells", ())))
            forbidden = tuple(row.get("forbidden", ()))
            path = folder / row["file"]
            yield Known(path, row.get("words", ""), forbidden, cells)
        return
    by_name: dict[tuple[str, str], dict[bytes, Path]] = defaultdict(dict)
    for path in sorted(folder.rglob("*")):
        suffix = path.suffix.lower()
        is_apart = path.is_relative_to(folder / "ground_truth") or not path.is_file()
        if not is_apart and suffix not in _PICTURES:
            by_name[suffix[1:], path.stem].setdefault(path.read_bytes(), path)
    for truth in sorted((folder / "ground_truth").rglob("*.txt")):
        # Of different files of one name nothing says which the truth is of.
        paths = by_name.get((truth.parent.name, truth.stem), {})
        if len(paths) == 1:
            (path,) = paths.values()
            yield Known(path, truth.read_text(encoding="utf-8", errors="replace"))


def outcome(known: Known) -> Outcome:
    """Read a file, and compare it with what is known."""
    try:
        document = read(known.path.read_bytes(), name=known.path.name)
    except WinnowError as error:
        return Outcome(known, -1, (str(error),))
    text = document.text
    came, truth = words_of(text), words_of(known.words)
    both = (came & truth).total()
    f1 = 2 * both / max(1, came.total() + truth.total()) if known.words else 1.0
    rows = [block.cells for block in document.blocks if block.kind == "row"]
    wrong = [word for word in known.forbidden if word in text]
    wrong += [
        " | ".join(cells)
        for cells in known.cells
        if not any(set(cells) <= set(row) for row in rows)
    ]
    return Outcome(known, f1, tuple(wrong))


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    began = time.process_time()
    for known in known_files(options.folder):
        if known.path.stat().st_size <= LARGEST:
            by_kind[known.path.suffix.lower()].append(outcome(known))
    outcomes = [one for kind in by_kind.values() for one in kind]
    for kind, ones in sorted(by_kind.items()):
        print(_line(kind, ones))
    for one in outcomes if options.misses else ():
        if one.f1 < LOW or one.wrong:
            print(f"{one.f1:6.3f} {one.known.path.name}: {'; '.join(one.wrong)[:200]}")
    print(_line("all", outcomes), f"{time.process_time() - began:.0f} processor s")
    refused = sum(one.f1 < 0 for one in outcomes)
    is_low = _mean(outcomes) < F1 or refused > REFUSED * len(outcomes)
    is_wrong = any(one.wrong for one in outcomes if one.f1 >= 0)
    return int(options.check and (is_low or is_wrong))


def _mean(outcomes: list[Outcome]) -> float:
    came = [one.f1 for one in outcomes if one.f1 >= 0]
    return sum(came) / max(1, len(came))


def _line(kind: str, outcomes: list[Outcome]) -> str:
    refused = sum(one.f1 < 0 for one in outcomes)
    wrong = sum(len(one.wrong) for one in outcomes if one.f1 >= 0)
    return (
        f"{kind:8}{len(outcomes):5} files  F1 {_mean(outcomes):.3f}  refused {refused}  "
        f"wrong {wrong}"
    )


if __name__ == "__main__":
    sys.exit(main())
