"""A cited answer by a generator from the evidence, each sentence checked against what
it cites (zero-index §2).

A sentence is supported if the passages that it cites contain its numbers, its names and
most of its words. This checks words, not truth: it finds inventions, not misreadings.
Not
for: choosing evidence.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from cache.store import Store
from errors import ContextExceeded, ModelError
from models.protocols import Generator, Said
from pipeline.messages import ANSWER_TOKENS, AskOptions, ask, shrinking
from pipeline.text.frame import one_line
from pipeline.text.words import FIGURE, find_entities, guess_language, index_terms
from prompts import load
from readers.page import Evidence

PROMPT: Final = "answer"
NO_ANSWER: Final = "The evidence does not answer this."
MARKED: Final = "[no support]"
"""Mark after a sentence that its citation does not support."""
SHARED_WORDS: Final = 0.6
"""Share of a sentence's words that its passages must contain."""


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """One sentence of an answer."""

    text: str
    """The sentence without its labels."""
    labels: tuple[str, ...]
    """Labels of the passages that it cites, such as `1a`."""
    supported: bool
    reason: str
    """What its passages lack; "" if they support it."""


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer with the check of each sentence."""

    statements: tuple[CheckedSentence, ...]
    """Empty if the model found no answer in the evidence, or failed."""
    model: str
    shown: int
    """Number of passages shown to the model, and of all passages."""
    failure: str = ""
    """Why there is no answer."""

    @property
    def text(self) -> str:
        """The answer with labels and marks on one line, or the reason why there is
        none."""
        if self.failure:
            return self.failure
        return " ".join(map(_written, self.statements)) or NO_ANSWER


@dataclass(frozen=True, slots=True)
class Writing:
    """Parameters of a written answer."""

    generator: Generator
    store: Store | None
    seconds: float
    """Time limit in seconds."""
    today: date


async def write_answer(
    question: str, evidence: Sequence[Evidence], labels: Sequence[str], writing: Writing
) -> CheckedAnswer:
    """Return the generator's answer from `evidence`, each sentence checked; a failure
    becomes the reason.

    Passages come best first, each with its label. Where the context is exceeded, fewer
    of the best are shown; without any the answer is empty."""
    model = writing.generator.name
    passages = {
        label: _lines(one.text) for label, one in zip(labels, evidence, strict=True)
    }
    if not passages:
        return CheckedAnswer((), model, 0)
    prompt = load(PROMPT)
    failure = ""
    for count in shrinking(len(passages)):
        shown = dict(list(passages.items())[:count])
        lines = "\n".join(f"[{label}] {text}" for label, text in shown.items())
        # Twice a short answer: room for the form with all its letters in writings of a token a
        # character.
        asking = AskOptions(
            2 * ANSWER_TOKENS, writing.seconds, prompt.version, _schema(list(shown))
        )
        said = prompt.fill(
            question=one_line(question), date=writing.today.isoformat(), evidence=lines
        )
        try:
            reply = await ask(
                writing.generator, [Said("user", said)], asking, store=writing.store
            )
        except ContextExceeded as error:
            failure = str(error)
            continue
        except ModelError as error:
            failure = str(error)
            break
        return CheckedAnswer(tuple(checked(reply, shown)), model, count)
    return CheckedAnswer((), model, 0, f"No answer was written: {failure}")


def _lines(text: str) -> str:
    """Return a passage with its lines, so that rows stay rows; all but the first are
    indented, so that none passes for a label or for a part of the prompt."""
    return "\n  ".join(filter(None, map(one_line, text.splitlines())))


def _schema(labels: list[str]) -> dict[str, object]:
    """Return the JSON schema of an answer: it makes small models cite, and cite before
    they write.

    Without it SmolLM2-135M cites nothing in 9 of 9 answers.
    """
    cited = {"type": "array", "items": {"enum": labels}, "minItems": 1, "maxItems": 2}
    form = {"passages": cited, "sentence": {"type": "string", "maxLength": 200}}
    one = {
        "type": "object",
        "properties": form,
        "required": list(form),
        "additionalProperties": False,
    }
    all_of_them = {"sentences": {"type": "array", "items": one, "maxItems": 3}}
    return {
        "type": "object",
        "properties": all_of_them,
        "required": ["sentences"],
        "additionalProperties": False,
    }


def checked(reply: str, passages: Mapping[str, str]) -> list[CheckedSentence]:
    """Return the sentences of a reply in that schema, each checked against the passages
    that it cites. A repeated sentence counts once, with what its last copy cites; an
    empty one is dropped. A reply of another form raises `ValueError`, `KeyError` or
    `TypeError`."""
    # Small models repeat sentences.
    cited = {
        one_line(row["sentence"]): row["passages"]
        for row in json.loads(reply)["sentences"]
    }
    return [_checked(text, labels, passages) for text, labels in cited.items() if text]


def _checked(
    text: str, named: Sequence[str], passages: Mapping[str, str]
) -> CheckedSentence:
    labels = tuple(dict.fromkeys(label for label in named if label in passages))
    reason = (
        _lack(text, " ".join(passages[label] for label in labels))
        if labels
        else "it cites no passage"
    )
    return CheckedSentence(text, labels, not reason, reason)


def _lack(text: str, cited: str) -> str:
    """Return which figures, else which names, of `text` the cited passages lack, else
    that they lack most of its words, or "".

    Words are compared, not what they mean."""
    figures = sorted(set(FIGURE.findall(text)) - set(FIGURE.findall(cited)))
    if figures:
        return f"its passages lack {', '.join(figures)}"
    language = guess_language(cited)
    folded = cited.casefold()
    # The first word of a sentence is capitalised anyway.
    rest = text.partition(" ")[2] or text
    names = [
        name
        for name in find_entities(rest, language=language)
        if name.casefold() not in folded
    ]
    if names:
        return f"its passages lack {', '.join(names)}"
    words = set(index_terms(text, language=language))
    held = words & set(index_terms(cited, language=language))
    if words and len(held) < SHARED_WORDS * len(words):
        return "its passages lack most of its words"
    return ""


def _written(statement: CheckedSentence) -> str:
    labels = "".join(f" [{label}]" for label in statement.labels)
    mark = "" if statement.supported else f" {MARKED}"
    return f"{statement.text}{labels}{mark}"
