"""Which print of a PDF's page is seen, found by looking: the page is drawn small with
and without its text.

Where nothing differs print is hidden: without ink, in its ground's colour, clipped,
covered, outside, on a layer that is off. It takes no knowledge of how a file hides. Not
for: print too small for any eye, and what draws nothing by its own mode, which
`readers/pdf/pdf_page.py` knows."""

import ctypes
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pypdfium2.raw as pdfium
from numpy.typing import NDArray

LOOK_DPI: Final = 50
LOOK_PIXELS: Final = 3_000_000
"""That a page has at most when it is looked at: a poster of A1 at 50 dpi."""
LEAST_CHANGE: Final = 16
"""Of 255 levels of a colour, by which a pixel differs where print is; print of 6 % grey
on white has 15."""
LEAST_SHARE: Final = 0.3
"""Changed pixels a letter below which a piece is hidden. Of 89,600 words of real pages
33 have fewer."""
ROW: Final = 6.0
"""Points of height of the stripes in which pieces are compared with one another."""
MOST_BOX_ROWS: Final = 40
MOST_OVER: Final = 8
"""Pieces at one place that are compared."""
TEXT_LAYERS: Final = 4
_WHITE: Final = 0xFFFFFFFF
"""A pixel of paper, as one number."""
OVERLAP_SHARE: Final = 0.3
"""Part of a box from which another lies over it; italics and kerning share less."""

Box = tuple[float, float, float, float]
"""Left, lower, right and upper edge in points."""


def looked_at(
    page: Any,
    showing: Sequence[Any],
    origins: Sequence[int],
    boxes: Sequence[Box],
    *,
    is_text_alone: bool,
) -> list[bool]:
    """Return for each piece, of which operator and box are given, whether the page
    looks another way without its text.

    Pieces that lie over one another are looked at again, each without the others: print
    that is seen would lend its ink to print that is not. Where too many lie over one
    another to be separated, they count as not seen. Leaves the page without its
    text."""
    width, height = page.get_size()
    area = max(
        width * height, width, height, 1.0
    )  # a pixel is the least breadth of a picture
    scale = min(
        LOOK_DPI / 72,
        math.sqrt(LOOK_PIXELS / area),
        LOOK_PIXELS / max(width, height, 1.0),
    )
    with_text = _picture(page, scale)
    for drawn in showing:
        pdfium.FPDFPageObj_SetIsActive(drawn, False)
    without = None if is_text_alone else _picture(page, scale)
    seen = _seen(_changed(with_text, without), boxes, scale)
    by_origin = {ctypes.addressof(drawn.contents): drawn for drawn in showing}
    *groups, mixed = _apart_from_others(origins, boxes)
    for number in mixed:
        seen[number] = False
    for group in filter(None, groups):
        layer_objects = [
            by_origin[origin]
            for origin in {origins[number] for number in group} & by_origin.keys()
        ]
        for drawn in layer_objects:
            pdfium.FPDFPageObj_SetIsActive(drawn, True)
        changed = _changed(_picture(page, scale), without)
        for drawn in layer_objects:
            pdfium.FPDFPageObj_SetIsActive(drawn, False)
        for number, is_seen in zip(
            group, _seen(changed, [boxes[n] for n in group], scale), strict=True
        ):
            seen[number] = seen[number] and is_seen
    return seen


def _apart_from_others(origins: Sequence[int], boxes: Sequence[Box]) -> list[list[int]]:
    """Return the numbers of pieces that lie over others, in groups of which none lies
    over another of its group.

    The last group holds what more than `TEXT_LAYERS` operators show at one place, which
    cannot be separated.
    """
    rows: dict[int, list[int]] = {}
    for number, (_, low, _, top) in enumerate(boxes):
        for row in (
            range(int(low // ROW), int(top // ROW) + 1)
            if top - low < MOST_BOX_ROWS * ROW
            else ()
        ):
            rows.setdefault(row, []).append(number)
    over: set[int] = set()
    overlapping: dict[int, set[int]] = {}
    """For each operator, which is drawn whole, those with print over or below its
    own."""
    for level in rows.values():
        open_pieces: list[int] = []
        for number in sorted(level, key=lambda piece: boxes[piece][0]):
            box, origin = boxes[number], origins[number]
            open_pieces = [
                earlier for earlier in open_pieces if boxes[earlier][2] > box[0]
            ]
            for earlier in open_pieces[-MOST_OVER:]:
                if origins[earlier] != origin and _covers(boxes[earlier], box):
                    over |= {earlier, number}
                    overlapping.setdefault(origin, set()).add(origins[earlier])
                    overlapping.setdefault(origins[earlier], set()).add(origin)
            open_pieces.append(number)
    layers: dict[int, int] = {}
    for origin, overlapping_origins in overlapping.items():
        taken = {
            layers[overlapping_origin]
            for overlapping_origin in overlapping_origins & layers.keys()
        }
        layers[origin] = next(
            (layer for layer in range(TEXT_LAYERS) if layer not in taken), TEXT_LAYERS
        )
    return [
        sorted(piece for piece in over if layers[origins[piece]] == layer)
        for layer in range(TEXT_LAYERS + 1)
    ]


def _covers(first_box: Box, second_box: Box) -> bool:
    """Return whether two boxes share a good part of the smaller one."""
    wide = min(first_box[2], second_box[2]) - max(first_box[0], second_box[0])
    high = min(first_box[3], second_box[3]) - max(first_box[1], second_box[1])
    least = min(
        (box[2] - box[0]) * (box[3] - box[1]) for box in (first_box, second_box)
    )
    return wide > 0 and high > 0 and wide * high > OVERLAP_SHARE * least


def _seen(changed: NDArray[np.bool_], boxes: Sequence[Box], scale: float) -> list[bool]:
    """Return for each box whether enough of it differs; False for one outside of the
    image."""
    height, width = changed.shape
    places = np.asarray(boxes) * scale
    columns = (
        np.clip(np.floor(places[:, 0]), 0, width),
        np.clip(np.ceil(places[:, 2]), 0, width),
    )
    rows = (
        np.clip(np.floor(height - places[:, 3]), 0, height),
        np.clip(np.ceil(height - places[:, 1]), 0, height),
    )
    # A letter is about half as wide as high.
    letters = (places[:, 2] - places[:, 0]) / np.maximum(
        0.5 * (places[:, 3] - places[:, 1]), 0.5 * scale
    )
    min_pixels = np.maximum(1.0, LEAST_SHARE * letters).tolist()
    edges = zip(
        *(edge.astype(int).tolist() for edge in (*rows, *columns)),
        min_pixels,
        strict=True,
    )
    return [
        int(np.count_nonzero(changed[y0:y1, x0:x1])) >= least
        for y0, y1, x0, x1, least in edges
    ]


def _picture(page: Any, scale: float) -> NDArray[np.uint8]:
    """Return a page as an image [height, width, 4], of four bytes a pixel."""
    drawn: NDArray[np.uint8] = page.render(
        scale=scale, may_draw_forms=False, prefer_bgrx=True
    ).to_numpy()
    return drawn


def _changed(
    image: NDArray[np.uint8], other_image: NDArray[np.uint8] | None
) -> NDArray[np.bool_]:
    """Return where two images differ, [height, width]; None is an image of paper alone.
    Few pixels differ, so levels are compared at those alone."""
    height, width = image.shape[:2]
    # Whole pixels are compared and taken, which costs a tenth of doing so byte by byte.
    ones = _pixels(image)
    if other_image is None:
        places = np.flatnonzero(ones != _WHITE)
        theirs = np.full(len(places), _WHITE, np.uint32)
    else:
        other_pixels = _pixels(other_image)
        places = np.flatnonzero(ones != other_pixels)
        theirs = other_pixels[places]
    levels = _levels(ones[places], theirs)
    changed = np.zeros(height * width, dtype=np.bool_)
    blue, green, red = (levels[:, channel] > LEAST_CHANGE for channel in range(3))
    changed[places] = blue | green | red
    return changed.reshape(height, width)


def _pixels(image: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return the pixels of an image as numbers, row after row."""
    pixels: NDArray[np.uint32] = np.ascontiguousarray(image).view(np.uint32)
    return pixels.ravel()


def _levels(
    image_pixels: NDArray[np.uint32], other_pixels: NDArray[np.uint32]
) -> NDArray[np.uint8]:
    """Return by how much pixels differ in each of four bytes, [pixels, 4]."""
    mine, theirs = (
        pixels.view(np.uint8).reshape(-1, 4) for pixels in (image_pixels, other_pixels)
    )
    return np.maximum(mine, theirs) - np.minimum(mine, theirs)
