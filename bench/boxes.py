"""Whether the box of a citation holds what is quoted, looked at by pixels.

    python -m bench.boxes                    200 citations from ../shared/data/field and generated PDFs
    python -m bench.boxes FOLDER             and from the PDFs of a folder
    python -m bench.boxes --misses           and what is wrong of each that is
    python -m bench.boxes --check            exit code 1 where fewer than .98 are right

Answers come from `extract_relevant`, boxes from what the desk is given. PDFium's own
text and letters are the reference, which no part of the layout has touched. A box is
right where all of this holds: it has the words of the quotation; painted white, it
leaves none of the ink that the quoted letters have; and it reaches no further above and
below them than `LOOSE` lines. Not for: whether the quotation answers anything."""

import argparse
import ctypes
import io
import random
import re
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import anyio
import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium
from fpdf import FPDF
from mcp import Client
from numpy.typing import NDArray

from bench.longdoc import DATA, read_lines
from server.app import build_server
from server.settings import read_settings
from tools.common.view import VIEW_KEY

WANTED: Final = 200
BAR: Final = 0.98
ASKED: Final = 8
"""Questions for each file, so that more than `WANTED` passages are cited, of which as
many are drawn."""
TOKENS: Final = 300
"""Of an answer: some three passages."""
SCALE: Final = 3.0
"""Pixels a point."""
DARK: Final = 200
"""Level of grey below which a pixel is ink."""
LEFT: Final = 0.005
"""Share of the ink that may be outside: edges of letters that are blurred."""
LOOSE: Final = 2.0
"""Lines."""
KEPT: Final = 0.98
"""Share of the words, since a word that is parted at a line's end is none in PDFium's
text."""
_WORD: Final = re.compile(r"\w{2,}")

Grey = NDArray[np.uint8]
Edges = tuple[float, float, float, float]


class Cited(NamedTuple):
    """A citation and its box: left, top, width and height in points."""

    file: Path
    page: int
    text: str
    box: Sequence[float]


class Looked(NamedTuple):
    """What is wrong with a citation's box; empty where it is right."""

    cited: Cited
    wrong: str


# What is asked


def generated(folder: Path) -> None:
    """Write PDFs of one column, of two, turned, with tables, and with a cropped
    page."""
    rows = read_lines(DATA / "longdoc" / "covidqa" / "docs.jsonl")[:12]
    texts = [
        str(row["text"]).encode("latin-1", "replace").decode("latin-1") for row in rows
    ]
    for number, text in enumerate(texts):
        made = FPDF(orientation="landscape" if number % 4 == 3 else "portrait")
        made.set_font(
            ("Helvetica", "Times", "Courier")[number % 3], size=8 + number % 4
        )
        made.add_page()
        if number % 4 == 1:
            with made.text_columns(ncols=2, gutter=8, text_align="J") as columns:
                columns.write(text[:9000])
        elif number % 4 == 2:
            _tabled(made, text)
        else:
            made.multi_cell(0, 5, text[:9000])
        body = bytes(made.output())
        (folder / f"{number}.pdf").write_bytes(
            _turned(body, number) if number % 3 == 2 else body
        )


def _tabled(made: FPDF, text: str) -> None:
    sentences = [one for one in re.split(r"(?<=\.)\s+", text) if 30 < len(one) < 160]
    for start in range(0, 60, 6):
        with made.table() as table:
            for number, one in enumerate(sentences[start : start + 3]):
                table.row(
                    [f"Item {start + number}", one, str(1000 + 37 * (start + number))]
                )
        made.ln(5)
        made.multi_cell(
            0, 5, " ".join(sentences[start + 3 : start + 6]), new_x="LMARGIN"
        )


def _turned(body: bytes, number: int) -> bytes:
    """Return a file whose pages are turned or have a box that does not begin at
    zero."""
    file = pypdfium2.PdfDocument(body)
    for page in file:
        page.set_rotation((90, 0, 180, 270)[number % 4])
        left, low, right, top = page.get_mediabox()
        page.set_cropbox(left + 10, low + 12, right - 14, top - 8)
    out = io.BytesIO()
    file.save(out)
    return out.getvalue()


def questions_of(path: Path, count: int) -> list[str]:
    """Return `count` sentences of a file, drawn, as questions; none of a file that
    cannot be opened."""
    try:
        file = pypdfium2.PdfDocument(path.read_bytes())
    except pypdfium2.PdfiumError:
        return []
    text = "\n".join(page.get_textpage().get_text_range() for page in file)
    lines = [" ".join(line.split()) for line in re.split(r"(?<=[.?!])\s|\n", text)]
    lines = list(dict.fromkeys(line for line in lines if 12 < len(line) < 200))
    return random.Random(path.name).sample(lines, min(count, len(lines)))


async def citations(
    files: Sequence[Path], cache: Path, *, asked: int = ASKED
) -> list[Cited]:
    """Return what is cited of files, each asked for `asked` of its own sentences."""
    roots = sorted({str(path.parent) for path in files})
    settings = {"cache": str(cache), "folders": ":".join(roots), "search": "folder"}
    found: list[Cited] = []
    async with Client(build_server(read_settings(settings, {}))) as client:
        for path in files:
            for question in questions_of(path, asked):
                arguments = {
                    "question": question,
                    "sources": [str(path)],
                    "max_tokens": TOKENS,
                }
                meta: Any = {VIEW_KEY: True}
                result = await client.call_tool(
                    "extract_relevant", arguments, meta=meta
                )
                view = (
                    (result.meta or {}).get(VIEW_KEY) if not result.is_error else None
                )
                found += _cited(path, view) if view else []
    return list({(one.file, one.page, one.text): one for one in found}.values())


def _cited(path: Path, view: Mapping[str, Any]) -> Iterator[Cited]:
    for one in view["passages"]:
        place = re.match(r"page=(\d+)", one["place"])
        # What readers wrote beside the text is not a print.
        if (
            place
            and one["trust"] == "visible"
            and not one["text"].startswith("Comment: ")
        ):
            named = Path(unquote(urlsplit(view["pages"][one["page"]]["url"]).path))
            if named.name != path.name:
                raise RuntimeError(f"{path} was asked, and {named} is cited")
            yield Cited(path, int(place[1]), one["text"], one["box"])


# What is looked at


class _Page:
    """A page as PDFium shows it."""

    def __init__(self, file: Any, number: int) -> None:
        page = file[number - 1]
        self.height = page.get_size()[1]
        shown = page.render(scale=SCALE, grayscale=True, may_draw_forms=True)
        self.grey: Grey = np.asarray(shown.to_numpy()).reshape(
            shown.height, shown.width
        )
        text = page.get_textpage()
        self.letters: list[tuple[str, Edges]] = []
        for at in range(pdfium.FPDFText_CountChars(text.raw)):
            code = chr(pdfium.FPDFText_GetUnicode(text.raw, at) or 32)
            edges = _shown(page, text.get_charbox(at))
            said = unicodedata.normalize("NFKC", code)
            self.letters += [(one, edges) for one in said.casefold() if one.isalnum()]
        self.letters += _filled_in(page, file)
        self.stream = "".join(letter for letter, _ in self.letters)

    def within(self, box: Edges) -> str:
        """Return the letters whose middle is in a box, in the file's order."""
        left, top, right, low = box
        return "".join(
            letter
            for letter, (a, b, c, d) in self.letters
            if left <= (a + c) / 2 <= right and top <= (b + d) / 2 <= low
        )


def _filled_in(page: Any, file: Any) -> Iterator[tuple[str, Edges]]:
    """Yield the letters of what fields of a form hold, each with its field's edges."""
    for number in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
        note = pdfium.FPDFPage_GetAnnot(page.raw, number)
        if (
            pdfium.FPDFAnnot_GetSubtype(note) == pdfium.FPDF_ANNOT_WIDGET
            and file.formenv
        ):
            box = pdfium.FS_RECTF()
            pdfium.FPDFAnnot_GetRect(note, box)
            held = ctypes.create_string_buffer(1000)
            wide = ctypes.cast(held, ctypes.POINTER(ctypes.c_ushort))
            size = pdfium.FPDFAnnot_GetFormFieldValue(
                file.formenv.raw, note, wide, 1000
            )
            edges = _shown(page, (box.left, box.bottom, box.right, box.top))
            for letter in _plain(held.raw[:size].decode("utf-16-le", "replace")):
                yield letter, edges
        pdfium.FPDFPage_CloseAnnot(note)


def _shown(page: Any, box: Edges) -> Edges:
    """Return a box of the page's own space as left, top, right and low edge of the
    shown page in points."""
    width, height = page.get_size()
    x, y = ctypes.c_int(), ctypes.c_int()
    fine = 100
    places = []
    for a, b in (box[:2], box[2:]):
        size = (0, 0, round(width * fine), round(height * fine))
        pdfium.FPDF_PageToDevice(page.raw, *size, 0, a, b, x, y)
        places.append((x.value / fine, y.value / fine))
    (a, b), (c, d) = places
    return min(a, c), min(b, d), max(a, c), max(b, d)


def looked_at(cited: Cited, page: _Page) -> Looked:
    """Compare a citation's box with the page's letters and its ink."""
    if len(cited.box) != 4:
        return Looked(cited, "no box")
    left, top, width, height = cited.box
    box = (left, top, left + width, top + height)
    inside = page.within(box)
    pieces = [_plain(piece) for piece in re.split(r"\n|\s\|\s|…", cited.text)]
    words = [_plain(word) for word in _WORD.findall(cited.text)]
    lacking = [word for word in words if word not in inside]
    if len(lacking) > (1 - KEPT) * len(words):
        return Looked(cited, f"not in the box: {' '.join(lacking[:8])}")
    quoted = [edges for piece in pieces for edges in _letters(page, piece, box)]
    if len(quoted) < sum(
        map(len, pieces)
    ):  # print of several columns is mixed in the file
        quoted += [edges for word in words for edges in _letters(page, word, box)]
    if not quoted:
        return Looked(cited, "the quotation is nowhere on the page")
    ink, outside = _ink(page.grey, quoted, box)
    if outside > LEFT * ink:
        return Looked(cited, f"{outside} of {ink} pixels are outside")
    _, tops, _, lows = zip(*quoted, strict=True)
    line = max(8.0, float(np.median([low - top for _, top, _, low in quoted])) * 2)
    over = max(min(tops) - box[1], box[3] - max(lows))
    return Looked(cited, f"{over:.0f} points too high" if over > LOOSE * line else "")


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _letters(page: _Page, piece: str, box: Edges) -> list[Edges]:
    """Return where the letters of a part of the quotation are, which may be there
    several times: where most are in the box."""
    places = (
        [found.start() for found in re.finditer(re.escape(piece), page.stream)]
        if piece
        else []
    )
    if not places:
        return []
    runs = [[edges for _, edges in page.letters[at : at + len(piece)]] for at in places]
    return max(runs, key=lambda run: sum(_is_in(edges, box) for edges in run))


def _is_in(edges: Edges, box: Edges) -> bool:
    x, y = (edges[0] + edges[2]) / 2, (edges[1] + edges[3]) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def _ink(grey: Grey, quoted: Sequence[Edges], box: Edges) -> tuple[int, int]:
    """Return how many pixels of letters are ink, and how many of them once the box is
    white."""
    mask = np.zeros(grey.shape, dtype=bool)
    for left, top, right, low in quoted:
        mask[_pixels(top) : _pixels(low) + 1, _pixels(left) : _pixels(right) + 1] = True
    ink = mask & (grey < DARK)
    blank = ink.copy()
    left, top, right, low = map(_pixels, box)
    blank[top : low + 1, left : right + 1] = False
    return int(ink.sum()), int(blank.sum())


def _pixels(points: float) -> int:
    return max(0, round(points * SCALE))


def look(found: Sequence[Cited]) -> list[Looked]:
    """Look at each citation's page."""
    looked = []
    for path in dict.fromkeys(one.file for one in found):
        file = pypdfium2.PdfDocument(path.read_bytes())
        file.init_forms()
        pages: dict[int, _Page] = {}
        for one in found:
            if one.file == path:
                page = pages.get(one.page) or pages.setdefault(
                    one.page, _Page(file, one.page)
                )
                looked.append(looked_at(one, page))
    return looked


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="PDFs of yours")
    parser.add_argument("--check", action="store_true", help=f"exit code 1 below {BAR}")
    parser.add_argument("--misses", action="store_true", help="print what is wrong")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "made"
        made.mkdir()
        generated(made)
        folders = [
            made,
            DATA / "field" / "files",
            *([options.folder] if options.folder else []),
        ]
        files = [
            path.resolve()
            for folder in folders
            for path in sorted(folder.rglob("*.pdf"))
        ]
        found = anyio.run(lambda: citations(files, Path(name) / "cache"))
        found = random.Random(42).sample(found, min(WANTED, len(found)))
        looked = look(found)
    wrong = [one for one in looked if one.wrong]
    share = 1 - len(wrong) / len(looked) if looked else 0.0
    print(
        f"{len(files)} files, {len(looked)} citations: {share:.3f} of the boxes are right"
    )
    for one in wrong if options.misses else ():
        print(
            f"    {one.cited.file.name} p. {one.cited.page} {one.cited.box}: {one.wrong}\n        "
            f"{' '.join(one.cited.text.split())[:150]}"
        )
    return int(options.check and (share < BAR or len(looked) < WANTED))


if __name__ == "__main__":
    sys.exit(main())
