"""The data types that every step reads, from a page to cited evidence.

    Page → Document(Block…) → Sentence → Evidence

Plain frozen data without behaviour beyond small derived properties. Not for: anything
that computes, fetches or renders; types that only one package uses stay in that
package."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

from errors import QUOTED

if TYPE_CHECKING:
    from readers.tree import Node

Given = TypeVarTuple("Given")
Made = TypeVar("Made")
TITLE_CHARACTERS: Final = QUOTED
"""Maximum characters of a title, alt text, URL or session name."""
LONGEST_AUTHOR: Final = 80
"""Maximum characters of a page's author."""
KEPT_DOCUMENTS: Final = 64
"""Cleaned pages kept in memory, and the words of their passages; one of 250 kB HTML is
about 1 MB of Python objects."""
WITH_COOKIES: Final = "read with your cookies (WINNOW_COOKIES)"
"""Note of a page that the server may show only to this user."""
BlockKind = Literal[
    "heading",
    "paragraph",
    "item",
    "row",
    "code",
    "definition",
    "caption",
    "block",
    "about",
]
Verdict = Literal["answered", "unsure", "none"]
Trust = Literal["visible", "attribute", "script", "recognised", "snippet"]
"""Origin of text: visible on the page; attribute of its markup (alt text, author,
date); drawn by scripts; recognized in an image (OCR); search snippet. Set by us, never
by a page."""


def least_trust(trusts: Iterable[Trust]) -> Trust:
    """Return the least trusted of some origins."""
    return next((trust for trust in trusts if trust != "visible"), "visible")


ScoreMaker = Literal[
    "bm25",
    "embedding",
    "blend",
    "rerank",
    "read",
    "path",
    "tag",
    "engine",
    "snippet",
    "content",
    "guided",
]


@dataclass(frozen=True, slots=True)
class Page:
    """One source as it came, decoded to HTML text (PDF, DOCX, Markdown and plain text
    are HTML by now)."""

    url: str
    """What was asked for."""
    final_url: str
    """Where it was found, after redirects; citations point here."""
    title: str
    html: str
    """Decoded, uncleaned HTML."""
    media_type: str
    """Media type of the original, such as `text/html` or `application/pdf`."""
    language: str = ""
    """ISO 639-1 code, empty when unknown."""
    fetched_at: str = ""
    """ISO 8601 UTC time of the fetch."""
    content_hash: str = ""
    """Hex digest of `html`; first part of the handle."""
    author: str = ""
    published: str = ""
    """ISO date of publication, empty when unknown."""
    notes: tuple[str, ...] = ()
    """Note for the reader, such as `cut at 10 MB` or `needs a browser`."""
    unread: str = ""
    """What of the source is not in `html`, in a few words; empty where all is. Every
    answer from the page says it."""
    tables_whole: bool = False
    """Whether no cell of a table is among what is `unread`, so that tables may be
    queried all the same."""
    rest: str = ""
    """The source's name with the pages that a further reading begins with; empty where
    that is not possible."""
    doi: str = ""
    """Of published research, where a catalogue led here; `author` then has the names,
    parted by semicolons."""
    trust: Trust = "visible"
    """Where all of its words come from, at best."""
    hidden: int = 0
    """Number of removed hidden words (of a PDF: text pieces)."""
    tables: str = ""
    """All rows of the tables of a data file (CSV, JSON) as JSON, of which `html` may have
    fewer: title and rows of each, the first row names the columns. Empty for others."""
    inside: bool = False
    """Whether it came from this machine or a network that the operator opened, without
    a step from outside: what it names may be read there."""
    age: float = field(default=-1.0, compare=False)
    """Seconds since it was read, where the cache gave it unasked; -1 where it was asked
    for. It is not kept."""

    @property
    def own(self) -> bool:
        """Whether it is one person's: a file, or read with cookies."""
        return self.final_url.startswith("file:") or WITH_COOKIES in self.notes


class Ordinal(NamedTuple):
    """The number of an item of a list."""

    value: int
    form: str
    """`type` of its list in HTML: `1`, `a`, `A`, `i`, `I`."""
    mark: str
    """What a reader sees, such as `4.` or `b.`."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a cleaned page: a node of the block tree, or one content unit
    (paragraph, item, row, …)."""

    path: str
    """Path with numbered equal siblings, `html/body/div2/p3`; unique on the page."""
    heading_path: tuple[str, ...]
    """Texts of the headings above, outermost first."""
    text: str
    """What a person reads. Rows of tables with headers read `header: value; header:
    value`."""
    html: str
    """The cleaned HTML of the block."""
    kind: BlockKind = "block"
    start: int = -1
    """Code point offsets into `Document.text`, -1 where a block is not a content
    unit."""
    end: int = -1
    main: bool = True
    """False where the block looks like furniture (navigation, footer, link lists)."""
    closed: bool = False
    """True where it is not `main` only because a reader opens it with a click; without
    a question it is content."""
    cells: tuple[str, ...] = ()
    """Texts of a row's cells, for rows only."""
    carried: tuple[int, ...] = ()
    """Columns whose cell is one of a row above, which covers this row as well."""
    trust: Trust = "visible"
    lead: str = ""
    """What makes the block readable alone: a row's caption and header row, an item's
    lead-in sentence."""
    ordinal: Ordinal | None = None
    """Number of the item that begins with it; None outside of numbered lists."""
    place: str = ""
    """Position in a file, as a link fragment: `page=3`, `slide=2`, `Costs!A4:C4`,
    `t=00:12:31,00:12:40`; empty for web pages."""

    @property
    def header(self) -> str:
        """The header row that a row is read with, its cells parted by ` | `; empty
        where there is none."""
        header_line = self.lead.rpartition("\n")[2]
        return (
            header_line[2:-2]
            if self.kind == "row" and header_line.startswith("| ")
            else ""
        )


def table_of(block: Block) -> str:
    """Return the path of the table that a row belongs to."""
    return block.path.rpartition("/")[0].removesuffix("/thead")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Document:
    """A page that was cleaned and cut into content units; what every later step reads.
    It equals itself only."""

    page: Page
    html: str
    """Cleaned HTML."""
    text: str
    """Visible text in reading order, one content unit a line; `Block.start` and
    `Sentence.start` point into it."""
    blocks: tuple[Block, ...]
    """Content units in reading order; their spans do not overlap."""
    root: "Node" = field(repr=False)
    """The cleaned tree that block trees of any size are cut from."""


def kept_with_document(
    work: Callable[[Document, *Given], Made],
) -> Callable[[Document, *Given], Made]:
    """Return `work` cached per document and arguments; the result is dropped with the
    document.

    Not for: results that reference the document (it would never be freed) and
    unhashable arguments. An error is not kept, and threads that ask at once may each do
    the work."""
    results: WeakKeyDictionary[Document, dict[tuple[*Given], Made]] = (
        WeakKeyDictionary()
    )

    @wraps(work)
    def once(document: Document, *arguments: *Given) -> Made:
        of_document = results.setdefault(document, {})
        if arguments not in of_document:
            of_document[arguments] = work(document, *arguments)
        return of_document[arguments]

    return once


@dataclass(frozen=True, slots=True)
class Sentence:
    """One tagged unit: a sentence, or a heading, item, row, code line or definition
    pair (zero-index §4.1)."""

    number: int
    """1-based in the document."""
    text: str
    """What is shown; rows as `header: value` pairs, line breaks folded to spaces."""
    start: int
    """Code point offsets: `Document.text[start:end]` is the unit's text on the page."""
    end: int
    block: int
    """Index into `Document.blocks`."""
    heading_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Score:
    """A number and what made it."""

    value: float
    made_by: ScoreMaker


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verbatim passage with its source, ready to be quoted."""

    text: str
    url: str
    title: str
    block_path: str
    sentences: tuple[int, ...]
    """Numbers of the sentences that the passage joins."""
    score: Score
    citation: str
    """`url` with a text fragment that a browser scrolls to."""
    heading_path: tuple[str, ...] = ()
    published: str = ""
    is_summary: bool = False
    """True for text that was written or selected by a summariser; `sources` names its
    leaves."""
    sources: tuple[str, ...] = ()
    """Citations of the leaves under a summary."""
    also: tuple[str, ...] = ()
    """Citations of other pages that hold the same words."""
    author: str = ""
    """Who wrote the page, as it says itself."""
    start: int = -1
    """Code point offsets into `Document.text` of the whole passage; -1 if it is not one
    stretch."""
    end: int = -1
    doi: str = ""
    trust: Trust = "visible"
    hidden: int = 0
    """`Page.hidden` of its page."""
    injection: bool = False
    """Whether its words, headings or page title look like a prompt injection."""
    place: str = ""
    """`Block.place`, from its first sentence to its last."""
    more: str = ""
    """What of the list or table that it ends in follows it, such as `12 more items`;
    empty for nothing."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One source that could not be used, for the answer's list of what is missing."""

    source: str
    reason: str
    late: bool = False
    """It was not ready in time: repeating the call continues from the cache."""
    rest: str = ""
    """The source under which more of it can be had, for one that was read in part."""
    page: str = ""
    """Address of a document that was read in part."""
    gone: bool = False
    """The source does not exist."""
