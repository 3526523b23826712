"""What changed in a page's main text since it was read before, block by block.

What was read before lies in the cache of pages, each version under its handle
(`pipeline/fetch/handles.py`). A block is the same where its words are: one that only
moved has not changed. Counting texts is linear where an alignment of two hostile pages
is not. Not for: asking a site for its own history."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from errors import UsageError
from pipeline.document.page import Block, Document
from pipeline.fetch.handles import find_version, is_handle, page_handle
from pipeline.services import Services
from pipeline.text.frame import inert, one_line
from pipeline.work import in_thread

_SINCE: Final = re.compile(r"since\b[\s:]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Change:
    """A block that a page has gained or lost."""

    sign: str
    """`+` or `-`."""
    block: Block
    place: int
    """Index of the block in the new document; for a removed block that of the block
    before it."""

    @property
    def line(self) -> str:
        """The block as a unified diff has it.

        Of a prompt injection that was removed the words are left out."""
        lost_order = (
            self.sign == "-" and self.block.injection
        )  # removed prompt injections are not shown
        return (
            f"{self.sign} {'[…]' if lost_order else one_line(inert(self.block.text))}"
        )


async def earlier(
    documents: Sequence[Document], said: str, services: Services
) -> list[Document | None]:
    """Return each of `documents` as it was read before; None where no earlier reading
    is kept.

    `said` is `since` and an ISO day or time, or the handle of a page; without any it
    means the last other version. Raises `UsageError` where it is none of these,
    `SourceNotFound` for a handle that is unknown or has expired."""
    since = _SINCE.sub("", said, count=1).strip()
    if is_handle(since):
        return [
            await services.documents.read(await services.fetcher.fetch(since))
        ] * len(documents)
    try:
        day = datetime.fromisoformat(since) if since else None
    except ValueError as error:
        raise UsageError(
            f'part="changes since {since}" contains no date and no handle.',
            hint='Write part="changes since 2026-11-20" or part="changes since winnow://page/…".',
        ) from error
    when = (
        "" if day is None else (day.astimezone(UTC) if day.tzinfo else day).isoformat()
    )
    stores = (services.stores.pages, services.stores.own)
    before: list[Document | None] = []
    for one in documents:
        url, handle = one.page.final_url, page_handle(one.page)
        pages = [
            await in_thread(find_version, store, url, when, but=handle)
            for store in stores
        ]
        page = next(filter(None, pages), None)
        before.append(await services.documents.read(page) if page is not None else None)
    return before


def changes(before: Document, after: Document) -> list[Change]:
    """Return what the main text of `after` has gained and lost, in its order; removed
    text comes first.

    Text that only moved is left out."""
    old, new = _main(before), _main(after)
    gained = Counter(one.text for _, one in new) - Counter(one.text for _, one in old)
    lost = Counter(one.text for _, one in old) - Counter(one.text for _, one in new)
    found: list[Change] = []
    places: dict[str, int] = {}
    for index, one in new:
        if gained[one.text] > 0:
            gained[one.text] -= 1
            found.append(Change("+", one, index))
        else:
            places.setdefault(one.text, index)
    index = -1
    for _, one in old:
        if lost[one.text] > 0:
            lost[one.text] -= 1
            found.append(Change("-", one, index))
        else:
            index = places.get(one.text, index)
    return sorted(
        found,
        key=lambda change: (change.place + (change.sign == "-"), change.sign == "+"),
    )


def _main(document: Document) -> list[tuple[int, Block]]:
    return [
        (index, one)
        for index, one in enumerate(document.blocks)
        if one.main and one.kind != "about"
    ]
