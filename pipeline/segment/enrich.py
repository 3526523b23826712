"""Condensing chunks of low density and supplementing those of high density (IDMS, density-driven chunking).

What a generator writes never takes a chunk's place: it stands beside the text as it was, for the index to read, while
citations keep to the text. A form that loses or invents a name or a figure is thrown away. Optional, and off where
nobody asks for it: in the paper both together bring .76 F1 for more than twice the time. Not for: measuring density
(`density.py`).
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from models.protocols import Generator
from pipeline.messages import Asking, Said, ask, side_by_side
from pipeline.segment.density import Density, Reading
from pipeline.text.frame import one_line
from pipeline.text.names import find_entities
from prompts import load

CONDENSED: Final = 0.6
"""Part of its words that a chunk of low density is condensed to."""
GROWN: Final = 1.3
"""Part of its words that a supplemented chunk may have at most: its size stays about the same."""
NEAREST: Final = 3
"""Sentences from elsewhere that a chunk is supplemented from, at each iteration."""
ITERATIONS: Final = 3
"""Most iterations of supplementing a chunk; one that adds no name is the last."""
KEPT: Final = 0.8
"""Part of a chunk's names that a condensed form must still have."""
_FIGURE: Final = re.compile(r"\d[\d.,:/-]*\d|\d")
Way = Literal["kept", "condensed", "supplemented"]


@dataclass(frozen=True, slots=True)
class Enriched:
    """A chunk with its written form."""

    text: str
    """As it was; what is cited."""
    written: str
    """What an index may read instead; equals `text` where nothing was written or what was written was thrown away."""
    way: Way
    iterations: int
    """Answers that were taken."""
    refused: str = ""
    """Why an answer was thrown away, the last one."""


@dataclass(frozen=True, slots=True)
class _Others:
    """Sentences that a chunk may be supplemented from."""

    sentences: Sequence[str]
    vectors: NDArray[np.floating]
    """Unit vectors [sentences, dimension]."""


async def enrich(
    chunks: Sequence[Sequence[str]], found: Sequence[Density], generator: Generator, reading: Reading, *, language: str
) -> list[Enriched]:
    """Return every chunk, those of low and high density with a written form.

    Args:
        chunks: Sentences of each chunk of one document.
        found: Their densities.
        generator: Writes.
        reading: Embedder, store and time.
        language: ISO 639-1 code, empty where unknown.

    Raises:
        ModelError: A model failed.
    """

    owners = [place for place, chunk in enumerate(chunks) for _ in chunk]
    sentences = [sentence for chunk in chunks for sentence in chunk]
    vectors = await reading.embedder.embed(sentences, kind="passage") if sentences else np.zeros((0, 1))

    async def one(place: int) -> Enriched:
        text = " ".join(chunks[place])
        if found[place].level == "low":
            return await _condensed(text, generator, reading, language)
        if found[place].level == "high":
            # Neighbours stand beside it anyway; the paper wants what is not adjacent.
            far = [number for number, owner in enumerate(owners) if abs(owner - place) > 1]
            others = _Others([sentences[number] for number in far], vectors[far])
            return await _supplemented(text, others, generator, reading, language)
        return Enriched(text, text, "kept", 0)

    if len(found) != len(chunks):
        raise ValueError(f"{len(found)} densities for {len(chunks)} chunks")
    return await side_by_side([functools.partial(one, place) for place in range(len(chunks))])


async def _condensed(text: str, generator: Generator, reading: Reading, language: str) -> Enriched:
    words = max(8, int(len(text.split()) * CONDENSED))
    written = await _write("condense", generator, reading, words, text=one_line(text))
    why = _fault(written, text, text, most=len(text.split()), language=language)
    return Enriched(text, text, "kept", 0, why) if why else Enriched(text, written, "condensed", 1)


async def _supplemented(
    text: str, others: "_Others", generator: Generator, reading: Reading, language: str
) -> Enriched:
    written, taken, refused = text, 0, ""
    left = list(range(len(others.sentences)))
    most = int(len(text.split()) * GROWN) + 8
    for _ in range(ITERATIONS):
        if not left:
            break
        own = (await reading.embedder.embed([written], kind="passage"))[0]
        order = np.argsort(-(others.vectors[left] @ own), kind="stable")[:NEAREST]
        nearest = [left[number] for number in order.tolist()]
        beside = " ".join(others.sentences[number] for number in nearest)
        left = [number for number in left if number not in nearest]
        answer = await _write(
            "supplement",
            generator,
            reading,
            most,
            text=one_line(written),
            sentences=one_line(beside),
        )
        refused = _fault(answer, text, f"{written} {beside}", most=most, language=language)
        before = set(find_entities(written, language=language))
        if refused or not set(find_entities(answer, language=language)) - before:
            break
        written, taken = answer, taken + 1
    return Enriched(text, written, "supplemented" if taken else "kept", taken, refused)


async def _write(name: str, generator: Generator, reading: Reading, words: int, **values: str) -> str:
    prompt = load(name)
    asking = Asking(3 * words + 20, reading.seconds, prompt.version)
    said = [Said("user", prompt.fill(**values, words=str(words)))]
    return one_line(await ask(generator, said, asking, store=reading.store))


def _fault(written: str, text: str, allowed: str, *, most: int, language: str) -> str:
    """Return what is wrong with a written form of `text` that may use nothing beyond `allowed`; empty for nothing."""
    size = len(written.split())
    figures = set(_FIGURE.findall(written))
    invented = sorted(figures - set(_FIGURE.findall(allowed)))
    lost = sorted(set(_FIGURE.findall(text)) - figures)
    names = find_entities(text, language=language)
    strange = [name for name in find_entities(written, language=language) if name.lower() not in allowed.lower()]
    kept = sum(name in written for name in names)
    faults = (
        (not written, "nothing was written"),
        (size > most, f"it has {size} words, {most} were allowed"),
        (bool(invented), f"it invents the figure {', '.join(invented)}"),
        (bool(strange), f"it invents the name {', '.join(strange)}"),
        (kept < KEPT * len(names), f"it keeps {kept} of {len(names)} names"),
        (bool(lost), f"it loses the figure {', '.join(lost)}"),
    )
    return next((why for holds, why in faults if holds), "")
