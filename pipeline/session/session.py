"""Sessions: questions, pages and passages of one research topic under a handle
`winnow://session/…`.

What a call searches and reads is cached when it comes, so that a process that is killed
loses only what was under way; a call that continues takes the pages from there. It belongs to whom it was made for:
with a token, to that token alone. Where files may be read it stays on this machine. Not
for: how answers are found (`pipeline/research.py`), or writing a session out
(`pipeline/session/export.py`).
"""

import json
import re
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, cast

from pydantic import TypeAdapter, ValidationError

from cache.store import JsonValue, Store, Stores
from errors import SourceNotFound, UsageError
from pipeline.evidence.show import GAP, verdict_text
from pipeline.fetch.files import may_open
from pipeline.fetch.handles import page_handle
from pipeline.messages import CACHED_ANSWER_SECONDS
from pipeline.question.question import Question
from pipeline.question.turns import completed
from pipeline.reading.reading import Reading
from pipeline.search.chain import Findings
from pipeline.search.query import SearchQuery, SearchResult
from pipeline.services import Fetches, Searches, Services
from pipeline.work import in_thread
from readers.page import Evidence, Page, Verdict

SESSION_SCHEME: Final = "winnow://session/"
MOST_SESSION_BYTES: Final = 500_000
"""Most that the turns of one session take; the oldest leave first. A question with its
passages and pages takes about 10 kB (`python -m bench.sessions`)."""
MOST_SESSION_PAGES: Final = 200
"""Most pages that a session lists, the latest; their texts are in the page store."""
_SESSION_HANDLE: Final = re.compile(
    rf"(?:{SESSION_SCHEME})?([0-9a-f]{{16}}|[0-9a-f]{{24}})\Z"
)


@dataclass(frozen=True, slots=True)
class SeenPage:
    """A page that was read."""

    url: str
    """What was asked for."""
    final_url: str
    """Where it was found; passages are cited from there."""
    handle: str
    title: str
    author: str
    published: str
    language: str
    media_type: str
    fetched_at: str
    doi: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of a session; without a verdict it was not answered yet."""

    question: str
    asked: str
    """ISO 8601 UTC time."""
    verdict: Verdict | Literal[""] = ""
    reason: str = ""
    queries: tuple[str, ...] = ()
    passages: tuple[Evidence, ...] = ()
    open: tuple[str, ...] = ()
    """What was not read, or not to its end."""
    understood: str = ""
    """The question with what it refers to in the one before; empty where it is complete
    by itself."""


@dataclass(frozen=True, slots=True)
class Session:
    """All that is known of one line of research."""

    handle: str
    owner: str
    """Hash of its owner; "" for users of this machine."""
    began: str
    """ISO 8601 UTC time."""
    turns: tuple[Turn, ...] = ()
    pages: tuple[SeenPage, ...] = ()

    @property
    def short(self) -> str:
        """Its handle without the scheme, which costs a model six tokens; both are
        accepted."""
        return self.handle.removeprefix(SESSION_SCHEME)

    @property
    def passages(self) -> tuple[Evidence, ...]:
        """Everything that was quoted."""
        return tuple(passage for turn in self.turns for passage in turn.passages)

    def quoted(self, pages: Sequence[SeenPage]) -> list[SeenPage]:
        """Return those of `pages` that the last answer quoted, the first of its sources
        first."""
        last_turn = next((turn for turn in reversed(self.turns) if turn.passages), None)
        urls = (
            list(dict.fromkeys(passage.url for passage in last_turn.passages))
            if last_turn
            else []
        )
        page_of = {page.final_url: page for page in pages}
        return [page_of[url] for url in urls if url in page_of]


_SESSION: Final = TypeAdapter(Session)


def find_session(
    stores: Stores, handle: str, *, owner: str | None, roots: Sequence[Path] | None
) -> Session | None:
    """Return the session of a handle; None where there is none, or it is another's, or
    a file in it may not be read.

    With `owner` None anyone's is, and with `roots` None any file may: right for the
    person at this machine only, who can read the cache itself.
    """
    for store in dict.fromkeys((stores.own, stores.sessions)):
        session = _read(store, handle)
        if session is None:
            continue
        if owner is not None and not secrets.compare_digest(session.owner, owner):
            continue
        urls = {
            *(page.final_url for page in session.pages),
            *(passage.url for passage in session.passages),
        }
        if roots is None or all(may_open(url, roots) for url in urls):
            return session
    return None


def remove_session(stores: Stores, session: Session) -> None:
    """Forget a session, with the list of what was searched and read for it."""
    for store in {stores.own, stores.sessions}:
        store.set_json(f"session:{session.short}", None, expire=0)


class Ongoing:
    """The session of a running call."""

    def __init__(
        self,
        stores: Stores,
        session: Session,
        question: Question,
        roots: Sequence[Path],
    ) -> None:
        """Take up `session` with a question; see `begin`."""
        self.session = session
        self._question = " ".join(question.text.split())
        folded = self._question == question.text
        folded_question = question if folded else Question(self._question)
        self.understood = _understood(folded_question, session.turns)
        """The question with what it refers to in the turn before; empty where it is
        complete by itself."""
        self._asked = _now()
        self._stores = stores
        # What is read here may be a person's own file, which is not for a store that others read.
        self._store = (
            stores.own if roots and stores.sessions.shared else stores.sessions
        )

    @classmethod
    async def begin(
        cls,
        stores: Stores,
        question: Question,
        *,
        handle: str,
        owner: str,
        roots: Sequence[Path],
    ) -> "Ongoing":
        """Go on with the session of `handle`, or begin one where that is empty; `roots`
        are the folders of files.

        Raises `UsageError`: there is no such session for this caller. The question is
        written at once, without an answer."""
        session: Session | None = Session(
            f"{SESSION_SCHEME}{secrets.token_hex(8)}", owner, _now()
        )
        if handle.strip():
            session = await in_thread(
                find_session, stores, handle, owner=owner, roots=roots
            )
        if session is None:
            raise UsageError(
                f"The session {handle} is unknown or has expired.",
                hint="Leave it out to start a new one.",
            )
        ongoing = cls(stores, session, question, roots)
        turn = Turn(ongoing._question, ongoing._asked, understood=ongoing.understood)
        await in_thread(ongoing._write, turn, ())
        return ongoing

    def over(self, services: Services) -> Services:
        """Return `services` with pages taken from the session where it has them, and its
        pages beside what is found."""
        pages = self.session.pages
        fetcher = _CachedPages(services.fetcher, pages, self.session.began)
        leading = self.session.quoted(pages) if self.understood else []
        chain = _Results(services.chain, self.session, leading)
        return replace(services, fetcher=fetcher, chain=chain)

    async def keep(
        self,
        reading: Reading,
        queries: Iterable[str],
        passages: Sequence[Evidence],
        pages: Iterable[Page],
        missing: Iterable[str],
    ) -> list[bool]:
        """Write what came of the question; return for each passage whether the session
        had its words before."""
        turn = Turn(
            self._question,
            self._asked,
            reading.verdict,
            verdict_text(reading),
            tuple(queries),
            tuple(passages),
            tuple(missing),
        )
        turn = replace(turn, understood=self.understood)
        await in_thread(self._write, turn, tuple(map(_seen, pages)))
        return [_said(passage, self.session.passages) for passage in passages]

    def _write(self, turn: Turn, pages: Sequence[SeenPage]) -> None:
        """Append a turn to the session as it is stored now, replacing an earlier one of
        the same question, whose passages stay.

        The oldest pages beyond `MOST_SESSION_PAGES`, and the oldest turns beyond `MOST_SESSION_BYTES`,
        are dropped."""
        # Read again: another call may have gone on with the session meanwhile.
        now = _read(self._store, self.session.handle) or self.session
        same = next(
            (
                turn_before
                for turn_before in now.turns
                if _asking(turn_before) == _asking(turn)
            ),
            None,
        )
        if same is not None:
            passages_before = tuple(
                turn_before
                for turn_before in same.passages
                if not _said(turn_before, turn.passages)
            )
            turn = replace(
                turn if turn.verdict else same,
                passages=(*turn.passages, *passages_before),
            )
        turns = (
            *(turn_before for turn_before in now.turns if turn_before is not same),
            turn,
        )
        listed = {page.url: page for page in (*now.pages, *pages)}
        kept_pages = tuple(listed.values())[-MOST_SESSION_PAGES:]
        value = _dumped(replace(now, turns=turns, pages=kept_pages))
        while (
            len(turns) > 1
            and len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
            > MOST_SESSION_BYTES
        ):
            turns = turns[1:]
            value = _dumped(replace(now, turns=turns, pages=kept_pages))
        name = self.session.short
        self._store.set_json(f"session:{name}", value, expire=CACHED_ANSWER_SECONDS)


class _CachedPages:
    """Takes pages that were read since the session began from the cache, whatever their
    HTTP headers say."""

    def __init__(self, web: Fetches, pages: Sequence[SeenPage], since: str) -> None:
        self._web = web
        self._handles = {
            page.url: page.handle for page in pages if page.url.startswith("http")
        }
        self._since = since

    async def fetch(
        self, url: str, *, since: str = "", refresh: bool = False, outside: bool = False
    ) -> Page:
        if not refresh and (handle := self._handles.get(url)):
            with suppress(SourceNotFound):  # evicted, or never to be kept
                return replace(await self._web.fetch(handle), url=url)
        return await self._web.fetch(
            url, since=since or self._since, refresh=refresh, outside=outside
        )


class _Results:
    """Puts the pages that a session read beside what is found, and `leading` ones ahead
    of it."""

    def __init__(
        self, web: Searches, session: Session, leading: Sequence[SeenPage]
    ) -> None:
        self._web = web
        self._session = session
        self._leading = leading

    @property
    def names(self) -> tuple[str, ...]:
        return self._web.names

    async def search(self, queries: Sequence[SearchQuery], *, limit: int) -> Findings:
        findings = await self._web.search(queries, limit=limit)
        leading = [
            _result(page, index) for index, page in enumerate(self._leading, start=1)
        ]
        ahead = {result.url for result in leading}
        results = [
            *leading,
            *(result for result in findings.results if result.url not in ahead),
        ]
        return replace(findings, results=(*results, *self._known(results, limit)))

    def _known(self, results: Sequence[SearchResult], limit: int) -> list[SearchResult]:
        """Return the pages that were read before, quoted ones first; they may answer
        the new question."""
        listed = {result.url for result in results}
        quoted = {passage.url for passage in self._session.passages}
        pages = sorted(
            self._session.pages, key=lambda page: page.final_url not in quoted
        )
        pages_before = [
            page
            for page in pages
            if page.url.startswith("http") and page.url not in listed
        ][:limit]
        return [
            _result(page, index)
            for index, page in enumerate(pages_before, start=len(results) + 1)
        ]


def _result(page: SeenPage, index: int) -> SearchResult:
    return SearchResult(
        page.title,
        page.url,
        "",
        page.published,
        "session",
        index,
        page.language,
        page.author,
        page.doi,
    )


def _understood(question: Question, turns: Sequence[Turn]) -> str:
    """Return a question with what it refers to in the last turn; one that is asked once
    more as it was, and "" for one that is complete by itself."""
    if not turns:
        return ""
    last_turn = turns[-1]
    if last_turn.question.casefold() == question.text.casefold():
        return last_turn.understood
    return completed(question, last_turn.understood or last_turn.question)


def _asking(turn: Turn) -> tuple[str, str]:
    return turn.question.casefold(), turn.understood.casefold()


def _read(store: Store, handle: str) -> Session | None:
    match = _SESSION_HANDLE.match(handle.strip())
    with suppress(ValidationError):
        return (
            _SESSION.validate_python(store.get_json(f"session:{match.group(1)}"))
            if match
            else None
        )
    return None


def _dumped(session: Session) -> JsonValue:
    return cast(JsonValue, _SESSION.dump_python(session, mode="json"))


def _said(passage: Evidence, before: Iterable[Evidence]) -> bool:
    """Return whether `before` contains all words of a passage, on the same page."""
    texts = [earlier.text for earlier in before if earlier.url == passage.url]
    pieces = (
        piece.strip() for line in passage.text.splitlines() for piece in line.split(GAP)
    )
    return all(any(piece in text for text in texts) for piece in pieces)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _seen(page: Page) -> SeenPage:
    return SeenPage(
        page.url,
        page.final_url,
        page_handle(page),
        page.title,
        page.author,
        page.published,
        page.language,
        page.media_type,
        page.fetched_at,
        page.doi,
    )
