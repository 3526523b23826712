"""Print in images, recognised: RapidOCR finds the lines of a page and reads each, and
we put them into reading order.

Needs the extra `ocr`: RapidOCR with the PP-OCRv6 models that its wheel carries (nothing
is downloaded), on the ONNX Runtime that we have. Called by `readers/pdf/pdf_reading.py` in a
process that converts documents. Not for: deciding which pages hold no text of their
own, and making HTML of lines (`readers/pdf/pdf_reading.py`)."""

import functools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, Final

import numpy as np
import rapidocr
from rapidocr.main import RapidOCRError

from cancellation import check_cancelled
from readers.converted import MOST_PIXELS
from readers.media.recognition import Recognised, Scan
from readers.pdf.pdf_lines import CELL_GAP, Cell, PrintLine

FOUND_PIXELS: Final = 1_000_000
"""That a page has at most when its lines are looked for, which takes 1.5 s; with
2,800,000 it took 4 s and found no more."""
LEAST_SIDE: Final = 8
"""Pixels, below which no letter fits into an image. RapidOCR enlarges a shorter side to 30 pixels
and the longer one with it: of a page one pixel wide that made 8 GB."""
LEAST_CONFIDENCE: Final = 0.8
"""Mean probability of a line's letters below which it is left out. 120 lines of Latin
print in six fonts, down to 9 points at 100 dpi under noise, had 0.88 and more (with the
dots of a table of contents 0.60); lines in Arabic, Armenian and Georgian up to 0.81,
specks and pictures below 0.5."""
SURE_CONFIDENCE: Final = 0.95
"""Minimum confidence on a page whose lines are mostly rejected: Cyrillic that looks
like Latin had 0.70 to 0.91, Latin print 0.98 in the median."""
UNLEARNT: Final = "   "
"""In a line's text it says that letters are missing, at any confidence: of one that it
has not learnt the recogniser makes a blank. 41 of 47 lines in Cyrillic and Greek above
0.8 had it, none of 219 in known writings."""
COLUMN: Final = 20
"""Mean characters of a line from which pieces side by side are columns of text, not
cells of a table."""


def read_scan(scan: Scan, ends: float) -> Recognised:
    """Return the lines of a page.

    At `ends`, by this thread's processor time, it stops. Lines that the recogniser fails on, or finds
    empty, are not counted. If most are unsure, only sure ones are returned.
    """
    height, width = scan.pixels.shape[:2]
    if min(height, width) < LEAST_SIDE:
        return Recognised([], 0, True)
    reader = _reader()
    share = min(1.0, math.sqrt(FOUND_PIXELS / (height * width)))
    reader.text_det.limit_side_len = round(share * max(height, width))
    boxes = reader(scan.pixels[:, :, ::-1]).boxes
    pieces: list[_Piece] = []
    unsure, whole = 0, True
    for box in boxes if boxes is not None else ():
        check_cancelled()
        if time.thread_time() > ends:
            whole = False
            break
        # One after the other: a batch is padded to its longest line, and took 1.1 GB where this
        # takes 0.6.
        try:
            read = reader.recognize_txt(
                reader.crop_text_regions(scan.pixels[:, :, ::-1], [box])
            )
        except RapidOCRError:
            continue
        text = read.txts[0]
        if not text:
            continue
        if read.scores[0] < LEAST_CONFIDENCE or UNLEARNT in text:
            unsure += 1
            continue
        (left, top), (right, low) = np.min(box, axis=0), np.max(box, axis=0)
        pieces.append(
            _Piece(
                text.strip(),
                float(left),
                float(top),
                float(right),
                float(low),
                read.scores[0],
            )
        )
    sure = (
        [piece for piece in pieces if piece.score >= SURE_CONFIDENCE]
        if unsure >= len(pieces)
        else pieces
    )
    unsure += len(pieces) - len(sure)
    return Recognised(_ordered(sure, scan), unsure, whole)


@functools.cache
def _reader() -> Any:
    """Load the models that the package carries, each on one thread; its own defaults
    would fetch what is missing."""
    models = Path(rapidocr.__file__).parent / "models"
    reader = rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Global.use_rec": False,
            # `readers/media/images.py` has made it small enough
            "Global.max_side_len": MOST_PIXELS,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.model_path": str(models / "PP-OCRv6_det_small.onnx"),
            "Det.limit_type": "max",
            "Rec.model_path": str(models / "PP-OCRv6_rec_small.onnx"),
        }
    )
    reader(np.zeros((32, 32, 3), dtype=np.uint8))  # it loads at the first call
    return reader


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of print and its box, in pixels from the left and from the top."""

    text: str
    left: float
    top: float
    right: float
    low: float
    score: float
    """Mean probability of its letters."""


def _ordered(pieces: Sequence[_Piece], scan: Scan) -> list[PrintLine]:
    if not pieces:
        return []
    # Boxes of one size of type differ by a fifth, with the letters that reach up and down.
    usual = median(piece.low - piece.top for piece in pieces)
    lines = []
    for row in _in_order(pieces, usual / 2):
        high = median(piece.low - piece.top for piece in row)
        size = (usual if high < 1.3 * usual else high) * scan.unit
        low = max(piece.low for piece in row)
        cells = _cells(row, usual, scan.unit)
        text = " ".join(cell.text for cell in cells)
        size, y = round(size, 1), (len(scan.pixels) - low) * scan.unit
        lines.append(PrintLine(text, size, y, False, cells))
    return lines


def _cells(row: Sequence[_Piece], usual: float, unit: float) -> list[Cell]:
    cells: list[Cell] = []
    for piece in row:
        left, right = piece.left * unit, piece.right * unit
        if cells and left - cells[-1].right < CELL_GAP * usual * unit:
            cells[-1].runs.append((piece.text, left))
            cells[-1].right = right
        else:
            cells.append(Cell(left, right, [(piece.text, left)]))
    return cells


def _lines_of(pieces: Sequence[_Piece]) -> list[list[_Piece]]:
    """Return adjacent pieces as lines, from top to bottom, each from left to right."""
    lines: list[list[_Piece]] = []
    for piece in sorted(pieces, key=lambda piece: piece.top + piece.low):
        if lines and (piece.top + piece.low) / 2 < lines[-1][0].low:
            lines[-1].append(piece)
        else:
            lines.append([piece])
    return [sorted(line, key=lambda piece: piece.left) for line in lines]


def _columns(pieces: Sequence[_Piece], gutter: float) -> list[list[_Piece]]:
    """Return the pieces in groups between which, from the first to the last line, runs
    an empty stripe."""
    columns: list[list[_Piece]] = []
    right = -gutter
    for piece in sorted(pieces, key=lambda piece: piece.left):
        if piece.left - right >= gutter:
            columns.append([])
        columns[-1].append(piece)
        right = max(right, piece.right)
    return columns


def _in_order(pieces: Sequence[_Piece], gutter: float) -> list[list[_Piece]]:
    """Return the lines in which a person reads them: columns of text one after the
    other, rows of tables across."""
    bands: list[list[_Piece]] = []
    for line in _lines_of(pieces):
        count = len(_columns([*bands[-1], *line], gutter)) if bands else 0
        if count and count == max(
            len(_columns(bands[-1], gutter)), len(_columns(line, gutter))
        ):
            bands[-1] += line
        else:
            bands.append(list(line))
    ordered: list[list[_Piece]] = []
    for band in bands:
        columns = _columns(band, gutter)
        is_text = all(
            len(one) > 2 and mean(len(piece.text) for piece in one) >= COLUMN
            for one in columns
        )
        for part in columns if is_text else [band]:
            ordered += _lines_of(part)
    return ordered
