"""How the answers of all tools end, in one order: what can be read on, the calls that go on from
here, what else was not read, notes on pages, their age; and how they are handed over.

Not for: evidence (`pipeline/evidence`), and what a result says for programs (`results.py`).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, ParamSpec

from mcp.server.apps import client_supports_apps
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent
from pydantic import (
    BaseModel,
)

from errors import narrowed
from pipeline.document.page import (
    Document,
    Evidence,
    Failure,
    Page,
    SearchOutcome,
)
from pipeline.evidence.show import Sheet
from pipeline.sources.gather import failure_line
from pipeline.text.frame import place_of, quoted
from pipeline.view import View
from pipeline.work import in_thread
from tools.common.context import MOST_TOKENS
from tools.common.results import WITH_WORDS, Next

MINUTE: Final = 60
"""Seconds from which an age is said in minutes."""
FIRST: Final = 4
"""Of pages with notes, and failures, that the text names."""
READERS: Final = ("fetch_and_prune_html", "extract_relevant", "raptor_query")
"""Tools that take sources by name."""
RESULT: Final = "winnow/result"
"""Name of an answer's result in its `_meta`: what hosts, the desk and programs want besides the
text. Clients show `_meta` to no model."""
VIEW: Final = "winnow/view"
"""Name of the desk's part in `_meta` of an answer; in that of a request the desk asks for it."""
TOOL: Final = "winnow/tool"
"""Name of an answer's tool in its `_meta`, for a desk whose host does not tell it."""
P = ParamSpec("P")


@dataclass(slots=True)
class Ending:
    """What an answer ends with, whose evidence stands on its sheet."""

    tool: str
    sheet: Sheet
    following: list[Next]
    """Calls that go on, best first."""
    failures: Sequence[Failure] = ()
    """What could not be read; empty where the evidence names it already."""
    pages: Sequence[Page] = ()
    """Those whose notes a reader should know."""
    ages: Mapping[str, float] = field(default_factory=dict)
    """Seconds since each was read, by its address; see `Noticing.ages`."""

    def write(
        self, own: Callable[[Sheet], object] | None = None, *, hinted: bool = True
    ) -> None:
        """Write it as far as there is room: the calls where an answer of this size is `hinted` how
        to go on, and `own`, the tool's own lines, behind them."""
        _tell(self.sheet, [failure for failure in self.failures if failure.rest])
        if hinted:
            write_next(self.sheet, self.following, self.tool)
        if own is not None:
            own(self.sheet)
        _tell(self.sheet, [failure for failure in self.failures if not failure.rest])
        for note in notes_of(self.pages):
            self.sheet.add(f"Note on {note}")
        self._tell_age()

    def _tell_age(self) -> None:
        """Write how old what is shown is, where the cache gave it without asking its server, and
        how it is read anew."""
        known = [
            self.ages[page.final_url]
            for page in self.pages
            if page.final_url in self.ages
        ]
        if known:
            oldest = max(known)
            said = (
                f"{oldest:.0f} s" if oldest < MINUTE else f"{oldest / MINUTE:.0f} min"
            )
            self.sheet.add(f"As read {said} ago; fresh=true reads again.")

    @property
    def facts(self) -> dict[str, object]:
        """What every result says of its end."""
        return {
            "failures": failures_of(self.failures),
            "next": self.following,
            "tokens": self.sheet.tokens,
        }


async def drawn(
    ctx: Context[Any, Any], make: Callable[P, View], *args: P.args, **kwargs: P.kwargs
) -> View | None:
    """Return what `make` gives the desk to draw, which is more than the text says; None where
    nobody will draw it."""
    wanted = VIEW in (ctx.request_context.meta or {}) or client_supports_apps(ctx)
    return await in_thread(partial(make, *args, **kwargs)) if wanted else None


def answer(text: str, data: BaseModel, *, view: View | None = None) -> CallToolResult:
    """Return `text`, which is complete and all that a model needs, and `data` for everything else.

    `data` goes to `_meta` without the words that the text has, and with them to the structured
    part, which the server sends where it is wanted (`server/toolbox.py`). Fields at their default
    are left out. No link to a page stands beside the text: clients show it to the model, as words
    that it has already. `view` is what the desk draws, for clients that show it (`drawn`).
    """
    facts: dict[str, object] = {
        RESULT: data.model_dump(mode="json", exclude_defaults=True)
    }
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=data.model_dump(
            mode="json", exclude_defaults=True, context=WITH_WORDS
        ),
        _meta=facts | ({VIEW: view} if view else {}),
    )


def data_of(result: CallToolResult) -> dict[str, Any]:
    """Return what hosts and programs read beside the text of an answer; empty where there is
    nothing."""
    found: dict[str, Any] = (result.meta or {}).get(RESULT, {})
    return found


def notes_of(pages: Iterable[Page]) -> list[str]:
    """Return what a reader should know of the first few pages: what was left out, where their text
    comes from."""
    return [
        f"{place_of(page.final_url)}: {narrowed(note)}"
        for page in islice(pages, FIRST)
        for note in page.notes
    ]


def behind(
    evidence: Iterable[Evidence], documents: Iterable[Document]
) -> Iterator[Page]:
    """Yield the pages that passages were taken from, in the order of the documents."""
    urls = {passage.url for passage in evidence}
    return (document.page for document in documents if document.page.final_url in urls)


def larger(tool: str, max_tokens: int) -> list[Next]:
    """Return the running call with twice the budget, where that is still allowed."""
    more = min(2 * max_tokens, MOST_TOKENS)
    return (
        [Next(tool=tool, arguments={"max_tokens": more})] if more > max_tokens else []
    )


def repeated(
    tool: str,
    failures: Iterable[Failure],
    *,
    beside: Sequence[str] = (),
    **change: object,
) -> list[Next]:
    """Return the calls that go on where a source was late (the same: it goes on from the cache, or
    from the session that `change` names) or read in part (its rest, with the sources that stand
    `beside` it)."""
    failures = list(failures)
    again = (
        [Next(tool=tool, arguments=change)]
        if any(failure.late for failure in failures)
        else []
    )
    rest = [failure.rest for failure in failures if failure.rest][:FIRST]
    reader = tool if tool in READERS else READERS[0]
    return again + (
        [Next(tool=reader, arguments={"sources": [*beside, *rest]})] if rest else []
    )


def write_next(sheet: Sheet, calls: Sequence[Next], tool: str) -> None:
    """Write the calls that go on from an answer of `tool` on one line, best first, as many as fit.

    Those that name a long address are in the structured result only: it may hold sentences of who
    chose it.
    """
    calls = [call for call in calls if narrowed(told := _told(call, tool)) == told]
    for count in range(len(calls), 0, -1):
        if sheet.add(next_line(calls[:count], tool)):
            return


def next_line(calls: Sequence[Next], tool: str) -> str:
    """Return the line that names the calls that go on from an answer of `tool`."""
    return f"Next: {' | '.join(_told(call, tool) for call in calls)}"


def _told(call: Next, tool: str) -> str:
    changed = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in call.arguments.items()
    )
    if call.tool != tool:
        return (
            f"{call.tool} with {changed}"
            if changed
            else f"{call.tool} with the same question"
        )
    return f"the same call with {changed}" if changed else "the same call again"


def told(outcome: SearchOutcome, mark: str) -> str:
    """Return how a provider answered, its own words for it between marks."""
    return (
        f"{outcome.provider}: {outcome.status} {quoted(outcome.reason, mark)}".strip()
    )


def failures_of(failures: Iterable[Failure]) -> list[str]:
    """Return what could not be read for the result, folded and bounded."""
    return list(map(failure_line, islice(failures, 4 * FIRST)))


def _tell(sheet: Sheet, failures: Sequence[Failure]) -> None:
    for told in failures_of(failures[:FIRST]):
        sheet.add_cut(f"Not read: {told}")
