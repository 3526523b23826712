"""Reading by place: the outline of a page, a section, its links, one of its tables, the
list of a folder, all of it.

`part` names the place: `outline`, `whole`, `section HEADING`, `links`, `tables`, `table
2 where …` and `files`. Links, tables and files are tables, so that
each may be filtered, sorted and counted (`pipeline/tables/query.py`). Not for: what
bears on a question (`pipeline/prune`), or pages of a PDF, which are a source of their
own (`#pages=66-120`)."""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import anyio

from errors import SourceError, UsageError
from pipeline.document.cite import position_name, position_of
from pipeline.document.converted import html_table, whole_page
from pipeline.document.page import Document, Page
from pipeline.document.table import Table
from pipeline.evidence.forms import VALUE_FORMATS, RowForm, rows_as
from pipeline.evidence.render import Kept, Style, all_links, render, repeats_title
from pipeline.evidence.show import GAP, shortened
from pipeline.prune.prune import UNASKED_PAGE, Pruned, PrunedPage, PruneOptions
from pipeline.search.listing import not_searched
from pipeline.services import Services
from pipeline.sources.anchors import unit_of_address
from pipeline.sources.gather import MAX_FILES, Loaded, files_in
from pipeline.tables.query import (
    CLAUSE,
    CONDITION,
    Computed,
    Query,
    compute,
    parse_query,
    rows_of,
)
from pipeline.tables.table import all_rows, tables_of
from pipeline.text.frame import new_mark, one_line, quoted
from pipeline.text.tokens import count_each, count_tokens
from pipeline.text.words import index_terms
from pipeline.work import in_thread

KNOWN_TOKENS: Final = 8
"""Maximum tokens of a heading that repeats the page's title in an outline."""
PART_KINDS: Final = (
    "outline",
    "section",
    "whole",
    "links",
    "tables",
    "table",
    "files",
    "pages",
)
_PART_SYNTAX: Final = re.compile(
    rf"\s*({'|'.join(PART_KINDS)}|page)s?\b[:\s]*(.*)", re.IGNORECASE | re.DOTALL
)
_PAGE_RANGE: Final = re.compile(r"(\d{1,6})(?:\s*[-–]\s*(\d{1,6})?)?\s*")
_WHICH: Final = re.compile(r"\s*(?:(\d+)\b|\"([^\"]+)\")?\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Listing:
    """What one document has at a place: items that are written from one to another."""

    document: int
    count: int
    write: Callable[[int, int], str]
    said: str = ""
    blocks: tuple[int, ...] = ()


def split_part(part: str) -> tuple[str, str]:
    """Return the place that `part` names and what it says of it; raises `UsageError`
    where it names none."""
    found = _PART_SYNTAX.fullmatch(part)
    if found is None:
        raise UsageError(
            f"part={part!r} is not a valid part.",
            hint='Write part="outline", "whole", "section Heading", "pages 66-120", "links", '
            '"tables", "table 2" or "files".',
        )
    kind = found[1].lower()
    return "pages" if kind == "page" else kind, found[2].strip()


def named_pages(sources: Sequence[str], said: str) -> list[str]:
    """Return sources as those of some of their pages (`66-120`); raises `UsageError`
    where `said` names none.

    `66` is that page alone, `66-` all from it on. A fragment that a source has is
    replaced."""
    pages = _PAGE_RANGE.fullmatch(said)
    if pages is None:
        raise UsageError(
            f'part="pages {said}" is not a page range.',
            hint='Write part="pages 66-120" to read these pages of a PDF.',
        )
    last = pages[2] or ("" if "-" in said or "–" in said else pages[1])
    return [f"{source.partition('#')[0]}#pages={pages[1]}-{last}" for source in sources]


def read_part(
    documents: Sequence[Document],
    part: str,
    *,
    form: RowForm,
    max_tokens: int | None,
    number: int,
    mark: str,
) -> Pruned:
    """Return what documents have at the place that `part` names, as much as fits;
    `number` 2 is what follows, `max_tokens` None means `UNASKED_PAGE`.

    Raises `UsageError`, which says which places there are, where there is no such place."""
    kind, said = split_part(part)
    if form not in VALUE_FORMATS and kind not in {"links", "tables", "table", "files"}:
        raise UsageError(
            f'format="{form}" is for tables.',
            hint='Write part="table 1", or format="markdown".',
        )
    makers: dict[str, Callable[[int, Document], _Listing | str]] = {
        "outline": _outline,
        "whole": lambda at, one: _blocks(at, one, range(len(one.blocks)), form),
        "section": lambda at, one: _section(at, one, said, form),
        "links": lambda at, one: _rows(at, one, _links(one), said, form, mark),
        "tables": lambda at, one: _rows(at, one, _tables(one), said, form, mark),
        "table": lambda at, one: _table(at, one, said, form, mark),
        "files": lambda at, one: _files(at, one, said, form, mark),
    }
    found = [makers[kind](at, one) for at, one in enumerate(documents)]
    listings = [one for one in found if isinstance(one, _Listing) and one.count]
    if not listings:
        raise UsageError(
            f"{_why_empty(found)}.",
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
    begins = [unit_of_address(one) for one in documents]
    if all(begin is None for begin in begins):
        return None
    listings: list[_Listing] = []
    for at, (one, begin) in enumerate(zip(documents, begins, strict=True)):
        main = [
            place
            for place, block in enumerate(one.blocks)
            if block.main or block.closed
        ]
        places = sorted({*main, *(_below(one, begin) if begin is not None else ())})
        first = bisect_left(places, begin or 0)
        listings.append(
            _blocks(
                at,
                one,
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
        sum(one.count for one in listings[: place + 1])
        for place in range(len(listings))
    ]
    start, pages = 0, tuple[PrunedPage, ...]()
    for _ in range(number):
        # The largest run that fits; at least one item, for a part that shows nothing would never
        # end.
        left = ends[-1] - start
        fits = bisect_left(
            range(1, left + 1), True, key=partial(_over, listings, budget, start)
        )
        pages = _pages(listings, start, start + max(1, fits)) if left else ()
        start += max(1, fits) if left else 0
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
    for one in listings:
        first, last = max(start, 0), min(end, one.count)
        if first < last:
            text = one.write(first, last)
            pages.append(
                PrunedPage(
                    one.document,
                    text,
                    count_tokens(text),
                    one.blocks[first:last],
                    one.said,
                )
            )
        start, end = start - one.count, end - one.count
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


def _section(at: int, document: Document, said: str, form: RowForm) -> _Listing | str:
    headings = {
        index: block.text
        for index, block in enumerate(document.blocks)
        if block.kind == "heading"
    }
    wanted = said.strip("\"'").casefold()
    language = document.page.language or "en"
    terms = set(index_terms(wanted, language=language))
    ways: tuple[Callable[[str], bool], ...] = (
        lambda text: text.casefold() == wanted,
        lambda text: text.casefold().strip(" .0123456789") == wanted,
        lambda text: bool(wanted) and wanted in text.casefold(),
        lambda text: bool(terms) and terms <= set(index_terms(text, language=language)),
    )
    for way in ways:
        found = [index for index, text in headings.items() if way(one_line(text))]
        if found:
            # A heading may be in a table of contents as well; the section is the one
            # with most text below it.
            best = max(found, key=lambda index: len(_below(document, index)))
            return _blocks(at, document, _below(document, best), form, titled=True)
    some = quoted(", ".join(headings.values()), new_mark())
    return (
        f"There is no section {said!r}; headings are: {some}"
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


# What is a table


def _links(document: Document) -> Table:
    return Table(
        0,
        "links",
        ("words", "address"),
        tuple((words, url) for url, words in all_links(document).items()),
    )


def _tables(document: Document) -> Table:
    rows = (
        (str(one.number), one.title, str(len(one.rows)), ", ".join(one.columns))
        for one in tables_of(document)
    )
    return Table(0, "tables", ("table", "title", "rows", "columns"), tuple(rows))


def _files(
    at: int, document: Document, said: str, form: RowForm, mark: str
) -> _Listing | str:
    tables = tables_of(document)
    if not tables:
        return "The folder holds no documents"
    sorted_by = "" if re.search(r"\b(?:sort|order)\b", said) else " sort date desc"
    return _rows(
        at,
        document,
        replace(tables[0], number=0, title="files"),
        said + sorted_by,
        form,
        mark,
    )


def _table(
    at: int, document: Document, said: str, form: RowForm, mark: str
) -> _Listing | str:
    tables = tables_of(document)
    found = _WHICH.fullmatch(said)
    assert found is not None  # noqa: S101  every text matches
    table, rest = _named(
        tables, found[1], found[2], found[3], document.page.language or "en"
    )
    if table is None:
        listed = quoted(
            "; ".join(f"{one.number}: {one.title}" for one in tables), new_mark()
        )
        return (
            f"{said!r} does not name exactly one table; choose from: {listed}"
            if tables
            else "There are no tables"
        )
    return _rows(at, document, table, rest, form, mark)


def _why_empty(found: Sequence[_Listing | str]) -> str:
    """Return what the documents say of a place that is in none, or what is said of
    their empty listings."""
    reasons = [one for one in found if isinstance(one, str) and one]
    if reasons:
        return "; ".join(reasons)
    empty = [one for one in found if isinstance(one, _Listing)]
    return ". ".join(one.said.rstrip(":") for one in empty)


def _named(
    tables: Sequence[Table],
    number: str | None,
    title: str | None,
    rest: str,
    language: str,
) -> tuple[Table | None, str]:
    """Return the table that a number, a title or words before the first clause name,
    and its clauses.

    The one table of a page needs no name, and its first condition no `where`. No table
    is returned where none or several have the name."""
    only = _only(tables)
    if number:
        named = next((one for one in tables if one.number == int(number)), None)
        if named or not only or not CONDITION.match(f"{number} {rest}"):
            return named, rest
    if title:
        return _titled(tables, title, language), rest
    said = " ".join(filter(None, (number, rest))).strip(" :")
    clause = CLAUSE.search(said)
    begin = clause.start() if clause else len(said)
    words = said[:begin].strip()
    if only and CONDITION.match(words):
        return only, f"where {said}"
    if not words:
        return only, said[begin:]
    return _titled(tables, words, language), said[begin:]


def _titled(tables: Sequence[Table], words: str, language: str) -> Table | None:
    """Return the one table whose title has all the words."""
    wanted = set(index_terms(words, language=language))
    found = [
        one
        for one in tables
        if wanted and wanted <= set(index_terms(f"{one.title}", language=language))
    ]
    return _only(found)


def _only(tables: Sequence[Table]) -> Table | None:
    return tables[0] if len(tables) == 1 else None


def _grouped(
    computed: Sequence[Computed], further: Sequence[Sequence[Computed]]
) -> list[tuple[str, ...]]:
    """Return a row for each group: its name, its values, and how many rows it has."""
    beside = [{one.group: one.value for one in values} for values in further]
    return [
        (
            one.group,
            one.value,
            *(values[one.group] for values in beside),
            str(len(one.rows)),
        )
        for one in computed
    ]


def _kept(
    table: Table, query: Query, computed: Sequence[Sequence[Computed]]
) -> list[int]:
    """Return the rows that a query keeps; where it computes values, those that they
    rest on."""
    rest_on = {row for values in computed for one in values for row in one.rows}
    return [row for row in rows_of(table, query) if row in rest_on or not computed[0]]


def _rows(
    at: int, document: Document, table: Table, said: str, form: RowForm, mark: str
) -> _Listing:
    """Return the rows of a table that its query keeps, or its computed values by group.

    Raises `UsageError` where the query or what it computes makes no sense for the
    table."""
    query = parse_query(said, table, document.page.language or "en")
    computed = compute(table, query)
    further = [
        compute(table, replace(query, measure=measure, measured=column, top=0))
        for measure, column in query.further
    ]
    names = [
        _name(table, *one) for one in ((query.measure, query.measured), *query.further)
    ]
    kept: list[int] = []
    if query.group >= 0 and query.measure:
        columns: tuple[str, ...] = (table.columns[query.group], *names, "rows")
        cells = _grouped(computed, further)
    else:
        kept = _kept(table, query, [computed, *further])
        shown = query.columns or tuple(range(len(table.columns)))
        columns = tuple(map(table.columns.__getitem__, shown))
        cells = [tuple(table.rows[row][column] for column in shown) for row in kept]
    blocks = tuple(map(table.blocks.__getitem__, kept)) if table.blocks else ()
    every = list(chain(computed, *further))
    values = dict(zip(names, (one.value for one in every), strict=False))
    head = _said(table, query, values, len(cells), mark)
    # A count of none is an answer, of no rows.
    count = max(len(cells), 1) if computed else len(cells)
    return _Listing(
        at,
        count,
        lambda start, end: rows_as(form, columns, cells[start:end]),
        head + _left_out(document, table, query, every),
        blocks,
    )


def _left_out(
    document: Document, table: Table, query: Query, computed: Sequence[Computed]
) -> str:
    """Return sentences on rows that values lack, each after a space; "" where none is
    lacking."""
    said = ""
    left_out = max((one.left_out for one in computed), default=0)
    if query.group < 0 and left_out:
        said += f" Rows left out, as totals or without a number: {left_out}."
    if table.blocks and not all_rows(document):
        said += " Not all rows of the source were read as rows."
    return said


def _name(table: Table, measure: str | None, column: int) -> str:
    return f"{measure} {table.columns[column]}" if column >= 0 else str(measure)


def _said(
    table: Table, query: Query, values: dict[str, str], kept: int, mark: str
) -> str:
    """Return what is said of rows in words of ours; `values` has what was computed of
    them by its name."""
    name = f"Table {table.number}" if table.number else table.title.capitalize()
    if query.measure and query.group < 0:
        shown_text = quoted(
            "; ".join(f"{one} = {value}" for one, value in values.items()), mark
        )
        if not query.further:
            value = next(iter(values.values()))
            plain = value.replace(".", "").replace("-", "").isdigit()
            shown_text = f"{query.measure} = {value if plain else quoted(value, mark)}"
        return f"{name}: {shown_text}, computed by Winnow over {kept} of {len(table.rows)} rows:"
    if query.measure:
        measures = ", ".join(
            dict.fromkeys((query.measure, *(one for one, _ in query.further)))
        )
        return f"{name}: {measures} by group, computed by Winnow over {len(table.rows)} rows:"
    return (
        f"{name}: {kept} of {len(table.rows)} rows:"
        if kept < len(table.rows)
        else f"{name}: {kept} row{'s' * (kept != 1)}:"
    )


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
    found: dict[Path, Page] = {}
    with anyio.move_on_after(seconds):
        for path in files:
            try:
                found[path] = await services.fetcher.fetch(str(path))
            except (
                SourceError
            ):  # what cannot be read is listed by its name all the same
                continue
    return found


def _file_row(path: Path, folder: Path, page: Page | None) -> tuple[str, ...]:
    known = path.stat()
    changed = datetime.fromtimestamp(known.st_mtime, UTC).date().isoformat()
    title, published = (one_line(page.title), page.published) if page else ("", "")
    kind, size = (
        path.suffix.removeprefix(".").lower(),
        f"{max(1, round(known.st_size / 1000))} kB",
    )
    return (
        path.relative_to(folder).as_posix(),
        title or path.stem,
        published or changed,
        kind,
        size,
    )
