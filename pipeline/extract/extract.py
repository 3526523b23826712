"""EXTRACTOR: the sentences that answer, or None (zero-index §4.1), by rules and small models, or with one that writes.

Reads as its numbered steps. Not for: filling a budget (`pipeline/evidence/assemble.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import anyio
import numpy as np

from errors import ModelError
from models.protocols import Embedder, Generator, Reranker
from pipeline.documents import Block, Document, Extraction, Score, ScoredSentence, ScoreMaker, Sentence
from pipeline.documents import Verdict as Word
from pipeline.extract.ask import ASK_FROM, Candidate, Chosen, Way, agree, ask, lifted
from pipeline.extract.choosing import lift_rows
from pipeline.extract.gate import Verdict, judge
from pipeline.extract.lexical import Floats, PageText
from pipeline.extract.score import score_sentences
from pipeline.extract.tag import tag_sentences
from pipeline.text.frame import one_line
from pipeline.trace import traced
from pipeline.work import in_thread

MOST: Final = 200
"""Sentences that an extraction holds; more than any budget of a tool can show."""
_FURNITURE: Final = 0.6
"""Factor on the score of what stands in navigation, footers and link lists."""
_HEADING: Final = 0.7
"""Factor on a heading's own score: it repeats the request's words and answers nothing."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A model that writes, and how it is asked."""

    generator: Generator
    way: Way
    seconds: float
    """After so long the answer goes out without it."""


@traced("extract")
async def extract(
    request: str,
    documents: Sequence[Document],
    *,
    embedder: Embedder | None,
    reranker: Reranker | None = None,
    asking: Asking | None = None,
) -> Extraction:
    """Return the sentences of `documents` that answer `request`, best first, or none.

    Args:
        request: The question, self-contained.
        documents: Pages to read; all their sentences compete with each other.
        embedder: None scores by words alone; so does a script that it does not read.
        reranker: Orders the best sentences anew where given.
        asking: A model that reads the best sentences and names those that answer. One that fails or is too slow is
            left out, and the reason says so.

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
    state: Word = "none" if not verdict.answered else "answered" if verdict.sure else "unsure"
    reason = verdict.reason
    # 4. Rows that "the last" or "the lowest" points at
    values = await in_thread(lift_rows, request, documents, tagged, scored.values)
    # 5. A model reads the best sentences, unless the pages are about something else
    if asking is not None and verdict.confidence >= ASK_FROM:
        state, reason, values = await _with_model(
            request, asking, verdict, _candidates(documents, tagged, values), values
        )
    if state == "none":
        return Extraction("none", reason, verdict.confidence, (), tuple(tagged))
    # 6. Best first
    return Extraction(state, reason, verdict.confidence, _ordered(tagged, values, scored.made_by), tuple(tagged))


async def _with_model(
    request: str, asking: Asking, verdict: Verdict, candidates: Sequence[Candidate], values: Floats
) -> tuple[Word, str, Floats]:
    """Return verdict, reason and scores after the model was asked; the gate's own where it gave no answer in time."""
    state: Word = "none" if not verdict.answered else "answered" if verdict.sure else "unsure"
    chosen: Chosen | None = None
    failure = f"no answer of the model within {asking.seconds:.0f} s"
    with anyio.move_on_after(asking.seconds):
        try:
            chosen = await ask(request, candidates, asking.generator, way=asking.way)
        except ModelError as error:
            failure = f"the model failed: {one_line(str(error))}"
    said = verdict.reason.removesuffix(".")
    if chosen is None:
        return state, f"{said}; {failure}.", values
    state, clause = agree(verdict, chosen, values)
    return state, f"{said}; {clause}.", lifted(values, chosen)


def _candidates(documents: Sequence[Document], tagged: Sequence[Sequence[Sentence]], values: Floats) -> list[Candidate]:
    """Return the best sentences that are no headings, best first; a few more than are shown, for those too long."""
    owners = [(place, sentence) for place, sentences in enumerate(tagged) for sentence in sentences]
    found: list[Candidate] = []
    for row in np.argsort(-values, kind="stable")[:MOST].tolist():
        place, sentence = owners[row]
        if documents[place].blocks[sentence.block].kind != "heading":
            found.append(Candidate(row, documents[place].page.title, sentence))
    return found


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
    texts = [sentence.text for sentence in sentences]
    tabular = any(document.blocks[sentence.block].kind == "row" for sentence in sentences)
    return PageText(texts, headings, priors, document.page.language, tabular)


def _lead(block: Block) -> str:
    """An item's lead-in or a row's caption; a row's header stands in its own text already."""
    first = block.lead.partition("\n")[0]
    return "" if block.kind == "row" and " | " in first else first


def _tagged(documents: Sequence[Document]) -> list[tuple[Sentence, ...]]:
    return [tag_sentences(document) for document in documents]


def _ordered(tagged: Sequence[Sequence[Sentence]], values: Floats, made_by: ScoreMaker) -> tuple[ScoredSentence, ...]:
    owners = [(place, sentence) for place, sentences in enumerate(tagged) for sentence in sentences]
    best = np.argsort(-values, kind="stable")[:MOST]
    found: list[ScoredSentence] = []
    for row in best.tolist():
        document, sentence = owners[row]
        score = Score(round(float(values[row]), 4), made_by)
        found.append(ScoredSentence(document, sentence, score))
    return tuple(found)
