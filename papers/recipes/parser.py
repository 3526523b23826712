"""PARSER: requests with the JSON that says what to search for them (zero-index §3.1),
made by rule from questions.

The paper's parser learns to leave unknown words whole, to name the time where it
matters and to make short queries. Requests are real questions of
`../shared/data/train`; names in some are swapped for invented words, some ask for
recent pages, some are two questions in one. What is right is known by how a request was
made. Not for: requests in other languages than English, for which there is nothing to
learn a translation from."""

import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any, Final

from papers.recipes.sample import Part, Sample
from papers.zero_index.parser import PROMPT, needless
from pipeline.question.question import question_word
from pipeline.text.frame import one_line
from pipeline.text.words import find_entities, index_terms, raw_words, words
from prompts import load
from train.reader.data import Question, load_public

RECENT: Final = {
    "day": (
        "{} today",
        "what happened in the last 24 hours: {}",
        "breaking news about {}",
    ),
    "week": (
        "{} this week",
        "news of the last few days on {}",
        "what is new this week with {}",
    ),
    "month": (
        "{} this month",
        "recent news about {}",
        "what changed in the last weeks: {}",
    ),
    "year": ("{} this year", "the latest on {}", "current state of {}", "newest {}"),
}
"""Requests that only recent pages answer, by how recent they must be."""
JOINTS: Final = (", and ", "? And ", ". Also: ", "; ")
SYLLABLES: Final = (
    "ba",
    "bel",
    "cor",
    "dar",
    "fal",
    "gri",
    "jor",
    "kel",
    "lum",
    "mar",
    "nor",
    "quin",
    "ril",
    "sev",
    "tar",
    "wex",
)
NEEDLESS: Final = 20
"""One in so many requests besides needs no search: a greeting, or arithmetic."""
LONGEST: Final = 110
"""Code points of a question; longer ones have a story before them."""


def parser_samples(part: Part, seed: int) -> list[Sample]:
    """Return requests with their JSON; each kind of request is about a quarter of
    them."""
    return [sample for _, sample in parsed_requests(part, seed)]


def parsed_requests(part: Part, seed: int) -> list[tuple[str, Sample]]:
    """Return each request beside its sample."""
    rng = random.Random(f"{seed}:{part}")
    asked = [
        one
        for one in load_public(part).questions
        if one.gold and len(one.question) <= LONGEST
    ]
    rng.shuffle(asked)
    return [
        (request, _sample(request, answer, source, rng))
        for request, answer, source in _requests(asked, rng)
    ]


def _requests(
    asked: Sequence[Question], rng: random.Random
) -> Iterator[tuple[str, dict[str, Any], str]]:
    for one, other in zip(asked[::2], asked[1::2], strict=False):
        if not rng.randrange(NEEDLESS):
            talk = rng.choice(sorted(words("needless", "en"))).capitalize()
            total = f"What is {rng.randrange(2, 999)} {rng.choice('+-*/')} {rng.randrange(2, 99)}?"
            request = rng.choice((talk, total))
            yield request, _answer(request, [], "any", []), "rule"
        kind = rng.randrange(4)
        question, names = _named(one, rng, invented=kind == 1)
        if kind == 2 and names:
            freshness = rng.choice(list(RECENT))
            request = rng.choice(RECENT[freshness]).format(names[0])
            yield request, _answer(request, names[:1], freshness, []), one.source
        elif kind == 3:
            second, others = _named(other, rng, invented=False)
            parts = [f"{text.rstrip('? .')}?" for text in (question, second)]
            request = (
                parts[0][:-1] + rng.choice(JOINTS) + parts[1][0].lower() + parts[1][1:]
            )
            parts[1] = parts[1] if second[0].isupper() else second.rstrip("? .") + "?"
            yield request, _answer(request, [*names, *others], "any", parts), one.source
        else:
            yield question, _answer(question, names, "any", []), one.source


def _named(
    one: Question, rng: random.Random, *, invented: bool
) -> tuple[str, list[str]]:
    """Return a question with its names; where wanted the first name is replaced by
    unknown words."""
    question = one_line(one.question).strip()
    title = one.text.partition("-")[2].rpartition("-")[0]
    names = [title] if len(title) > 2 and title in question else []
    names += [
        name
        for name in find_entities(question, language="en")
        if not any(name in kept for kept in names)
    ]
    if invented and names:
        word = "".join(rng.sample(SYLLABLES, rng.choice((2, 3)))).capitalize()
        strange = rng.choice(
            (
                word,
                f"{word} {rng.randrange(2, 9000)}",
                f"{word}-{rng.choice('XQZK')}{rng.randrange(9)}",
            )
        )
        question, names[0] = question.replace(names[0], strange), strange
        names = [name for name in names if name in question]
    return question, names


def _answer(
    request: str, names: Sequence[str], freshness: str, parts: list[str]
) -> dict[str, Any]:
    queries = list(dict.fromkeys(_query(text, names) for text in (parts or [request])))
    return {
        "entities": list(dict.fromkeys(names))[:6],
        "parts": parts,
        "freshness": freshness,
        "search": not needless(request),
        "queries": [{"text": text, "language": "en"} for text in queries[:3]],
    }


def _query(text: str, names: Sequence[str]) -> str:
    """Return the words of a request that can be searched for, in their order, each of
    its names in one piece, as the request writes it."""
    named = {word for name in names if name in text for word in raw_words(name)}
    words = [
        word
        for word in raw_words(text)
        if word in named or (index_terms(word) and not question_word(word, "en"))
    ]
    query = " ".join(words)
    for name in names:
        if parted := " ".join(raw_words(name)):
            query = name.join(re.split(rf"(?<!\w){re.escape(parted)}(?!\w)", query))
    return query[:160] or text


def _sample(
    request: str, answer: dict[str, Any], source: str, rng: random.Random
) -> Sample:
    today = date(2023, 1, 1) + timedelta(days=rng.randrange(1500))
    prompt = load(PROMPT).fill(date=today.isoformat(), request=request)
    return Sample(prompt, json.dumps(answer, ensure_ascii=False), source=source)


if __name__ == "__main__":
    from papers.recipes.lora import run_recipe

    sys.exit(run_recipe({"sft": parser_samples}))
