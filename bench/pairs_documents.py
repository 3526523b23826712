"""The pairs on long documents and in other languages: brings their documents here
again, and says what is wrong with the rows.

    python -m bench.pairs_documents            counts, and what is wrong with the rows by themselves
    python -m bench.pairs_documents FOLDER     looks each gold text up, too, as the product reads it
    python -m bench.pairs_documents FOLDER --bring    first downloads and unpacks the packages there

`--bring` needs `apt-get` and `dpkg`; nothing is installed. Pairs on English pages:
`bench.pairs`. Not for: whether a twin is truly unanswered, which takes a reader
(`bench/asked/README.md`)."""

import argparse
import gzip
import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from bench.pairs import ASKED, Row, faults, rows
from readers.convert import Raw, to_page
from readers.html.document import read_document

FILES: Final = (ASKED / "pairs_long.jsonl", ASKED / "pairs_languages.jsonl")
SOURCES: Final = ASKED / "pairs_documents.jsonl"
DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"


def pairs() -> list[Row]:
    """Return the rows of both files, `site` being the document."""
    found = [row for path in FILES for row in rows(path)]
    return [row | {"site": row["document"]} for row in found]


def sources() -> dict[str, Row]:
    """Return where each document comes from, by its name."""
    return {row["document"]: row for row in rows(SOURCES)}


def bring(folder: Path) -> None:
    """Download and unpack the packages that the documents are in, each into its own
    folder.

    Raises `CalledProcessError` where a version is no longer served or a tool fails.
    """
    wanted = {
        row["package"]: row["version"] for row in sources().values() if "package" in row
    }
    folder.mkdir(parents=True, exist_ok=True)

    for package, version in sorted(wanted.items()):
        if (folder / package).is_dir():
            continue
        download = ["apt-get", "download", f"{package}={version}"]
        subprocess.run(download, cwd=folder, check=True)  # noqa: S603  names of our own file

        archive = next(folder.glob(f"{package}_*.deb"))
        unpack = ["dpkg", "-x", archive.name, package]
        subprocess.run(unpack, cwd=folder, check=True)  # noqa: S603  names of our own file
        archive.unlink()


def text_of(source: Row, folder: Path) -> str:
    """Return the text of a document, runs of spaces as one; raises `ValueError` for a
    file that is another one than the pairs were written on."""
    if "article" in source:
        return _joined(_article(source))
    if "data" in source:
        lines = _lines(DATA / source["data"])
        return _joined(next(row["text"] for row in lines if row["id"] == source["row"]))

    path = folder / source["package"] / source["path"]
    body = path.read_bytes()
    if hashlib.sha256(body).hexdigest() != source["sha256"]:
        raise ValueError(
            f"{path} is another file than {source['document']}; bring it again."
        )

    name = path.name.removesuffix(".gz")
    body = gzip.decompress(body) if name != path.name else body
    page = to_page(Raw(body, f"file:///{name}", f"file:///{name}", name=name))
    return _joined(read_document(page).text)


def lost(asked: Sequence[Row], folder: Path) -> Iterator[str]:
    """Yield gold texts that their document does not hold."""
    known = sources()
    texts: dict[str, str] = {}
    for row in asked:
        name = row["document"]
        if name not in texts:
            texts[name] = text_of(known[name], folder)
        for gold in row["gold"]:
            if gold not in texts[name]:
                yield f"{row['id']}: lost: {gold}"


def _article(source: Row) -> str:
    paragraphs = [
        row
        for row in _lines(DATA / source["data"])
        if row["article"] == source["article"]
    ]
    return " ".join(row["text"] for row in sorted(paragraphs, key=_number))


def _number(row: Row) -> int:
    return int(row["paragraph"])


@cache
def _lines(path: Path) -> list[Row]:
    body = path.read_bytes()
    text = gzip.decompress(body).decode() if path.suffix == ".gz" else body.decode()
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _joined(text: str) -> str:
    return " ".join(text.split())


def main() -> int:
    """Print counts and faults; return 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--bring", action="store_true")
    given = parser.parse_args()
    if given.bring and given.folder is None:
        parser.error("--bring needs the folder to unpack into")

    asked = pairs()
    for field in ("part", "kind", "twin_kind", "language"):
        print(field, dict(Counter(row[field] for row in asked).most_common()))
    print(len(asked), "pairs,", len({row["document"] for row in asked}), "documents")

    found = list(faults(asked))
    if given.folder is not None:
        if given.bring:
            bring(given.folder)
        found += lost(asked, given.folder)
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
