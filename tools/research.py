"""The tool `research`: the whole zero-index pipeline in one call

Not for: writing the answer; it returns the enriched prompt, and the caller writes.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final, Literal

from mcp_types import CallToolResult
from pydantic import Field

from pipeline.document.cite import count_origins
from pipeline.document.page import SearchQuery
from pipeline.evidence.assemble import UNASKED
from pipeline.evidence.show import HINT_TOKENS, WIDE, Sheet, hint_room
from pipeline.question.question import Question
from pipeline.question.turns import refers_back
from pipeline.question.wants import is_site, split_sites
from pipeline.research import Researched
from pipeline.research import research as run
from pipeline.services import Services
from pipeline.session.session import AskedPart as Asked
from pipeline.session.session import Ongoing
from pipeline.sources.gather import Wanted, site_step
from pipeline.text.frame import one_line
from pipeline.work import Report
from tools.common.answer import (
    Ending,
    behind,
    failures_of,
    larger,
    notes_of,
    provider_line,
    repeated,
)
from tools.common.answer import answer as reply
from tools.common.context import (
    BUDGET,
    ToolContext,
    check_budget,
    owner_of,
    reporter,
    services_of,
)
from tools.common.results import APART, Found, Next, Part, found_in
from tools.common.tool import Tool
from tools.common.view import draw_evidence

NAME: Final = "research"
MOST_PAGES_READ: Final = 20
USUAL_PAGES_READ: Final = 8
"""Pages read where a caller names no number."""
ALL_FILES: Final = frozenset({"folder"})
"""Providers that rank every passage they have, so that more pages are no better
pages."""
REFERS_BACK: Final = (
    "The question refers to an earlier one: pass that answer's session, or name what is "
    "meant."
)
SESSION_FROM: Final = 1_000
"""Minimum max_tokens of an answer with a session line."""


class Statement(Part):
    """One sentence of a written answer."""

    WORDS = frozenset(("text",))

    labels: list[str]
    supported: bool
    reason: str
    origins: int
    """Independent origins of the passages that it cites; pages with the same words
    count once."""
    text: str = Field(default="", description=f"The sentence; {APART}")


class ResearchResult(Found):
    """Structured result of `research`."""

    session: str = Field(
        description="Handle of this line of research: give it to go on, or with a further question"
    )
    before: list[str] = Field(
        default=[], description="Labels of passages that the session had shown before"
    )
    understood: str = Field(
        default="",
        description="The question with what it refers to in the session, if it does",
    )
    queries: list[str] = Field(description="Queries sent besides the question")
    providers: list[str] = Field(description="Each provider with its status and reason")
    answer: list[Statement] = Field(
        default=[], description="Check of each sentence of a written answer"
    )
    parsed_by: str = "rules"


async def research(
    question: Annotated[
        str,
        Field(description="In full, in any language.", min_length=1, max_length=2000),
    ],
    ctx: ToolContext,
    max_tokens: Annotated[int, BUDGET] = 0,
    max_pages: Annotated[
        int, Field(description="Most pages to read.", ge=1, le=MOST_PAGES_READ)
    ] = USUAL_PAGES_READ,
    freshness: Annotated[
        Literal["any", "day", "week", "month", "year"],
        Field(description="Age of pages."),
    ] = "any",
    answer: Annotated[
        bool, Field(description="Let the local model answer too.")
    ] = False,
    session: Annotated[
        str, Field(description="Handle of an earlier answer: go on or ask further.")
    ] = "",
) -> Annotated[CallToolResult, ResearchResult]:
    """Find evidence for a question on the web (or in the user's folders): searches,
    reads, returns cited passages.

    The first choice for a question. It says when nothing answers; cite its passages. To
    look deeper into one page use extract_relevant."""
    check_budget(max_tokens)
    whole = Question(question)
    bare, sites = split_sites(whole.text)
    asked = Question(bare) if sites else whole
    report = reporter(ctx)
    services = _at(sites, services_of(ctx), report)
    ongoing = await Ongoing.begin(
        services.stores,
        whole,
        handle=session,
        owner=owner_of(ctx),
        roots=services.roots,
    )
    # A follow-up question is completed with what it refers to.
    asked = Question(split_sites(ongoing.understood)[0]) or asked
    wanted = Wanted(
        asked, max_pages, freshness, filters=SearchQuery("", site=" ".join(sites))
    )
    handle = ongoing.session.handle
    short = ongoing.session.short
    # Send the handle early, so that the client can continue if this process dies.
    await ctx.report_progress(0, 10, handle)
    # The session's handle takes about 25 tokens.
    most = max_tokens - HINT_TOKENS if max_tokens >= WIDE else max_tokens
    line = (
        f"Understood as: {one_line(asked.text)}" if ongoing.understood else ongoing.held
    )
    if not session and refers_back(asked):
        line = REFERS_BACK
    found = await run(
        wanted,
        ongoing.over(services),
        max_tokens=most,
        report=report,
        write=answer,
        note=line,
    )
    before = await _keep(found, ongoing, whole)
    known = found.known
    missing = known.gathered.missing()
    following = repeated(
        NAME, (one for one in missing if not is_site(one.rest)), session=short
    )
    following += [
        Next(
            tool=NAME,
            arguments={"question": f"{one.rest} {asked.text}", "session": short},
        )
        for one in missing
        if is_site(one.rest)
    ]
    if found.assembled.left_out:
        following.extend(larger(NAME, max_tokens or UNASKED))
    elif (
        not found.assembled.evidence
        and max_pages <= len(known.gathered.ranked) < MOST_PAGES_READ
        and (
            max_pages < USUAL_PAGES_READ
            or not ALL_FILES.issuperset(one.provider for one in known.gathered.outcomes)
        )
    ):
        following.append(
            Next(
                tool=NAME, arguments={"max_pages": min(2 * max_pages, MOST_PAGES_READ)}
            )
        )
    sheet = Sheet(max_tokens or found.tokens + hint_room(UNASKED) + HINT_TOKENS)
    sheet.add(found.text)
    pages = tuple(behind(found.assembled.evidence, known.gathered.documents.values()))
    # What was not read is in the enriched prompt.
    ending = Ending(NAME, sheet, following, pages=pages)
    hinted = not found.assembled.evidence or bool(hint_room(max_tokens or UNASKED))
    shown_handle = short if hinted and not 0 < max_tokens < SESSION_FROM else ""
    ending.write(partial(_write_session, found, shown_handle, before), hinted=hinted)
    data = _data(found, ending, handle, before)
    data.understood = one_line(ongoing.understood)
    data.notes += notes_of(pages)
    view = await draw_evidence(
        ctx,
        question,
        found.assembled,
        known.documents,
        known.reading,
        max_tokens,
    )
    return reply(sheet.text, data, view=view)


def _at(sites: Sequence[str], services: Services, report: Report) -> Services:
    """Return `services` restricted to these sites, if any."""
    if not sites:
        return services
    restricted: Services = site_step("site search")(sites, services, report)
    return restricted


def _write_session(
    found: Researched, handle: str, before: Sequence[str], sheet: Sheet
) -> None:
    """Write the handle of the session, if it is to be shown, and what it had shown
    `before`."""
    if handle:
        sheet.add(f"Session: {handle}")
    if before:
        whole = len(before) == len(found.assembled.evidence)
        sheet.add(f"Shown before: {'all' if whole else ', '.join(before)}")


async def _keep(found: Researched, ongoing: Ongoing, question: Question) -> list[str]:
    """Add the result to the session; return the labels of passages that it had shown
    before."""
    gathered, reading = found.known.gathered, found.known.reading
    known = await ongoing.keep(
        [
            Asked((one.question or question).text, one.verdict, one.reason)
            for one in reading.parts or (reading,)
        ],
        [query.text for query in gathered.parsed.queries],
        found.assembled.evidence,
        [document.page for document in gathered.documents.values()],
        failures_of(gathered.missing()),
    )
    return [
        label
        for label, old in zip(found.assembled.shown.labels, known, strict=True)
        if old
    ]


def _data(
    found: Researched, ending: Ending, handle: str, before: list[str]
) -> ResearchResult:
    gathered, reading = found.known.gathered, found.known.reading
    cited = dict(
        zip(found.assembled.shown.labels, found.assembled.evidence, strict=True)
    )
    return found_in(
        ResearchResult,
        reading,
        found.assembled,
        found.known.documents,
        gathered.documents.values(),
        session=handle,
        before=before,
        queries=[query.text for query in gathered.parsed.queries[1:]],
        providers=list(
            dict.fromkeys(
                provider_line(outcome, found.mark) for outcome in gathered.outcomes
            )
        ),
        answer=[
            Statement(
                labels=list(one.labels),
                supported=one.supported,
                reason=one.reason,
                text=one_line(one.text),
                origins=count_origins(cited[label] for label in one.labels),
            )
            for one in (found.written.statements if found.written else ())
        ],
        parsed_by=gathered.parsed.made_by,
        notes=[
            one_line(note)
            for note in (
                *gathered.parsed.notes,
                gathered.notice,
                found.written.failure if found.written else "",
            )
            if note
        ],
        **ending.facts | {"failures": failures_of(gathered.failures)},
    )


TOOL: Final = Tool(
    function=research,
    title="Research",
    command="research",
    help="find cited evidence for a question",
    advice="For a question call research; to ask further, again with the session that it returned.",
    place=10,
    heavy=True,
)
