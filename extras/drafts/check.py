"""A draft against its sources: are its quotations real, its statements supported, its
references what they say?

Every quotation is looked for word for word, every cited sentence is judged against the
sources that it cites, or all where it cites none of them. What could not be read is
reported and never counts as "not found". Not for: taking a draft apart (`draft.py`), or
what an answer looks like (`extras/drafts/answer.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from extras.drafts.draft import DOI_ADDRESS, Draft, Reference
from extras.drafts.quotes import QuoteMatch, Standing, Text, find_quote
from pipeline.document.cite import cite
from pipeline.document.page import Document, Failure, Page
from pipeline.document.units import tag_sentences
from pipeline.question.question import Question
from pipeline.reading.bm25 import PageUnits, page_units
from pipeline.reading.relevance import Reader
from pipeline.reading.statements import Support, Supported, judge_statement
from pipeline.search.chain import Findings as Works
from pipeline.search.query import SearchResult
from pipeline.text.words import index_terms
from pipeline.work import in_thread, time_left

Outcome = (
    Standing | Support | Literal["agrees", "differs", "retracted", "dead", "not read"]
)
CORRECT: Final = frozenset({"verbatim", "supported", "agrees"})
"""Results that need no correction."""
TITLE_SHARE: Final = 0.5
"""Share of a title's words that a page's own title must have, either way: drafts
shorten titles and add the site."""
LEFT: Final = 0.15
"""Part of a call's time from which no further statement is judged."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One quotation, statement or reference, with its result."""

    kind: Literal["quote", "statement", "reference"]
    text: str
    outcome: Outcome
    citation: str = ""
    """Opens the nearest source at its words; empty for none."""
    words: str = ""
    """The source's words, verbatim."""
    note: str = ""
    """What differs, or why it was not judged."""


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """A document as quotations and statements are looked for in it."""

    text: Text
    units: PageUnits
    spans: tuple[tuple[int, int], ...]


async def check(
    draft: Draft,
    sources: Mapping[str, Document],
    unread: Mapping[str, Failure],
    works: Works,
    *,
    reader: Reader,
) -> tuple[Checked, ...]:
    """Check everything in `draft`: quotations, then statements, then references.

    `sources` are documents by the name that they were asked for with, `unread` says why
    there is none of a name, `works` what catalogues of research know of the DOIs that
    it cites; `reader` names the sentences that may support a statement. Raises
    `ModelError`. Statements for which no time is left are `not read`."""
    # 1. Words and units of every source, once
    read = await in_thread(_read, sources)
    # 2. Quotations, word for word
    found = await in_thread(
        lambda: [_quotation(one.text, one.cited, read, unread) for one in draft.quotes]
    )
    # 3. Statements, as far as there is time
    enough = LEFT * time_left()
    for one in draft.statements:
        if time_left() < enough:
            late = "No time was left: check fewer items at once."
            found.append(Checked("statement", one.text, "not read", note=late))
        else:
            found.append(await _statement(one.text, one.cited, read, unread, reader))
    # 4. References
    return (
        *found,
        *(_reference(one, sources, unread, works) for one in draft.references),
    )


def _read(sources: Mapping[str, Document]) -> dict[str, _Source]:
    """Return the sources by name; a document with two names is one."""
    made = {
        id(document): _source(document)
        for document in {id(one): one for one in sources.values()}.values()
    }
    return {name: made[id(document)] for name, document in sources.items()}


def _source(document: Document) -> _Source:
    tagged = tag_sentences(document)
    return _Source(
        Text(document),
        page_units(document, tagged),
        tuple((one.start, one.end) for one in tagged),
    )


def _cited_of(
    cited: Sequence[str], read: Mapping[str, _Source], unread: Mapping[str, Failure]
) -> list[_Source]:
    """Return the cited sources; all if none is cited or known, none if those cited
    could not be read."""
    known = [read[name] for name in cited if name in read]
    return (
        known if known or _gone(cited, unread) else list(dict.fromkeys(read.values()))
    )


def _gone(cited: Iterable[str], unread: Mapping[str, Failure]) -> str:
    """Return why the cited source could not be read, or ""."""
    return "; ".join(
        f"{name}: {unread[name].reason}" for name in cited if name in unread
    )


def _quotation(
    text: str,
    cited: Sequence[str],
    read: Mapping[str, _Source],
    unread: Mapping[str, Failure],
) -> Checked:
    found = find_quote(text, [source.text for source in _cited_of(cited, read, unread)])
    if found.standing != "verbatim" and (gone := _gone(cited, unread)):
        return Checked("quote", text, "not read", note=gone)
    if found.standing == "nowhere" and cited:
        elsewhere = find_quote(text, [source.text for source in read.values()])
        if elsewhere.standing == "verbatim":
            return Checked(
                "quote",
                text,
                "nowhere",
                elsewhere.url,
                note="not in the cited source, but in another",
            )
    return Checked(
        "quote", text, found.standing, found.url, found.words, _mismatch(found)
    )


def _mismatch(found: QuoteMatch) -> str:
    return "; ".join(
        f"quoted “{mine}”, source has “{theirs}”"
        if mine and theirs
        else f"added “{mine}”"
        if mine
        else f"left out “{theirs}”"
        for mine, theirs in found.differs
    )


async def _statement(
    text: str,
    cited: Sequence[str],
    read: Mapping[str, _Source],
    unread: Mapping[str, Failure],
    reader: Reader,
) -> Checked:
    cited_sources = _cited_of(cited, read, unread)
    units = [unit for source in cited_sources for unit in source.units.texts]
    if not units:
        return Checked(
            "statement",
            text,
            "not read",
            note=_gone(cited, unread) or "The sources contain no text.",
        )
    statement = Question(text)
    relevance = await reader.read(statement, [source.units for source in cited_sources])
    judged = await in_thread(judge_statement, statement, units, relevance)
    if judged.support != "supported" and (gone := _gone(cited, unread)):
        return Checked("statement", text, "not read", note=gone)
    return await in_thread(_supported, text, judged, cited_sources, units)


def _supported(
    text: str, judged: Supported, cited_sources: Sequence[_Source], units: Sequence[str]
) -> Checked:
    places = [(source, span) for source in cited_sources for span in source.spans]
    source, span = places[judged.rows[0]]
    citation = cite(source.text.document, *span)
    stated, actual = judged.differs
    note = (
        f"the draft says “{stated or 'nothing'}”, the source “{actual or 'nothing'}”"
        if stated or actual
        else ""
    )
    words = " … ".join(units[row] for row in judged.rows)
    return Checked("statement", text, judged.support, citation, words, note)


def _reference(
    one: Reference,
    sources: Mapping[str, Document],
    unread: Mapping[str, Failure],
    works: Works,
) -> Checked:
    """Judge a reference by what a catalogue says of its DOI, else by its page: whether
    it is there, not retracted, and has that title and year.

    It is `not read` where neither is known."""
    work = _listed(one, works)
    page = sources[one.url].page if one.url in sources else None
    failure = unread.get(one.url)
    if work is not None and work.retracted:
        note = f"retracted, as {work.engine} says"
        return Checked("reference", _name(one), "retracted", work.url, note=note)
    if failure is not None and (failure.gone or work is None):
        return Checked(
            "reference",
            _name(one),
            "dead" if failure.gone else "not read",
            note=failure.reason,
        )
    known = work or page
    if known is None:
        note = "It is not among the sources."
        return Checked("reference", _name(one), "not read", note=note)
    return _compared(one, known, page, failure, works)


def _listed(one: Reference, works: Works) -> SearchResult | None:
    """Return what a catalogue has under the DOI of a reference, None for no DOI."""
    found = (work for work in works.results if one.doi and work.doi == one.doi)
    return next(found, None)


def _name(one: Reference) -> str:
    return f"{one.title}: {one.url}" if one.title else one.url


def _compared(
    one: Reference,
    known: SearchResult | Page,
    page: Page | None,
    failure: Failure | None,
    works: Works,
) -> Checked:
    """Judge a reference by what is known of it: a catalogue's entry, or its `page`; its
    page may be unread, if there is an entry."""
    unlisted = known is page
    differs = _differences(one, known, exact=unlisted)
    denied, unasked = _doi_notes(one, works) if unlisted else ([], [])
    notes = [*differs, *denied, *unasked]
    if failure is not None:
        notes.append(f"its page was not read: {failure.reason}")
    return Checked(
        "reference",
        _name(one),
        "differs" if differs or denied else "agrees",
        page.final_url if page else known.url,
        note="; ".join(notes),
    )


def _differences(
    one: Reference, known: SearchResult | Page, *, exact: bool
) -> list[str]:
    """Return how title and year of a reference differ from its page or catalog entry.

    The year must be `exact` for a page. Of a work, catalogues and citations name the
    year in which it came out, or that of its issue. What either of them lacks is not
    compared."""
    found: list[str] = []
    said, titled = set(index_terms(one.title)), set(index_terms(known.title))
    if (
        said
        and titled
        and len(said & titled) < TITLE_SHARE * min(len(said), len(titled))
    ):
        found.append(f"its title is “{known.title}”")
    if one.year and known.published:
        apart = abs(int(one.year) - int(known.published[:4]))
        found += (
            [f"it is dated {known.published}"] if apart > (0 if exact else 1) else []
        )
    return found


def _doi_notes(one: Reference, works: Works) -> tuple[list[str], list[str]]:
    """Return what catalogues say against a DOI that none of them lists, and that it was
    not confirmed; one catalogue alone has not all of them. Nothing for a reference
    without a DOI, and for an address that doi.org redirects."""
    if not one.doi or DOI_ADDRESS.search(one.url):
        return [], []
    answered = [
        outcome for outcome in works.outcomes if outcome.status in ("ok", "empty")
    ]
    if len(answered) > 1:
        names = ", ".join(outcome.provider for outcome in answered)
        return [f"{names} know no such DOI"], []
    states = "".join(f"; {one.provider}: {one.status}" for one in works.outcomes)
    return [], [f"its DOI was not confirmed{states}"]
