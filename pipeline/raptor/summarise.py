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
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from models.protocols import Generator
from pipeline.raptor.tree import UNUSED_SECONDS, Quote
from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import count_tokens, cut_to_tokens
from pipeline.text.words import index_terms
from pipeline.work import in_thread
from prompts import Prompt, load

EXTRACTIVE: Final = "extractive"
SHORTEST: Final = 6
LONGEST: Final = 70
"""Tokens of a sentence that can stand in a summary: shorter ones are headings and cries, longer ones lists."""
REPEATED: Final = 0.25
"""What a word is still worth once a chosen sentence has it (SumBasic squares it; this is about the same here)."""
FRAGMENT: Final = 0.3
"""What rows of tables, headings and captions are worth: their words are shared, but they say little alone.

With `HEARD`, words of the answers to the 19 questions about whole meetings at 500, 1,000, 2,000 tokens: .321, .429,
.553; without either .298, .418, .555; no difference is beyond its interval. On pages with tables the summaries of the
upper layers are sentences of several pages then, and no rows of one."""
HEARD: Final = 0.5
"""What the sentences of a child that is itself a summary are still worth for each that was taken of it already."""
FIRST_BONUS: Final = 1.15
"""Sentences that open a leaf say what it is about a little more often."""
MOST_CANDIDATES: Final = 400
"""Sentences looked at for one summary; a cluster within the window holds about 150."""

READ_SHARE: Final = 0.7
"""Part of a generator's context that the children may fill, counted by our tokens; its own may be a third more."""
WORDS_A_TOKEN: Final = 0.6
"""Words asked for, a token of room: English has 0.75, and models overshoot."""
SPARE_TOKENS: Final = 40
"""Tokens a generator may write over the bound, so that its last sentence ends; what is too long is left out."""
MOST_UNBORNE: Final = 8
BORNE_SHARE: Final = 0.5
"""Part of a written sentence's terms that the children must have. SmolLM2-135M writes sentences about "the passage";
a paraphrase shares more than half of its stems with what it says anew."""

_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NAME: Final = re.compile(r"(?<![\w'’])(?![a-zß-öø-ÿ])[^\W\d_][^\W\d_]+(?:['’][^\W\d_]+)?")
_ENDS: Final = tuple('.!?。！？…"”»)')
_OPENING_WORDS: Final = (
    "according additionally also although another based because besides both despite during each finally firstly "
    "furthermore generally given however including instead key lastly later main many meanwhile moreover most "
    "notably one other others overall people secondly several similarly since some specifically such summary text "
    "therefore though through throughout thus together two unlike various when whereas while"
)
_OPENINGS: Final = frozenset(_OPENING_WORDS.split())
"""Words that open a sentence about anything; stop words do so as well."""


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
    child: int = 0
    """Which summary below shows it, counted from 1; 0 for a leaf of the node's own."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The text of an inner node."""

    text: str
    quotes: tuple[Quote, ...]
    """Where each sentence stands, for an extractive summary; empty for a written one."""
    unborne: tuple[str, ...] = ()
    """Numbers and names of a written summary that no child has."""


@dataclass(frozen=True, slots=True)
class Writer:
    """A generator with the prompt that makes it summarise."""

    generator: Generator
    prompt: Prompt = field(default_factory=lambda: load("tree_summary"))
    """With places for `words` and `context`."""

    @property
    def name(self) -> str:
        """Generator and prompt; part of the key of every summary it wrote."""
        return f"{self.generator.name}:{self.prompt.version}"


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
    heard: Counter[int] = Counter()
    chosen: list[int] = []
    room = max_tokens
    costs = [count_tokens(candidate.text) for candidate in usable]
    waiting = set(range(len(usable)))
    while waiting:
        best = max(waiting, key=lambda i: (HEARD ** heard[usable[i].child] * _value(usable[i], worth), -i))
        if _value(usable[best], worth) <= 0 and chosen:
            break
        waiting.remove(best)
        cost = costs[best] + (1 if chosen else 0)
        if cost > room:
            waiting = {i for i in waiting if costs[i] + 1 <= room}
            continue
        chosen.append(best)
        room -= cost
        heard[usable[best].child] += 1
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
    whole = 1.0 if candidate.text.endswith(_ENDS) else FRAGMENT
    return carried * whole * (0.5 + max(0.0, candidate.likeness)) * (FIRST_BONUS if candidate.opens else 1.0)


async def kept_summary(writer: Writer, texts: Sequence[str], *, max_tokens: int, store: Store | None) -> Summary:
    """Return the generator's summary of `texts`, kept in `store` by their content: the same texts are written once.

    Raises:
        ModelError: The generator failed.
    """
    digest = hashlib.blake2b("\x00".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    key = f"summary:{writer.name}:{max_tokens}:{digest}"
    kept = await in_thread(store.get_json, key) if store else None
    if isinstance(kept, list) and kept:
        return Summary(str(kept[0]), (), tuple(map(str, kept[1:])))
    summary = await write_summary(writer, texts, max_tokens=max_tokens)
    if store:
        await in_thread(store.set_json, key, [summary.text, *summary.unborne], expire=UNUSED_SECONDS)
    return summary


async def write_summary(writer: Writer, texts: Sequence[str], *, max_tokens: int) -> Summary:
    """Let the generator summarise `texts`; return what of it the texts bear out, possibly nothing.

    Raises:
        ModelError: The generator failed.
    """
    room = max(1, int(READ_SHARE * writer.generator.context_tokens) - 2 * max_tokens)
    total = sum(count_tokens(text) for text in texts)
    if total > room:
        # Every child keeps its share, so that none goes unheard.
        texts = [cut_to_tokens(text, max(1, count_tokens(text) * room // total)) for text in texts]
    asked = writer.prompt.fill(words=str(round(max_tokens * WORDS_A_TOKEN)), context="\n\n".join(texts))
    written = await writer.generator.generate([_Message("user", asked)], max_tokens=max_tokens + SPARE_TOKENS)
    return borne_out(" ".join(written.split()), "\n".join(texts), max_tokens=max_tokens)


def borne_out(written: str, context: str, *, max_tokens: int) -> Summary:
    """Return the sentences of `written` whose numbers and names all stand in `context`, within `max_tokens`.

    The paper's annotators found 4 % of summaries with an invention (App. E), mostly an addition from elsewhere. What
    stands in no child is told in `unborne`; a sentence without an end was cut off and is left out as well.
    """
    words = {word.casefold() for word in _WORD.findall(context)}
    numbers = {_plain(number) for number in _NUMBER.findall(context)}
    known = set(index_terms(context))
    kept: list[str] = []
    unborne: dict[str, None] = {}
    room = max_tokens
    for start, end in split_sentences(written):
        sentence = written[start:end].strip()
        invented = [mark for mark in _NUMBER.findall(sentence) if _plain(mark) not in numbers]
        invented += [name for name in _names(sentence) if not _is_known(name, words)]
        unborne.update(dict.fromkeys(invented))
        cost = count_tokens(sentence) + (1 if kept else 0)
        terms = set(index_terms(sentence))
        foreign = not terms or len(terms & known) < BORNE_SHARE * len(terms)
        if sentence.endswith(_ENDS) and not invented and not foreign and cost <= room and sentence not in kept:
            kept.append(sentence)
            room -= cost
    return Summary(" ".join(kept), (), tuple(unborne)[:MOST_UNBORNE])


def _plain(number: str) -> str:
    """A number without the marks between its thousands, which writers set as they please."""
    return re.sub(r"(?<=\d)[.,](?=\d{3}(?!\d))", "", number)


def _names(sentence: str) -> list[str]:
    """Words with a capital; the one that opens the sentence only where it is no common opening."""
    found = _NAME.findall(sentence)
    first = _WORD.match(sentence.lstrip("\"'“‘«(*- "))
    if first and first.group() in found and (not index_terms(first.group()) or first.group().lower() in _OPENINGS):
        found.remove(first.group())
    return found


def _is_known(name: str, words: set[str]) -> bool:
    """Whether the name, without a possessive ending, or every part of it stands among `words`."""
    plain = re.sub(r"['’]s?$", "", name.casefold())
    return plain in words or f"{plain}s" in words or plain.removesuffix("s") in words
