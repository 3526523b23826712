"""EXTRACTOR without a model that writes: the sentences that answer, or None (zero-index §4.1).

Reads as its numbered steps. Not for: filling a budget (`pipeline/assemble.py`).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from models.protocols import Embedder, Reranker
from pipeline.documents import Block, Document, Extraction, Score, ScoredSentence, Sentence, Verdict
from pipeline.extract.gate import judge
from pipeline.extract.lexical import PageText
from pipeline.extract.score import Scored, score_sentences
from pipeline.extract.tag import tag_sentences
from pipeline.frame import one_line
from pipeline.work import in_thread

MOST: Final = 200
"""Sentences that an extraction holds; more than any budget of a tool can show."""
_FURNITURE: Final = 0.6
"""Factor on the score of what stands in navigation, footers and link lists."""
_HEADING: Final = 0.7
"""Factor on a heading's own score: it repeats the request's words and answers nothing."""


async def extract(
    request: str, documents: Sequence[Document], *, embedder: Embedder | None, reranker: Reranker | None = None
) -> Extraction:
    """Return the sentences of `documents` that answer `request`, best first, or none.

    Args:
        request: The question, self-contained.
        documents: Pages to read; all their sentences compete with each other.
        embedder: None scores by words alone; so does a script that it does not read.
        reranker: Orders the best sentences anew where given.

    Raises:
        ModelError: Embedder or reranker failed.
    """
    # 1. Tag
    tagged = await in_thread(_tagged, documents)
    if not any(tagged):
        return Extraction("none", "The pages hold no text.", 0.0, ())
    # 2. Score all sentences of all pages together
    pages = [page_text(document, sentences) for document, sentences in zip(documents, tagged, strict=True)]
    scored = await score_sentences(request, pages, embedder=embedder, reranker=reranker)
    # 3. Gate: None where nothing on the pages answers
    verdict = await in_thread(judge, request, scored)
    if not verdict.answered:
        return Extraction("none", verdict.reason, verdict.confidence, (), tuple(tagged))
    # 4. Best first
    state: Verdict = "answered" if verdict.sure else "unsure"
    return Extraction(state, verdict.reason, verdict.confidence, _ordered(tagged, scored), tuple(tagged))


def page_text(document: Document, sentences: Sequence[Sentence]) -> PageText:
    """Return a tagged document as the scorers read it: title, headings and lead-in above each sentence."""
    title = one_line(document.page.title)
    headings: list[str] = []
    priors: list[float] = []
    for sentence in sentences:
        block = document.blocks[sentence.block]
        above = dict.fromkeys(one_line(text) for text in (title, *sentence.heading_path, _lead(block)) if text)
        above.pop(sentence.text, None)
        headings.append(" › ".join(above))
        priors.append((1.0 if block.main else _FURNITURE) * (_HEADING if block.kind == "heading" else 1.0))
    return PageText([sentence.text for sentence in sentences], headings, priors, document.page.language)


def _lead(block: Block) -> str:
    """An item's lead-in or a row's caption; a row's header stands in its own text already."""
    first = block.lead.partition("\n")[0]
    return "" if block.kind == "row" and " | " in first else first


def _tagged(documents: Sequence[Document]) -> list[tuple[Sentence, ...]]:
    return [tag_sentences(document) for document in documents]


def _ordered(tagged: Sequence[Sequence[Sentence]], scored: Scored) -> tuple[ScoredSentence, ...]:
    owners = [(place, sentence) for place, sentences in enumerate(tagged) for sentence in sentences]
    best = np.argsort(-scored.values, kind="stable")[:MOST]
    found: list[ScoredSentence] = []
    for row in best.tolist():
        document, sentence = owners[row]
        score = Score(round(float(scored.values[row]), 4), scored.made_by)
        found.append(ScoredSentence(document, sentence, score))
    return tuple(found)
