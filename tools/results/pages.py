"""The result of `fetch_and_prune_html`, and the lines of its answer on how to go on."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from pipeline.evidence.show import Sheet
from pipeline.fetch.handles import page_handle
from pipeline.read_pages import PagesRead
from pipeline.text.frame import one_line
from readers.page import Trust
from tools.common.ending import Ending, write_next
from tools.common.results import (
    HIDDEN,
    INJECTION,
    TRUST,
    Next,
)


class PrunedPageInfo(BaseModel):
    """One page of the answer; the text has it under its number."""

    number: int = Field(description="Number in the text")
    url: str
    handle: str = Field(
        description="Pass it as a source to later calls; the resource of this name is the whole "
        "cleaned page"
    )
    published: str = Field(description="ISO date, empty when unknown")
    language: str
    notes: list[str]
    trust: Trust = Field(default="visible", description=TRUST)
    hidden: int = Field(default=0, description=HIDDEN)
    injection: bool = Field(default=False, description=INJECTION)


class FetchAndPruneResult(BaseModel):
    """Structured result of `fetch_and_prune_html`."""

    pages: list[PrunedPageInfo]
    next_cursor: str = Field(
        description="Pass it as cursor for the next part; empty when nothing is left"
    )
    around_cursor: str = Field(
        default="",
        description="Cursor of the content around the main text: menus, teasers, comments",
    )
    around: int = Field(
        default=0,
        description="Parts around the main content, which around_cursor leads to",
    )
    left_out: int = Field(
        default=0, description="Parts of the pages that are in no answer yet"
    )
    failures: list[str] = Field(
        description="Pages that could not be read, with the reason"
    )
    scored_by: str = ""
    next: list[Next] = Field(description="Follow-up calls, best first")
    tokens: int = Field(description="Tokens of the text")


def pages_result(read: PagesRead, cursor: str, ending: Ending) -> FetchAndPruneResult:
    """Return the result; `cursor` leads to the next answer."""
    pruned = read.pruned
    facts: dict[str, object] = {
        "pages": [_page(read, number) for number in range(len(read.documents))],
        "next_cursor": cursor if pruned.parts_left else "",
        "around_cursor": _around_cursor(read, cursor),
        "around": 0 if pruned.parts_left else pruned.around,
        "left_out": pruned.left_out if pruned.parts_left else 0,
        "scored_by": pruned.scored_by,
    }
    return FetchAndPruneResult.model_validate(facts | ending.facts)


def write_further(
    read: PagesRead,
    cursor: str,
    following: Sequence[Next],
    sheet: Sheet,
) -> None:
    """Write the calls that go on, the number of parts left out if there is room, and
    what scored beside the core.

    A short answer has room for its cursor only. After the main content another call
    reads the content around it.
    """
    pruned, menu_cursor = read.pruned, _around_cursor(read, cursor)
    brief = f"Around it: cursor={menu_cursor}"
    if pruned.pages and read.short:
        sheet.add(
            f"More ({pruned.left_out}): cursor={cursor}"
            if pruned.parts_left
            else brief
            if menu_cursor
            else ""
        )
    else:
        write_next(sheet, following, "fetch_and_prune_html")
        if pruned.parts_left:
            count = pruned.left_out
            sheet.add(f"Left out: {count} further part{'s' * (count != 1)}.")
        if menu_cursor:
            ends = f"Main content ends here. Around it, {pruned.around} parts: the same call with"
            _ = sheet.add(f"{ends} cursor={menu_cursor}") or sheet.add(brief)
    if pruned.scored_by:
        sheet.add_cut(f"Scores: words, embeddings, {one_line(pruned.scored_by)}.")


def _around_cursor(read: PagesRead, cursor: str) -> str:
    return cursor if read.pruned.around and not read.pruned.parts_left else ""


def _page(read: PagesRead, number: int) -> PrunedPageInfo:
    document = read.documents[number]
    page = document.page
    page_kept = next(
        (page_text for page_text in read.pruned.pages if page_text.document == number),
        None,
    )
    return PrunedPageInfo(
        number=number + 1,
        url=page.final_url,
        handle=page_handle(page),
        published=page.published,
        language=page.language,
        notes=list(page.notes),
        trust=page.trust,
        hidden=page.hidden,
        injection=page_kept is not None and read.is_injection(page_kept),
    )
