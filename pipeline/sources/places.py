"""Reading by place: the outline of a page, a section, its links, its tables, the list
of a folder, all of it.

`part` names the place: `outline`, `whole`, `section HEADING`, `links`, `files`, `tables`,
and `sql: SELECT …` for rows of the tables. Not for: what bears on a question
(`pipeline/prune`), or pages of a PDF, which are a source of their own
(`#pages=66-120`)."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final

from errors import UsageError
from pipeline.document.cite import position_name, position_of
from pipeline.evidence.forms import Form, rows_as
from pipeline.evidence.render import Kept, Style, all_links, render, repeats_title
from pipeline.evidence.show import FIRST, GAP, shortened
from pipeline.prune.prune import UNASKED_PAGE, Pruned, PrunedPage, PruneOptions
from pipeline.reading.bm25 import JOINT
from pipeline.search.listing import not_searched
from pipeline.services import Services
from pipeline.sources.anchors import unit_of_address
from pipeline.sources.gather import Loaded, failure_line, files_in
from pipeline.tables.sql import SqlTable, query_tables, sql_tables
from pipeline.tables.table import name_in_sql, tables_of
from pipeline.text.frame import new_delimiter, one_line, quoted
from pipeline.text.tokens import count_each, count_tokens
from pipeline.text.words import index_terms
from pipeline.work import in_thread
from readers.converted import html_table, whole_page
from readers.page import Document, Page

TITLE_SAMPLE_TOKENS: Final = 24
"""Of a table's title in a list of tables."""
SAMPLE_TOKENS: Final = 60
"""Of a sample row there."""
TABLE_PARTS: Final = frozenset({"tables", "sql"})
KNOWN_TOKENS: Final = 8
"""Maximum tokens of a heading that repeats the page's title in an outline."""
_PART_SYNTAX: Final = re.compile(
    r"\s*(outline|section|whole|link|table|sql|file|page)s?\b[:\s]*(.*)",
    re.IGNORECASE | re.DOTALL,
)

CUT_ITEM: Final = "Cut: a larger max_tokens shows all of this item."
NAMESAKES: Final = 'Sections of the same name: {count} more; write part="section Heading above › Heading".'


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


def split_part(text: str) -> tuple[str, str]:
    """Return the place that `part` names and what it says of it; raises `UsageError`
    where it names none."""
    match = _PART_SYNTAX.fullmatch(text)
    if match is None:
        raise UsageError(
            f"part={text!r} is not a valid part.",
            hint='Write part="outline", "whole", "section Heading", "pages 66-120", "links", '
            '"files", "tables" or "sql: SELECT …".',
        )
    kind = match[1].lower()
    is_plural = kind in {"link", "table", "file", "page"}
    return f"{kind}s" if is_plural else kind, match[2].strip()


def named_pages(sources: Sequence[str], page_range: str) -> list[str]:
    """Return sources as those of some of their pages (`66-120`); raises `UsageError`
    where `page_range` names none.

    `66` is that page alone, `66-` all from it on. A fragment that a source has is
    replaced."""
    start, dash, stop = map(str.strip, page_range.replace("–", "-").partition("-"))
    if not start.isdecimal() or not (stop or "0").isdecimal():
        raise UsageError(
            f'part="pages {page_range}" is not a page range.',
            hint='Write part="pages 66-120" to read these pages of a PDF.',
        )
    stop = stop if dash else start
    return [f"{source.partition('#')[0]}#pages={start}-{stop}" for source in sources]


def read_part(
    documents: Sequence[Document],
    part: str,
    *,
    form: Form,
    max_tokens: int | None,
    number: int,
) -> Pruned:
    """Return what documents have at the place that `part` names, as much as fits,
    from the item `number` on; `max_tokens` None means `UNASKED_PAGE`.

    Raises `UsageError`, which says which places there are, where there is no such place."""
    kind, request = split_part(part)
    results: Sequence[_Listing | str]
    if kind == "sql":
        results = [_queried(documents, request, form)]
    elif kind == "tables":
        if request and not request.isdecimal():
            raise UsageError(
                f'part="{part}" names no rows.',
                hint="Write part=\"sql: SELECT sum(fee), count(*) FROM t1 WHERE boat = 'Tern'\"; "
                'part="tables" names the tables and their columns.',
            )
        results = _tables(documents, request) or [
            f"There is no table {request}" if request else "There are no tables"
        ]
    else:
        results = [
            _listed(index, document, kind, request, form)
            for index, document in enumerate(documents)
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
            hint=f'Write part="{"outline" if kind == "section" else "whole"}" to see what there is.',
        )
    return _filled(listings, UNASKED_PAGE if max_tokens is None else max_tokens, number)


def _listed(
    index: int, document: Document, kind: str, request: str, form: Form
) -> _Listing | str:
    """Return what one document has at a place, or that it has nothing there."""
    if kind == "outline":
        return _outline(index, document)
    if kind == "section":
        return _section(index, document, request, form)
    if kind == "whole":
        return _blocks(index, document, range(len(document.blocks)), form)
    if kind == "links":
        rows: list[Sequence[str]] = [
            (words, url) for url, words in all_links(document).items()
        ]
        columns: Sequence[str] = ("words", "address")
        about, nothing = "links:", "There are no links"
    else:
        tables = tables_of(document)
        rows = [*tables[0].rows] if tables else []
        columns = tables[0].columns if tables else ()
        rows = [row for row in rows if _is_asked_for(row[0], request)]
        about, nothing = "files, newest first:", "The folder holds no such documents"
        if any(row[0].endswith("/") for row in rows):
            about = "folders and files, newest first:"
    return _rows(index, columns, rows, form, about) if rows else nothing


def read_from_address(
    documents: Sequence[Document], options: PruneOptions
) -> Pruned | None:
    """Return documents from the place on that the fragment of their address points to;
    None where none has one.

    The text above it comes last; a document without such a place is read from its
    top."""
    starts = [unit_of_address(document) for document in documents]
    if all(start is None for start in starts):
        return None
    listings: list[_Listing] = []
    for index, (document, start) in enumerate(zip(documents, starts, strict=True)):
        units = {
            number
            for number, block in enumerate(document.blocks)
            if block.main or block.closed
        }
        units.update(_below(document, start) if start is not None else ())
        # What is above the place comes after it.
        order = sorted(units, key=partial(_is_above, start or 0))
        listings.append(_blocks(index, document, order, options.format))
    budget = UNASKED_PAGE if options.max_tokens is None else options.max_tokens
    return _filled(listings, budget, options.part)


def _is_above(start: int, unit: int) -> tuple[bool, int]:
    return unit < start, unit


def _filled(listings: Sequence[_Listing], budget: int, number: int) -> Pruned:
    """Return the listings' items from the `number`-th on, as many as the budget holds.

    That is one at least, which is cut where it alone is over the budget, and none
    beyond the last."""
    count, start = sum(listing.count for listing in listings), number - 1
    # The largest run that fits; at least one item, for a part that shows nothing would never
    # end.
    runs, is_over = range(1, count - start + 1), partial(_over, listings, budget, start)
    stop = min(count, start + max(1, bisect_left(runs, True, key=is_over)))
    pages = _pages(listings, start, stop)
    if stop - start == 1 and _cost(pages) > budget:
        pages = (_cut(pages[0], budget),)
    return Pruned(
        pages, _cost(pages), budget, left_out=count - stop, following=stop + 1
    )


def _cut(page: PrunedPage, budget: int) -> PrunedPage:
    """Return a page of one item cut to `budget` tokens, which says so."""
    above = " ".join(filter(None, (page.said, CUT_ITEM)))
    text = shortened(page.text, max(1, budget - count_tokens(above) - 1))
    return replace(page, said=above, text=text, tokens=count_tokens(text))


def _over(listings: Sequence[_Listing], budget: int, start: int, count: int) -> bool:
    return _cost(_pages(listings, start, start + count)) > budget


def _cost(pages: Sequence[PrunedPage]) -> int:
    return sum(
        page.tokens + (count_tokens(page.said) + 1 if page.said else 0)
        for page in pages
    )


def _pages(
    listings: Sequence[_Listing], start: int, stop: int
) -> tuple[PrunedPage, ...]:
    pages: list[PrunedPage] = []
    for listing in listings:
        low, high = max(start, 0), min(stop, listing.count)
        start, stop = start - listing.count, stop - listing.count
        if low >= high:
            continue
        text = listing.write(low, high)
        pages.append(
            PrunedPage(
                listing.document,
                text,
                count_tokens(text),
                listing.blocks[low:high],
                listing.caption(low, high),
                listing.further_documents,
            )
        )
    return tuple(pages)


# Outline, sections, all of it


def _outline(index: int, document: Document) -> _Listing | str:
    lines: dict[int, str] = {}
    counts = count_each([block.text for block in document.blocks])
    for number, block in enumerate(document.blocks):
        if block.kind != "heading":
            continue
        tokens = sum(counts[unit] for unit in _below(document, number))
        position = position_name(position_of(document, block.start, block.end))
        text = one_line(block.text)
        if repeats_title(block, document.page.title):  # which is shown above
            text = shortened(text, KNOWN_TOKENS)
        facts = ", ".join(filter(None, (position, f"{tokens} tokens")))
        lines[number] = f"{'  ' * len(block.heading_path)}- {text} ({facts})"
    if not lines:
        return "There are no headings"
    return _lines(index, list(lines.values()), tuple(lines))


def _lines(index: int, lines: Sequence[str], blocks: tuple[int, ...] = ()) -> _Listing:
    return _Listing(
        index,
        len(lines),
        lambda start, stop: "\n".join(lines[start:stop]),
        blocks=blocks,
    )


def _below(document: Document, heading: int) -> range:
    """Return the units of a heading and of everything under it."""
    blocks = document.blocks
    path = (*blocks[heading].heading_path, blocks[heading].text)
    stop = heading + 1
    while stop < len(blocks) and blocks[stop].heading_path[: len(path)] == path:
        stop += 1
    return range(heading, stop)


def _section(
    index: int, document: Document, heading: str, form: Form
) -> _Listing | str:
    blocks = document.blocks
    headings = {
        number: JOINT.join((*block.heading_path, block.text))
        for number, block in enumerate(blocks)
        if block.kind == "heading"
    }
    name = heading.strip("\"'").casefold()
    language = document.page.language or "en"
    terms = set(index_terms(name, language=language))
    # "§ 12" is neither "§ 12a" nor "1.12".
    whole_name = re.compile(rf"(?<![\w.]){re.escape(name)}(?![.-]?\w)")

    def likeness(unit: int) -> int:
        """Return how surely a heading is the one that is named, alone or with those
        above it; 0 for another."""
        text = one_line(blocks[unit].text).casefold()
        path = one_line(headings[unit]).casefold()
        if name in {text, text.strip(" .0123456789")} or f"{JOINT}{path}".endswith(
            f"{JOINT}{name}"
        ):
            return 3
        if name and whole_name.search(text):
            return 2
        # A number alone is in many headings.
        is_word = any(map(str.isalpha, terms))
        return int(is_word and terms <= set(index_terms(text, language=language)))

    if not headings:
        return "There are no headings"
    # A heading may be in a table of contents as well; the section is the one with most
    # text below it.
    section = max(
        headings, key=lambda unit: (likeness(unit), len(_below(document, unit)))
    )
    if likeness(section):
        listing = _blocks(index, document, _below(document, section), form, titled=True)
        text = blocks[section].text
        others = {
            path
            for unit, path in headings.items()
            if blocks[unit].text == text and len(_below(document, unit)) > 1
        } - {headings[section]}
        is_path = JOINT in name
        note = NAMESAKES.format(count=len(others)) if others and not is_path else ""
        return replace(listing, caption=lambda _start, _stop: note)
    names = quoted(", ".join(blocks[unit].text for unit in headings), new_delimiter())
    return f"There is no section {heading!r}; headings are: {names}"


def _blocks(
    index: int,
    document: Document,
    units: Sequence[int],
    form: Form,
    *,
    titled: bool = False,
) -> _Listing:
    style = Style(form, titled=titled)

    def write(start: int, stop: int) -> str:
        run = units[start:stop]
        # Where the top of a page comes after its end, it is written by itself.
        turns = [
            number for number in range(1, len(run)) if run[number] < run[number - 1]
        ]
        turn = turns[0] if turns else len(run)
        texts = [
            render(document, [Kept(unit) for unit in half], style)
            for half in (run[:turn], run[turn:])
            if half
        ]
        return f"\n\n{GAP}\n\n".join(texts)

    return _Listing(index, len(units), write, blocks=tuple(units))


# Rows


def _rows(
    index: int,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    form: Form,
    about: str,
) -> _Listing:
    """Return rows of a document as items; `about` says what they are."""

    def caption(start: int, stop: int) -> str:
        range_shown = (
            f" {start + 1}–{stop} of {len(rows):,}" if stop - start < len(rows) else ""
        )
        return f"Rows{range_shown}: {about}" if range_shown else f"{len(rows)} {about}"

    return _Listing(
        index,
        len(rows),
        lambda start, stop: rows_as(form, columns, rows[start:stop]),
        caption,
    )


# Tables


def _tables(documents: Sequence[Document], number: str) -> list[_Listing]:
    """Return the tables of each document as SQL names them, or the one with a number, an
    item each: columns with their types, the number of rows, the first and the last
    row."""
    by_document: dict[int, list[str]] = {}
    for table in sql_tables(documents):
        if number and table.name != name_in_sql(int(number)):
            continue
        by_document.setdefault(table.document, []).append(_described(table))

    return [_lines(index, lines) for index, lines in by_document.items()]


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


def _queried(documents: Sequence[Document], query: str, form: Form) -> _Listing:
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

    def caption(start: int, stop: int) -> str:
        if len(result.rows) == 1:
            return f"1 row{source}:"
        is_part = result.cut or stop - start < len(result.rows)
        range_shown = (
            f"Rows {start + 1}–{stop} of {total}" if is_part else f"{total} rows"
        )
        return f"{range_shown}{source}:"

    documents_read = sorted({table.document for table in result.tables}) or [0]
    return _Listing(
        documents_read[0],
        max(len(result.rows), 1),  # none is an answer, too
        lambda start, stop: rows_as(form, result.columns, result.rows[start:stop]),
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


async def load_folders(sources: Sequence[str], services: Services) -> Loaded:
    """Return a page for each folder that lists its documents: file, day of its last
    change, kind and size; raises `UsageError` where a source is no folder."""
    documents: list[Document] = []
    for source in sources:
        folder, files, passed = await in_thread(files_in, source, services.roots)
        rows = [_file_row(path, folder) for path in files]
        rows.sort(key=itemgetter(1), reverse=True)
        rows = [*_folder_rows(rows), *rows]
        table = html_table([("file", "changed", "kind", "size"), *rows], header=True)
        notes = (not_searched(passed),) if passed else ()
        uri = folder.as_uri()
        page = Page(uri, uri, folder.name, whole_page(table), "inode/directory")
        documents.append(await services.documents.read(replace(page, notes=notes)))
    return Loaded(tuple(documents), ())


def _is_asked_for(path: str, request: str) -> bool:
    """Whether a path holds what a person asked for, or is of its pattern."""
    path, request = path.casefold(), request.casefold()
    return request in path or fnmatchcase(path, request)


def _folder_rows(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each folder below, by path: its last change, how many files it
    holds itself."""
    by_folder: dict[str, list[str]] = {}
    for path, changed, *_ in rows:
        by_folder.setdefault(path.rpartition("/")[0], []).append(changed)
    for folder, days in sorted(by_folder.items()):
        if folder:
            count = f"{len(days)} file{'s' * (len(days) != 1)}"
            yield f"{folder}/", max(days), "folder", count


def _file_row(path: Path, folder: Path) -> tuple[str, ...]:
    status = path.stat()
    changed = datetime.fromtimestamp(status.st_mtime, UTC).date().isoformat()
    size = f"{max(1, round(status.st_size / 1000))} kB"
    kind = path.suffix.removeprefix(".").lower()
    return path.relative_to(folder).as_posix(), changed, kind, size
