"""Density-driven chunking (IDMS): how dense chunks are, those of low density condensed,
those of high supplemented.

Density is the geometric mean of six factors over the length, each scaled to 0..1; one
that cannot be had is left out. As printed (Eq. 2) it is their product, unscaled, summed
over the entities. What a generator writes never takes a chunk's place: it is indexed in addition
to the text, while citations use the text. A form that loses a figure or over a fifth of
the names, or invents either, is thrown away.
"""

import functools
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from errors import ModelError
from models.protocols import Embedder, Generator, Said, tree_scorer
from papers.side_by_side import side_by_side
from pipeline.messages import (
    CACHED_ANSWER_SECONDS,
    AskOptions,
    ask,
    within,
)
from pipeline.text.frame import one_line
from pipeline.text.tokens import count_tokens
from pipeline.text.words import FIGURE, MAX_ENTITIES, find_entities
from pipeline.work import in_thread
from prompts import load

KEPT_NAMES: Final = 0.8
"""Part of a chunk's names that a written form must still have."""
ITERATIONS: Final = 3
"""Most iterations of supplementing a chunk, and sentences from elsewhere that each
brings."""
ENTITIES: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "entities": {
            "type": "array",
            "items": {"type": "string", "maxLength": 80},
            "maxItems": MAX_ENTITIES,
        }
    },
    "required": ["entities"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class DensityModels:
    """What chunks are read with."""

    embedder: Embedder
    generator: Generator | None = None
    """Rates chunks; None leaves the rating out."""
    entities: Literal["rule", "model"] = "rule"
    """`model` lets the generator list entities, which must occur verbatim in the
    chunk."""
    store: Store | None = None
    seconds: float = 30.0
    printed: bool = False
    """Whether density is Eq. 2 of the paper."""


async def densities(
    chunks: Sequence[Sequence[str]], reading: DensityModels, *, language: str
) -> NDArray[np.float64]:
    """Return the density of each chunk of one document [n], none of them without
    sentences. Raises `ModelError`: a model failed."""
    texts = [" ".join(chunk) for chunk in chunks]
    whole = await reading.embedder.embed(texts, kind="passage")
    listed = await side_by_side(
        [functools.partial(_entities, text, reading, language) for text in texts]
    )
    ratings = await side_by_side(
        [functools.partial(_rating, text, reading) for text in texts]
    )
    lengths = await in_thread(lambda: [max(10, count_tokens(text)) for text in texts])
    values: list[float] = []
    for index, (chunk, names, rating, size) in enumerate(
        zip(chunks, listed, ratings, lengths, strict=True)
    ):
        vectors = await reading.embedder.embed([*chunk, *names], kind="passage")
        others = np.delete(whole, index, axis=0)
        # As printed a cosine counts as it is; in the geometric mean one under 0 is 0.
        lowest = -1.0 if reading.printed else 0.0
        # I, effectiveness: how near the entities are to the chunk.
        effective = (
            _mean_cosine(vectors[len(chunk) :] @ whole[index], lowest) if names else 0.0
        )
        # C, cohesion (Eq. 5): how near the sentences are to each other. α, relation: how near the
        # nearest other chunk is. S: whether the chunk reads well.
        factors = [
            _cohesion(vectors[: len(chunk)], lowest),
            _mean_cosine((others @ whole[index]).max(keepdims=True), lowest)
            if len(others)
            else 1.0,
            *([] if rating is None else [rating]),
        ]
        if reading.printed:
            # The sum over the entities is their number times the mean; W is their number as well.
            values.append(math.prod(factors) * effective * len(names) ** 2 / size)
            continue
        # W, variety: different entities in a hundred tokens, as many as are listed being full
        # density.
        factors += [effective, min(1.0, 100 * len(names) / size / MAX_ENTITIES)]
        # L, the length, divides; a factor of nearly nothing must not hide the others in the
        # product.
        values.append(
            100 * float(np.exp(np.mean(np.log(np.maximum(factors, 1e-3))))) / size
        )
    return np.array(values)


def _mean_cosine(values: NDArray[np.float32], lowest: float) -> float:
    return float(np.clip(values, lowest, 1).mean())


def _cohesion(vectors: NDArray[np.float32], lowest: float) -> float:
    """The mean cosine of all pairs; 1 for a single vector."""
    pairs = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
    return float(np.clip(pairs.mean(), lowest, 1)) if len(pairs) else 1.0


async def _entities(
    text: str, reading: DensityModels, language: str
) -> tuple[str, ...]:
    if reading.generator is None or reading.entities == "rule":
        return find_entities(text, language=language)
    prompt = load("list_entities")
    asking = AskOptions(300, reading.seconds, prompt.version, ENTITIES)
    said = [Said("user", prompt.fill(text=one_line(text)))]
    listed = json.loads(
        await ask(reading.generator, said, asking, store=reading.store)
    )["entities"]
    return tuple(
        dict.fromkeys(name for name in listed if name.strip() and name in text)
    )[:MAX_ENTITIES]


async def _rating(text: str, reading: DensityModels) -> float | None:
    """The probability that a chunk reads well (IDMS Eq. 6); None where the generator
    lists no probabilities; raises `ModelError`."""
    model = tree_scorer(reading.generator)
    if model is None:
        return None
    prompt = load("rate_passage")
    digest = hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()
    key = f"rating:{model.name}:{prompt.version}:{digest}"
    kept = (
        await in_thread(reading.store.get_json, key)
        if reading.store is not None
        else None
    )
    if isinstance(kept, float):
        return kept
    asked = [Said("user", prompt.fill(text=one_line(text)))]
    call = model.score_tree(asked, ["Yes", "No"], among_siblings=True)
    try:
        scores = await within(reading.seconds, call, model=model.name)
        rating = float(np.exp(scores.log_probabilities[0]))
    except ModelError as error:
        raise ModelError(
            f"A chunk's density could not be rated: {error}",
            hint="Set idms in WINNOW_PAPERS without +density, or another generator.",
        ) from error
    if reading.store is not None:
        await in_thread(
            reading.store.set_json, key, rating, expire=CACHED_ANSWER_SECONDS
        )
    return rating


# Written forms


class Form(NamedTuple):
    """Text that is indexed in addition to a chunk."""

    text: str
    """"" if the chunk is indexed unchanged."""
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
    """Return the form of each chunk of a document: condensed below the lower quartile
    of `densities` [n], supplemented above the upper one, else none.

    A form that is not faithful to its chunk is refused, and empty. Raises `ModelError`.
    """
    # The paper gives no threshold, so a chunk is of low or high density by its document's
    # quartiles.
    low, high = np.quantile(densities, [0.25, 0.75])
    owners = np.array([index for index, chunk in enumerate(chunks) for _ in chunk])
    sentences = [sentence for chunk in chunks for sentence in chunk]
    vectors = await reading.embedder.embed(sentences, kind="passage")

    async def one(index: int) -> Form:
        text = " ".join(chunks[index])
        if densities[index] < low:
            # Two thirds of the words are asked for.
            most = len(text.split())
            written = await _write(
                "condense",
                generator,
                reading,
                max(8, most * 2 // 3),
                text=one_line(text),
            )
            faithful = _is_faithful(written, text, text, most=most, language=language)
            return Form(written, "condensed") if faithful else Form("", "refused")
        if densities[index] > high:
            # Neighbors are adjacent anyway; the paper uses non-adjacent sentences.
            own = (await reading.embedder.embed([text], kind="passage"))[0]
            far = np.flatnonzero(np.abs(owners - index) > 1)
            nearest = far[np.argsort(-(vectors[far] @ own), kind="stable")]
            return await _supplemented(
                text, [sentences[i] for i in nearest], generator, reading, language
            )
        return Form("", "kept")

    return await side_by_side(
        [functools.partial(one, index) for index in range(len(chunks))]
    )


async def _supplemented(
    text: str,
    others: Sequence[str],
    generator: Generator,
    reading: DensityModels,
    language: str,
) -> Form:
    """Put in what sentences from elsewhere say, the nearest first, until nothing new
    comes of it.

    At most a third of the words are added, so that chunks stay about as long as they
    are. An unfaithful answer ends it: the form before it stays, the first is refused.
    """
    form, written = Form("", "kept"), text
    most = len(text.split()) * 4 // 3 + 8
    for low in range(0, min(len(others), ITERATIONS**2), ITERATIONS):
        beside = " ".join(others[low : low + ITERATIONS])
        named = {"text": one_line(written), "sentences": one_line(beside)}
        answer = await _write("supplement", generator, reading, most, **named)
        if not _is_faithful(
            answer, text, f"{written} {beside}", most=most, language=language
        ):
            return form if form.text else Form("", "refused")
        if set(find_entities(answer, language=language)) <= set(
            find_entities(written, language=language)
        ):
            break
        form, written = Form(answer, "supplemented"), answer
    return form


async def _write(
    name: str, generator: Generator, reading: DensityModels, words: int, **values: str
) -> str:
    prompt = load(name)
    asking = AskOptions(3 * words + 20, reading.seconds, prompt.version)
    said = [Said("user", prompt.fill(**values, words=str(words)))]
    return one_line(await ask(generator, said, asking, store=reading.store))


def _is_faithful(
    written: str, text: str, allowed: str, *, most: int, language: str
) -> bool:
    """Whether a written form of `text` keeps its figures and most of its names, and has
    no other than `allowed` has.

    An empty one, or one of more than `most` words, is not."""
    figures = set(FIGURE.findall(written))
    names = find_entities(text, language=language)
    return (
        0 < len(written.split()) <= most
        and set(FIGURE.findall(text)) <= figures <= set(FIGURE.findall(allowed))
        and all(
            name.lower() in allowed.lower()
            for name in find_entities(written, language=language)
        )
        and sum(name in written for name in names) >= KEPT_NAMES * len(names)
    )
