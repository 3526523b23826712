"""From what a caller names (URLs, files, folders, handles) to documents; what could not be read is said, not dropped.

Not for: searching (`pipeline/gather.py`) or fetching as such (`pipeline/fetch`).
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import anyio

from cache.store import Store
from errors import AddressRefused, SourceError, SourceNotFound, SourceTimeout, UsageError
from pipeline.documents import Document, Failure
from pipeline.fetch.files import is_hidden, may_open, path_of_url, split_span
from pipeline.fetch.handles import keep_page
from pipeline.raptor.tree import Tree, find_tree
from pipeline.services import Services
from pipeline.text.frame import address
from pipeline.text.tokens import count_tokens
from pipeline.trace import traced
from pipeline.work import WORKERS, Report, in_thread, no_report

MAX_FILES: Final = 200
"""Files that one folder may bring into one call; more would not answer within its time."""
UNREAD_SHARE: Final = 0.1
"""Part of an answer that may say what was not read."""
CONVERTED: Final = frozenset({".pdf", ".docx"})
READABLE: Final = frozenset({".html", ".htm", ".xhtml", ".md", ".markdown", ".txt", ".pdf", ".docx", ".json", ".rst"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """Documents in the order their sources were named, and what failed."""

    documents: tuple[Document, ...]
    failures: tuple[Failure, ...]


async def load_sources(sources: Sequence[str], services: Services, *, seconds: float, report: Report) -> Loaded:
    """Read every source at once and return the documents that were ready in time.

    Args:
        sources: URLs, file paths, folder paths, or handles such as `winnow://page/…`.
        services: The outside world.
        seconds: How long to wait; sources that are late become failures.
        report: Progress, one step a source.

    Raises:
        UsageError: There is no source at all.
        SourceError: Nothing could be read; the first failure's own error, which names the rest.
    """
    names = [name for source in sources if (name := source.strip())]
    if not names:
        raise UsageError(
            "No source was given.", hint="Pass URLs, file or folder paths, or handles from earlier answers."
        )
    expanded, failed = await in_thread(_expand_folders, names, services.roots)
    documents, errors = await open_all(expanded, services, seconds=seconds, report=report)
    failures = [*read_in_part(documents.values()), *failed, *map(failure_of, errors)]
    if not documents:
        _raise_failures(errors, failures)
    return Loaded(tuple(documents.values()), tuple(failures))


async def open_all(
    names: Sequence[str], services: Services, *, seconds: float, report: Report = no_report
) -> tuple[dict[str, Document], list[SourceError]]:
    """Read distinct sources side by side; return documents by name, in order, and why there is none of the others."""
    found: dict[str, Document | SourceError] = {
        name: SourceTimeout(
            f"{name} was not ready after {seconds:.0f} s.",
            source=name,
            hint="Repeat the call; it goes on from the cache.",
        )
        for name in names
    }
    done = 0
    # Files one after the other, each to its end: of many begun at once none would be ready when time is up. Those that
    # processes convert stand in a line of their own, so that no text waits for them.
    lines = {converted: anyio.CapacityLimiter(WORKERS) for converted in (False, True)}

    async def load(name: str) -> None:
        nonlocal done
        line = lines[Path(split_span(name)[0]).suffix.lower() in CONVERTED] if _is_local(name) else nullcontext()
        try:
            async with line:
                found[name] = await open_source(name, services)
        except SourceError as error:
            found[name] = error
        done += 1
        await report(done, len(names), f"read {address(name)}")

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(load, name)
    documents = {name: one for name, one in found.items() if isinstance(one, Document)}
    return documents, [one for one in found.values() if isinstance(one, SourceError)]


def failure_of(error: SourceError) -> Failure:
    """Return what an answer says of a source that could not be had, and whether it was only late."""
    late, gone = isinstance(error, SourceTimeout), isinstance(error, SourceNotFound)
    return Failure(error.source, str(error), late=late, gone=gone)


def read_in_part(documents: Iterable[Document]) -> list[Failure]:
    """Return what an answer says of documents of which something was not read, and how to go on."""
    pages = (document.page for document in documents)
    return [in_part(page.final_url, page.unread, page.rest) for page in pages if page.unread]


def in_part(url: str, unread: str, rest: str) -> Failure:
    """Return what an answer says of one source that was read in part."""
    told = f"{unread} (go on with #{rest.rpartition('#')[2]})" if rest else unread
    return Failure(unquote(url.partition("#")[0].rpartition("/")[2]) or url, told, rest=rest)


def room_for(failures: Iterable[Failure], max_tokens: int) -> int:
    """Return the tokens of a budget to keep free for what was not read."""
    told = sum(count_tokens(f"Not read: {failure.source}: {failure.reason}") + 1 for failure in failures)
    return min(told, int(UNREAD_SHARE * max_tokens))


def _raise_failures(errors: Sequence[SourceError], failures: Sequence[Failure]) -> None:
    if len(failures) == 1 and errors:
        raise errors[0]
    listed = "\n".join(f"- {failure.source}: {failure.reason}" for failure in failures[:20])
    raise SourceNotFound(f"None of the {len(failures)} sources could be read:\n{listed}", source=failures[0].source)


@traced("read_source")
async def open_source(name: str, services: Services) -> Document:
    """Fetch one source, keep its page under its handle, and return it cleaned.

    Raises:
        SourceError: It cannot be read.
    """
    page = await services.fetcher.fetch(name)
    await in_thread(keep_page, services.stores.pages, page)
    return await services.documents.read(page)


def _is_local(name: str) -> bool:
    return name.lower().startswith("file:") or "://" not in name


def store_for(urls: Iterable[str], services: Services) -> Store:
    """Return where a tree over these pages is kept: on this machine where any of them is a person's own file."""
    own = any(url.startswith("file:") for url in urls)
    return services.stores.own if own and services.stores.trees.shared else services.stores.trees


def open_tree(handle: str, services: Services) -> Tree | None:
    """Return the tree that a handle names; None where there is none, or a file in it may not be read here."""
    stores = services.stores
    tree = find_tree(stores.trees, handle) or (find_tree(stores.own, handle) if stores.trees.shared else None)
    if tree is None or not all(may_open(source.url, services.roots) for source in tree.sources):
        return None
    return tree


def _folder(name: str, roots: Sequence[Path]) -> Path | None:
    """Return the folder that a source names, None for anything else; what is wrong with a name the fetch says.

    A relative name is looked for below the roots, as a file's is, so that `.` is the first of them.
    """
    if not _is_local(name):
        return None
    try:
        path = path_of_url(name) if name.lower().startswith("file:") else Path(name).expanduser()
        places = [place.resolve() for place in (*(root / path for root in roots), path) if place.is_dir()]
        below = (place for place in places if any(place.is_relative_to(root) for root in roots))
        return next(below, places[0] if places else None)
    except (AddressRefused, OSError, RuntimeError, ValueError):
        return None


def _expand_folders(names: Sequence[str], roots: Sequence[Path]) -> tuple[list[str], list[Failure]]:
    expanded: list[str] = []
    failures: list[Failure] = []
    for name in names:
        folder = _folder(name, roots)
        if folder is None:
            expanded.append(name)
            continue
        if not any(folder.is_relative_to(root) for root in roots):
            failures.append(Failure(name, "The folder is not below an allowed root; allow it with WINNOW_FOLDERS."))
            continue
        found = (p for p in folder.rglob("*") if not is_hidden(p, folder))
        files = sorted(p for p in found if p.suffix.lower() in READABLE and p.is_file())
        expanded.extend(str(path) for path in files[:MAX_FILES])
        if len(files) > MAX_FILES:
            failures.append(
                Failure(name, f"Only the first {MAX_FILES} of {len(files)} files were read; name a sub-folder.")
            )
    return list(dict.fromkeys(expanded)), failures
