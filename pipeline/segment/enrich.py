"""Condensing chunks of low density and supplementing those of high density (IDMS, density-driven chunking).

What a generator writes never takes a chunk's place: it stands beside the text for the index to read, while citations
keep to the text. A form that loses or invents a name or a figure is thrown away. Not for: measuring density
(`density.py`).
"""

import functools
import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.protocols import Generator
from pipeline.messages import Asking, Said, ask, side_by_side
from pipeline.segment.density import DensityModels
from pipeline.text.frame import one_line
from pipeline.text.names import find_entities
from prompts import load

KEPT: Final = 0.8
"""Part of a chunk's names that a written form must still have."""
ITERATIONS: Final = 3
"""Most iterations of supplementing a chunk, and sentences from elsewhere that each brings."""
_FIGURE: Final = re.compile(r"\d[\d.,:/-]*\d|\d")


class Form(NamedTuple):
    """What an index reads beside a chunk."""

    text: str
    """Empty where the chunk is read as it stands."""
    way: Literal["kept", "condensed", "supplemented", "refused"]
    """`refused`: what was written lost or invented something."""


async def enrich(
    chunks: Sequence[Sequence[str]],
    densities: NDArray[np.float64],
    generator: Generator,
    reading: DensityModels,
    *,
    language: str,
) -> list[Form]:
    """Return the written form of each chunk of a document; those between the quartiles of `densities` [n] have none."""
    # The paper gives no threshold, so a chunk is of low or high density by its document's quartiles.
    low, high = np.quantile(densities, [0.25, 0.75])
    owners = np.array([place for place, chunk in enumerate(chunks) for _ in chunk])
    sentences = [sentence for chunk in chunks for sentence in chunk]
    vectors = await reading.embedder.embed(sentences, kind="passage")

    async def one(place: int) -> Form:
        text = " ".join(chunks[place])
        if densities[place] < low:
            return await _condensed(text, generator, reading, language)
        if densities[place] > high:
            # Neighbours stand beside it anyway; the paper wants what is not adjacent.
            own = (await reading.embedder.embed([text], kind="passage"))[0]
            far = np.flatnonzero(np.abs(owners - place) > 1)
            nearest = far[np.argsort(-(vectors[far] @ own), kind="stable")]
            return await _supplemented(text, [sentences[i] for i in nearest], generator, reading, language)
        return Form("", "kept")

    return await side_by_side([functools.partial(one, place) for place in range(len(chunks))])


async def _condensed(text: str, generator: Generator, reading: DensityModels, language: str) -> Form:
    """Ask for two thirds of the words."""
    most = len(text.split())
    written = await _write("condense", generator, reading, max(8, most * 2 // 3), text=one_line(text))
    faithful = _is_faithful(written, text, text, most=most, language=language)
    return Form(written, "condensed") if faithful else Form("", "refused")


async def _supplemented(
    text: str, others: Sequence[str], generator: Generator, reading: DensityModels, language: str
) -> Form:
    """Put in what sentences from elsewhere say, the nearest first, until nothing new comes of it.

    At most a third of the words are added, so that chunks stay about as long as they are.
    """
    form, written = Form("", "kept"), text
    most = len(text.split()) * 4 // 3 + 8
    for low in range(0, min(len(others), ITERATIONS**2), ITERATIONS):
        beside = " ".join(others[low : low + ITERATIONS])
        named = {"text": one_line(written), "sentences": one_line(beside)}
        answer = await _write("supplement", generator, reading, most, **named)
        if not _is_faithful(answer, text, f"{written} {beside}", most=most, language=language):
            return form if form.text else Form("", "refused")
        if set(find_entities(answer, language=language)) <= set(find_entities(written, language=language)):
            break
        form, written = Form(answer, "supplemented"), answer
    return form


async def _write(name: str, generator: Generator, reading: DensityModels, words: int, **values: str) -> str:
    prompt = load(name)
    asking = Asking(3 * words + 20, reading.seconds, prompt.version)
    said = [Said("user", prompt.fill(**values, words=str(words)))]
    return one_line(await ask(generator, said, asking, store=reading.store))


def _is_faithful(written: str, text: str, allowed: str, *, most: int, language: str) -> bool:
    """Whether a written form of `text` keeps its figures and most of its names, and has no other than `allowed` has."""
    figures = set(_FIGURE.findall(written))
    names = find_entities(text, language=language)
    return (
        0 < len(written.split()) <= most
        and set(_FIGURE.findall(text)) <= figures <= set(_FIGURE.findall(allowed))
        and all(name.lower() in allowed.lower() for name in find_entities(written, language=language))
        and sum(name in written for name in names) >= KEPT * len(names)
    )
