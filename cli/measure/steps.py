"""The steps that a generator can take part in, each measured by rules and with the generator.

Pruning by block paths, extracting by lines, tags or votes, parsing a request, answering from evidence, boundaries of
chunks, forms of chunks for the index, summaries. Not for: the command and its table (`cli/evaluate.py`).
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cli.measure.library import Asked, Row, Setup, Table, some, strung
from cli.measure.watched import Watched
from errors import ModelError
from models.protocols import Embedder, tree_scorer
from pipeline.answer import Writing, write_answer
from pipeline.documents import Document, ParsedRequest, Reading
from pipeline.evidence.assemble import assemble
from pipeline.extract.ask import WAYS, can_ask
from pipeline.extract.extract import Asking, extract
from pipeline.prune.generate import path_scorer
from pipeline.prune.prune import PruneOptions, prune
from pipeline.rank.bm25 import BM25
from pipeline.rank.fuse import blend, reciprocal_rank_fusion
from pipeline.raptor.build import build_tree
from pipeline.raptor.leaves import main_sentences
from pipeline.raptor.summarise import Writer, write_summary
from pipeline.raptor.tree import TreeOptions
from pipeline.search.parse import parse_request
from pipeline.search.parse_model import Parser, parse
from pipeline.segment.idms import Idms, IdmsOptions
from pipeline.segment.judge import judge_of
from pipeline.segment.partition import Rule, cut_by_margins, partition, segment
from pipeline.text.frame import new_mark
from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import count_tokens
from pipeline.work import in_thread

BUDGET: Final = 256
"""Tokens of pruned pages and of extracted sentences: few, so that choosing well shows."""
EVIDENCE: Final = BUDGET * 3
"""Tokens of evidence that an answer is written from."""
RULES: Final[tuple[Rule, ...]] = ("running", "partition")
METHODS: Final[dict[Literal["winnow", "paper"], str]] = {
    "winnow": f"answers kept at {BUDGET} tokens",
    "paper": "the same by the paper's own steps",
}


async def prune_by_paths(setup: Setup) -> list[Row]:
    """Return whether pages pruned to `BUDGET` tokens keep the answer, without and with a generator's path scores.

    One row for the default pruning, one for the paper's: its first step alone against both steps (HtmlRAG §3.4).
    """
    rows: list[Row] = []
    for method, what in METHODS.items():
        table = Table("prune", setup)
        kept = table.figure(what)
        if tree_scorer(table.watched) is None:
            note = f"{table.watched.name} scores no paths: set a GGUF file"
            rows.append(Row("prune", what, len(setup.answerable), note=note))
            continue
        options = PruneOptions(BUDGET, "html", method=method)
        async for one in table.each(setup.answerable):
            documents = setup.library.nearest(one.question, first=one.pages, count=1)
            scorer = path_scorer(table.watched, documents, seconds=setup.seconds)
            for values, finer in ((kept.rules, None), (kept.model, scorer)):
                found = await prune(
                    documents, one.question, options=options, reader=setup.reader, embedder=setup.embedder, finer=finer
                )
                values.append(float(one.is_in("\n".join(page.text for page in found.pages))))
        rows += await table.rows()
    return rows


async def extract_sentences(setup: Setup) -> list[Row]:
    """Return recall and None by rules, and by the rules with a generator, for each way to ask it."""
    asked = (*setup.answerable, *setup.unanswerable)
    plain = [await _extracted(setup, one, None) for one in asked]
    rows: list[Row] = []
    for way in WAYS:
        table = Table("extract", setup)
        if not can_ask(table.watched, way):
            rows.append(Row("extract", f"{way}: answers held", len(asked), note="it cannot be asked so"))
            continue
        held = table.figure(f"{way}: answers in the best {BUDGET} tokens")
        nothing = table.figure(f"{way}: None where nothing answers")
        something = table.figure(f"{way}: None where pages answer")
        by_rules = iter(plain)
        async for one in table.each(asked):
            by_model = await _extracted(setup, one, Asking(table.watched, way, setup.seconds))
            none = something if one.answers else nothing
            for found, best, silent in (
                (next(by_rules), held.rules, none.rules),
                (by_model, held.model, none.model),
            ):
                best.extend([float(one.is_in(_best(found)))] if one.answers else ())
                silent.append(float(found.verdict == "none"))
        rows += await table.rows()
    return rows


async def _extracted(setup: Setup, one: Asked, asking: Asking | None) -> Reading:
    documents = setup.library.nearest(one.question, first=one.pages)
    return await extract(one.question, documents, reader=setup.reader, asking=asking)


def _best(found: Reading) -> str:
    """Return the best units of `BUDGET` tokens; nothing where the verdict is none."""
    kept: list[str] = []
    used = 0
    places = found.places if found.verdict != "none" else []
    for row in np.argsort(-found.values, kind="stable").tolist() if places else ():
        used += count_tokens(places[row][1].text) + 1
        if used > BUDGET:
            break
        kept.append(places[row][1].text)
    return "\n".join(kept)


async def parse_requests(setup: Setup) -> list[Row]:
    """Return how well queries by rules and by the generator find the pages that answer."""
    table = Table("parse", setup)
    right = table.figure("pages that answer among the first 5")
    recent = table.figure("requests with a query for recent pages only")
    taken = table.figure("requests that the model parsed, not the rules for it")
    parser = Parser(table.watched, None, setup.seconds)
    async for one in table.each(setup.answerable):
        by_rules = parse_request(one.question, today=setup.today)
        by_model = await parse(one.question, parser, today=setup.today)
        taken.model.append(float(by_model.made_by == "model"))
        for parsed, found, narrowed in (
            (by_rules, right.rules, recent.rules),
            (by_model, right.model, recent.model),
        ):
            narrowed.append(float(any(query.freshness != "any" for query in parsed.queries)))
            found.append(await in_thread(_found, setup, parsed, one.pages))
    return await table.rows()


def _found(setup: Setup, parsed: ParsedRequest, pages: tuple[str, ...]) -> float:
    """Share of `pages` among the first documents by all queries together."""
    count = len(setup.library.names)
    orders = []
    for query in parsed.queries:
        scores = setup.library.index.scores(query.text)
        orders.append([i for i in sorted(range(count), key=lambda i: -float(scores[i])) if scores[i] > 0])
    fused = reciprocal_rank_fusion(orders, count)
    best = sorted(range(count), key=lambda i: -float(fused[i]))[:5]
    return sum(setup.library.names[i] in pages for i in best) / max(1, min(5, len(pages)))


async def answer_questions(setup: Setup) -> list[Row]:
    """Return whether the facts stand in the evidence (rules) and in the answer written from it, and its support."""
    table = Table("answer", setup)
    facts = table.figure("all facts in the evidence (rules), in the answer (model)")
    supported = table.figure("sentences that the passages they cite bear out")
    silent = table.figure("None where nothing answers")
    writing = Writing(table.watched, None, setup.seconds, setup.today)
    async for one in table.each((*setup.answerable, *setup.unanswerable)):
        documents = setup.library.nearest(one.question, first=one.pages)
        reading = await _extracted(setup, one, None)
        shown = await in_thread(assemble, documents, reading, max_tokens=EVIDENCE, mark=new_mark())
        answer = await write_answer(one.question, shown.evidence, shown.shown.labels, writing)
        if one.answers:
            facts.rules.append(float(one.is_in("\n".join(passage.text for passage in shown.evidence))))
            facts.model.append(float(one.is_in(" ".join(statement.text for statement in answer.statements))))
            supported.model += [float(statement.supported) for statement in answer.statements]
        else:
            silent.rules.append(float(reading.verdict == "none"))
            silent.model.append(float(not answer.statements and not answer.failure))
    return await table.rows()


@dataclass(frozen=True, slots=True)
class Cut:
    """How well some boundaries agree with the true ones."""

    pk: float
    """Share of windows of half a true segment whose ends are wrongly taken for one segment, or for two; 0 is best."""
    f1: float
    """Of boundaries at exactly the true places."""
    count: int
    """Boundaries found."""


def agreement(found: Sequence[tuple[int, int]], true: Sequence[tuple[int, int]]) -> Cut:
    """Return how well the ranges `found` agree with `true`, both [start, end) and covering the same n > 1 items."""
    n = true[-1][1]
    ours, theirs = (np.repeat(range(len(ranges)), [b - a for a, b in ranges]) for ranges in (found, true))
    window = min(n - 1, max(1, round(n / len(true) / 2)))
    wrong = (ours[:-window] == ours[window:]) != (theirs[:-window] == theirs[window:])
    cuts, truth = {start for start, _ in found[1:]}, {start for start, _ in true[1:]}
    both = len(cuts) + len(truth)
    return Cut(float(np.mean(wrong)), 2 * len(cuts & truth) / both if both else 1.0, len(cuts))


async def find_boundaries(setup: Setup) -> list[Row]:
    """Return Pk and F1 of each rule over the generator's margins, beside the partition over embeddings.

    On paragraphs of different pages strung together, so that the true boundaries are known; without bounds on a
    segment's length, so that the rules are measured alone.
    """
    table = Table("segment", setup)
    judge = judge_of(table.watched, store=None, seconds=math.inf)
    made = strung(setup.library.documents, min(setup.limit, 6))
    if judge is None:
        return [Row("segment", "Pk", len(made), note=f"{table.watched.name} lists no probabilities")]
    figures = {rule: (table.figure(f"{rule}: Pk, low is good"), table.figure(f"{rule}: F1")) for rule in RULES}
    async for parts in table.each(made):
        texts = [text for part in parts for text in part]
        truth = list(pairwise(np.cumsum([0, *map(len, parts)]).tolist()))
        costs = [count_tokens(text) + 1 for text in texts]
        if setup.embedder is not None:
            vectors = await setup.embedder.embed(texts, kind="passage")
            by_vectors = agreement(partition(vectors, costs, minimum=0, maximum=sum(costs)), truth)
            for pk, f1 in figures.values():
                pk.rules.append(by_vectors.pk)
                f1.rules.append(by_vectors.f1)
        try:
            margins = await judge.margins(texts)
        except ModelError:
            # `watched` has counted it; the row tells how many and why.
            continue
        for rule, (pk, f1) in figures.items():
            cut = cut_by_margins(margins, costs, rule=rule, minimum=0, maximum=sum(costs))
            by_margins = agreement(cut, truth)
            pk.model.append(by_margins.pk)
            f1.model.append(by_margins.f1)
    return await table.rows()


async def write_summaries(setup: Setup) -> list[Row]:
    """Return what of written summaries the checks keep, and how near both kinds lie to what they summarise."""
    table = Table("summarise", setup)
    kept = table.figure("summaries of which the checks leave a sentence")
    sentences = table.figure("sentences that the checks leave")
    near = table.figure("cosine to the middle of what is summarised")
    options = TreeOptions()
    clusters: list[tuple[list[str], str]] = []
    longest = sorted(setup.library.documents, key=lambda document: -len(document.text))
    for document in longest[: max(1, setup.limit // 4)]:
        tree = await build_tree([document], embedder=setup.embedder, options=options, store=None)
        clusters += [([tree.nodes[i].text for i in node.children], node.text) for node in tree.nodes if node.layer == 1]
    async for texts, extracted in table.each(some(clusters, setup.limit)):
        try:
            written = (await write_summary(Writer(table.watched), texts, max_tokens=options.summary_tokens)).text
        except ModelError:
            # `watched` has counted it.
            continue
        said = len(split_sentences(" ".join(table.watched.replies[-1].split())))
        kept.rules.append(1.0)
        kept.model.append(float(bool(written)))
        sentences.rules += [1.0] if said else []
        sentences.model += [len(split_sentences(written)) / said] if said else []
        if setup.embedder is not None and written:
            vectors = await setup.embedder.embed([extracted, written, *texts], kind="passage")
            centre = vectors[2:].mean(axis=0)
            for values, vector in ((near.rules, vectors[0]), (near.model, vectors[1])):
                values.append(float(vector @ centre / max(float(np.linalg.norm(centre)), 1e-9)))
    return await table.rows()


class _Chunks(NamedTuple):
    """The chunks of one document: texts, forms that a generator wrote, and vectors [n, d] of both."""

    texts: list[str]
    forms: list[str]
    plain: NDArray[np.float32]
    formed: NDArray[np.float32]
    """Of the text where there is no form."""


async def write_forms(setup: Setup) -> list[Row]:
    """Return how high the chunk with the answer ranks by its text alone and with written forms beside it."""
    what = "rank of the chunk with the answer, mean of 1/rank"
    embedder = setup.embedder
    if embedder is None:
        return [Row("density", what, note="it needs an embedder")]
    table = Table("density", setup)
    ranks, written = table.figure(what), table.figure("chunks with a form that the checks leave")
    pages = dict(zip(setup.library.names, setup.library.documents, strict=True))
    ready: dict[str, _Chunks | None] = {}
    async for one in table.each([one for one in setup.answerable if len(one.pages) == 1]):
        name = one.pages[0]
        if name not in ready:
            chunks = ready[name] = await _chunks(setup, embedder, table.watched, pages[name])
            written.model += [float(bool(form)) for form in chunks.forms] if chunks else []
        if (chunks := ready[name]) is not None:
            ranks.rules += await _rank(embedder, one, chunks, with_forms=False)
            ranks.model += await _rank(embedder, one, chunks, with_forms=True)
    return await table.rows()


async def _chunks(setup: Setup, embedder: Embedder, watched: Watched, document: Document) -> _Chunks | None:
    """Return the chunks of a document with their forms; None where there is one only, or the model failed."""
    sentences = main_sentences(document)
    ranges = await segment(sentences, embedder=embedder, minimum=50, maximum=200)
    parts = [[sentence.text for sentence in sentences[start:end]] for start, end in ranges]
    if len(parts) <= 1:
        return None
    idms = Idms(IdmsOptions(density=True), generator=watched, embedder=embedder, form_seconds=setup.seconds)
    forms = await idms.forms(parts, language=document.page.language[:2].lower())
    texts = [" ".join(part) for part in parts]
    read = [form or text for form, text in zip(forms, texts, strict=True)]
    plain = await embedder.embed(texts, kind="passage")
    return _Chunks(texts, forms, plain, await embedder.embed(read, kind="passage"))


async def _rank(embedder: Embedder, one: Asked, chunks: _Chunks, *, with_forms: bool) -> Sequence[float]:
    """Return 1 / rank of the first chunk that holds a fact of the answer, nothing where none does."""
    facts = [Asked("", (fact,), ()) for fact in one.answers]
    gold = [i for i, text in enumerate(chunks.texts) if any(fact.is_in(text) for fact in facts)]
    if not gold:
        return ()
    pairs = zip(chunks.texts, chunks.forms, strict=True)
    words = BM25([f"{text} {form}" if with_forms else text for text, form in pairs]).scores(one.question)
    vector = (await embedder.embed([one.question], kind="query"))[0]
    likeness = np.asarray((chunks.formed if with_forms else chunks.plain) @ vector, dtype=np.float32)
    order = np.argsort(-blend([words, likeness]), kind="stable").tolist()
    return (1 / (1 + min(order.index(i) for i in gold)),)


STEPS: Final[dict[str, Callable[[Setup], Awaitable[list[Row]]]]] = {
    "prune": prune_by_paths,
    "extract": extract_sentences,
    "parse": parse_requests,
    "answer": answer_questions,
    "segment": find_boundaries,
    "density": write_forms,
    "summarise": write_summaries,
}
