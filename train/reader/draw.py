"""Draws training windows from questions: answering ones, near misses, and questions
edited by rule.

Windows are drawn again each round. Edits alone are not a signal: some change question
and window alike, and stay answerable. Not for: tokens, batches (`train.py`).
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.onnx import READER_SENTENCE_TOKENS
from models.protocols import Window
from pipeline.reading.bm25 import JOINT
from pipeline.text.words import index_terms
from train.reader.data import Corpus, Question, Text

BUDGETS: Final = (64, 96, 128, 160, 192, 240)
"""Tokens of a window's sentences."""
CHARACTERS_A_TOKEN: Final = 4.3
"""Of English in BERT's vocabulary, for the windows' length only."""
NEAREST: Final = 24
"""Sentences that share words with a question, from which windows that do not answer are
drawn."""
COMMON: Final = 6_000
"""A term in more sentences than this finds nothing."""
OWN: Final = "own-"
LOOSE: Final = "kou"
"""The source whose sentences have no article around them: windows are made of lexically
near ones."""
_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_NUMBER: Final = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")
_BETWEEN: Final = re.compile(r"[^\w.,-]+")
_CELL: Final = re.compile(r"([^:;]+): ([^;]+)")
_OPPOSITES: Final = (
    "first last|largest smallest|highest lowest|most least|more fewer|before after|north "
    "south|east west|won lost|"
    "oldest youngest|earliest latest|started ended|opened closed|born died|best worst|cheapest "
    "dearest|"
    "longest shortest|fastest slowest|minimum maximum|allowed forbidden|increased "
    "decreased|arrive depart|"
    "bought sold|with without|included excluded|added removed|public private|inside outside|upper "
    "lower|men women|"
    "summer winter|morning evening"
)
_OPPOSITE: Final = {
    one: other
    for pair in _OPPOSITES.split("|")
    for one, other in (pair.split(), pair.split()[::-1])
}


@dataclass(frozen=True, slots=True)
class Example:
    """A question with a window, and what the reader should say of it."""

    question: str
    window: Window
    gold: frozenset[int]
    """Numbers of the window's sentences; empty where it does not answer."""
    weight: float
    kind: str
    """How it was made: `answer`, `near` (written as unanswerable), `other` (another
    window), or the rule's name."""


class Drawer:
    """Draws windows from a corpus; the same seed draws the same."""

    def __init__(self, corpus: Corpus, *, seed: int) -> None:
        """Index all sentences by their terms."""
        self._corpus = corpus
        self._draw = random.Random(seed)
        self._names = list(corpus.texts)
        self._starts = np.cumsum(
            [0, *(len(text.sentences) for text in corpus.texts.values())]
        )
        self._number = {name: number for number, name in enumerate(self._names)}
        self._index = _Index(
            [sentence for text in corpus.texts.values() for sentence in text.sentences]
        )
        self._of_text: dict[str, list[Question]] = defaultdict(list)
        for question in corpus.questions:
            if question.gold:
                self._of_text[question.text].append(question)

    def plain(self, question: Question) -> Iterator[Example]:
        """Yield the question's own window and one that does not answer, as development
        figures need them."""
        yield self._own(question)
        yield from self._others(question, 1)

    def examples(self, question: Question) -> Iterator[Example]:
        """Yield what one round trains on for a question."""
        draw, own = self._draw, question.source.startswith(OWN)
        answer = self._own(question)
        yield answer
        if draw.random() < 0.8:
            yield from self._others(question, 2 if own else 1)
        if draw.random() < (0.3 if own else 0.1):
            yield from self._foreign(question)
        if not question.gold:
            return
        if draw.random() < (0.25 if own else 0.08):
            yield from self._joined(question)
        if draw.random() < 0.55:
            yield from self._edited(answer, self._corpus.texts[question.text])

    def _own(self, question: Question) -> Example:
        text = self._corpus.texts[question.text]
        middle = self._draw.choice(sorted(question.near))
        rows = (
            self._loose(question, middle)
            if question.source == LOOSE
            else self._around(text, middle)
        )
        return self._example(
            question, text, rows, "answer" if question.gold else "near"
        )

    def _example(
        self, question: Question, text: Text, rows: Sequence[int], kind: str
    ) -> Example:
        above, chance = text.above[rows[0]], self._draw.random()
        if chance < 0.3:
            above = "" if chance < 0.2 else above.split(JOINT)[0]
        window = Window(above, tuple(text.sentences[row] for row in rows))
        gold = frozenset(
            place for place, row in enumerate(rows) if row in question.gold
        )
        return Example(question.question, window, gold, 1.0, kind)

    def _around(
        self, text: Text, middle: int, avoid: frozenset[int] = frozenset()
    ) -> range:
        """Return rows of one window around a sentence, at a random position, without
        the ones to avoid."""
        budget = self._draw.choice(BUDGETS) - _tokens(text.sentences[middle])
        low, high = middle, middle + 1
        ends = {-1: low == 0, 1: False}
        while not all(ends.values()):
            side = self._draw.choice([way for way, ended in ends.items() if not ended])
            row = low - 1 if side < 0 else high
            if (
                not 0 <= row < len(text.sentences)
                or row in avoid
                or _tokens(text.sentences[row]) > budget
            ):
                ends[side] = True
                continue
            budget -= _tokens(text.sentences[row])
            low, high = min(low, row), max(high, row + 1)
        return range(low, high)

    def _loose(self, question: Question, middle: int) -> list[int]:
        sentences = self._corpus.texts[question.text].sentences
        budget = self._draw.choice(BUDGETS)
        rows = [middle]
        for name, row in self._nearest(question):
            if (
                name == question.text
                and row != middle
                and (budget := budget - _tokens(sentences[row])) > 0
            ):
                rows.append(row)
        self._draw.shuffle(rows)
        return rows

    def _nearest(self, question: Question) -> list[tuple[str, int]]:
        """Return text and number of sentences that share words with the question, best
        first, without gold."""
        found: list[tuple[str, int]] = []
        short = question.answer.lower() if 2 < len(question.answer) < 40 else None
        for place in self._index.best(question.question, NEAREST):
            number = int(np.searchsorted(self._starts, place, side="right")) - 1
            name, row = self._names[number], int(place - self._starts[number])
            gold = name == question.text and row in question.near
            if not gold and not (
                short and short in self._corpus.texts[name].sentences[row].lower()
            ):
                found.append((name, row))
        return found

    def _others(self, question: Question, most: int) -> Iterator[Example]:
        """Yield windows that share words with the question and do not answer it: of its
        own text before others'."""
        near = self._nearest(question)
        own = [
            (name, row)
            for name, row in near
            if name == question.text and question.source != LOOSE
        ]
        text = self._corpus.texts[question.text]
        if (
            not own
            and len(text.sentences) > len(question.near)
            and question.source != LOOSE
        ):
            own = [
                (question.text, row)
                for row in range(len(text.sentences))
                if row not in question.near
            ]
            self._draw.shuffle(own)
        own = own[:4]
        elsewhere = [pair for pair in near if pair[0] != question.text][:6]
        self._draw.shuffle(own)
        self._draw.shuffle(elsewhere)
        pairs = own + elsewhere if self._draw.random() < 0.7 else elsewhere + own
        for name, row in pairs[:most]:
            found = self._corpus.texts[name]
            rows = self._around(
                found, row, question.near if name == question.text else frozenset()
            )
            if question.answer and any(
                question.answer.lower() in found.sentences[row].lower() for row in rows
            ):
                continue
            yield self._example(
                replace(question, gold=frozenset()), found, rows, "other"
            )

    def _foreign(self, question: Question) -> Iterator[Example]:
        """Yield a window of a text that has nothing to do with the question."""
        name = self._draw.choice(self._names)
        if name != question.text:
            text = self._corpus.texts[name]
            rows = self._around(text, self._draw.randrange(len(text.sentences)))
            yield self._example(
                replace(question, gold=frozenset()), text, rows, "foreign"
            )

    def _joined(self, question: Question) -> Iterator[Example]:
        """Yield windows for two questions asked at once; both golds count."""
        other = self._draw.choice(self._of_text[question.text])
        if other.gold & question.gold or question.source == LOOSE:
            return
        second = other.question[:1].lower() + other.question[1:]
        joined = (
            f"{question.question.rstrip('?. ')}, "
            f"{self._draw.choice(('and', 'and also', 'and'))} {second}"
        )
        both = replace(
            question,
            question=joined,
            gold=question.gold | other.gold,
            near=question.gold | other.gold,
        )
        text = self._corpus.texts[question.text]
        middle = self._draw.choice(sorted(both.gold))
        yield self._example(both, text, self._around(text, middle), "joined")

    def _edited(self, answer: Example, text: Text) -> Iterator[Example]:
        """Yield the answering window with an edited question or edited sentences, by
        the first rule that fits."""
        rules = [
            self._swapped_key,
            self._swapped_roles,
            self._other_word,
            self._other_word,
            self._opposite,
        ]
        self._draw.shuffle(rules)
        for rule in rules:
            found = rule(answer, text)
            if found is not None:
                yield found
                return

    def _other_word(self, answer: Example, text: Text) -> Example | None:
        """A name or number of the question becomes another one of the text; in three of
        ten the window's, too."""
        shown = " ".join(answer.window.sentences)
        pattern = self._draw.choice((_NAME, _NUMBER))
        old = [
            word
            for word in dict.fromkeys(pattern.findall(answer.question))
            if word in shown
        ]
        sample = self._draw.sample(list(text.sentences), min(40, len(text.sentences)))
        known = (answer.question + shown).lower()
        new = [
            word
            for line in sample
            for word in pattern.findall(line)
            if word.lower() not in known
        ]
        if pattern is _NUMBER and not new:
            new = [str(self._draw.randrange(2, 90))]
        if not old or not new:
            return None
        pair = self._draw.choice(old), self._draw.choice(new)
        question = answer.question.replace(*pair)
        if self._draw.random() < 0.3:
            sentences = tuple(line.replace(*pair) for line in answer.window.sentences)
            return replace(
                answer,
                question=question,
                window=replace(answer.window, sentences=sentences),
                kind="both",
            )
        return replace(
            answer, question=question, gold=frozenset(), weight=0.8, kind="other word"
        )

    def _opposite(self, answer: Example, text: Text) -> Example | None:
        """A word of the question becomes its opposite."""
        shown = " ".join(answer.window.sentences).lower().split()
        words = answer.question.split()
        places = [
            place
            for place, word in enumerate(words)
            if _OPPOSITE.get(word, shown[0]) not in shown
        ]
        if not places:
            return None
        place = self._draw.choice(places)
        words[place] = _OPPOSITE[words[place]]
        return replace(
            answer,
            question=" ".join(words),
            gold=frozenset(),
            weight=0.7,
            kind="opposite",
        )

    def _swapped_roles(self, answer: Example, text: Text) -> Example | None:
        """Two names of the answering sentence change places; the question names one of
        them."""
        (place,) = list(answer.gold)[:1] or (None,)
        if place is None or len(answer.gold) > 1:
            return None
        names = list(dict.fromkeys(_NAME.findall(answer.window.sentences[place])))
        asked = [name for name in names if name in answer.question]
        if len(names) < 2 or len(asked) != 1:
            return None
        other = self._draw.choice([name for name in names if name != asked[0]])
        if (
            f"{asked[0]} and {other}" in answer.window.sentences[place]
            or asked[0] in other
            or other in asked[0]
        ):
            return None
        swapped = _exchange(answer.window.sentences[place], asked[0], other)
        sentences = (
            *answer.window.sentences[:place],
            swapped,
            *answer.window.sentences[place + 1 :],
        )
        window = replace(answer.window, sentences=sentences)
        return replace(
            answer, window=window, gold=frozenset(), weight=0.6, kind="swapped roles"
        )

    def _swapped_key(self, answer: Example, text: Text) -> Example | None:
        """Two rows of a table exchange the cell by which the question finds its row:
        the other row answers now."""
        if len(answer.gold) != 1:
            return None
        (place,) = answer.gold
        cells = dict(_CELL.findall(answer.window.sentences[place]))
        words = " " + _BETWEEN.sub(" ", answer.question).rstrip(" ?.").lower() + " "
        keys = [
            (head, cell) for head, cell in cells.items() if f" {cell.lower()} " in words
        ]
        if len(keys) != 1 or len(cells) < 2:
            return None
        head, cell = keys[0]
        rows = list(answer.window.sentences)
        found = [dict(_CELL.findall(line)).get(head, cell) for line in rows]
        others = [
            row for row, value in enumerate(found) if row != place and value != cell
        ]
        if not others or sum(f"{head}: {cell}" in line for line in rows) != 1:
            return None
        other = self._draw.choice(others)
        theirs = found[other]
        rows[place] = rows[place].replace(f"{head}: {cell}", f"{head}: {theirs}")
        rows[other] = rows[other].replace(f"{head}: {theirs}", f"{head}: {cell}")
        window = replace(answer.window, sentences=tuple(rows))
        return replace(
            answer,
            window=window,
            gold=frozenset({other}),
            weight=0.8,
            kind="swapped key",
        )


class _Index:
    """Sentences by their terms: for each term its sentences in one slice of an
    array."""

    def __init__(self, sentences: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        terms: list[int] = []
        lengths = []
        for sentence in sentences:
            found = dict.fromkeys(index_terms(sentence, language="en"))
            terms += [numbers.setdefault(term, len(numbers)) for term in found]
            lengths.append(len(found))
        order = np.argsort(np.asarray(terms, dtype=np.int32), kind="stable")
        self._numbers = numbers
        self._sentence = np.repeat(np.arange(len(sentences)), lengths)[order]
        self._slices = np.searchsorted(
            np.asarray(terms, dtype=np.int32)[order], np.arange(len(numbers) + 1)
        )
        self._damping = (8 + np.asarray(lengths, dtype=np.float32)) ** -0.3
        self._scores = np.zeros(len(sentences), dtype=np.float32)

    def best(self, question: str, most: int) -> NDArray[np.int64]:
        """Return the sentences that share the rarest words with a question, best
        first."""
        touched = [np.zeros(0, dtype=np.int64)]
        for term in dict.fromkeys(index_terms(question, language="en")):
            number = self._numbers.get(term)
            if number is None:
                continue
            found = self._sentence[self._slices[number] : self._slices[number + 1]]
            if len(found) < COMMON:
                self._scores[found] += np.log(len(self._scores) / len(found))
                touched.append(found)
        places = np.unique(np.concatenate(touched))
        values = self._scores[places] * self._damping[places]
        self._scores[places] = 0
        return places[np.argsort(-values, kind="stable")[:most]]


def _tokens(sentence: str) -> int:
    return min(READER_SENTENCE_TOKENS, 1 + int(len(sentence) / CHARACTERS_A_TOKEN))


def _exchange(text: str, one: str, other: str) -> str:
    return other.join(part.replace(other, one) for part in text.split(one))
