"""What a generator does for trees, beside the rules: boundaries of leaves, forms for
the index, summaries.

    python -m bench.leaves --set generator=llama:FILE.gguf [FOLDER] [--steps
        segment,density,summarise] [--limit 20]

On the sample library, or a folder as `bench.eval` takes it, and in its table.
Boundaries on foreign articles (`bench/eval.py`) and trees of the meetings
(`bench/eval.py`) are measured there."""

import math
import random
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import anyio
import numpy as np
from numpy.typing import NDArray

from bench.eval import (
    FigureTable,
    MeasuredFigure,
    Setup,
    Steps,
    Watched,
    evaluate,
    options,
    run_of,
    some,
)
from bench.library import MeasuredQuestion
from bench.segments import agreement
from errors import ModelError
from models.protocols import Embedder
from papers.idms.idms import Idms, IdmsOptions, judge_of
from papers.idms.partition import Rule, cut_by_margins, partition, segment
from papers.raptor.build import build_tree
from papers.raptor.summarise import Writer, write_summary
from papers.raptor.tree import NodeOptions
from pipeline.document.units import split_sentences, tag_sentences
from pipeline.question.question import Question
from pipeline.raptor.leaves import main_sentences
from pipeline.reading.bm25 import BM25, blend
from pipeline.text.tokens import count_tokens
from readers.page import Document

RULES: Final[tuple[Rule, ...]] = ("running", "partition")


async def find_boundaries(setup: Setup) -> list[MeasuredFigure]:
    """Return Pk and F1 of each rule over the generator's margins, beside the partition
    over embeddings.

    On paragraphs of different pages strung together, so that the true boundaries are
    known; without bounds on a segment's length, so that the rules are measured alone.
    """
    table = FigureTable("segment", setup)
    judge = judge_of(table.watched, store=None, seconds=math.inf)
    made = strung(setup.library.documents, min(setup.limit, 6))
    if judge is None:
        return [
            MeasuredFigure(
                "segment",
                "Pk",
                len(made),
                note=f"{table.watched.name} lists no probabilities",
            )
        ]
    figures = {
        rule: (
            table.figure(f"{rule}: Pk, low is good", low=True),
            table.figure(f"{rule}: F1"),
        )
        for rule in RULES
    }
    async for parts in table.each(made):
        texts = [text for part in parts for text in part]
        truth = list(pairwise(np.cumsum([0, *map(len, parts)]).tolist()))
        costs = [count_tokens(text) + 1 for text in texts]
        if setup.embedder is not None:
            vectors = await setup.embedder.embed(texts, kind="passage")
            by_vectors = agreement(
                partition(vectors, costs, minimum=0, maximum=sum(costs)), truth
            )
            for pk, f1 in figures.values():
                pk.rules.append(by_vectors.pk)
                f1.rules.append(by_vectors.f1)
        try:
            margins = await judge.margins(texts)
        except ModelError:
            # `watched` has counted it; the row shows how many and why.
            continue
        for rule, (pk, f1) in figures.items():
            cut = cut_by_margins(
                margins, costs, rule=rule, minimum=0, maximum=sum(costs)
            )
            by_margins = agreement(cut, truth)
            pk.model.append(by_margins.pk)
            f1.model.append(by_margins.f1)
    return await table.rows()


def strung(documents: Sequence[Document], count: int) -> list[list[list[str]]]:
    """Return at most `count` documents of 3 to 10 paragraphs from different pages, each
    a list of sentences.

    Paragraphs are those of 3 to 9 sentences in the library's commonest language; where
    one ends, the subject changes. Equal documents give equal paragraphs in equal order.
    """
    languages = [document.page.language[:2].lower() for document in documents]
    common = max(sorted(set(languages)), key=languages.count, default="")
    piles = [
        _paragraphs(document)
        for document, code in zip(documents, languages, strict=True)
        if code == common
    ]
    draw = random.Random(0)
    for pile in piles:
        draw.shuffle(pile)
    made: list[list[list[str]]] = []
    while len(made) < count:
        # The fullest piles first, so that the pages last as long as they can; one page gives one
        # paragraph.
        full = sorted((pile for pile in piles if pile), key=len, reverse=True)[:10]
        if len(full) < 3:
            break
        parts = [pile.pop() for pile in full]
        draw.shuffle(parts)
        made.append(parts)
    return made


def _paragraphs(document: Document) -> list[list[str]]:
    found: dict[int, list[str]] = {}
    for sentence in tag_sentences(document):
        block = document.blocks[sentence.block]
        if block.main and block.kind == "paragraph":
            found.setdefault(sentence.block, []).append(sentence.text)
    return [texts for texts in found.values() if 3 <= len(texts) <= 9]


async def write_summaries(setup: Setup) -> list[MeasuredFigure]:
    """Return what of written summaries the checks keep, and how near both kinds lie to
    what they summarise."""
    table = FigureTable("summarise", setup)
    kept = table.figure("summaries of which the checks leave a sentence")
    sentences = table.figure("sentences that the checks leave")
    near = table.figure("cosine to the middle of what is summarised")
    options = NodeOptions()
    clusters: list[tuple[list[str], str]] = []
    longest = sorted(setup.library.documents, key=lambda document: -len(document.text))
    for document in longest[: max(1, setup.limit // 4)]:
        tree = await build_tree(
            [document], embedder=setup.embedder, options=options, store=None
        )
        clusters += [
            ([tree.nodes[i].text for i in node.children], node.text)
            for node in tree.nodes
            if node.layer == 1
        ]
    async for texts, extracted in table.each(some(clusters, setup.limit)):
        try:
            written = (
                await write_summary(
                    Writer(table.watched), texts, max_tokens=options.summary_tokens
                )
            ).text
        except ModelError:
            # `watched` has counted it.
            continue
        said = len(split_sentences(" ".join(table.watched.replies[-1].split())))
        kept.rules.append(1.0)
        kept.model.append(float(bool(written)))
        sentences.rules += [1.0] if said else []
        sentences.model += [len(split_sentences(written)) / said] if said else []
        if setup.embedder is not None and written:
            vectors = await setup.embedder.embed(
                [extracted, written, *texts], kind="passage"
            )
            centre = vectors[2:].mean(axis=0)
            for values, vector in ((near.rules, vectors[0]), (near.model, vectors[1])):
                values.append(
                    float(vector @ centre / max(float(np.linalg.norm(centre)), 1e-9))
                )
    return await table.rows()


class _Chunks(NamedTuple):
    """The chunks of one document: texts, forms that a generator wrote, and vectors [n,
    d] of both."""

    texts: list[str]
    forms: list[str]
    plain: NDArray[np.float32]
    formed: NDArray[np.float32]
    """Of the text where there is no form."""


async def write_forms(setup: Setup) -> list[MeasuredFigure]:
    """Return how high the chunk with the answer ranks by its text alone and with
    written forms beside it."""
    what = "rank of the chunk with the answer, mean of 1/rank"
    embedder = setup.embedder
    if embedder is None:
        return [MeasuredFigure("density", what, note="it needs an embedder")]
    table = FigureTable("density", setup)
    ranks, written = (
        table.figure(what),
        table.figure("chunks with a form that the checks leave"),
    )
    pages = dict(zip(setup.library.names, setup.library.documents, strict=True))
    ready: dict[str, _Chunks | None] = {}
    async for one in table.each(
        [one for one in setup.answerable if len(one.pages) == 1]
    ):
        name = one.pages[0]
        if name not in ready:
            chunks = ready[name] = await _chunks(
                setup, embedder, table.watched, pages[name]
            )
            written.model += (
                [float(bool(form)) for form in chunks.forms] if chunks else []
            )
        if (chunks := ready[name]) is not None:
            ranks.rules += await _rank(embedder, one, chunks, with_forms=False)
            ranks.model += await _rank(embedder, one, chunks, with_forms=True)
    return await table.rows()


async def _chunks(
    setup: Setup, embedder: Embedder, watched: Watched, document: Document
) -> _Chunks | None:
    """Return the chunks of a document with their forms; None where there is one only,
    or the model failed."""
    sentences = main_sentences(document)
    ranges = await segment(sentences, embedder=embedder, minimum=50, maximum=200)
    parts = [
        [sentence.text for sentence in sentences[start:end]] for start, end in ranges
    ]
    if len(parts) <= 1:
        return None
    idms = Idms(
        IdmsOptions(density=True),
        generator=watched,
        embedder=embedder,
        seconds=setup.seconds,
    )
    forms = await idms.forms(parts, language=document.page.language[:2].lower())
    texts = [" ".join(part) for part in parts]
    read = [form or text for form, text in zip(forms, texts, strict=True)]
    plain = await embedder.embed(texts, kind="passage")
    return _Chunks(texts, forms, plain, await embedder.embed(read, kind="passage"))


async def _rank(
    embedder: Embedder, one: MeasuredQuestion, chunks: _Chunks, *, with_forms: bool
) -> Sequence[float]:
    """Return 1 / rank of the first chunk that holds a fact of the answer, nothing where
    none does."""
    facts = [MeasuredQuestion("", (fact,), ()) for fact in one.answers]
    gold = [
        i
        for i, text in enumerate(chunks.texts)
        if any(fact.is_in(text) for fact in facts)
    ]
    if not gold:
        return ()
    pairs = zip(chunks.texts, chunks.forms, strict=True)
    words = BM25(
        [f"{text} {form}" if with_forms else text for text, form in pairs]
    ).scores(Question(one.question))
    vector = (await embedder.embed([one.question], kind="query"))[0]
    likeness = np.asarray(
        (chunks.formed if with_forms else chunks.plain) @ vector, dtype=np.float32
    )
    order = np.argsort(-blend([words, likeness]), kind="stable").tolist()
    return (1 / (1 + min(order.index(i) for i in gold)),)


STEPS: Final[Steps] = {
    "segment": find_boundaries,
    "density": write_forms,
    "summarise": write_summaries,
}


def main() -> int:
    """Print the table; return its exit code."""
    settings, run = run_of(options(__doc__).parse_args())
    return anyio.run(evaluate, settings, run, STEPS)


if __name__ == "__main__":
    sys.exit(main())
