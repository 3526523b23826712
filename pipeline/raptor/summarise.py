"""Summaries of clusters: sentences taken over verbatim, or written by a generator and checked (RAPTOR §3, App. C–E).

Extraction takes sentences that carry the words most children share and that repeat nothing chosen before; every one
keeps its place. A written summary loses each sentence with a number or a name that no child has. Not for: choosing
what to summarise (`build.py`), nor the words of the prompt (`prompts/`).
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from models.protocols import Generator
from pipeline.extract.sentences import split_sentences
from pipeline.raptor.tree import Quote
from pipeline.tokens import count_tokens, cut_to_tokens

EXTRACTIVE: Final = "extractive"
SHORTEST: Final = 6
LONGEST: Final = 70
"""Tokens of a sentence that can stand in a summary: shorter ones are headings and cries, longer ones lists."""
REPEATED: Final = 0.25
"""What a word is still worth once a chosen sentence has it (SumBasic squares it; this is about the same here)."""
FIRST_BONUS: Final = 1.15
"""Sentences that open a leaf say what it is about a little more often."""
MOST_CANDIDATES: Final = 400
"""Sentences looked at for one summary; a cluster within the window holds about 150."""

_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME: Final = re.compile(r"(?<![.!?]\s)(?<!^)\b[^\W\d_a-zß-öø-ÿ][\w’'-]+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence of a child that a summary may take over."""

    quote: Quote
    text: str
    """The sentence on one line."""
    terms: tuple[int, ...]
    """Its term numbers, repeats kept."""
    likeness: float
    """Cosine of its leaf to the cluster's centre."""
    opens: bool
    """Whether it is the first sentence of its leaf."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The text of an inner node."""

    text: str
    quotes: tuple[Quote, ...]
    """Where each sentence stands, for an extractive summary; empty for a written one."""


@dataclass(frozen=True, slots=True)
class Writer:
    """A generator with the prompt that makes it summarise."""

    generator: Generator
    prompt: str
    """The user's message; `{context}` is replaced by the children's texts."""
    system: str = ""

    @property
    def name(self) -> str:
        """Generator and prompt; part of the key of every summary it wrote."""
        digest = hashlib.blake2b(f"{self.system}\x00{self.prompt}".encode(), digest_size=6).hexdigest()
        return f"{self.generator.name}:{digest}"


@dataclass(frozen=True, slots=True)
class _Message:
    role: Literal["system", "user", "assistant"]
    content: str


def extract_summary(candidates: Sequence[Candidate], idf: NDArray[np.float64], *, max_tokens: int) -> Summary:
    """Return the most central sentences that do not repeat each other, in reading order.

    Args:
        candidates: Sentences of the children, in reading order.
        idf: Inverse document frequency by term number.
        max_tokens: Most tokens of the summary; at least one sentence is taken, cut if it must be.
    """
    usable = _usable(candidates)
    children = Counter(term for terms in _terms_by_leaf(usable).values() for term in terms)
    worth = {term: count * float(idf[term]) for term, count in children.items()}
    chosen: list[int] = []
    room = max_tokens
    costs = [count_tokens(candidate.text) for candidate in usable]
    waiting = set(range(len(usable)))
    while waiting:
        best = max(waiting, key=lambda i: (_value(usable[i], worth), -i))
        if _value(usable[best], worth) <= 0 and chosen:
            break
        waiting.remove(best)
        cost = costs[best] + (1 if chosen else 0)
        if cost > room:
            waiting = {i for i in waiting if costs[i] + 1 <= room}
            continue
        chosen.append(best)
        room -= cost
        for term in set(usable[best].terms):
            worth[term] *= REPEATED
        waiting = {i for i in waiting if costs[i] + 1 <= room}
    if not chosen:
        first = usable[0]
        return Summary(cut_to_tokens(first.text, max_tokens), (first.quote,))
    chosen.sort()
    return Summary(" ".join(usable[i].text for i in chosen), tuple(usable[i].quote for i in chosen))


def _usable(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates of fair length, each text once; all of them where none is."""
    if len(candidates) > MOST_CANDIDATES:
        candidates = sorted(candidates, key=lambda c: -c.likeness)[:MOST_CANDIDATES]
        candidates = sorted(candidates, key=lambda c: (c.quote.leaf, c.quote.start))
    once: dict[str, Candidate] = {}
    for candidate in candidates:
        if SHORTEST <= count_tokens(candidate.text) <= LONGEST and candidate.terms:
            once.setdefault(candidate.text, candidate)
    return list(once.values()) or list(candidates)


def _terms_by_leaf(candidates: Sequence[Candidate]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for candidate in candidates:
        found.setdefault(candidate.quote.leaf, set()).update(candidate.terms)
    return found


def _value(candidate: Candidate, worth: dict[int, float]) -> float:
    """Worth of the words, damped by the square root of their number so that length neither helps nor hurts much."""
    distinct = set(candidate.terms)
    if not distinct:
        return 0.0
    carried = sum(worth[term] for term in distinct) / math.sqrt(len(distinct))
    return carried * (0.5 + max(0.0, candidate.likeness)) * (FIRST_BONUS if candidate.opens else 1.0)


async def write_summary(writer: Writer, texts: Sequence[str], *, max_tokens: int) -> str:
    """Let the generator summarise `texts`; return what of it the texts bear out, possibly nothing.

    Raises:
        ModelError: The generator failed.
    """
    context = "\n\n".join(texts)
    messages = [_Message("user", writer.prompt.replace("{context}", context))]
    if writer.system:
        messages.insert(0, _Message("system", writer.system))
    written = await writer.generator.generate(messages, max_tokens=max_tokens)
    return borne_out(" ".join(written.split()), context, max_tokens=max_tokens)


def borne_out(written: str, context: str, *, max_tokens: int) -> str:
    """Return the sentences of `written` whose numbers and names all stand in `context`, within `max_tokens`.

    The paper's annotators found 4 % of summaries with an invention (App. E); most are an added number or name.
    """
    known = context.casefold()
    kept: list[str] = []
    used = 0
    for start, end in split_sentences(written):
        sentence = written[start:end].strip()
        marks = [*_NUMBER.findall(sentence), *_NAME.findall(sentence)]
        cost = count_tokens(sentence) + (1 if kept else 0)
        if sentence and all(mark.casefold() in known for mark in marks) and used + cost <= max_tokens:
            kept.append(sentence)
            used += cost
    return " ".join(kept)
