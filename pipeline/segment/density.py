"""Information density of chunks: the six factors of IDMS, each from 0 to 1, their geometric mean over the length.

The paper multiplies a cosine, a count, two more cosines and a rating, and sums over an index that it does not define;
so each factor is scaled to 0..1 here and one that cannot be had is left out (notes/zeroindex §6.13). What is low or
high is a quantile of the document, since the paper gives no threshold. Not for: rewriting chunks (`enrich.py`).
"""

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import anyio
import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from errors import ModelError
from models.protocols import Embedder, Generator, chooser
from pipeline.messages import KEPT_SECONDS, Asking, Said, ask, side_by_side
from pipeline.text.frame import one_line
from pipeline.text.names import find_entities
from pipeline.text.tokens import count_tokens
from pipeline.work import in_thread
from prompts import load

FULL: Final = 8.0
"""Different entities in a hundred tokens that count as full density of names."""
SPAN: Final = 100.0
"""Tokens that a density is stated over."""
LOW: Final = 0.25
HIGH: Final = 0.75
"""Quantiles of a document's densities below and above which a chunk is low or high."""
LEAST: Final = 1e-3
"""A factor's floor, so that one that is nearly nothing does not hide the others in the product."""
LISTED: Final = 12
"""Most entities of a chunk."""
ENTITIES: Final[dict[str, object]] = {
    "type": "object",
    "properties": {"entities": {"type": "array", "items": {"type": "string", "maxLength": 80}, "maxItems": LISTED}},
    "required": ["entities"],
    "additionalProperties": False,
}
Level = Literal["low", "middle", "high"]


@dataclass(frozen=True, slots=True)
class Density:
    """The density of one chunk."""

    value: float
    """Geometric mean of the factors over the length in hundreds of tokens."""
    effectiveness: float
    """I: mean cosine of its entities with the chunk."""
    variety: float
    """W: different entities in a hundred tokens, `FULL` and more being 1."""
    cohesion: float
    """C: mean cosine of its sentences with each other; 1 for a single one."""
    rating: float | None
    """S: a generator's probability that the chunk reads well; None without one."""
    relation: float
    """α: highest cosine with another chunk; 1 for the only one."""
    tokens: int
    """L."""
    entities: tuple[str, ...]
    level: Level
    """Against the document's other chunks."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What densities are computed with."""

    embedder: Embedder
    generator: Generator | None = None
    """Rates chunks; None leaves the rating out."""
    entities: Literal["rule", "model"] = "rule"
    """`model` lets the generator list entities, which must stand in the chunk letter by letter."""
    store: Store | None = None
    seconds: float = 30.0
    """Time for one answer."""


async def densities(chunks: Sequence[Sequence[str]], reading: Reading, *, language: str) -> list[Density]:
    """Return the density of each chunk of one document.

    Args:
        chunks: Sentences of each chunk, none of them empty.
        reading: Models.
        language: ISO 639-1 code, empty where unknown.

    Raises:
        ModelError: The embedder or the generator failed.
    """
    texts = [" ".join(chunk) for chunk in chunks]
    if not texts:
        return []
    whole = await reading.embedder.embed(texts, kind="passage")
    listed = await side_by_side([functools.partial(_entities, text, reading, language) for text in texts])
    ratings = await side_by_side([functools.partial(_rating, text, reading) for text in texts])
    rows: list[tuple[list[float | None], tuple[str, ...]]] = []
    for place, chunk in enumerate(chunks):
        found = listed[place]
        inside = await reading.embedder.embed([*chunk, *found], kind="passage")
        sentences, names = inside[: len(chunk)], inside[len(chunk) :]
        others = np.delete(whole, place, axis=0)
        factors = [
            _cosine(names @ whole[place]) if found else 0.0,
            None,
            _pairwise(sentences),
            ratings[place],
            _cosine((others @ whole[place]).max(keepdims=True)) if len(others) else 1.0,
        ]
        rows.append((factors, found))
    tokens = await in_thread(lambda: [count_tokens(text) for text in texts])
    values: list[float] = []
    for (factors, found), size in zip(rows, tokens, strict=True):
        factors[1] = min(1.0, len(found) / max(size / SPAN, 0.1) / FULL)
        known = [max(factor, LEAST) for factor in factors if factor is not None]
        values.append(float(np.exp(np.mean(np.log(known)))) / max(size / SPAN, 0.1))
    low, high = np.quantile(values, [LOW, HIGH])
    return [
        Density(
            value,
            factors[0] or 0.0,
            factors[1] or 0.0,
            factors[2] or 0.0,
            factors[3],
            factors[4] or 0.0,
            size,
            found,
            "low" if value < low else "high" if value > high else "middle",
        )
        for value, (factors, found), size in zip(values, rows, tokens, strict=True)
    ]


def _cosine(values: NDArray[np.float32]) -> float:
    """The mean of cosines, those below 0 being no likeness."""
    return float(np.clip(values, 0, 1).mean())


def _pairwise(vectors: NDArray[np.float32]) -> float:
    """IDMS Eq. 5: the mean cosine of all pairs."""
    n = len(vectors)
    if n < 2:
        return 1.0
    likeness = vectors @ vectors.T
    return float(np.clip((likeness.sum() - np.trace(likeness)) / (n * (n - 1)), 0, 1))


async def _entities(text: str, reading: Reading, language: str) -> tuple[str, ...]:
    if reading.generator is None or reading.entities == "rule":
        return find_entities(text, language=language)
    prompt = load("list_entities")
    asking = Asking(300, reading.seconds, prompt.version, ENTITIES)
    said = [Said("user", prompt.fill(text=one_line(text)))]
    listed = json.loads(await ask(reading.generator, said, asking, store=reading.store))["entities"]
    return tuple(dict.fromkeys(name for name in listed if name.strip() and name in text))[:LISTED]


async def _rating(text: str, reading: Reading) -> float | None:
    model = chooser(reading.generator)
    if model is None:
        return None
    prompt = load("rate_passage")
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    key = f"rating:{model.name}:{prompt.version}:{digest}"
    kept = await in_thread(reading.store.get_json, key) if reading.store is not None else None
    if isinstance(kept, float):
        return kept
    try:
        with anyio.move_on_after(reading.seconds) as scope:
            rating = float((await model.choose([Said("user", prompt.fill(text=one_line(text)))], ["Yes", "No"]))[0])
    except ModelError as error:
        raise ModelError(f"The density of a chunk has no rating: {error}", hint="Leave the generator out.") from error
    if scope.cancelled_caught:
        raise ModelError(f"{model.name} rated no chunk in {reading.seconds:.0f} s.", hint="Set a smaller generator.")
    if reading.store is not None:
        await in_thread(reading.store.set_json, key, rating, expire=KEPT_SECONDS)
    return rating
