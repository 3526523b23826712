"""One turn of a session: the question is completed from the turns before, researched, and its
result kept.

Not for: research itself (`pipeline/research.py`), or what a session holds
(`pipeline/session`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.question.question import Question
from pipeline.question.turns import refers_back
from pipeline.question.wants import Freshness, split_sites
from pipeline.research import Researched, research
from pipeline.search.query import SearchQuery
from pipeline.services import Services
from pipeline.session.session import Ongoing, Session
from pipeline.sources.gather import Wanted, failures_of, site_step
from pipeline.text.frame import one_line
from pipeline.work import Report

REFERS_BACK: Final = (
    "The question refers to an earlier one: pass that answer's session, or name what is "
    "meant."
)


@dataclass(frozen=True, slots=True)
class TurnOrder:
    """What a caller asks, and how."""

    question: Question
    session: str
    """Handle of the session to go on with; "" begins one."""
    owner: str
    """Hash of the caller; "" for users of this machine."""
    max_tokens: int
    """Budget; 0 lets the reading decide."""
    reserve: int
    """Tokens of it that are kept for how to go on."""
    max_pages: int
    freshness: Freshness
    write: bool
    """Whether the local generator writes an answer, too."""


@dataclass(frozen=True, slots=True)
class TurnTaken:
    """What came of a turn."""

    question: Question
    """As it was understood, without the sites that it names."""
    understood: str
    """The question with what it refers to; "" where it is complete by itself."""
    session: Session
    researched: Researched
    before: tuple[str, ...]
    """Labels of passages that the session had shown before."""


async def take_turn(order: TurnOrder, services: Services, report: Report) -> TurnTaken:
    """Research a question within its session.

    Raises `UsageError`: there is no such session for this caller, or sites cannot be
    read here; and what `research` raises."""
    # 1. The session, and the question without the sites that it names
    bare, sites = split_sites(order.question.text)
    services = _restricted(sites, services, report)
    ongoing = await Ongoing.begin(
        services.stores,
        order.question,
        handle=order.session,
        owner=order.owner,
        roots=services.roots,
    )
    # Report the handle early, so that the client can continue if this process dies.
    await report(0, 10, ongoing.session.handle)

    # 2. A follow-up question is completed with what it refers to
    complete = Question(bare) if sites else order.question
    complete = Question(split_sites(ongoing.understood)[0]) or complete
    note = f"Understood as: {one_line(complete.text)}" if ongoing.understood else ""
    if not order.session and refers_back(complete):
        note = REFERS_BACK

    # 3. Research
    researched = await research(
        Wanted(
            complete,
            order.max_pages,
            order.freshness,
            filters=SearchQuery("", site=" ".join(sites)),
        ),
        ongoing.over(services),
        max_tokens=order.max_tokens,
        reserve=order.reserve,
        report=report,
        write=order.write,
        note=note,
    )
    # 4. Keep the result
    before = await _keep(researched, ongoing)
    return TurnTaken(complete, ongoing.understood, ongoing.session, researched, before)


def _restricted(sites: Sequence[str], services: Services, report: Report) -> Services:
    """Return `services` restricted to these sites, if any."""
    if not sites:
        return services
    restricted: Services = site_step("site_search")(sites, services, report)
    return restricted


async def _keep(researched: Researched, ongoing: Ongoing) -> tuple[str, ...]:
    """Add the result to the session; return the labels of passages that it had shown
    before."""
    gathered, answered = researched.gathered, researched.answer
    shown_before = await ongoing.keep(
        answered.reading,
        [query.text for query in gathered.parsed.queries],
        answered.assembled.evidence,
        [document.page for document in gathered.documents.values()],
        failures_of(answered.failures),
    )
    labels = answered.assembled.shown.labels
    return tuple(label for label, old in zip(labels, shown_before, strict=True) if old)
