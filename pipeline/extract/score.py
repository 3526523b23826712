"""Scoring sentences against a request without a model that writes: the blend of notes/zeroindex §0.8.

    blend = lexical (sentence under its headings + best passage around it, 0..1)
          + cosine of the embedder (0..1, left out where it does not read the script)
          + lead (the first sentences of a page) then priors, the second step, the reranker where there is one

Works on plain sentence lists, so that it can be measured on any data set. Not for: saying that nothing answers
(`pipeline/extract/gate.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.protocols import Embedder, Reranker
from pipeline.documents import ScoreMaker
from pipeline.extract.lexical import Floats, PageText, TermIndex
from pipeline.rank.fuse import unit_range
from pipeline.text.tokens import count_tokens, cut_to_tokens
from pipeline.work import in_thread

EMBED_TOKENS: Final = 12_000
"""Most tokens of sentences that one call embeds, best lexical score first: about 1.2 CPU-seconds of MiniLM."""
EMBED_LONGEST: Final = 96
"""Tokens of one sentence with its headings that the embedder sees; longer units are cut."""
RERANKED: Final = 40
"""Sentences that a reranker sees: these hold .97 to 1.0 of the evidence on pages of paragraphs (notes/zeroindex §5)."""
_LEAD: Final = 0.2
_LEAD_SENTENCES: Final = 12
"""The lead falls from `_LEAD` at the first sentence to nothing at the twelfth."""
_SECOND_STEP: Final = 0.125
"""Weight of the best sentence's own words, doubled with an embedder, whose scores reach twice as far: HotpotQA
R-precision .51 -> .56; other sets move by .02 at most (.25 without an embedder costs Russian .06)."""
_SECOND_TERMS: Final = 12
"""Words of the best sentence that join the request, rarest first."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of all sentences of all pages, numbered through, and what they were made of."""

    values: Floats
    """Final scores [size], at least 0, higher is better."""
    made_by: ScoreMaker
    lexical: Floats
    """Lexical part [size], 0..1."""
    cosines: Floats | None
    """Cosine with the request [size], NaN where a sentence was not embedded; None without an embedder."""
    index: TermIndex


async def score_sentences(
    request: str, pages: Sequence[PageText], *, embedder: Embedder | None, reranker: Reranker | None = None
) -> Scored:
    """Score every sentence of `pages` against `request`.

    Args:
        request: The question as the user put it.
        pages: Sentences with their headings, page by page.
        embedder: Left out where it does not read the request's script, and for pages whose script it does not read.
        reranker: Orders the best `RERANKED` anew where given.

    Raises:
        ModelError: Embedder or reranker failed.
    """
    # 1. Words: every sentence under its headings, and the passages around it
    index = await in_thread(TermIndex, pages)
    lexical = await in_thread(lexical_scores, request, index)
    # 2. Meaning: the best of them by the embedder
    cosines = await _cosines(request, pages, lexical, embedder)
    # 3. Together; then the best sentence joins the request, for what only it names
    values = (blended(lexical, cosines) + lead_scores(index)) * _priors(pages)
    weight = _SECOND_STEP if cosines is None else 2 * _SECOND_STEP
    values += weight * await in_thread(_second_step, request, pages, values, index)
    made_by: ScoreMaker = "bm25" if cosines is None else "blend"
    # 4. A reranker has the last word on the best
    if reranker is not None and index.size:
        values = await _reranked(request, pages, values, reranker)
        made_by = "rerank"
    return Scored(values, made_by, lexical, cosines, index)


def lexical_scores(request: str, index: TermIndex) -> Floats:
    """Return the lexical part [size], 0..1."""
    return _lexical(index, *index.counts(index.terms(request)))


def _second_step(request: str, pages: Sequence[PageText], values: Floats, index: TermIndex) -> Floats:
    """Return what the best sentence's words find [size], 0..1: bridge questions name their second half only there."""
    if not index.size:
        return np.zeros_like(values)
    best = int(values.argmax())
    page = int(np.searchsorted(index.page_starts, best, side="right")) - 1
    asked = index.terms(request)
    sentence = pages[page].sentences[best - int(index.page_starts[page])]
    terms = [term for term in index.terms(sentence, language=index.languages[page]) if term not in asked]
    own, above = index.counts(terms)
    counts = own + above
    weights = index.idf(counts)
    weights[np.argsort(-weights, kind="stable")[_SECOND_TERMS:]] = 0.0
    found = index.sentence_scores(counts, weights)
    found[best] = 0.0
    return _over_best(found)


def _lexical(index: TermIndex, own: Floats, above: Floats) -> Floats:
    sentence = index.sentence_scores(own + above)
    passage = index.passage_scores(own, above)
    return unit_range(_over_best(sentence) + _over_best(passage))


def _over_best(scores: Floats) -> Floats:
    best = float(scores.max()) if len(scores) else 0.0
    return scores / best if best > 0 else scores


def lead_scores(index: TermIndex) -> Floats:
    """Return the lead [size]: `_LEAD` for the first sentence of a page, falling to 0 at the twelfth."""
    scores = np.zeros(index.size, dtype=np.float32)
    fall = _LEAD * (1 - np.arange(_LEAD_SENTENCES, dtype=np.float32) / (_LEAD_SENTENCES - 1))
    for low, high in zip(index.page_starts[:-1], index.page_starts[1:], strict=True):
        n = min(_LEAD_SENTENCES, int(high - low))
        scores[low : low + n] = fall[:n]
    return scores


def blended(lexical: Floats, cosines: Floats | None) -> Floats:
    """Return lexical plus scaled cosine; where a page has no cosine at all its lexical score counts twice."""
    if cosines is None or np.isnan(cosines).all():
        return lexical
    known = ~np.isnan(cosines)
    scaled = np.zeros_like(lexical)
    scaled[known] = unit_range(cosines[known])
    return lexical + scaled


def titled(page: PageText, place: int) -> str:
    """A sentence with its headings in front, as the embedder and the reranker read it."""
    above = page.headings[place]
    return f"{above}: {page.sentences[place]}" if above else page.sentences[place]


async def _cosines(
    request: str, pages: Sequence[PageText], lexical: Floats, embedder: Embedder | None
) -> Floats | None:
    if embedder is None or not len(lexical) or not embedder.reads(request):
        return None
    rows, texts = await in_thread(_to_embed, pages, lexical, embedder)
    if not rows:
        return None
    query = await embedder.embed([request], kind="query")
    vectors = await embedder.embed(texts, kind="passage")
    cosines = np.full(len(lexical), np.nan, dtype=np.float32)
    cosines[rows] = (vectors * query[0]).sum(axis=1)
    return cosines


def _to_embed(pages: Sequence[PageText], lexical: Floats, embedder: Embedder) -> tuple[list[int], list[str]]:
    """Rows and texts of the sentences worth embedding: pages it reads, best lexical score first, within the budget."""
    owner: list[tuple[PageText, int]] = []
    for page in pages:
        owner += [(page, place) for place in range(len(page.sentences))]
    readable = {id(page): embedder.reads(" ".join(page.sentences[:20])) for page in pages}
    rows: list[int] = []
    texts: list[str] = []
    used = 0
    for row in np.argsort(-lexical, kind="stable").tolist():
        page, place = owner[row]
        if not readable[id(page)]:
            continue
        text = titled(page, place)
        cost = count_tokens(text)
        if cost > EMBED_LONGEST:
            text, cost = cut_to_tokens(text, EMBED_LONGEST), EMBED_LONGEST
        if used + cost > EMBED_TOKENS:
            break
        used += cost
        rows.append(row)
        texts.append(text)
    return rows, texts


def _priors(pages: Sequence[PageText]) -> Floats:
    priors: list[float] = []
    for page in pages:
        priors += list(page.priors) if page.priors else [1.0] * len(page.sentences)
    return np.array(priors, dtype=np.float32)


async def _reranked(request: str, pages: Sequence[PageText], values: Floats, reranker: Reranker) -> Floats:
    """Put the best `RERANKED` above all others, in the reranker's order."""
    texts: list[str] = []
    for page in pages:
        texts += [titled(page, place) for place in range(len(page.sentences))]
    best = np.argsort(-values, kind="stable")[:RERANKED]
    scores = await reranker.score(request, [texts[row] for row in best.tolist()])
    ranked = unit_range(values) * 0.5
    ranked[best] = 0.5 + 0.5 * unit_range(scores)
    return ranked
