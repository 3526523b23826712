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

from cli.measure.library import Asked, Row, Setup, figure, some, strung
from cli.measure.watched import Watched
from errors import ModelError
from models.protocols import Embedder, tree_scorer
from pipeline.answer import Statement, Writing, write_answer
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
    rows = []
    asked = setup.answerable
    for method, what in METHODS.items():
        watched = Watched(setup.generator)
        kept: dict[bool, list[float]] = {False: [], True: []}
        if tree_scorer(watched) is None:
            rows.append(Row("prune", what, len(asked), note=f"{watched.name} scores no paths: set a GGUF file"))
            continue
        options = PruneOptions(BUDGET, "html", method=method)
        for number, one in enumerate(asked):
            documents = setup.library.nearest(one.question, first=one.pages, count=1)
            for scored in (False, True):
                scorer = path_scorer(watched, documents, seconds=setup.seconds) if scored else None
                found = await prune(
                    documents,
                    one.question,
                    options=options,
                    reader=setup.reader,
                    embedder=setup.embedder,
                    finer=scorer,
                )
                kept[scored].append(float(one.is_in("\n".join(page.text for page in found.pages))))
            await setup.report(number + 1, len(asked), f"prune: {method}")
        rows.append(figure("prune", what, kept[False], kept[True]).spending(await watched.spent()))
    return rows


async def extract_sentences(setup: Setup) -> list[Row]:
    """Return recall and None by rules, and by the rules with a generator, for each way to ask it."""
    answerable, unanswerable = setup.answerable, setup.unanswerable
    plain = [await _extracted(setup, one, None) for one in (*answerable, *unanswerable)]
    rows: list[Row] = []
    for way in WAYS:
        watched = Watched(setup.generator)
        if not can_ask(watched, way):
            rows.append(Row("extract", f"{way}: answers held", len(answerable), note="it cannot be asked so"))
            continue
        asked = []
        for number, one in enumerate((*answerable, *unanswerable)):
            asked.append(await _extracted(setup, one, Asking(watched, way, setup.seconds)))
            await setup.report(number + 1, len(plain), f"extract: {way}")
        recall = [
            [float(one.is_in(_best(found))) for one, found in zip(answerable, run, strict=False)]
            for run in (plain, asked)
        ]
        what = f"{way}: answers in the best {BUDGET} tokens"
        rows.append(figure("extract", what, *recall).spending(await watched.spent()))
        cut = len(answerable)
        for what, part in (("None where nothing answers", slice(cut, None)), ("None where pages answer", slice(cut))):
            nones = [[float(found.verdict == "none") for found in run[part]] for run in (plain, asked)]
            rows.append(figure("extract", f"{way}: {what}", *nones))
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
    watched = Watched(setup.generator)
    asked = setup.answerable
    texts = [one.question for one in asked]
    parser = Parser(watched, None, setup.seconds)
    found: dict[bool, list[float]] = {False: [], True: []}
    narrowed: dict[bool, list[float]] = {False: [], True: []}
    taken: list[float] = []
    for number, text in enumerate(texts):
        by_rules = parse_request(text, today=setup.today)
        by_model = await parse(text, parser, today=setup.today)
        taken.append(float(by_model.made_by == "model"))
        for modelled, parsed in ((False, by_rules), (True, by_model)):
            narrowed[modelled].append(float(any(query.freshness != "any" for query in parsed.queries)))
            found[modelled].append(await in_thread(_found, setup, parsed, asked[number].pages))
        await setup.report(number + 1, len(texts), "parse")
    what = "pages that answer among the first 5"
    return [
        figure("parse", what, found[False], found[True]).spending(await watched.spent()),
        figure("parse", "requests with a query for recent pages only", narrowed[False], narrowed[True]),
        figure("parse", "requests that the model parsed, not the rules for it", None, taken),
    ]


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
    watched = Watched(setup.generator)
    writing = Writing(watched, None, setup.seconds, setup.today)
    asked = (*setup.answerable, *setup.unanswerable)
    quoted: list[float] = []
    written: list[float] = []
    silent: dict[bool, list[float]] = {False: [], True: []}
    statements: list[Statement] = []
    for number, one in enumerate(asked):
        documents = setup.library.nearest(one.question, first=one.pages)
        reading = await _extracted(setup, one, None)
        shown = await in_thread(assemble, documents, reading, max_tokens=EVIDENCE, mark=new_mark())
        answer = await write_answer(one.question, shown.evidence, shown.shown.labels, writing)
        if one.answers:
            quoted.append(float(one.is_in("\n".join(passage.text for passage in shown.evidence))))
            written.append(float(one.is_in(" ".join(statement.text for statement in answer.statements))))
            statements.extend(answer.statements)
        else:
            silent[False].append(float(reading.verdict == "none"))
            silent[True].append(float(not answer.statements and not answer.failure))
        await setup.report(number + 1, len(asked), "answer")
    what = "all facts in the evidence (rules), in the answer (model)"
    supported = [float(statement.supported) for statement in statements]
    return [
        figure("answer", what, quoted, written).spending(await watched.spent()),
        figure("answer", "sentences that the passages they cite bear out", None, supported),
        figure("answer", "None where nothing answers", silent[False], silent[True]),
    ]


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
    watched = Watched(setup.generator)
    judge = judge_of(watched, store=None, seconds=math.inf)
    made = strung(setup.library.documents, min(setup.limit, 6))
    if judge is None:
        return [Row("segment", "Pk", len(made), note=f"{watched.name} lists no probabilities")]
    by_margins: dict[str, list[Cut]] = {name: [] for name in RULES}
    by_vectors: list[Cut] = []
    for number, parts in enumerate(made):
        texts = [text for part in parts for text in part]
        truth = list(pairwise(np.cumsum([0, *map(len, parts)]).tolist()))
        costs = [count_tokens(text) + 1 for text in texts]
        if setup.embedder is not None:
            vectors = await setup.embedder.embed(texts, kind="passage")
            by_vectors.append(agreement(partition(vectors, costs, minimum=0, maximum=sum(costs)), truth))
        try:
            margins = await judge.margins(texts)
        except ModelError:
            # `watched` has counted it; the row tells how many and why.
            continue
        for rule in RULES:
            cut = cut_by_margins(margins, costs, rule=rule, minimum=0, maximum=sum(costs))
            by_margins[rule].append(agreement(cut, truth))
        await setup.report(number + 1, len(made), "segment")
    rows: list[Row] = []
    for name, cuts in by_margins.items():
        rows += [
            figure("segment", f"{name}: Pk, low is good", [cut.pk for cut in by_vectors], [cut.pk for cut in cuts]),
            figure("segment", f"{name}: F1", [cut.f1 for cut in by_vectors], [cut.f1 for cut in cuts]),
        ]
    return [rows[0].spending(await watched.spent()), *rows[1:]]


async def write_summaries(setup: Setup) -> list[Row]:
    """Return what of written summaries the checks keep, and how near both kinds lie to what they summarise."""
    watched = Watched(setup.generator)
    writer = Writer(watched)
    options = TreeOptions()
    clusters: list[tuple[list[str], str]] = []
    longest = sorted(setup.library.documents, key=lambda document: -len(document.text))
    for document in longest[: max(1, setup.limit // 4)]:
        tree = await build_tree([document], embedder=setup.embedder, options=options, store=None)
        clusters += [([tree.nodes[i].text for i in node.children], node.text) for node in tree.nodes if node.layer == 1]
    chosen = some(clusters, setup.limit)
    kept: list[float] = []
    sentences: list[float] = []
    near: dict[bool, list[float]] = {False: [], True: []}
    for number, (texts, extracted) in enumerate(chosen):
        try:
            written = (await write_summary(writer, texts, max_tokens=options.summary_tokens)).text
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
    what = "summaries of which the checks leave a sentence"
    return [
        figure("summarise", what, [1.0] * len(kept), kept).spending(await watched.spent()),
        figure("summarise", "sentences that the checks leave", [1.0] * len(sentences), sentences),
        figure("summarise", "cosine to the middle of what is summarised", near[False], near[True]),
    ]


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
    watched = Watched(setup.generator)
    pages = dict(zip(setup.library.names, setup.library.documents, strict=True))
    asked = [one for one in setup.answerable if len(one.pages) == 1]
    ranks: dict[bool, list[float]] = {False: [], True: []}
    written: list[float] = []
    ready: dict[str, _Chunks | None] = {}
    for number, one in enumerate(asked):
        name = one.pages[0]
        if name not in ready:
            chunks = ready[name] = await _chunks(setup, embedder, watched, pages[name])
            written += [float(bool(form)) for form in chunks.forms] if chunks else []
        if (chunks := ready[name]) is not None:
            for with_forms in (False, True):
                ranks[with_forms] += await _rank(embedder, one, chunks, with_forms=with_forms)
        await setup.report(number + 1, len(asked), "density")
    return [
        figure("density", what, ranks[False], ranks[True]).spending(await watched.spent()),
        figure("density", "chunks with a form that the checks leave", None, written),
    ]


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
