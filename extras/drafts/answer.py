"""Draft mode of `extract_relevant`: look up quotations, statements and references in
the sources.

Not for: what is looked up of each (`extras/drafts/check.py`).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from mcp_types import CallToolResult

from errors import UsageError
from extras.drafts.check import COMPLETE, Checked, check
from extras.drafts.draft import Draft, read_draft
from pipeline.evidence.show import FIRST, Sheet, shortened
from pipeline.fetch.handles import page_handle
from pipeline.prune.prune import UNASKED_PAGE
from pipeline.services import Services
from pipeline.session.session import SESSION_SCHEME, find_session
from pipeline.sources.gather import Loaded, load_sources
from pipeline.text.frame import (
    SAID_TOKENS,
    address,
    new_delimiter,
    notice,
    quoted,
)
from pipeline.work import LONG_SHARE, in_thread
from tools.common.context import (
    ToolContext,
    owner_of,
    reporter,
    services_of,
)
from tools.common.ending import Ending, larger, result_of
from tools.common.results import DraftItem
from tools.results.sentences import ExtractRelevantResult

CHECKING_TOOL: Final = "extract_relevant"
_Nearest = list[tuple[str, int]]
"""Of each item: its nearest passage, or the number of an earlier item that has it."""
SOURCE_WORDS_TOKENS: Final = 80
"""Maximum tokens of the nearest passage of an item: two sentences of a report."""


async def check_draft(
    draft: str, sources: Sequence[str], ctx: ToolContext, max_tokens: int
) -> CallToolResult:
    """Check `draft` against `sources` and those that it cites.

    Raises:
        UsageError: The draft has nothing to check, or no sources are given.
        SourceError: Sources were named, and none could be read.
    """
    services, report = services_of(ctx), reporter(ctx)
    parsed = await in_thread(read_draft, draft)
    if not parsed.quotes and not parsed.statements:
        raise UsageError(
            "The draft contains no sentence.",
            hint="Give its text as Markdown or plain text.",
        )
    # 1. The sources that are named, or that the draft names
    addresses = await in_thread(_named, sources, parsed, services, owner_of(ctx))
    if not addresses:
        raise UsageError(
            "The draft cites no URL, and no sources are given.",
            hint="Name the sources: URLs, files, folders or a session.",
        )
    seconds = services.seconds * LONG_SHARE
    loaded = await load_sources(
        addresses, services, seconds=seconds, report=report, needed=bool(sources)
    )
    # 2. Each item
    unread = {failure.source: failure for failure in loaded.failures}
    documents = {
        name: document
        for document in loaded.documents
        for name in (document.page.final_url, document.page.url)
    }
    checked = await check(parsed, documents, unread, reader=services.reader)
    # 3. What lacks something first, then what the reader has to compare
    ordered = sorted(
        checked,
        key=lambda result: (not result.lacks, result.outcome in COMPLETE),
    )
    budget = max_tokens or UNASKED_PAGE
    nearest = _nearest(ordered)
    sheet, written = await in_thread(_sheet, ordered, nearest, parsed.uncited, budget)
    following = larger(CHECKING_TOOL, budget) if written < len(checked) else []
    ending = Ending(CHECKING_TOOL, sheet, following, loaded.failures)
    ending.write(hinted=False)
    facts = _facts(ordered, loaded, written) | ending.facts
    return result_of(sheet.text, ExtractRelevantResult.model_validate(facts))


def _facts(
    checked: Sequence[Checked], loaded: Loaded, written: int
) -> dict[str, object]:
    """Return the fields of the result, with the first `written` items."""
    found = sum(result.outcome in COMPLETE for result in checked)
    pages = [document.page for document in loaded.documents[:FIRST]]
    return {
        "answered": found == len(checked),
        "verdict": "answered" if found == len(checked) else "unsure",
        "reason": _counted(checked),
        "confidence": round(found / len(checked), 2),
        "passages": [],
        "pages": [address(page.final_url) for page in pages],
        "handles": [page_handle(page) for page in pages],
        "left_out": len(checked) - written,
        "checked": [
            DraftItem(
                number=number,
                kind=result.kind,
                outcome=result.outcome,
                lacks=result.lacks,
                citation=result.citation,
            )
            for number, result in enumerate(checked[:written], 1)
        ],
    }


def _named(
    sources: Sequence[str], draft: Draft, services: Services, owner: str
) -> list[str]:
    """Return the sources to read: the given ones, the pages of a session handle, and
    the draft's citations.

    Raises `UsageError` for a session that is unknown, another owner's, or has a file
    outside the folders.
    """
    addresses: list[str] = []
    for source in (*sources, *draft.references):
        if not source.startswith(SESSION_SCHEME):
            addresses.append(source)
            continue
        session = find_session(
            services.stores, source, owner=owner, roots=services.roots
        )
        if session is None:
            raise UsageError(
                f"There is no session {source} here.",
                hint="Pass the sources themselves.",
            )
        addresses += [page.final_url for page in session.pages]
    return list(dict.fromkeys(addresses))


def _sheet(
    checked: Sequence[Checked], nearest: _Nearest, uncited: int, max_tokens: int
) -> tuple[Sheet, int]:
    """Write as many items as fit, each with the source's words below; return their
    number.

    Stops at the first item that does not fit; a line then gives the number of those
    left out.
    """
    delimiter = new_delimiter()
    sheet = Sheet(max_tokens)
    sheet.add(_counted(checked))
    if uncited:
        sheet.add(
            f"Not looked up: {uncited} statement{'s' * (uncited != 1)} that cite"
            f"{'s' * (uncited == 1)} no source, beside others that do. To look them up, "
            f"pass them alone."
        )
    sheet.add(notice(delimiter))
    written = 0
    for number, (result, (words, earlier)) in enumerate(
        zip(checked, nearest, strict=True), 1
    ):
        lines = [
            f"[{number}] {result.kind}, {result.outcome}: "
            f"{quoted(shortened(result.text, SAID_TOKENS), delimiter)}"
        ]
        if result.note:
            lines.append(quoted(result.note, delimiter))
        if earlier:
            lines.append(f"Nearest: as of [{earlier}]")
        elif words and result.citation:
            lines.append(
                f"Nearest: {quoted(words, delimiter)} {address(result.citation)}"
            )
        if not sheet.add("\n".join(lines)):
            break
        written += 1
    if written < len(checked):
        sheet.add(
            f"Results left out: {len(checked) - written}. Repeat with a larger max_tokens."
        )
    return sheet, written


def _nearest(checked: Sequence[Checked]) -> _Nearest:
    """Return the nearest passage of each item, cut, or the number of an earlier item
    that has it; "" and 0 for none."""
    numbers: dict[str, int] = {}
    nearest: _Nearest = []
    for number, result in enumerate(checked, 1):
        words = shortened(result.words, SOURCE_WORDS_TOKENS)
        earlier = numbers.setdefault(words, number) if words else number
        nearest.append((words, 0) if earlier == number else ("", earlier))
    return nearest


def _counted(checked: Sequence[Checked]) -> str:
    counts = Counter(result.outcome for result in checked)
    return (
        f"Checked {len(checked)}: "
        f"{', '.join(f'{count} {outcome}' for outcome, count in counts.items())}."
    )
