"""Documents that a question is asked of: those that a caller names, and those that a
search finds (zero-index, §3).

Named are URLs, files, folders, handles and sites; what could not be read is said, not
dropped. A search goes from the request over queries and results to pages in mixed
ranking: `search_web` shows what comes out, `research` goes on with it. Not for:
fetching as such (`pipeline/fetch`)."""

import logging
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import unquote

import anyio

from cache.store import Store
from errors import (
    AddressRefused,
    SourceError,
    SourceNotFound,
    SourceTimeout,
    SourceUnreadable,
    UsageError,
)
from pipeline.conversion.converter import LIGHT_BYTES
from pipeline.evidence.show import FIRST, Sheet
from pipeline.fetch.files import (
    CONVERTED,
    IMAGES,
    allowed_path,
    ending_of,
    may_open,
    path_of_url,
    split_span,
)
from pipeline.fetch.handles import keep_page
from pipeline.printed import printed
from pipeline.question.question import NOTHING, Question
from pipeline.question.wants import Freshness, is_site
from pipeline.raptor.tree import Tree, find_tree
from pipeline.search.folder import FolderProvider
from pipeline.search.listing import Passed, list_files, may_answer, not_searched
from pipeline.search.mixed import RankedPage, RankForm, mixed_rank
from pipeline.search.parse import parse_request
from pipeline.search.query import (
    ParsedRequest,
    SearchOutcome,
    SearchQuery,
    SearchResult,
)
from pipeline.services import Fetches, Services
from pipeline.text.frame import failure_text, one_line, quoted, shown_location
from pipeline.text.tokens import count_tokens
from pipeline.work import (
    STEP_SHARE,
    WORKERS,
    Report,
    beside,
    in_thread,
    no_report,
    time_left,
    traced,
)
from readers.page import Document, Failure, Page, Verdict
from seams import optional

_log: Final = logging.getLogger("winnow.sources")
MAX_FILES: Final = 200
"""Files that one folder may bring into one call; more would not answer within its
time."""
UNREAD_SHARE: Final = 0.1
"""Part of an answer that may say what was not read."""


class Noticing:
    """Reads sources for one call, optionally refreshed, and records the age of cached
    ones."""

    def __init__(self, web: Fetches, *, refresh: bool) -> None:
        """Read by `web`."""
        self._web = web
        self._refresh = refresh
        self.ages: dict[str, float] = {}
        """Seconds since each was read, by the page's address."""

    async def fetch(
        self, url: str, *, since: str = "", refresh: bool = False, outside: bool = False
    ) -> Page:
        """Return a source as a page, never from the cache alone where all are to be
        refreshed.

        Raises `SourceError`."""
        page = await self._web.fetch(
            url, since=since, refresh=refresh or self._refresh, outside=outside
        )
        if page.age >= 0:
            self.ages[page.final_url] = page.age
        return page


@dataclass(frozen=True, slots=True)
class Loaded:
    """Documents in the order their sources were named, and what failed."""

    documents: tuple[Document, ...]
    failures: tuple[Failure, ...]


def site_step(name: str) -> Callable[..., Any]:
    """Return `site_pages` or `site_search` of `extras/sites.py`; raises `UsageError`
    where this installation lacks it."""
    step = optional("extras.sites", name)
    if step is None:
        raise UsageError(
            "Whole sites cannot be read: this installation lacks `extras/sites.py`.",
            hint="Name the pages themselves.",
        )
    return step


def unwrapped(source: str) -> str:
    """Return the address in a source as models write it: `<https://…>`,
    `[text](https://…)`, in quotes, with what follows it in a sentence."""
    source = source.strip()
    if source.startswith("http"):
        source = source.rstrip(",;")
    elif source[:1] in tuple("<[\"'`“"):
        source = source.rstrip(",;.")
    if source.startswith("[") and source.endswith(")") and "](" in source:
        source = source.partition("](")[2][:-1]
    for pair in ("<>", '""', "''", "``", "“”"):
        if source[:1] == pair[0] and source[-1:] == pair[1]:
            source = source[1:-1].strip()
    return source


async def load_sources(
    sources: Sequence[str],
    services: Services,
    *,
    seconds: float,
    report: Report,
    question: Question = NOTHING,
    needed: bool = True,
) -> Loaded:
    """Read every source at once and return the documents that were ready within
    `seconds`; late ones are failures, and so are files beyond `MAX_FILES` of a folder.

    Sources are URLs, file or folder paths, handles, and sites (`site:https://…`), of
    which the pages nearest to `question` are read. Raises `UsageError` where no source
    is given, `SourceError` where nothing could be read and it is `needed`: the only
    failure's own, or one that lists them."""
    names = list(filter(None, map(unwrapped, sources)))
    if not names:
        raise UsageError(
            "No source was given.",
            hint="Pass URLs, file or folder paths, sites as site:https://…, or handles from "
            "earlier answers.",
        )
    began = anyio.current_time()
    expanded, failed = await in_thread(_expand_folders, names, services.roots)
    outside: set[str] = set()
    if any(map(is_site, expanded)):
        expanded, outside, unread = await site_step("site_pages")(
            expanded, question, services, seconds=STEP_SHARE * seconds, report=report
        )
        failed += unread
    seconds -= anyio.current_time() - began
    documents, errors = await open_all(
        expanded, services, seconds=seconds, report=report, outside=outside
    )
    failures = [*read_in_part(documents.values()), *failed, *map(failure_of, errors)]
    if needed and not documents:
        if len(failures) == 1 and errors:
            raise errors[0]
        listed = "\n".join(f"- {failure_line(failure)}" for failure in failures[:20])
        raise SourceNotFound(
            f"None of the {len(failures)} sources could be read:\n{listed}",
            source=failures[0].source,
        )
    return Loaded(tuple(documents.values()), tuple(failures))


async def open_all(
    names: Sequence[str],
    services: Services,
    *,
    seconds: float,
    report: Report = no_report,
    outside: Container[str] = (),
) -> tuple[dict[str, Document], list[SourceError]]:
    """Read distinct sources side by side; return documents by name, in order, and why
    there is none of the others.

    Those `outside` are named by pages or services of public addresses. Nothing is
    raised for a source; a late one is a `SourceTimeout` among the errors."""
    hint = "Repeat the call; it continues from the cache."
    results: dict[str, Document | SourceError] = {
        name: SourceTimeout(
            f"{name} was not ready after {seconds:.0f} s.", source=name, hint=hint
        )
        for name in names
    }
    done = 0
    # Files one after the other, each to its end: of many begun at once none would be
    # ready when time is up. Converted formats have a queue of their own, so that text
    # files need not wait for them.
    lines = {converted: anyio.CapacityLimiter(WORKERS) for converted in (False, True)}

    async def load(name: str) -> None:
        nonlocal done
        line = (
            lines[ending_of(split_span(name)[0]) in CONVERTED]
            if _is_local(name)
            else nullcontext()
        )
        try:
            async with line:
                results[name] = await open_source(
                    name, services, outside=name in outside
                )
        except SourceError as error:
            results[name] = error
        except Exception as error:  # noqa: BLE001  a source may be anything
            _log.exception("reading %s failed", shown_location(name))
            results[name] = SourceUnreadable(
                f"{name} could not be read ({type(error).__name__}).",
                source=name,
                hint="Look for another page or file with the same text.",
            )
        done += 1
        await report(done, len(names), f"read {shown_location(name)}")

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as group:
            for name in await in_thread(_long_last, names, services.roots):
                group.start_soon(load, name)
    documents = {
        name: result for name, result in results.items() if isinstance(result, Document)
    }
    services.addresses.give(document.page.final_url for document in documents.values())
    return documents, [
        result for result in results.values() if isinstance(result, SourceError)
    ]


def failure_of(error: SourceError) -> Failure:
    """Return what an answer says of a source that could not be had, and whether it was
    only late."""
    return Failure(
        error.source,
        str(error),
        late=isinstance(error, SourceTimeout),
        gone=isinstance(error, SourceNotFound),
    )


def read_in_part(documents: Iterable[Document]) -> list[Failure]:
    """Return what an answer says of documents of which something was not read, and how
    to go on."""
    pages = (document.page for document in documents)
    return [
        in_part(page.final_url, page.unread, page.rest) for page in pages if page.unread
    ]


def in_part(url: str, unread: str, continuation: str) -> Failure:
    """Return what an answer says of one source that was read in part."""
    summary = (
        f"{unread} (to read on, add #{continuation.rpartition('#')[2]})"
        if "#" in continuation
        else unread
    )
    return Failure(
        unquote(url.partition("#")[0].rpartition("/")[2]) or url,
        summary,
        rest=continuation,
        page=url,
    )


def failures_of(failures: Iterable[Failure]) -> list[str]:
    """Return the failures for the result, on one line each and truncated."""
    return list(map(failure_line, islice(failures, 4 * FIRST)))


def provider_lines(outcomes: Iterable[SearchOutcome], delimiter: str) -> list[str]:
    """Return a line for each provider with its status and reason, each line once."""
    return list(
        dict.fromkeys(provider_line(outcome, delimiter) for outcome in outcomes)
    )


def provider_line(outcome: SearchOutcome, delimiter: str) -> str:
    """Return a provider's status, its own message between delimiters."""
    return f"{outcome.provider}: {outcome.status} {quoted(outcome.reason, delimiter)}".strip()


def write_search(
    gathered: "Gathered", verdict: Verdict, sheet: Sheet, delimiter: str
) -> None:
    """Write what of a search bears on the verdict of its answer: providers that did not
    answer, what they say of themselves, other wordings where nothing answers, notes.

    A provider's message is quoted, so it is written whole or not at all."""
    answering = {
        outcome.provider for outcome in gathered.outcomes if outcome.status == "ok"
    }
    lines: dict[str, str] = {}
    for outcome in gathered.outcomes:
        # Silent ones are among the failures; of an empty one another wording found something
        failed = outcome.status != "ok" and outcome not in gathered.silent
        if outcome.status == "empty" and outcome.provider in answering:
            continue
        if failed or (outcome.reason and verdict != "answered"):
            short = f"{outcome.provider}: {outcome.status}" if failed else ""
            lines[provider_line(outcome, delimiter)] = short
        if outcome.unsearched and verdict == "none":
            said = quoted(outcome.unsearched, delimiter)
            lines[f"{outcome.provider}: {said}"] = ""
    for line, short in lines.items():
        _ = sheet.add(line) or sheet.add_cut(short)
    others = [f'"{one_line(query.text)}"' for query in gathered.parsed.queries[1:]]
    if others and verdict == "none":
        sheet.add_cut(f"Searched: {'; '.join(others)}.")
    for note in gathered.notes:
        sheet.add_cut(note)


def failure_line(failure: Failure) -> str:
    """Return `source: reason` as answers say it."""
    return failure_text(failure.source, failure.reason)


def room_for(failures: Iterable[Failure], max_tokens: int) -> int:
    """Return the tokens of a budget to keep free for what was not read."""
    summary = sum(
        count_tokens(f"Not read: {failure_line(failure)}") + 1 for failure in failures
    )
    return min(summary, int(UNREAD_SHARE * max_tokens))


@traced("read_source")
async def open_source(
    name: str, services: Services, *, outside: bool = False
) -> Document:
    """Fetch one source, keep its page under its handle, and return it cleaned; raises
    `SourceError`, `AddressRefused` for an address that no call may name."""
    services.addresses.check(name)
    page = await services.fetcher.fetch(name, outside=outside)
    await in_thread(keep_page, services.stores.pages, page)
    return await services.documents.read(page)


def _long_last(names: Sequence[str], roots: Sequence[Path]) -> list[str]:
    """Return names of sources, files of long texts last: these cost seconds, and so
    cost themselves alone. What is wrong with a name its reading says."""

    def is_long(source: str) -> bool:
        name = split_span(source)[0]
        if not _is_local(name) or ending_of(name) in CONVERTED:
            return False
        with suppress(SourceError, OSError, ValueError):
            is_url = name.lower().startswith("file:")
            path = path_of_url(name) if is_url else Path(name)
            return allowed_path(path, roots=roots).stat().st_size > LIGHT_BYTES
        return False

    return sorted(names, key=is_long)


def _is_local(name: str) -> bool:
    return name.lower().startswith("file:") or ("://" not in name and not is_site(name))


def store_for(urls: Iterable[str], services: Services) -> Store:
    """Return where a tree over these pages is kept: on this machine where any of them
    is a person's own file."""
    has_file = any(url.startswith("file:") for url in urls)
    return (
        services.stores.own
        if has_file and services.stores.trees.shared
        else services.stores.trees
    )


def open_tree(handle: str, services: Services) -> Tree:
    """Return the tree that a handle names.

    Raises `SourceNotFound`: there is none, or a file in it may not be read here.
    """
    stores = services.stores
    tree = find_tree(stores.trees, handle) or (
        find_tree(stores.own, handle) if stores.trees.shared else None
    )
    allowed = tree is not None and all(
        may_open(source.url, services.roots) for source in tree.sources
    )
    if tree is None or not allowed:
        raise SourceNotFound(
            f"The tree {handle} is unknown or has expired.",
            source=handle,
            hint="Pass its sources again.",
        )
    return tree


def _folder(name: str, roots: Sequence[Path]) -> Path | None:
    """Return the folder that a source names, None for anything else; what is wrong with
    a name the fetch says.

    A relative name is looked for below the roots, as a file's is, so that `.` is the
    first of them."""
    if not _is_local(name):
        return None
    try:
        is_url = name.lower().startswith("file:")
        path = path_of_url(name) if is_url else Path(name).expanduser()
        candidates = (*(root / path for root in roots), path)
        folders = [folder.resolve() for folder in candidates if folder.is_dir()]
    except (AddressRefused, OSError, RuntimeError, ValueError):
        return None
    allowed = [folder for folder in folders if _is_allowed(folder, roots)]
    return next(iter(allowed or folders), None)


def _is_allowed(folder: Path, roots: Sequence[Path]) -> bool:
    return any(folder.is_relative_to(root) for root in roots)


def _documents_in(folder: Path) -> tuple[list[Path], Passed]:
    """Return the documents below a folder, images last, and what else is there, by
    ending.

    Of a folder that cannot be read there are none."""
    listing = list_files([folder], file_bytes=sys.maxsize)
    files = [Path(stamp.path) for stamp in listing.files]
    files.sort(key=lambda path: (path.suffix.lower() in IMAGES, path))
    return files, listing.passed


def files_in(name: str, roots: Sequence[Path]) -> tuple[Path, list[Path], Passed]:
    """Return a folder below the roots, the documents in it, and its other files by
    ending.

    Raises `UsageError` if `name` is not such a folder.
    """
    folder = _folder(name, roots)
    if folder is None or not _is_allowed(folder, roots):
        allowed = (
            ", ".join(map(str, roots)) or "none; a person opens one with WINNOW_FOLDERS"
        )
        raise UsageError(
            f"{name!r} is not an allowed folder.",
            hint=f"Allowed folders: {allowed}.",
        )
    return folder, *_documents_in(folder)


def _expand_folders(
    names: Sequence[str], roots: Sequence[Path]
) -> tuple[list[str], list[Failure]]:
    expanded: list[str] = []
    failures: list[Failure] = []
    for name in names:
        folder = _folder(name, roots)
        if folder is None:
            expanded.append(name)
            continue
        if not _is_allowed(folder, roots):
            failures.append(
                Failure(
                    name,
                    "The folder is not below an allowed root; allow it with WINNOW_FOLDERS.",
                )
            )
            continue
        files, passed = _documents_in(folder)
        if passed:
            failures.append(
                Failure(name, f"{not_searched(passed)}.", gone=not may_answer(passed))
            )
        expanded.extend(str(path) for path in files[:MAX_FILES])
        if len(files) > MAX_FILES:
            failures.append(
                Failure(
                    name,
                    f"Only the first {MAX_FILES} of {len(files)} files were read; name a "
                    f"sub-folder.",
                )
            )
    return list(dict.fromkeys(expanded)), failures


REPORTED_SECONDS: Final = 0.5
"""Seconds between two reports of how far the folders are read."""
HITS_PER_PAGE: Final = 2
"""Results asked for each page wanted: mixed ranking needs something to choose from."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to gather."""

    question: Question
    max_pages: int
    freshness: Freshness = "any"
    language: str = ""
    form: RankForm | Literal["paper"] = "mixed"
    """`paper`: bare snippet or whole content, the better one wins."""
    filters: SearchQuery = field(default_factory=lambda: SearchQuery(""))
    """Dates, region, site, safe search and page for every query; its other fields are
    not read."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was found, best first, and what could not be had."""

    parsed: ParsedRequest
    ranked: tuple[RankedPage, ...]
    documents: dict[str, Document]
    """Result URL to its page, for the pages that came in time."""
    outcomes: tuple[SearchOutcome, ...]
    failures: tuple[Failure, ...]
    silent: tuple[SearchOutcome, ...] = ()
    """Sources that failed and were not replaced."""
    notice: str = ""
    """Notice about the search providers, shown once."""

    @property
    def notes(self) -> list[str]:
        """Return what is to be said of the search, a line each."""
        return list(filter(None, (*map(one_line, self.parsed.notes), self.notice)))

    def missing(self) -> list[Failure]:
        """Return what was not read, sources of results first."""
        statuses = dict.fromkeys(
            (outcome.provider, outcome.status) for outcome in self.silent
        )
        providers = [
            Failure(provider, status, late=status == "timeout")
            for provider, status in statuses
        ]
        return [*providers, *self.failures]


def _unread(outcomes: Sequence[SearchOutcome]) -> list[Failure]:
    """Return what providers have not looked at yet, by the last outcome of each."""
    latest = {outcome.provider: outcome for outcome in outcomes}
    return [
        Failure(provider, outcome.unread, late=not outcome.rest, rest=outcome.rest)
        for provider, outcome in latest.items()
        if outcome.unread
    ]


async def gather_pages(
    order: Wanted, services: Services, *, report: Report
) -> Gathered:
    """Search, fetch and rank; returns at most `order.max_pages` pages; raises
    `SearchFailed`, and `ModelError` where a model fails while ranking.

    Pages that cannot be read in time are ranked by their snippets."""
    # 1. PARSER: what to ask, in which language, how fresh
    parsed = await _parsed(order.question, services)
    if parsed.needless:
        return Gathered(parsed, (), {}, (), ())
    queries = [narrowed(query, order) for query in parsed.queries]
    await report(1, 10, f"searching: {queries[0].text}")
    # 2. Search: every query, the provider chain
    async with beside(partial(_report_folder, services.folder, report)):
        findings = await services.chain.search(
            queries, limit=order.max_pages * HITS_PER_PAGE
        )
    services.addresses.give(result.url for result in findings.results)
    await report(3, 10, f"{len(findings.results)} results")
    # 3. Fetch the result pages, as far as time allows
    documents: dict[str, Document] = {}
    failures = _unread(findings.outcomes)
    if order.form != "engine":
        urls = [result.url for result in findings.results]
        seconds = STEP_SHARE * min(services.seconds, time_left())
        outside = {result.url for result in findings.results if not result.inside}
        documents, errors = await open_all(
            urls, services, seconds=seconds, outside=outside
        )
        documents |= {
            result.url: catalogued(documents[result.url], result)
            for result in findings.results
            if result.url in documents
        }
        failures += map(failure_of, errors)
        await report(6, 10, f"{len(documents)} pages read, {len(errors)} not")
    # 4. Mixed ranking: snippets, passages and the engines' order
    rank = (
        partial(
            printed("rank_as_printed"),
            keywords=[query.text for query in parsed.queries if query.guessed],
        )
        if order.form == "paper"
        else partial(mixed_rank, form=order.form)
    )
    ranked: Sequence[RankedPage] = await rank(
        order.question,
        findings.results,
        documents,
        embedder=services.embedder,
        reranker=services.reranker,
    )
    await report(7, 10, f"ranked {len(ranked)} pages")
    ranked = ranked[: order.max_pages]
    in_part = read_in_part(
        documents[page.result.url] for page in ranked if page.result.url in documents
    )
    missing = tuple(dict.fromkeys([*in_part, *failures]))
    notice = services.notice.take()
    return Gathered(
        parsed,
        tuple(ranked),
        documents,
        findings.outcomes,
        missing,
        findings.silent,
        notice,
    )


async def _report_folder(folder: FolderProvider | None, report: Report) -> None:
    """Report how far the folders are read, until it is cancelled."""
    while folder is not None:
        await anyio.sleep(REPORTED_SECONDS)
        count, total = folder.progress
        if count < total:
            share = 2 * count / total  # of what is between this step and the next
            await report(1 + share, 10, f"{count} of {total} files are read")


async def _parsed(question: Question, services: Services) -> ParsedRequest:
    """Return what to search, by rules or also by the generator, if one is set."""
    today = services.today()
    if services.generator is None:
        return await in_thread(parse_request, question, today=today)
    seconds = services.seconds * STEP_SHARE
    parsed: ParsedRequest = await printed("parse")(
        question, services.generator, services.stores.scores, seconds, today=today
    )
    return parsed


def catalogued(document: Document, result: SearchResult) -> Document:
    """Return a document with what a catalogue of research says of it, which is surer
    than what a PDF says of itself; unchanged without a DOI or author."""
    if not result.doi and not result.author:
        return document
    page = document.page
    page = replace(
        page,
        title=result.title,
        author=result.author or page.author,
        published=result.published or page.published,
        doi=result.doi,
    )
    return replace(document, page=page)


def narrowed(query: SearchQuery, order: Wanted) -> SearchQuery:
    """Return a query with what the caller wants of all; its own freshness and language
    stay where the caller wants none."""
    return replace(
        order.filters,
        text=query.text,
        asked=query.asked,
        guessed=query.guessed,
        scholarly=query.scholarly,
        freshness=order.freshness if order.freshness != "any" else query.freshness,
        language=order.language or query.language,
    )
