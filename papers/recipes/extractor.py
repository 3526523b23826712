"""EXTRACTOR: questions over numbered candidates with the lines that answer, or None;
preference pairs (zero-index §4).

Prompts are those that `papers/zero_index/ask.py` asks with, in its three forms: numbered
lines, the paper's tags, votes. Candidates are the lines that answer, their neighbours,
and the nearest by words of the same article, as the first stage of the product leaves
them. Questions that people wrote so that a page almost answers them give None; the
paper's share of 5 % is for pages that a search engine brought, and ours are harder. A
pair's rejected answer names a wrong line, misses one, or says None, or lines where
there are none: the paper has a stronger model and a judge make it. The printed samples
(`printed_samples`, `printed_pairs`) are whole pages in tags, some with the paper's
summaries before each tag (Instruction-A).
"""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from papers.recipes.sample import Maker, Part, Sample
from papers.zero_index.ask import ROOM, Candidate, Way, show_candidates
from papers.zero_index.tags import numbered
from pipeline.question.question import Question as Asked
from pipeline.reading.bm25 import BM25
from pipeline.text.frame import framed, new_delimiter, notice, one_line
from pipeline.text.tokens import count_tokens, cut_to_tokens
from prompts import load
from readers.page import Sentence
from train.reader.data import Corpus, Question, Split, load_own, load_public

SHARES: Final[dict[Way, float]] = {"lines": 0.6, "tags": 0.2, "votes": 0.2}
"""How often each form is asked with."""
NONE_SHARE: Final = 0.25
TOKENS: Final = (60, 120, 200)
"""Of the candidates of a sample; the product shows up to 1,000, for which a run needs
memory and time."""
PAGE: Final = 9_000
"""Most tokens of a page's sentences in the paper's samples, which leaves room for tags
and headings in its window of 16,384."""
TAGS: Final = 10
"""Tokens of a pair of tags and a line's end."""
FEWEST: Final = 100
"""Tokens of a page's sentences; shorter pages are left out (§4.2)."""
PAIRS: Final = 2
"""Rejected answers of a request (§4.4)."""
SUMMARY: Final = 40
"""Tokens of the summary before a tag."""
BEFORE_EACH: Final = (
    "Write before each tag, on a line of its own, what it says in few words."
)
NEIGHBOURS: Final = 2
NEAREST: Final = 200
"""Sentences of a document that candidates come from, around the answer: some have
thousands."""


@dataclass(frozen=True, slots=True)
class Form:
    """What the samples show of a text."""

    tokens: Sequence[int] = TOKENS
    """Of the candidates; each sample draws one."""
    nearest: int = NEAREST
    marks: int = 4
    """Tokens beside each candidate."""
    none_share: float = NONE_SHARE


OURS: Final = Form()
PRINTED: Final = Form(tokens=(PAGE,), nearest=PAGE, marks=TAGS, none_share=0.05)


@dataclass(frozen=True, slots=True)
class Shown:
    """A question with the candidates that a model chooses from."""

    question: str
    candidates: Sequence[Candidate]
    """In reading order."""
    gold: frozenset[int]
    """Numbers from 1 of those that answer; empty for None."""
    source: str


def extractor_samples(
    part: Part, seed: int, *, pairs: bool = False
) -> Iterator[Sample]:
    """Yield samples of questions on public texts and on pages; with `pairs`, each has a
    rejected answer."""
    rng = random.Random(f"{seed}:{part}:{pairs}")
    for one in _shown([load_public(part), load_own(part)], rng):
        yield _sample(one, rng, pairs=pairs)


def printed_samples(
    part: Part, seed: int, corpus: Corpus | None = None
) -> Iterator[Sample]:
    """Yield the paper's samples (§4.2): whole pages in its tags, those of fewer tokens
    than `FEWEST` left out, None for one in twenty; each with a summary before each tag
    (Instruction-A), and without (Instruction-B). Of our pages, or of another corpus."""
    rng = random.Random(f"{seed}:{part}:printed")
    for one in _printed(corpus or load_own(part), rng):
        plain = _sample(one, rng, way="pages")
        yield _with_summaries(plain, one)
        yield plain


def printed_pairs(
    part: Part, seed: int, corpus: Corpus | None = None
) -> Iterator[Sample]:
    """Yield the same pages and tags (Instruction-B) with a rejected answer each, two a
    request, as the paper repeats its replacement twice (§4.4)."""
    rng = random.Random(f"{seed}:{part}:pairs")
    for one in _printed(corpus or load_own(part), rng):
        for _ in range(PAIRS):
            yield _sample(one, rng, way="pages", pairs=True)


def _printed(corpus: Corpus, rng: random.Random) -> Iterator[Shown]:
    yield from filter(_is_long, _shown([corpus], rng, PRINTED))


def _is_long(one: Shown) -> bool:
    """Whether a page's sentences have `FEWEST` tokens."""
    return sum(count_tokens(line.sentence.text) for line in one.candidates) >= FEWEST


def _with_summaries(plain: Sample, one: Shown) -> Sample:
    """Return a sample whose answer has a summary before each tag: the beginning of its
    sentence, where the paper has a model's words."""
    said = []
    for number in sorted(one.gold):
        text = one_line(one.candidates[number - 1].sentence.text)
        said.append(f"{cut_to_tokens(text, SUMMARY)}: {_ranges({number}, 'pages')}")
    prompt = f"{plain.prompt.rstrip()}\n{BEFORE_EACH}\n"
    return replace(plain, prompt=prompt, answer="\n".join(said) or "None")


def shown_candidates(split: Split, seed: int) -> list[Shown]:
    """Return the questions on pages of a split with their candidates, as the samples
    have them."""
    return list(_shown([load_own(split)], random.Random(f"{seed}:{split}")))


def _shown(
    corpora: Sequence[Corpus],
    rng: random.Random,
    form: Form = OURS,
) -> Iterator[Shown]:
    """Yield questions in random order, those that nothing answers up to their share."""
    asked = [(corpus, one) for corpus in corpora for one in corpus.questions]
    rng.shuffle(asked)
    some = nothing = 0
    for corpus, one in asked:
        if not one.gold and nothing >= form.none_share * (some + 1):
            continue
        lines = _candidates(corpus, one, rng, form)
        gold = frozenset(
            place for place, line in enumerate(lines, start=1) if line.row in one.gold
        )
        if len(gold) == len(one.gold) and len(lines) > 1:
            nothing += not one.gold
            some += 1
            yield Shown(one.question, lines, gold, one.source)


def _sample(
    one: Shown, rng: random.Random, *, pairs: bool = False, way: Way | None = None
) -> Sample:
    shown, gold = one.candidates, set(one.gold)
    way = way or rng.choices(list(SHARES), weights=list(SHARES.values()))[0]
    mark = new_delimiter(rng)
    prompt = load(f"extract_{way}").fill(
        request=one_line(one.question),
        candidates=framed(
            show_candidates(
                shown, tags=way in ("tags", "pages"), headed=way != "pages"
            ),
            mark,
        ),
        notice=notice(mark),
        **({} if way in ("votes", "pages") else {"most": str(ROOM.ranges)}),
    )
    if way == "votes":
        number = (
            rng.choice(sorted(gold))
            if gold and rng.random() < 0.5
            else rng.randint(1, len(shown))
        )
        line = numbered([_renumbered(shown[number - 1], number)])
        said = [f"{line} -> {word}" for word in ("Yes", "No")]
        said = said if number in gold else said[::-1]
        return Sample(prompt, said[0], said[1] if pairs else "", one.source)
    wrong = _worse(gold, len(shown), rng) if pairs else None
    return Sample(
        prompt,
        _ranges(gold, way),
        "" if wrong is None else _ranges(wrong, way),
        one.source,
    )


def _candidates(
    corpus: Corpus,
    one: Question,
    rng: random.Random,
    form: Form,
) -> list[Candidate]:
    """Return lines of the question's text in reading order, chosen among so many around
    the answer: the near ones first, then the best by words."""
    text = corpus.texts[one.text]
    room = rng.choice(form.tokens)
    around = [
        place + step
        for place in sorted(one.near)
        for step in range(-NEIGHBOURS, NEIGHBOURS + 1)
    ]
    middle = sorted(one.near)[len(one.near) // 2]
    begin = max(0, middle - form.nearest // 2)
    near = list(range(begin, min(len(text.sentences), begin + form.nearest)))
    scores = BM25([text.sentences[place] for place in near]).scores(Asked(one.question))
    best = [near[i] for i in sorted(range(len(near)), key=lambda i: -float(scores[i]))]
    rng.shuffle(around)
    chosen: dict[int, None] = {}
    for place in (*sorted(one.near), *_mixed(best, around)):
        known = (
            0 <= place < len(text.sentences)
            and text.sentences[place]
            and place not in chosen
        )
        if (
            known
            and (room := room - count_tokens(text.sentences[place]) - form.marks) < 0
            and len(chosen) >= len(one.near)
        ):
            break
        if known:
            chosen[place] = None
    return [
        _candidate(text.sentences[place], text.above[place], place)
        for place in sorted(chosen)
    ]


def _mixed(first: Sequence[int], second: Sequence[int]) -> list[int]:
    pairs = zip(first, [*second, *first], strict=False)
    return [place for pair in pairs for place in pair]


def _candidate(text: str, above: str, place: int) -> Candidate:
    return Candidate(place, above, Sentence(place + 1, text, 0, len(text), 0))


def _renumbered(candidate: Candidate, number: int) -> Sentence:
    return Sentence(number, candidate.sentence.text, 0, 0, 0)


def _worse(gold: set[int], count: int, rng: random.Random) -> set[int]:
    """Return an answer with a wrong line, one line less, one more, or None where lines
    answer."""
    others = [number for number in range(1, count + 1) if number not in gold]
    if not gold:
        return set(rng.sample(others, 1))
    ways: list[set[int]] = [set()]
    if len(gold) > 1:
        ways.append(gold - {rng.choice(sorted(gold))})
    if others:
        ways += [{rng.choice(others)}, gold | {rng.choice(others)}]
    return rng.choice(ways)


def _ranges(numbers: set[int], way: Way) -> str:
    """Return numbers as `3-5,12`, or so in the paper's tags; for its pages as a plain
    list of tags. `None` for none."""
    if way == "pages":
        return ",".join(f"<TAG-{number}>" for number in sorted(numbers)) or "None"
    form = "<TAG-{}>" if way == "tags" else "{}"
    runs = [
        list(run)
        for _, run in groupby(
            enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]
        )
    ]
    ends = [dict.fromkeys((run[0][1], run[-1][1])) for run in runs][: ROOM.ranges]
    return (
        ",".join("-".join(form.format(end) for end in pair) for pair in ends) or "None"
    )


def preference_pairs(part: Part, seed: int) -> Iterator[Sample]:
    """Yield samples with a rejected answer each, for DPO."""
    return extractor_samples(part, seed, pairs=True)


MAKERS: Final[dict[str, Maker]] = {
    "sft": extractor_samples,
    "dpo": preference_pairs,
    "printed": printed_samples,
    "printed_pairs": printed_pairs,
}
"""What makes the samples, by the `kind` of a configuration."""


if __name__ == "__main__":
    from papers.recipes.lora import run_recipe

    sys.exit(run_recipe(MAKERS))
