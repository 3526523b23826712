"""Data that teaches a generator the summaries of a tree: central sentences taken over,
nothing invented (RAPTOR §3).

A sample is the prompt that `papers/raptor/summarise.py` asks with over some
paragraphs of one article, and the extractive summary of these. Its rejected twin
differs by one number or name that no paragraph has, which is what the product cuts a
written summary for (App. E): pairs for preference optimisation. Not for: training
itself (`lora.py`)."""

import gzip
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from papers.raptor.extract import Quotable, extract_summary
from papers.raptor.summarise import WORDS_A_TOKEN, supported_part
from papers.recipes.sample import Part, Sample
from pipeline.raptor.tree import SummaryQuote
from pipeline.reading.bm25 import rarities
from pipeline.text.tokens import count_tokens
from pipeline.text.words import index_terms
from prompts import load
from train.reader.data import JUDGED, SHARED, Split, split_of

PROMPT: Final = "tree_summary"
SOURCES: Final = ("new_wiki", "squad2", "fairy")
"""Whole articles and tales, CC BY 4.0, CC BY-SA 4.0, Apache-2.0; the others are single
paragraphs or tables."""
CHILDREN: Final = (2, 3, 4)
"""Paragraphs under one summary."""
TOKENS: Final = 60
CONTEXT: Final = 240
"""Tokens of a summary and of its source (the product: 130 and about 500, at twice the
time)."""
_MARK: Final = re.compile(r"\d+(?:[.,]\d+)*|(?<=[a-z,] )[A-Z][a-z]{2,}")
"""Numbers, and words with a capital inside a sentence."""


@dataclass(frozen=True, slots=True)
class SummarySample:
    """A prompt with a summary that its paragraphs bear out, and one that they do
    not."""

    article: str
    source: str
    prompt: str
    summary: str
    rejected: str
    """Empty where the summary has no number or name that could be wrong."""


def summary_answers(part: Part, seed: int) -> list[Sample]:
    """Return the samples of a part."""
    return [
        Sample(one.prompt, one.summary, source=one.source)
        for one in summary_samples(part, seed=seed)
    ]


def summary_pairs(part: Part, seed: int) -> list[Sample]:
    """Return those samples of a part that have a summary with an invention beside them,
    for DPO."""
    made = summary_samples(part, seed=seed)
    return [
        Sample(one.prompt, one.summary, one.rejected, one.source)
        for one in made
        if one.rejected
    ]


def summary_samples(
    split: Split, *, tokens: int = TOKENS, context: int = CONTEXT, seed: int = 0
) -> Iterator[SummarySample]:
    """Yield a sample for each run of paragraphs of the articles of a split, in their
    order.

    Args:
        split: Articles are parted by their name, as sites are.
        tokens: Most tokens of a summary, by `count_tokens`.
        context: Most tokens of its paragraphs together.
        seed: Of what is drawn; a sample depends on it and its own article alone.
    """
    rows = list(articles_of(split))
    marks = {
        mark
        for row in rows
        for part in row["paras"]
        for text in part
        for mark in _MARK.findall(text)
    }
    for row in rows:
        rng = random.Random(f"{seed}:{row['id']}")
        terms = [
            Counter(term for text in part for term in index_terms(text))
            for part in row["paras"]
        ]
        idf = rarities(terms)
        waiting = list(row["paras"])
        while len(waiting) >= CHILDREN[0]:
            count = rng.choice(CHILDREN)
            while (
                count > CHILDREN[0] and count_tokens(_joined(waiting[:count])) > context
            ):
                count -= 1
            parts, waiting = waiting[:count], waiting[count:]
            if count_tokens(shown := _joined(parts)) > context:
                continue
            sentences = [
                Quotable(SummaryQuote(leaf, place), text, index_terms(text), 0.0)
                for leaf, part in enumerate(parts)
                for place, text in enumerate(part)
            ]
            summary = extract_summary(sentences, idf, max_tokens=tokens).text
            asked = load(PROMPT).fill(
                words=str(round(tokens * WORDS_A_TOKEN)), context=shown
            )
            rejected = _with_invention(summary, shown, sorted(marks), rng)
            yield SummarySample(row["id"], row["src"], asked, summary, rejected)


def _joined(parts: Sequence[Sequence[str]]) -> str:
    return "\n\n".join(" ".join(part) for part in parts)


def _with_invention(
    summary: str, shown: str, marks: Sequence[str], rng: random.Random
) -> str:
    """Return `summary` with one number or name replaced by another of its kind that
    `shown` does not bear out."""
    places = list(_MARK.finditer(summary))
    if not places:
        return ""
    place = rng.choice(places)
    kind = place.group()[0].isdigit()
    other = rng.choice([mark for mark in marks if mark[0].isdigit() == kind])
    changed = summary[: place.start()] + other + summary[place.end() :]
    return (
        changed
        if supported_part(changed, shown, max_tokens=len(changed)).unsupported
        else ""
    )


def articles_of(split: Split) -> Iterator[dict[str, Any]]:
    """Yield the articles of a split, without the paragraphs that judge us."""
    with gzip.open(SHARED / "train" / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["src"] in SOURCES and split_of(row["id"]) == split:
                known = [
                    part
                    for part in row["paras"]
                    if not any(text.startswith(JUDGED) for text in part)
                ]
                yield row | {"paras": known}


if __name__ == "__main__":
    from papers.recipes.lora import run_recipe

    sys.exit(run_recipe({"sft": summary_answers, "dpo": summary_pairs}))
