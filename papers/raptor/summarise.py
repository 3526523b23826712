"""Summaries of clusters, written by a generator and checked (RAPTOR §3, App. C–E).

A written summary loses each sentence
with a number or a name that no child has, and each that the children do not support as
a statement. Not for: choosing what to summarise (`build.py`), nor the words of the
prompt (`prompts/`)."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from cache.store import Store
from models.protocols import Generator, Said
from papers.raptor.extract import ENDS, Summary
from papers.raptor.statements import supports
from pipeline.document.units import split_sentences
from pipeline.messages import CACHED_ANSWER_SECONDS
from pipeline.question.question import Question
from pipeline.reading.bm25 import PageUnits
from pipeline.reading.relevance import Blend, Reader
from pipeline.text.tokens import Budget, count_tokens, cut_to_tokens
from pipeline.text.words import index_terms, words
from pipeline.work import alone, in_thread
from prompts import Prompt, load

EXTRACTIVE: Final = "extractive"
WORDS_A_TOKEN: Final = 0.6
"""Words asked for, a token of room: English has 0.75, and models overshoot."""

_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_LETTERS_ONLY: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_WORD_OF_A_SENTENCE: Final = re.compile(
    r"(?<![\w'’])[^\W\d_][^\W\d_]+(?:['’][^\W\d_]+)?"
)


CHECKS: Final = 2
"""Raised when the checks of written summaries change: no old summary is then taken for a new
one."""
SUMMARY_SECONDS: Final = 20.0
"""Seconds that a small model on a processor takes to write a summary."""


@dataclass(frozen=True, slots=True)
class Writer:
    """A generator with the prompt that makes it summarise."""

    generator: Generator
    prompt: Prompt = field(default_factory=lambda: load("tree_summary"))
    """With places for `words` and `context`."""
    reader: Reader = field(default_factory=lambda: Blend(None))
    """What finds the sentences of the children that may support one of a summary."""
    patience: float = SUMMARY_SECONDS
    """Seconds after which a summary that another process began is written all the
    same."""

    @property
    def name(self) -> str:
        """Generator, prompt and checks; part of the key of every summary it wrote."""
        return f"{self.generator.name}:{self.prompt.version}:{CHECKS}"


async def kept_summary(
    writer: Writer, texts: Sequence[str], *, max_tokens: int, store: Store | None
) -> Summary:
    """Return the generator's summary of `texts`, kept in `store` by their content: the
    same texts are written once. It waits without limit for another process that writes
    it.

    Raises:
        ModelError: The generator failed.
    """
    digest = hashlib.blake2b(
        "\x00".join(texts).encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()
    key = f"summary:{writer.name}:{max_tokens}:{digest}"
    if store is None:
        return await write_summary(writer, texts, max_tokens=max_tokens)
    async with alone(
        store, key, partial(store.get_json, key), enough=bool, patience=writer.patience
    ) as (kept, _):
        if isinstance(kept, list) and kept:
            return Summary(str(kept[0]), (), tuple(map(str, kept[1:])))
        summary = await write_summary(writer, texts, max_tokens=max_tokens)
        await in_thread(
            store.set_json,
            key,
            [summary.text, *summary.unsupported],
            expire=CACHED_ANSWER_SECONDS,
        )
        return summary


async def write_summary(
    writer: Writer, texts: Sequence[str], *, max_tokens: int
) -> Summary:
    """Let the generator summarise `texts`; return what of it the texts support, nothing
    if that is less than half of its sentences. Texts over the generator's room are all
    cut by the same share.

    SmolLM2 of 135M parameters, on 11 clusters of a meeting, wrote 92 sentences, mostly
    one of them repeated; 15 have no other name or number, 13 are supported, and no
    summary keeps half. Of 44 sentences extracted from the clusters all are supported,
    of 44 from other clusters none.

    Raises:
        ModelError: The generator failed.
    """
    # Half of the context: the generator's tokens may be a third more than ours, and it writes into
    # the same room.
    room = max(1, writer.generator.context_tokens // 2 - max_tokens)
    total = sum(count_tokens(text) for text in texts)
    if total > room:
        # Every child keeps its share, so that none is left out.
        texts = [
            cut_to_tokens(text, max(1, count_tokens(text) * room // total))
            for text in texts
        ]
    asked = writer.prompt.fill(
        words=str(round(max_tokens * WORDS_A_TOKEN)), context="\n\n".join(texts)
    )
    # A third more than the bound, so that the last sentence ends; what is too long is left out.
    written = await writer.generator.generate(
        [Said("user", asked)], max_tokens=max_tokens * 4 // 3
    )
    said = " ".join(written.split())
    known = supported_part(said, "\n".join(texts), max_tokens=max_tokens)
    kept = await borne_out(known, texts, writer.reader)
    enough = 2 * len(_sentences(kept.text)) >= len(_sentences(said))
    return kept if enough else replace(kept, text="")


def supported_part(written: str, context: str, *, max_tokens: int) -> Summary:
    """Return the sentences of `written` whose numbers and names all occur in `context`,
    within `max_tokens`.

    The paper's annotators found 4 % of summaries with an invention (App. E), mostly an
    addition from elsewhere. Other sentences are returned as `unsupported`. Left out as
    well are sentences without an end, which were cut off, and those less than half of
    whose terms the children have: small models write about "the passage"."""
    said = {word.casefold() for word in _LETTERS_ONLY.findall(context)}
    numbers = {_plain(number) for number in _NUMBER.findall(context)}
    known = set(index_terms(context))
    kept: list[str] = []
    unsupported: dict[str, None] = {}
    budget = Budget(max_tokens)
    for sentence in _sentences(written):
        invented = _invented(sentence, said, numbers)
        unsupported.update(dict.fromkeys(invented))
        cost = count_tokens(sentence) + (1 if kept else 0)
        terms = set(index_terms(sentence))
        foreign = not terms or 2 * len(terms & known) < len(terms)
        if (
            sentence.endswith(ENDS)
            and not invented
            and not foreign
            and sentence not in kept
            and budget.spend(cost)
        ):
            kept.append(sentence)
    return Summary(" ".join(kept), (), tuple(unsupported))


def _invented(sentence: str, said: set[str], numbers: set[str]) -> list[str]:
    """Return the numbers and names of a sentence that are not among the known ones."""
    return [
        *(mark for mark in _NUMBER.findall(sentence) if _plain(mark) not in numbers),
        *(name for name in _names(sentence) if not _is_known(name, said)),
    ]


async def borne_out(summary: Summary, texts: Sequence[str], reader: Reader) -> Summary:
    """Return a summary without the sentences that `texts` do not support as statements.

    Raises:
        ModelError: The reader's model failed.
    """
    units = _sentences("\n".join(texts))
    page = PageUnits(units, [""] * len(units))
    kept: list[str] = []
    for sentence in _sentences(summary.text):
        asked = Question(sentence)
        relevance = await reader.read(asked, [page])
        if await in_thread(supports, asked, units, relevance):
            kept.append(sentence)
    return replace(summary, text=" ".join(kept))


def _sentences(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in split_sentences(text)]


def _plain(number: str) -> str:
    """A number without the marks between its thousands, which writers set as they
    please."""
    return re.sub(r"(?<=\d)[.,](?=\d{3}(?!\d))", "", number)


def _names(sentence: str) -> list[str]:
    """Return the words that begin with a capital; the one that opens the sentence only
    if it is not a common opening. Scripts without capitals have none."""
    found = [
        word for word in _WORD_OF_A_SENTENCE.findall(sentence) if word[0].isupper()
    ]
    first = _LETTERS_ONLY.match(sentence.lstrip("\"'“‘«(*- "))
    if (
        first
        and first.group() in found
        and (
            not index_terms(first.group())
            or first.group().lower() in words("summary.openings")
        )
    ):
        found.remove(first.group())
    return found


def _is_known(name: str, said: set[str]) -> bool:
    """Whether the name, without a possessive ending or a plural's, is among the words
    `said`."""
    plain = re.sub(r"['’]s?$", "", name.casefold())
    return not said.isdisjoint((plain, f"{plain}s", plain.removesuffix("s")))
