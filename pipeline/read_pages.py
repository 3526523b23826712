"""Named sources, cut to a budget and written as an answer: pages pruned to a question,
or a part of them that is named.

Not for: pruning (`pipeline/prune`), and finding a named part (`sources/places.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pipeline.evidence.forms import Form
from pipeline.evidence.show import (
    FIRST,
    FRAME_SHARE,
    HINT_TOKENS,
    ROOMY,
    WIDE,
    Head,
    Sheet,
    hint_room,
    injection_line,
    notice_within,
    page_head,
)
from pipeline.printed import printed
from pipeline.prune.prune import Pruned, PrunedPage, PruneOptions, prune
from pipeline.question.question import Question
from pipeline.reading.extract import left_unread
from pipeline.services import Services
from pipeline.sources.gather import Loaded, load_sources, room_for, unwrapped
from pipeline.sources.places import (
    TABLE_PARTS,
    all_read,
    load_folders,
    named_pages,
    read_from_address,
    read_part,
    split_part,
)
from pipeline.text.frame import framed, is_injection, new_delimiter
from pipeline.text.tokens import count_tokens
from pipeline.work import LONG_SHARE, STEP_SHARE, Report, in_thread
from readers.page import Document, Failure

CURSOR_TOKENS: Final = 15
"""Tokens reserved below `ROOMY` for the cursor, which is needed to read the rest."""


@dataclass(frozen=True, slots=True)
class PagesOrder:
    """What of the sources is wanted, and in which form."""

    question: Question
    """What to look for; empty reads from the top."""
    part: str = ""
    """Instead of the question: a named part."""
    form: Form = "markdown"
    max_tokens: int = 0
    """0: as many as help."""
    number: int = 1
    """Number of this answer, among those that go on from each other."""


@dataclass(frozen=True, slots=True)
class PagesRead:
    """The answer; its sheet has room for what follows it."""

    sheet: Sheet
    documents: Sequence[Document]
    failures: Sequence[Failure]
    pruned: Pruned
    named: bool
    """Whether a named part was read."""
    short: bool
    """Whether the sheet has room for a cursor only."""

    def is_injection(self, page: PrunedPage) -> bool:
        """Return whether title or text of a page may be a prompt injection."""
        title = self.documents[page.document].page.title
        return is_injection(f"{title}\n{page.text}")


async def read_pages(
    sources: Sequence[str], order: PagesOrder, services: Services, report: Report
) -> PagesRead:
    """Return the sources, pruned to the question or cut to the part.

    Raises what `load_sources` and `read_part` raise.
    """
    # 1. Read the sources
    budget = order.max_tokens
    wide = budget or WIDE
    loaded, section = await _load(sources, order, services, report)
    # 2. Reserve room for heads and notes
    delimiter = new_delimiter()
    heads = _heads(loaded.documents, wide, delimiter)
    unread = room_for(loaded.failures, wide)
    frame = _frame_tokens(notice_within(delimiter, wide), heads, delimiter)
    hint = _hint(section, budget)
    room = max(0, budget - frame - hint - unread) if budget else None
    # 3. Read the requested part, or prune all pages together to the remaining budget
    if section:
        reader = partial(
            read_part,
            form=order.form,
            max_tokens=room,
            number=order.number,
        )
        pruned = await in_thread(reader, loaded.documents, section)
    else:
        options = PruneOptions(room, order.form, order.number)
        pruned = await _pruned(loaded.documents, order.question, options, services)
    late = left_unread(pruned.reading, loaded.documents) if pruned.reading else ()
    # 4. Write them
    size = budget or pruned.budget + frame + hint_room(WIDE) + unread
    read = PagesRead(
        Sheet(size),
        loaded.documents,
        (*loaded.failures, *late),
        pruned,
        named=bool(section),
        short=hint == CURSOR_TOKENS,
    )
    _write_pages(read, heads, notice_within(delimiter, size), delimiter)
    return read


def _frame_tokens(notice: str, heads: Sequence[Head], delimiter: str) -> int:
    """Return the tokens of what is written around the pages."""
    heads_tokens = sum(count_tokens(head.over(".", delimiter)) + 1 for head in heads)
    return heads_tokens + count_tokens(notice)


def _hint(section: str, max_tokens: int) -> int:
    """Return the tokens reserved for follow-up calls."""
    # A truncated part without a note would look complete.
    if section:
        return HINT_TOKENS
    return CURSOR_TOKENS if 0 < max_tokens < ROOMY else hint_room(max_tokens)


async def _load(
    sources: Sequence[str], order: PagesOrder, services: Services, report: Report
) -> tuple[Loaded, str]:
    """Return the documents of the sources, and the part still to read."""
    section = order.part.strip()
    kind, request = split_part(section) if section else ("", "")
    sources = list(map(unwrapped, sources))
    seconds = services.seconds * LONG_SHARE
    if kind == "files":
        return await load_folders(sources, services), section
    if kind == "pages":
        sources, section = named_pages(sources, request), ""
    loaded = await load_sources(
        sources, services, seconds=seconds, report=report, question=order.question
    )
    return all_read(loaded) if kind in TABLE_PARTS else loaded, section


async def _pruned(
    documents: Sequence[Document],
    question: Question,
    options: PruneOptions,
    services: Services,
) -> Pruned:
    led = None if question else await in_thread(read_from_address, documents, options)
    if led is not None:
        return led
    if services.pruning != "winnow":
        by_blocks: Pruned = await printed("prune_by_blocks")(
            documents,
            question,
            options,
            embedder=services.embedder,
            generator=services.generator,
            seconds=services.seconds * STEP_SHARE,
            setting=services.pruning,
        )
        # The paper knows no blocks but texts: a page of described images has none, and is read as
        # others are.
        if by_blocks.pages or by_blocks.left_out or options.part > 1:
            return by_blocks
    return await prune(documents, question, options=options, reader=services.reader)


def _heads(
    documents: Sequence[Document], max_tokens: int, delimiter: str
) -> list[Head]:
    """Return one head for each page, cut to its share of the budget; none is left out.
    `documents` must not be empty."""
    delimiters = count_tokens(notice_within(delimiter, max_tokens)) + len(documents) * (
        count_tokens(framed(".", delimiter)) + 2
    )
    room = max(
        1,
        (int(FRAME_SHARE * max_tokens) - hint_room(max_tokens) - delimiters)
        // len(documents),
    )
    return [
        page_head(number, document.page, room)
        for number, document in enumerate(documents, start=1)
    ]


def _write_pages(
    read: PagesRead, heads: Sequence[Head], notice: str, delimiter: str
) -> None:
    sheet, pruned = read.sheet, read.pruned
    if pruned.pages:
        sheet.add(notice)
    for page in pruned.pages:
        lines = [page.said, *(heads[document].above for document in page.also)]
        sheet.add(
            "\n".join(
                (*filter(None, lines), heads[page.document].over(page.text, delimiter))
            )
        )
    sheet.add(
        injection_line(
            str(page.document + 1) for page in pruned.pages if read.is_injection(page)
        )
    )
    written = {index for page in pruned.pages for index in (page.document, *page.also)}
    bare: dict[str, list[int]] = {}
    for index, document in enumerate(read.documents):
        if index not in written:
            why = (
                "nothing of this page is shown"
                if document.blocks
                else "the page contains no visible text"
            )
            bare.setdefault(why, []).append(index)
    for why, places in bare.items():
        # Dozens of page heads would fill the answer.
        if len(places) > FIRST:
            sheet.add_cut(f"{len(places)} further pages ({why})")
        else:
            sheet.add_cut(
                "\n".join(f"{heads[index].above} ({why})" for index in places)
            )
