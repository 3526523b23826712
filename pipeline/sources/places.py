"""Reading by place: the outline of a page, a section, its links, its tables, the list
of a folder, all of it.

`part` names the place: `outline`, `whole`, `section HEADING`, `links`, `files`, `tables`,
and `sql: SELECT …` for rows of the tables. Not for: what bears on a question
(`pipeline/prune`), or pages of a PDF, which are a source of their own
(`#pages=66-120`)."""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final

import anyio

from errors import SourceError, UsageError
from pipeline.document.cite import position_name, position_of
from pipeline.document.converted import html_table, whole_page
from pipeline.document.page import Document, Page
from pipeline.evidence.forms import VALUE_FORMATS, RowForm, rows_as
from pipeline.evidence.render import Kept, Style, all_links, render, repeats_title
from pipeline.evidence.show import FIRST, GAP, shortened
from pipeline.prune.prune import UNASKED_PAGE, Pruned, PrunedPage, PruneOptions
from pipeline.search.listing import not_searched
from pipeline.services import Services
from pipeline.sources.anchors import unit_of_address
from pipeline.sources.gather import MAX_FILES, Loaded, failure_line, files_in
from pipeline.tables.sql import SqlTable, query_tables, sql_tables
from pipeline.tables.table import tables_of
from pipeline.text.frame import new_mark, one_line, quoted
from pipeline.text.tokens import count_each, count_tokens
from pipeline.text.words import index_terms
from pipeline.work import in_thread

TITLE_SAMPLE_TOKENS: Final = 24
"""Of a table's title in a list of tables."""
SAMPLE_TOKENS: Final = 60
"""Of a sample row there."""
TABLE_PARTS: Final = frozenset({"tables", "sql"})
KNOWN_TOKENS: Final = 8
"""Maximum tokens of a heading that repeats the page's title in an outline."""
PART_KINDS: Final = (
    "outline",
    "section",
    "whole",
    "links",
    "tables",
    "sql",
    "files",
    "pages",
)
_PART_SYNTAX: Final = re.compile(
    rf"\s*({'|'.join(PART_KINDS)}|page)s?\b[:\s]*(.*)", re.IGNORECASE | re.DOTALL
)
_PAGE_RANGE: Final = re.compile(r"(\d{1,6})(?:\s*[-–]\s*(\d{1,6})?)?\s*")


@dataclass(frozen=True, slots=True)
class _Listing:
    """What one document has at a place: items that are written from one to another."""

    document: int
    count: int
    write: Callable[[int, int], str]
    caption: Callable[[int, int], str] = lambda _start, _end: ""
    """What we say of these items."""
    blocks: tuple[int, ...] = ()
    further_documents: tuple[int, ...] = ()
    """Further documents that the items are of."""


def split_part(part: str) -> tuple[str, str]:
    """Return the place that `part` names and what it says of it; raises `UsageError`
    where it names none."""
    match = _PART_SYNTAX.fullmatch(part)
    if match is None:
        raise UsageError(
            f"part={part!r} is not a valid part.",
            hint='Write part="outline", "whole", "section Heading", "pages 66-120", "links", '
            '"files", "tables" or "sql: SELECT …".',
        )
    kind = match[1].lower()
    return "pages" if kind == "page" else kind, match[2].strip()


def named_pages(sources: Sequence[str], page_range: str) -> list[str]:
    """Return sources as those of some of their pages (`66-120`); raises `UsageError`
    where `page_range` names none.

    `66` is that page alone, `66-` all from it on. A fragment that a source has is
    replaced."""
    pages = _PAGE_RANGE.fullmatch(page_range)
    if pages is None:
        raise UsageError(
            f'part="pages {page_range}" is not a page range.',
            hint='Write part="pages 66-120" to read these pages of a PDF.',
        )
    last = pages[2] or ("" if "-" in page_range or "–" in page_range else pages[1])
    return [f"{source.partition('#')[0]}#pages={pages[1]}-{last}" for source in sources]


def read_part(
    documents: Sequence[Document],
    part: str,
    *,
    form: RowForm,
    max_tokens: int | None,
    number: int,
) -> Pruned:
    """Return what documents have at the place that `part` names, as much as fits;
    `number` 2 is what follows, `max_tokens` None means `UNASKED_PAGE`.

    Raises `UsageError`, which says which places there are, where there is no such place."""
    kind, request = split_part(part)
    if form not in VALUE_FORMATS and kind not in {"links", "files", "sql"}:
        raise UsageError(
            f'format="{form}" is for rows.',
            hint='Write part="sql: SELECT * FROM t1", or format="markdown".',
        )
    makers: dict[str, Callable[[int, Document], _Listing | str]] = {
        "outline": _outline,
        "whole": lambda index, document: _blocks(
            index, document, range(len(document.blocks)), form
        ),
        "section": lambda index, document: _section(index, document, request, form),
        "links": lambda index, document: _links(index, document, form),
        "files": lambda index, document: _files(index, document, form),
    }
    results: Sequence[_Listing | str]
    if kind == "sql":
        results = [_queried(documents, request, form)]
    elif kind == "tables":
        results = _tables(documents) or ["There are no tables"]
    else:
        results = [
            makers[kind](index, document) for index, document in enumerate(documents)
        ]
    listings = [
        result for result in results if isinstance(result, _Listing) and result.count
    ]
    if not listings:
        reasons = "; ".join(
            dict.fromkeys(result for result in results if isinstance(result, str))
        )
        raise UsageError(
            f"{reasons or 'There is no text'}.",
            hint='Write part="whole" to see what there is.',
        )
    return _filled(listings, UNASKED_PAGE if max_tokens is None else max_tokens, number)


def read_from_address(
    documents: Sequence[Document], options: PruneOptions
) -> Pruned | None:
    """Return documents from the place on that the fragment of their address points to;
    None where none has one.

    The text above it comes last; a document without such a place is read from its
    top."""
    begins = [unit_of_address(document) for document in documents]
    if all(begin is None for begin in begins):
        return None
    listings: list[_Listing] = []
    for index, (document, begin) in enumerate(zip(documents, begins, strict=True)):
        main = [
            place
            for place, block in enumerate(document.blocks)
            if block.main or block.closed
        ]
        places = sorted(
            {*main, *(_below(document, begin) if begin is not None else ())}
        )
        first = bisect_left(places, begin or 0)
        listings.append(
            _blocks(
                index,
                document,
                [*places[first:], *places[:first]],
                options.format,
                links=options.links,
            )
        )
    return _filled(
        listings,
        UNASKED_PAGE if options.max_tokens is None else options.max_tokens,
        options.part,
    )


def _filled(listings: Sequence[_Listing], budget: int, number: int) -> Pruned:
    """Return the part of the listings' items that comes `number`-th, each part filled
    to the budget in order.

    A part has one item at least, also one over the budget; beyond the last part it is
    empty."""
    ends = [
        sum(listing.count for listing in listings[: place + 1])
        for place in range(len(listings))
    ]
    start, pages = 0, tuple[PrunedPage, ...]()
    for _ in range(number):
        # The largest run that fits; at least one item, for a part that shows nothing would never
        # end.
        items = ends[-1] - start
        fits = bisect_left(
            range(1, items + 1), True, key=partial(_over, listings, budget, start)
        )
        pages = _pages(listings, start, start + max(1, fits)) if items else ()
        start += max(1, fits) if items else 0
    return Pruned(pages, _cost(pages), budget, left_out=ends[-1] - start)


def _over(listings: Sequence[_Listing], budget: int, start: int, count: int) -> bool:
    return _cost(_pages(listings, start, start + count)) > budget


def _cost(pages: Sequence[PrunedPage]) -> int:
    return sum(
        page.tokens + (count_tokens(page.said) + 1 if page.said else 0)
        for page in pages
    )


def _pages(
    listings: Sequence[_Listing], start: int, end: int
) -> tuple[PrunedPage, ...]:
    pages: list[PrunedPage] = []
    for listing in listings:
        first, last = max(start, 0), min(end, listing.count)
        if first < last:
            text = listing.write(first, last)
            pages.append(
                PrunedPage(
                    listing.document,
                    text,
                    count_tokens(text),
                    listing.blocks[first:last],
                    listing.caption(first, last),
                    listing.further_documents,
                )
            )
        start, end = start - listing.count, end - listing.count
    return tuple(pages)


# Outline, sections, all of it


def _outline(at: int, document: Document) -> _Listing | str:
    headings = [
        index for index, block in enumerate(document.blocks) if block.kind == "heading"
    ]
    lines: list[str] = []
    counts = count_each([block.text for block in document.blocks])
    for index in headings:
        block = document.blocks[index]
        tokens = sum(counts[inner] for inner in _below(document, index))
        where = position_name(position_of(document, block.start, block.end))
        where += ", " if where else ""
        text = one_line(block.text)
        if repeats_title(block, document.page.title):  # which is shown above
            text = shortened(text, KNOWN_TOKENS)
        lines.append(
            f"{'  ' * len(block.heading_path)}- {text} ({where}{tokens} tokens)"
        )
    if not lines:
        return "There are no headings"
    return _Listing(
        at,
        len(lines),
        lambda start, end: "\n".join(lines[start:end]),
        blocks=tuple(headings),
    )


def _below(document: Document, heading: int) -> range:
    """Return the units of a heading and of everything under it."""
    blocks = document.blocks
    path = (*blocks[heading].heading_path, blocks[heading].text)
    end = heading + 1
    while end < len(blocks) and blocks[end].heading_path[: len(path)] == path:
        end += 1
    return range(heading, end)


def _section(
    at: int, document: Document, heading: str, form: RowForm
) -> _Listing | str:
    headings = {
        index: block.text
        for index, block in enumerate(document.blocks)
        if block.kind == "heading"
    }
    name = heading.strip("\"'").casefold()
    language = document.page.language or "en"
    terms = set(index_terms(name, language=language))
    ways: tuple[Callable[[str], bool], ...] = (
        lambda text: text.casefold() == name,
        lambda text: text.casefold().strip(" .0123456789") == name,
        lambda text: bool(name) and name in text.casefold(),
        lambda text: bool(terms) and terms <= set(index_terms(text, language=language)),
    )
    for way in ways:
        matches = [index for index, text in headings.items() if way(one_line(text))]
        if matches:
            # A heading may be in a table of contents as well; the section is the one
            # with most text below it.
            best = max(matches, key=lambda index: len(_below(document, index)))
            return _blocks(at, document, _below(document, best), form, titled=True)
    listed = quoted(", ".join(headings.values()), new_mark())
    return (
        f"There is no section {heading!r}; headings are: {listed}"
        if headings
        else "There are no headings"
    )


def _blocks(
    at: int,
    document: Document,
    places: Sequence[int],
    form: RowForm,
    *,
    titled: bool = False,
    links: bool = False,
) -> _Listing:
    style = Style(VALUE_FORMATS[form], titled=titled, links=links)

    def write(start: int, end: int) -> str:
        shown = places[start:end]
        # Where the top of a page comes after its rest, it is written by itself.
        turn = next(
            (at for at in range(1, len(shown)) if shown[at] < shown[at - 1]), len(shown)
        )
        parts = (
            render(document, [Kept(index) for index in part], style)
            for part in (shown[:turn], shown[turn:])
            if part
        )
        return f"\n\n{GAP}\n\n".join(parts)

    return _Listing(at, len(places), write, blocks=tuple(places))


# Rows


def _rows(
    at: int,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    form: RowForm,
    about: str,
) -> _Listing:
    """Return rows of a document as items; `about` says what they are."""

    def caption(start: int, end: int) -> str:
        range_shown = (
            f" {start + 1}–{end} of {len(rows):,}" if end - start < len(rows) else ""
        )
        return f"Rows{range_shown}: {about}" if range_shown else f"{len(rows)} {about}"

    return _Listing(
        at,
        len(rows),
        lambda start, end: rows_as(form, columns, rows[start:end]),
        caption,
    )


def _links(at: int, document: Document, form: RowForm) -> _Listing | str:
    rows = [(words, url) for url, words in all_links(document).items()]
    if not rows:
        return "There are no links"
    return _rows(at, ("words", "address"), rows, form, "links:")


def _files(at: int, document: Document, form: RowForm) -> _Listing | str:
    tables = tables_of(document)
    if not tables:
        return "The folder holds no documents"
    return _rows(at, tables[0].columns, tables[0].rows, form, "files, newest first:")


# Tables


def _tables(documents: Sequence[Document]) -> list[_Listing]:
    """Return the tables of each document as SQL names them, an item each: columns with
    their types, the number of rows, the first and the last row."""
    by_document: dict[int, list[str]] = {}
    for table in sql_tables(documents):
        by_document.setdefault(table.document, []).append(_described(table))

    def write(lines: Sequence[str], start: int, end: int) -> str:
        return "\n".join(lines[start:end])

    return [
        _Listing(at, len(lines), partial(write, lines))
        for at, lines in by_document.items()
    ]


def _described(table: SqlTable) -> str:
    columns = ", ".join(
        f"{name} {column.type}{f' ({column.unit})' if column.unit else ''}"
        for name, column in table.columns.items()
    )
    rows = table.table.rows
    samples = [rows[0], rows[-1]] if len(rows) > 1 else rows[:1]
    title = shortened(one_line(table.table.title), TITLE_SAMPLE_TOKENS)
    head = f"{table.name}{f' “{title}”' if title else ''}, {len(rows)} rows: {columns}"
    cells = (" | ".join(map(one_line, row)) for row in samples)
    return "\n".join((head, *(f"- {shortened(row, SAMPLE_TOKENS)}" for row in cells)))


def _queried(documents: Sequence[Document], query: str, form: RowForm) -> _Listing:
    """Return the rows that a query finds in the tables of all documents.

    Raises `UsageError` where there are no tables, or the query is wrong."""
    tables = sql_tables(documents)
    if not tables:
        raise UsageError(
            "There are no tables.", hint='Write part="whole" to see what there is.'
        )
    result = query_tables(tables, query)
    tables_read = [
        f"{table.name} of [{table.document + 1}] ({len(table.table.rows):,} rows)"
        for table in result.tables
    ]
    source = f" from {', '.join(tables_read)}" if tables_read else ""
    if len(tables_read) < len(tables):
        source += f"; tables in all: {len(tables)}"
    repeats = [table.name for table in result.tables if table.table.repeats]
    if repeats:
        source += f"; cells that cover several rows count in each: {', '.join(repeats)}"
    total = f"{len(result.rows):,}"
    if result.cut:
        total = f"more than {total} (go on with LIMIT and OFFSET)"

    def caption(start: int, end: int) -> str:
        if len(result.rows) == 1:
            return f"1 row{source}:"
        is_part = result.cut or end - start < len(result.rows)
        range_shown = (
            f"Rows {start + 1}–{end} of {total}" if is_part else f"{total} rows"
        )
        return f"{range_shown}{source}:"

    documents_read = sorted({table.document for table in result.tables}) or [0]
    return _Listing(
        documents_read[0],
        max(len(result.rows), 1),  # none is an answer, too
        lambda start, end: rows_as(form, result.columns, result.rows[start:end]),
        caption,
        further_documents=tuple(documents_read[1:]),
    )


def all_read(loaded: Loaded) -> Loaded:
    """Return documents whose tables may be queried, without what is unread beside the
    tables; raises `UsageError` where a source could not be read."""
    failures = [
        failure
        for failure in loaded.failures
        if not failure.page and not (failure.gone and Path(failure.source).is_dir())
    ]
    if failures:
        listed = "; ".join(map(failure_line, failures[:FIRST]))
        late = any(failure.late for failure in failures)
        raise UsageError(
            f"Tables are queried only where all sources were read. Not read: {listed}",
            hint="Repeat the call; it continues from the cache."
            if late
            else "Leave out what cannot be read.",
        )
    return replace(loaded, failures=())


# Folders


async def load_folders(
    sources: Sequence[str], services: Services, *, seconds: float
) -> Loaded:
    """Return a page for each folder that lists its documents: file, title, date, kind
    and size.

    Title and date are the document's own where it could be read in `seconds`, else its
    name and its last change. Raises `UsageError` where a source is no folder. No more
    than `MAX_FILES` are opened; the others are listed by name."""
    documents: list[Document] = []
    for source in sources:
        folder, files, passed = await in_thread(files_in, source, services.roots)
        pages = await _looked_at(files[:MAX_FILES], services, seconds / len(sources))
        rows = [_file_row(path, folder, pages.get(path)) for path in files]
        rows.sort(key=itemgetter(_DATE), reverse=True)
        html = whole_page(
            html_table([("file", "title", "date", "kind", "size"), *rows], header=True)
        )
        page = Page(
            folder.as_uri(), folder.as_uri(), folder.name, html, "inode/directory"
        )
        page = replace(page, notes=(not_searched(passed),)) if passed else page
        documents.append(await services.documents.read(page))
    return Loaded(tuple(documents), ())


async def _looked_at(
    files: Sequence[Path], services: Services, seconds: float
) -> dict[Path, Page]:
    pages_read: dict[Path, Page] = {}
    with anyio.move_on_after(seconds):
        for path in files:
            try:
                pages_read[path] = await services.fetcher.fetch(str(path))
            except (
                SourceError
            ):  # what cannot be read is listed by its name all the same
                continue
    return pages_read


_DATE: Final = 2
"""Column of `_file_row`."""


def _file_row(path: Path, folder: Path, page: Page | None) -> tuple[str, ...]:
    status = path.stat()
    changed = datetime.fromtimestamp(status.st_mtime, UTC).date().isoformat()
    title, published = (one_line(page.title), page.published) if page else ("", "")
    kind, size = (
        path.suffix.removeprefix(".").lower(),
        f"{max(1, round(status.st_size / 1000))} kB",
    )
    return (
        path.relative_to(folder).as_posix(),
        title or path.stem,
        published or changed,
        kind,
        size,
    )
