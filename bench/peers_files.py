"""Words of files that other programs and people wrote, against what other readers find
in them.

    python -m bench.peers_files FOLDER             each format: files, share of words kept, files below its bar
    python -m bench.peers_files FOLDER --misses    and which words are missing of each file below
    python -m bench.peers_files FOLDER --check     exit code 1 below a bar, or where a file below says nothing of it
    python -m bench.peers_files FOLDER --save pdf,odt,rtf,epub other programs save the
                                                   files once more in these forms

The other readers: pandoc for DOCX, ODT, RTF and EPUB; openpyxl for the visible text
cells of XLSX; each run of slides and notes for PPTX; PDFium's own text for PDF, which
is what pdftotext finds. A word that is joined or parted otherwise, as in equations,
counts as kept where its letters follow each other. Left out of both sides: numbers of
list items, commands of TeX, and whether print is raised. Files are not part of the
repository: the tests of markitdown, docling, pandoc, python-docx, python-pptx and
mammoth hold some hundreds. Not for: words that are known one by one
(`bench/documents.py`)."""

import argparse
import io
import re
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

import pypdfium2

from errors import WinnowError
from readers.convert import Raw, to_page
from readers.html.document import read_document
from readers.page import Page
from tests.support.made_files import office, run

BARS: Final = {
    "docx": 0.97,
    "pptx": 0.97,
    "xlsx": 0.98,
    "pdf": 0.95,
    "odt": 0.95,
    "rtf": 0.95,
    "epub": 0.95,
}
LOW: Final = 0.9
MOST_LOW: Final = 10
"""PDF files of which less than `LOW` may be kept."""
SHOWN: Final = 8
"""Missing words that are printed of a file."""
_WORD: Final = re.compile(r"\w+")
_LEFT_OUT: Final = re.compile(
    r"(?:^|\|)[\s>|-]*(?:\(?(?:\d+|[a-z]|[ivx]+)[.)])+\s|\\[a-z]+(?:\{[\d.]+mu\})?|\[image\]",
    re.MULTILINE | re.IGNORECASE,
)
"""Numbers of list items, also in cells, commands of TeX with the space that they ask
for, and what pandoc writes for a picture in RTF."""
_SCRIPT: Final = re.compile(r"(?<=\w)[\^_]+(?=\w)")
_SLIDE: Final = re.compile(r"ppt/(?:slides|notesSlides)/[^/]+\.xml")
_DRAWING: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


class Kept(NamedTuple):
    """What of one file's words was kept."""

    name: str
    words: int
    kept: int
    missing: tuple[str, ...]
    said: str
    """What is said to be unread, or why it is refused."""

    @property
    def share(self) -> float:
        """Of its words; 1 where it has none."""
        return self.kept / self.words if self.words else 1.0


def _by_pandoc(path: Path) -> str:
    return run("pandoc", "-t", "plain", "--wrap=none", str(path))


def _slides(path: Path) -> str:
    """Return the text of slides and notes, what recurs at their foot once, and no
    numbers of slides."""
    etree, said, feet = import_module("lxml.etree"), list[str](), set[str]()
    with zipfile.ZipFile(path) as deck:
        for part in filter(_SLIDE.match, deck.namelist()):
            for paragraph in etree.fromstring(deck.read(part)).iter(f"{_DRAWING}p"):
                runs = paragraph.iterfind(f"{_DRAWING}r/{_DRAWING}t")
                shape = next(paragraph.iterancestors("{*}sp"), None)
                place = shape.find(".//{*}ph") if shape is not None else None
                is_foot = place is not None and place.get("type") in {"ftr", "dt"}
                (feet.add if is_foot else said.append)(
                    "".join(run.text or "" for run in runs)
                )
    return "\n".join((*said, *feet))


def _cells(path: Path) -> str:
    book = import_module("openpyxl").load_workbook(
        io.BytesIO(path.read_bytes()), data_only=True
    )
    said = []
    for sheet in (one for one in book.worksheets if one.sheet_state == "visible"):
        for row in sheet.iter_rows():
            hidden = sheet.row_dimensions[row[0].row].hidden
            said += [
                cell.value for cell in row if isinstance(cell.value, str) and not hidden
            ]
    return "\n".join(said)


def _print(path: Path) -> str:
    file = pypdfium2.PdfDocument(path.read_bytes())
    return "\n".join(page.get_textpage().get_text_range() for page in file)


REFERENCES: Final[dict[str, Callable[[Path], str]]] = {
    **dict.fromkeys(("docx", "odt", "rtf", "epub"), _by_pandoc),
    "pptx": _slides,
    "xlsx": _cells,
    "pdf": _print,
}


def words_of(text: str) -> Counter[str]:
    """Return the words of a text with their number, as both sides are compared."""
    plain = unicodedata.normalize("NFKC", text.replace("\u00ad", "").replace("-\n", ""))
    flat = _SCRIPT.sub("", _LEFT_OUT.sub(" ", plain))
    return Counter(word.casefold() for word in _WORD.findall(flat.replace("_", " ")))


def kept_of(path: Path) -> Kept | None:
    """Return what is kept of a file's words; None where the other reader reads none of
    it."""
    form = path.suffix.lower()[1:]
    try:
        wanted = words_of(REFERENCES[form](path))
    except (
        subprocess.CalledProcessError,
        pypdfium2.PdfiumError,
        zipfile.BadZipFile,
        KeyError,
        ValueError,
    ):
        return None
    try:
        page = to_page(Raw(path.read_bytes(), str(path), str(path), name=path.name))
    except WinnowError as error:
        found, letters, said = Counter[str](), "", str(error)
    else:
        text = f"{page.title}\n{read_document(page).text}"
        found, said = (
            words_of(text),
            "; ".join(filter(None, (page.unread, *_left_out(page)))),
        )
        letters = "".join(_WORD.findall(unicodedata.normalize("NFKC", text))).casefold()
    both = wanted & found
    missing = Counter(
        {word: count for word, count in (wanted - both).items() if word not in letters}
    )
    return Kept(
        path.name,
        wanted.total(),
        wanted.total() - missing.total(),
        tuple(missing)[:SHOWN],
        said,
    )


def _left_out(page: Page) -> list[str]:
    """Return what is said of text that is left out since no reader sees it."""
    return [note for note in page.notes if page.hidden and "hidden" in note]


def saved(forms: list[str], given: list[Path], folder: Path) -> list[Path]:
    """Return files saved once more: Word files by pandoc as ODT, RTF and EPUB, slides
    by LibreOffice as PDF."""
    for form in forms:
        if form == "pdf":
            office("pdf", folder, [path for path in given if path.suffix == ".pptx"])
            continue
        for path in (path for path in given if path.suffix == ".docx"):
            with suppress(subprocess.CalledProcessError):
                run(
                    "pandoc", "-s", str(path), "-o", str(folder / f"{path.stem}.{form}")
                )
    return sorted(path for form in forms for path in folder.glob(f"*.{form}"))


def report(form: str, files: list[Kept], *, misses: bool) -> list[str]:
    """Print a line for a format; return what falls short of its bar."""
    words, kept = sum(one.words for one in files), sum(one.kept for one in files)
    below = sorted(
        (one for one in files if one.share < BARS[form]), key=lambda one: one.share
    )
    silent = [one for one in below if not one.said]
    low = sum(one.share < LOW for one in files)
    share = kept / words if words else 1.0
    print(
        f"{form:5}{len(files):5} files{words:8} words  kept {share:.4f}  below: {len(below)}, "
        f"silent: {len(silent)}"
    )
    for one in below if misses else ():
        print(
            f"    {one.share:.3f} of {one.words} {one.name}: {' '.join(one.missing)} | "
            f"{one.said[:120]}"
        )
    bad = (
        [f"{form}: {share:.4f} of the words < {BARS[form]}"]
        if share < BARS[form]
        else []
    )
    bad += (
        [f"{form}: {low} files below {LOW}"] if form == "pdf" and low > MOST_LOW else []
    )
    return bad + [
        f"{one.name}: {one.share:.3f}, and nothing is said to be unread"
        for one in silent
    ]


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--save", default="", help="forms in which files are saved once more"
    )
    parser.add_argument("--misses", action="store_true", help="print what is missing")
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 where a bar falls short"
    )
    options = parser.parse_args()
    given = sorted(
        path for path in options.folder.rglob("*") if path.suffix.lower()[1:] in BARS
    )
    bad: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        given += saved(list(filter(None, options.save.split(","))), given, Path(folder))
        for form in BARS:
            files = [
                kept
                for path in given
                if path.suffix.lower() == f".{form}"
                if (kept := kept_of(path))
            ]
            bad += report(form, files, misses=options.misses) if files else []
    for line in bad:
        print(f"BAR MISSED: {line}")
    return int(bool(bad) and options.check)


if __name__ == "__main__":
    sys.exit(main())
