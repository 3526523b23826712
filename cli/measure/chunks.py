"""The steps behind trees, by rules and with a generator: boundaries, forms of chunks, summaries.

Not for: steps about one question (`reading.py`, `asking.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cli.measure.agreement import Cut, agreement
from cli.measure.library import Asked, Row, Setup, mean, some, strung
from cli.measure.watched import Watched
from errors import ModelError
from pipeline.documents import Document
from pipeline.rank.bm25 import BM25
from pipeline.rank.fuse import blend
from pipeline.raptor.build import build_tree
from pipeline.raptor.leaves import main_sentences
from pipeline.raptor.summarise import Writer, write_summary
from pipeline.raptor.tree import TreeOptions
from pipeline.segment.idms import Idms, IdmsOptions
from pipeline.segment.judge import judge_of
from pipeline.segment.partition import Rule, cut_by_margins, partition, segment, sentence_costs
from pipeline.text.sentences import split_sentences

RULES: Final[tuple[Rule, ...]] = ("fixed", "running", "deviation", "valleys", "partition")
FAR: Final = 10**9
"""No bound on a segment's length: the rules are measured alone."""
SUMMARY: Final = 130
"""Most tokens of a summary, as trees have them."""
FEWEST: Final = 6
"""Chunks of a document from which on its densities say something."""


async def find_boundaries(setup: Setup) -> list[Row]:
    """Return Pk and F1 of each rule over the generator's margins, beside the partition over embeddings.

    On paragraphs of different pages strung together, so that the true boundaries are known.
    """
    watched = Watched(setup.generator)
    judge = judge_of(watched, store=None, seconds=FAR)
    made = strung(setup.library.documents, min(setup.limit, 6))
    if judge is None:
        return [Row("segment", "Pk", len(made), None, None, note=f"{watched.name} lists no probabilities")]
    found: dict[str, list[Cut]] = {}
    plain: list[Cut] = []
    for number, parts in enumerate(made):
        texts = [text for part in parts for text in part]
        truth = list(pairwise(np.cumsum([0, *map(len, parts)]).tolist()))
        costs = sentence_costs(texts)
        if setup.embedder is not None:
            vectors = await setup.embedder.embed(texts, kind="passage")
            plain.append(agreement(partition(vectors, costs, minimum=0, maximum=FAR), truth))
        try:
            margins = await judge.margins(texts)
        except ModelError:
            # `watched` has counted it; the row tells how many and why.
            continue
        for rule in RULES:
            cut = cut_by_margins(margins, costs, rule=rule, minimum=0, maximum=FAR)
            found.setdefault(rule, []).append(agreement(cut, truth))
        await setup.report(number + 1, len(made), "segment")
    spent = await watched.spent()
    rows: list[Row] = []
    for rule_name in RULES:
        cuts = found.get(rule_name, [])
        for what, ours, theirs in (
            ("Pk, low is good", [cut.pk for cut in plain], [cut.pk for cut in cuts]),
            ("F1", [cut.f1 for cut in plain], [cut.f1 for cut in cuts]),
        ):
            row = Row("segment", f"{rule_name}: {what}", len(made), mean(ours), mean(theirs))
            rows.append(row if rows else row.spending(spent))
    return rows


async def write_summaries(setup: Setup) -> list[Row]:
    """Return what of written summaries the checks keep, and how near both kinds lie to what they summarise."""
    watched = Watched(setup.generator)
    writer = Writer(watched)
    clusters: list[tuple[list[str], str]] = []
    longest = sorted(setup.library.documents, key=lambda document: -len(document.text))
    for document in longest[: max(1, setup.limit // 4)]:
        tree = await build_tree([document], embedder=setup.embedder, options=TreeOptions(), store=None)
        clusters += [([tree.nodes[i].text for i in node.children], node.text) for node in tree.nodes if node.layer == 1]
    chosen = some(clusters, setup.limit)
    kept: list[float] = []
    sentences: list[float] = []
    near: dict[bool, list[float]] = {False: [], True: []}
    for number, (texts, extracted) in enumerate(chosen):
        try:
            written = (await write_summary(writer, texts, max_tokens=SUMMARY)).text
        except ModelError:
            # `watched` has counted it.
            continue
        said = len(split_sentences(" ".join(watched.replies[-1].split())))
        kept.append(float(bool(written)))
        sentences += [len(split_sentences(written)) / said] if said else []
        if setup.embedder is not None and written:
            vectors = await setup.embedder.embed([extracted, written, *texts], kind="passage")
            centre = vectors[2:].mean(axis=0)
            for by_model, vector in ((False, vectors[0]), (True, vectors[1])):
                near[by_model].append(float(vector @ centre / max(float(np.linalg.norm(centre)), 1e-9)))
        await setup.report(number + 1, len(chosen), "summarise")
    spent = await watched.spent()
    return [
        Row("summarise", "summaries of which the checks leave a sentence", len(kept), 1.0, mean(kept)).spending(spent),
        Row("summarise", "sentences that the checks leave", len(sentences), 1.0, mean(sentences)),
        Row(
            "summarise",
            "cosine to the middle of what is summarised",
            len(near[True]),
            mean(near[False]),
            mean(near[True]),
        ),
    ]


async def write_forms(setup: Setup) -> list[Row]:
    """Return how high the chunk with the answer ranks by its text alone and with written forms beside it."""
    what = "rank of the chunk with the answer, mean of 1/rank"
    if setup.embedder is None:
        return [Row("density", what, 0, None, None, note="it needs an embedder")]
    watched = Watched(setup.generator)
    by_page = dict(zip(setup.library.names, setup.library.documents, strict=True))
    asked = [one for one in setup.answerable if len(one.pages) == 1]
    ranks: dict[bool, list[float]] = {False: [], True: []}
    written: list[float] = []
    ready: dict[str, _Chunks | None] = {}
    for number, one in enumerate(asked):
        name = one.pages[0]
        if name not in ready:
            ready[name] = await _chunks(setup, watched, by_page[name])
        chunks = ready[name]
        if chunks is not None:
            written += [float(bool(form)) for form in chunks.forms] if not chunks.counted else []
            chunks.counted = True
            for with_forms in (False, True):
                ranks[with_forms] += await _rank(setup, one, chunks, with_forms=with_forms)
        await setup.report(number + 1, len(asked), "density")
    spent = await watched.spent()
    return [
        Row("density", what, len(ranks[True]), mean(ranks[False]), mean(ranks[True])).spending(spent),
        Row("density", "chunks with a form that the checks leave", len(written), None, mean(written)),
    ]


@dataclass(slots=True)
class _Chunks:
    texts: list[str]
    forms: list[str]
    plain: NDArray[np.float32]
    """Vectors of the texts [n, d]."""
    formed: NDArray[np.float32]
    """Vectors of the forms, of the text where there is none [n, d]."""
    counted: bool = False


async def _chunks(setup: Setup, watched: Watched, document: Document) -> _Chunks | None:
    """Return the chunks of a document with their forms; None where it is short, or the model failed."""
    assert setup.embedder is not None  # noqa: S101  the caller has looked
    sentences = main_sentences(document)
    ranges = await segment(sentences, embedder=setup.embedder, minimum=50, maximum=200)
    parts = [[sentence.text for sentence in sentences[start:end]] for start, end in ranges]
    if len(parts) < FEWEST:
        return None
    options = IdmsOptions(density=True)
    idms = Idms(options, generator=watched, embedder=setup.embedder, form_seconds=setup.seconds)
    forms = await idms.forms(parts, language=document.page.language[:2].lower())
    if not idms.writes:
        return None
    texts = [" ".join(part) for part in parts]
    read = [form or text for form, text in zip(forms, texts, strict=True)]
    plain = await setup.embedder.embed(texts, kind="passage")
    return _Chunks(texts, forms, plain, await setup.embedder.embed(read, kind="passage"))


async def _rank(setup: Setup, one: Asked, chunks: _Chunks, *, with_forms: bool) -> Sequence[float]:
    """Return 1 / rank of the first chunk that holds a fact of the answer, nothing where none does."""
    assert setup.embedder is not None  # noqa: S101  the caller has looked
    facts = [Asked("", (fact,), ()) for fact in one.answers]
    gold = [i for i, text in enumerate(chunks.texts) if any(fact.is_in(text) for fact in facts)]
    if not gold:
        return ()
    pairs = zip(chunks.texts, chunks.forms, strict=True)
    words = BM25([f"{text} {form}" if with_forms else text for text, form in pairs]).scores(one.question)
    vector = (await setup.embedder.embed([one.question], kind="query"))[0]
    likeness = np.asarray((chunks.formed if with_forms else chunks.plain) @ vector, dtype=np.float32)
    order = np.argsort(-blend([words, likeness]), kind="stable").tolist()
    return (1 / (1 + min(order.index(i) for i in gold)),)
