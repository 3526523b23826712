"""EXTRACTOR with a model that writes: candidates in, numbers of those that answer or
None out (zero-index §4.1).

Four ways to ask. `lines` (a numbered line per sentence) and `tags` (the paper's tags)
let the model answer with ranges of numbers or `None`, constrained by a grammar or JSON
schema. `votes` reads the probability of Yes for every candidate after one kept prefix,
EXIT's way. The model sees candidates under new numbers that begin with 1, never the
page's own. `pages` is the paper's own: each page by itself, whole, every sentence and
heading in its tags; what it lists comes first in the answer. What a
model says is then weighed against the gate's verdict:

    gate        model names lines          model says None
    answered    answered                   unsure, the gate's order
    unsure      answered if it names one   unsure, the gate's best six alone
                of the gate's best three,
                else unsure
    none        unsure                     none

Neither is believed alone against the other: a small model seldom says None, and the
gate cannot read. What turns the gate's verdict is asked twice, the second time over the
best half of the lines; where an answer is sure and the model names the gate's best line
among few, its lines go out with the gate's best six, and the cursor has the rest. Not
for: the gate itself (`pipeline/reading/verdict.py`)."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import anyio
import numpy as np

from errors import ModelError, UsageError
from models.protocols import (
    Generator,
    Said,
    abilities_of,
    tree_scorer,
)
from papers.zero_index.tags import defused, numbered, paper_tags
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats
from pipeline.reading.reading import Reading
from pipeline.reading.verdict import NONE
from pipeline.text.frame import framed, new_delimiter, notice, one_line
from pipeline.text.tokens import Budget, count_tokens
from pipeline.work import LONG_SHARE, time_left
from prompts import load
from readers.page import Document, Sentence, Verdict

Way: TypeAlias = Literal["lines", "tags", "votes", "pages"]
WAYS: Final[tuple[Way, ...]] = ("lines", "tags", "votes", "pages")


class Room(NamedTuple):
    """How much the model is shown, and may answer."""

    candidates: int = 24
    """Sentences: plain BM25 holds .97 to 1.0 of the evidence of paragraph pages in its
    best 30."""
    tokens: int = 1000
    """Most tokens of them with their headings, by our counter; fewer where the model's
    context is small."""
    heading: int = 160
    """Code points of a heading line; longer ones are cut."""
    ranges: int = 8
    """Ranges of numbers in an answer under a grammar: an answer must end."""
    tags: int = 64
    """Tags that an answer by `pages` may list, for the same reason."""
    spare: int = 400
    """Tokens of the context kept for the instructions, the request and the answer."""
    own_tokens: float = 1.4
    """Most tokens of a model for one of our counter's, on texts of
    twelve kinds, with some to spare."""


ROOM: Final = Room()
ASK_FROM: Final = NONE / 2
"""Confidence of the gate below which no model is asked, since a call takes seconds."""
VOTE_LIFT: Final = 0.25
"""What a vote of 1 adds to a sentence, as a share of the best score. SmolLM2 of 135
million parameters, the one model measured (docs/log.md), orders HotpotQA
worse at any lift from .1 on (R-precision .69 -> .61 and below); at .25 its share of
gold within 256 tokens is level with the rules' (.83; tags .89), and from .5 on it
falls."""
LIFTED: Final = 2
"""Rows that a model may raise. Of 60 development questions 256 tokens hold the answer
of .850 by rules; with an oracle that names the right lines .917, .933, .950 for one,
two and all of them, with lines named at random .852, .848, .833."""
NEAR_SENTENCES: Final = 3
"""Best sentences of the gate, one of which the model must name to turn `unsure` into
`answered`."""
KEPT_SENTENCES: Final = 6
"""Best sentences of the gate that a shortened answer keeps, whatever the model names.
Of 58 test questions 768 tokens hold the answers of .931; with a model that names at
random .879 with three."""
_ANSWER: Final = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that the model may choose."""

    row: int
    """Index among all scored sentences."""
    title: str
    """Title of the page."""
    sentence: Sentence
    page: int = 0
    """Its number among the pages."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What the model said."""

    rows: tuple[int, ...]
    """`Candidate.row` of those that it takes for answers, in reading order; empty for
    None."""
    weights: dict[int, float]
    """0..1 for each candidate by its row: the probability of Yes, or 1 and 0."""


def can_ask(model: object, way: Way) -> bool:
    """Whether a model's backend can be asked in this way."""
    if way == "votes":
        return "score_tree" in abilities_of(model)
    return bool({"grammar", "schema"} & abilities_of(model))


def way_for(setting: str, model: object) -> Way:
    """Return the way that `setting` names for a model.

    Raises `UsageError`: there is no such way, or the model's backend does not have it.
    """
    named = next((way for way in WAYS if way == setting), None)
    if named is None or not can_ask(model, named):
        raise UsageError(
            f"WINNOW_PAPERS is {setting!r}, which the generator does not support.",
            hint=(
                "Set WINNOW_GENERATOR to a model that supports it, or "
                "extractor in WINNOW_PAPERS to rules."
            ),
        )
    return named


async def ask(
    request: str, candidates: Sequence[Candidate], model: Generator, *, way: Way
) -> ModelChoice:
    """Let `model` say which candidates, best first, answer `request`.

    As many of them are shown, in reading order, as `fitting` lets through. Raises
    `ModelError`: the model failed, cannot be asked so, or returned an invalid choice.
    Where no candidate fits, nothing is asked and the choice is empty."""
    if not can_ask(model, way):
        raise ModelError(
            f"{model.name} does not support WINNOW_PAPERS=extractor={way}.",
            hint=(
                "Set extractor in WINNOW_PAPERS to another of rules, lines, tags, votes and pages."
            ),
        )
    if way == "pages":
        return await _by_pages(request, candidates, model)
    shown = fitting(request, candidates, model.context_tokens, way=way)
    if not shown:
        return ModelChoice((), {})
    if way == "votes":
        votes = await _votes(request, shown, model)
        weights = {
            candidate.row: vote for candidate, vote in zip(shown, votes, strict=True)
        }
        # EXIT takes a candidate where Yes is as likely as No.
        return ModelChoice(
            tuple(row for row, vote in weights.items() if vote >= 0.5), weights
        )
    numbers = await _listed(request, shown, model, way)
    rows = tuple(
        candidate.row
        for number, candidate in enumerate(shown, start=1)
        if number in numbers
    )
    return ModelChoice(
        rows, {candidate.row: float(candidate.row in rows) for candidate in shown}
    )


async def _by_pages(
    request: str, candidates: Sequence[Candidate], model: Generator
) -> ModelChoice:
    """Ask about each page by itself, in the order of its best candidate; of one that is
    over the model's window the best candidates are shown. None drops that page."""
    by_page: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        by_page.setdefault(candidate.page, []).append(candidate)
    rows: list[int] = []
    for own in by_page.values():
        shown = fitting(request, own, model.context_tokens, way="pages")
        if shown:
            numbers = await _listed(request, shown, model, "pages")
            rows += [shown[number - 1].row for number in sorted(numbers)]
    return ModelChoice(tuple(sorted(rows)), dict.fromkeys(rows, 1.0))


def fitting(
    request: str, candidates: Sequence[Candidate], context: int, *, way: Way
) -> list[Candidate]:
    """Return the first candidates that fit, in reading order.

    A vote repeats each line, so that only half as many tokens are left for them. One
    that does not fit is passed over. But for `pages` only the first `ROOM.candidates`
    are looked at."""
    room = (context - ROOM.spare) / ROOM.own_tokens - count_tokens(request)
    whole = way == "pages"
    if not whole:
        room = min(ROOM.tokens, room / 2 if way == "votes" else room)
    kept: list[Candidate] = []
    budget, heads = Budget(int(room)), set()
    for candidate in candidates[: None if whole else ROOM.candidates]:
        head = "" if whole else _head(candidate)
        cost = count_tokens(candidate.sentence.text) + (
            14 if way in ("tags", "pages") else 4
        )
        cost += 0 if head in heads else count_tokens(head) + 1
        if budget.spend(cost):
            kept.append(candidate)
            heads.add(head)
    return sorted(kept, key=lambda candidate: candidate.row)


def show_candidates(
    candidates: Sequence[Candidate], *, tags: bool = False, headed: bool = True
) -> str:
    """Return candidates under their headings, numbered from 1 in the order given, as
    the model reads them; without headings above them where not `headed`.

    A page's text begins no line: a line begins with our number, our tag or our `#`.
    """
    lines: list[str] = []
    above = ""
    for number, candidate in enumerate(candidates, start=1):
        head = _head(candidate) if headed else ""
        if head and head != above:
            lines.append(f"# {defused(head) if tags else head}")
        above = head
        shown = replace(candidate.sentence, number=number)
        lines.append(paper_tags([shown]) if tags else numbered([shown]))
    return "\n".join(lines)


def _head(candidate: Candidate) -> str:
    parts = dict.fromkeys(
        one_line(part)
        for part in (candidate.title, *candidate.sentence.heading_path)
        if part
    )
    return " › ".join(part for part in parts if part)[: ROOM.heading]


def grammar_of(count: int, way: Way) -> str:
    """Return the GBNF grammar of an answer over `count` candidates: `None`, or ranges
    of numbers that exist; by `pages` a plain list of tags. That, and ranges over
    `ROOM.candidates`, let through numbers that do not exist; `read_answer` refuses
    them."""
    if way == "pages":
        tag = 'tag ::= "<TAG-" [1-9] [0-9]? [0-9]? [0-9]? ">"'
        return f'root ::= "None" | tag ("," tag){{0,{ROOM.tags - 1}}}\n{tag}'
    left, right = ("<TAG-", ">") if way == "tags" else ("", "")
    root = f'root ::= "None" | range ("," range){{0,{ROOM.ranges - 1}}}'
    if count > ROOM.candidates:
        # Each number that exists would be a rule with all above it: what is read is checked instead.
        end = f'"{left}" [1-9] [0-9]? [0-9]? [0-9]? "{right}"'
        return f'{root}\nrange ::= {end} ("-" {end})?'
    rules = [root]
    rules.append(
        "range ::= " + " | ".join(f"from{number}" for number in range(1, count + 1))
    )
    for number in range(1, count + 1):
        ends = " | ".join(
            f'"{left}{end}{right}"' for end in range(number + 1, count + 1)
        )
        rest = f' ("-" ({ends}))?' if ends else ""
        rules.append(f'from{number} ::= "{left}{number}{right}"{rest}')
    return "\n".join(rules)


def read_answer(answer: str, count: int) -> frozenset[int]:
    """Return the numbers of an answer such as `3-5,12`, `<TAG-3>-<TAG-5>` or `None`.

    Raises `ModelError`: it is neither, or names a number that is not between 1 and
    `count`."""
    plain = re.sub(r"<TAG-(\d+)>", r"\1", answer).replace(" ", "").strip()
    if plain == "None":
        return frozenset()
    found: set[int] = set()
    for part in plain.split(","):
        match = _ANSWER.fullmatch(part)
        first = int(match.group(1)) if match else 0
        last = int(match.group(2) or first) if match else 0
        if not 1 <= first <= last <= count:
            raise ModelError(
                f"The generator answered {answer[:60]!r}, not line numbers from 1 to {count}.",
                hint="Set WINNOW_GENERATOR to another model.",
            )
        found.update(range(first, last + 1))
    return frozenset(found)


async def _listed(
    request: str, shown: Sequence[Candidate], model: Generator, way: Way
) -> frozenset[int]:
    whole = way == "pages"
    prompt = _prompt(
        f"extract_{way}",
        request,
        show_candidates(shown, tags=way != "lines", headed=not whole),
        **({} if whole else {"most": str(ROOM.ranges)}),
    )
    length = {"lines": 8, "tags": 24}.get(way, ROOM.tags) * ROOM.ranges
    if "grammar" in abilities_of(model):
        answer = await cast(Any, model).generate(
            [prompt], max_tokens=length, grammar=grammar_of(len(shown), way)
        )
        return read_answer(answer, len(shown))
    number = {"type": "integer", "minimum": 1, "maximum": len(shown)}
    most = ROOM.tags if whole else 2 * ROOM.ranges
    lines = {"type": "array", "items": number, "maxItems": most}
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"lines": lines},
        "required": ["lines"],
    }
    asked = Said(
        "user",
        f"{prompt.content}\nReply as JSON with the numbers in the list `lines`, empty for None.",
    )
    answer = await model.generate([asked], max_tokens=length + 32, schema=schema)
    return frozenset(int(number) for number in json.loads(answer)["lines"])


async def _votes(
    request: str, shown: Sequence[Candidate], model: Generator
) -> list[float]:
    """Return the probability of Yes for each candidate, of Yes and No alone; raises
    `ModelError`."""
    prompt = _prompt("extract_votes", request, show_candidates(shown))
    lines = [
        numbered([replace(candidate.sentence, number=n)])
        for n, candidate in enumerate(shown, start=1)
    ]
    scorer = tree_scorer(model)
    if scorer is None:
        raise ModelError(
            f"{model.name} does not return log-probabilities, which "
            "WINNOW_PAPERS=extractor=votes needs.",
            hint="Set extractor in WINNOW_PAPERS to lines or rules.",
        )
    # One call: the prompt is evaluated once, and each line once after it, for both answers.
    paths = [f"{line} -> {word}" for line in lines for word in ("Yes", "No")]
    scores = (
        await scorer.score_tree([prompt], paths, among_siblings=True)
    ).log_probabilities.reshape(-1, 2)
    apart = np.clip(scores[:, 1] - scores[:, 0], -50.0, 50.0)
    return [float(vote) for vote in 1.0 / (1.0 + np.exp(apart))]


def _prompt(name: str, request: str, candidates: str, **more: str) -> Said:
    delimiter = new_delimiter()
    filled = load(name).fill(
        request=one_line(request),
        candidates=framed(candidates, delimiter),
        notice=notice(delimiter),
        **more,
    )
    return Said("user", filled)


def agree(verdict: Verdict, chosen: ModelChoice, values: Floats) -> tuple[Verdict, str]:
    """Return the verdict of both, and how model and gate relate, as a sentence."""
    best = set(np.argsort(-values, kind="stable")[:NEAR_SENTENCES].tolist())
    names = bool(chosen.rows)
    if verdict == "answered":
        return (
            ("answered", "The model agrees.")
            if names
            else ("unsure", "The model finds no line that answers.")
        )
    if verdict == "unsure" and names:
        near = not best.isdisjoint(chosen.rows)
        return (
            ("answered", "The model agrees.")
            if near
            else ("unsure", "The model names other sentences.")
        )
    if verdict == "unsure":
        return "unsure", "The model finds no line that answers."
    if names:
        return "unsure", "The model names lines that may answer."
    return "none", "The model agrees."


def lifted(values: Floats, chosen: ModelChoice, *, lift: float = VOTE_LIFT) -> Floats:
    """Return the scores [size] with the named rows raised, by `lift` times the best
    score for a weight of 1: those `LIFTED` of them that the scores hold best."""
    raised = values.copy()
    for row in sorted(chosen.rows, key=lambda row: -float(values[row]))[:LIFTED]:
        raised[row] += lift * float(values.max()) * chosen.weights[row]
    return raised


def borne_out(
    verdict: Verdict, values: Floats, chosen: ModelChoice, way: Way
) -> frozenset[int]:
    """Return the rows of a shortened answer; none where it is not shortened.

    By `pages` they are what the model named, as printed, whatever the verdict; where it
    named nothing of any page, and `verdict` is unsure, the scores' best are left.
    Else they are what it named and the scores' best, where it named few rows and the
    very best is among them: a model that names at random has the best of 24 among three
    in one of eight answers, and the best rows are kept whatever it names. Of an
    `unsure` answer in which it finds nothing the scores' best are left."""
    if way == "pages" and chosen.rows:
        return frozenset(chosen.rows)
    best = np.argsort(-values, kind="stable")[:KEPT_SENTENCES].tolist()
    if verdict == "unsure":
        return frozenset() if chosen.rows else frozenset(best)
    if verdict != "answered":
        return frozenset()
    if not best or best[0] not in chosen.rows or len(chosen.rows) > ROOM.ranges:
        return frozenset()
    return frozenset(chosen.rows) | frozenset(best)


@dataclass(frozen=True, slots=True)
class Asking:
    """A model that writes, and how it is asked about the core's reading."""

    generator: Generator
    way: Way
    seconds: float
    """After so long the answer goes out without it."""

    async def __call__(
        self, question: Question, documents: Sequence[Document], reading: Reading
    ) -> Reading:
        """Return a reading of `documents` as `read_documents` makes it by rules, with what the
        model says added; the whole question is asked, and the verdicts of its parts
        stay.

        It is unchanged below a confidence of `ASK_FROM`, but for `pages`, which is
        asked once and in any case. A model that fails, or is not done in time, is only
        named in the note."""
        # A model takes seconds: not where the pages are about something else.
        if reading.confidence < ASK_FROM and self.way != "pages":
            return reading
        chosen: ModelChoice | None = None
        seconds = min(self.seconds, LONG_SHARE * time_left())
        failure = f"No answer of the model within {seconds:.0f} s."
        with anyio.move_on_after(seconds):
            try:
                chosen = await self._chosen(question, documents, reading)
            except ModelError as error:
                failure = f"The model failed: {one_line(str(error))}"
        if chosen is None:
            return replace(reading, note=f"{reading.note} {failure}".lstrip())
        word, sentence = agree(reading.verdict, chosen, reading.values)
        return replace(
            reading,
            verdict=word,
            note=f"{reading.note} {sentence}".lstrip(),
            values=lifted(reading.values, chosen),
            only=borne_out(word, reading.values, chosen, self.way),
        )

    async def _chosen(
        self, question: Question, documents: Sequence[Document], reading: Reading
    ) -> ModelChoice:
        shown = _candidates(documents, reading, whole=self.way == "pages")
        chosen = await ask(question.text, shown, self.generator, way=self.way)
        turns = bool(chosen.rows) == (reading.verdict == "none")
        if reading.verdict == "answered" or not turns or self.way == "pages":
            return chosen
        # None shortens an answer, lines bring one back: both must be said twice
        best = shown[: (len(shown) + 1) // 2]
        again = await ask(question.text, best, self.generator, way=self.way)
        both = tuple(row for row in again.rows if row in chosen.rows)
        return replace(again, rows=both) if chosen.rows else again


def _candidates(
    documents: Sequence[Document], reading: Reading, *, whole: bool
) -> list[Candidate]:
    """Return the best units except headings, best first, at most `ROOM.candidates`; all
    of them, and headings, for `whole` pages."""
    places = reading.places
    found: list[Candidate] = []
    for row in np.argsort(-reading.values, kind="stable").tolist():
        index, unit = places[row]
        if whole or documents[index].blocks[unit.block].kind != "heading":
            found.append(Candidate(row, documents[index].page.title, unit, index))
    return found if whole else found[: ROOM.candidates]


def extractor(
    setting: str, generator: Generator | None, seconds: float
) -> Asking | None:
    """Return what revises readings as WINNOW_PAPERS says; None without a generator.
    Raises `UsageError` where `generator` does not support that."""
    way = way_for(setting, generator)
    return None if generator is None else Asking(generator, way, seconds)
