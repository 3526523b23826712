"""The walk over the parts of a Word file: what is not known is walked through, a short
list is dropped.

The body is read block by block, each freed when it is written, so that long files cost
no more memory than short ones. Not for: which parts there are (`docx.py`), styles and
numbers (`docx_styles.py`), hidden text (`docx_looks.py`)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from cancellation import check_cancelled
from readers.convert import Raw, converted
from readers.converted import MAX_CELLS, Unreadable, escape
from readers.ledger import Ledger
from readers.office.docx_looks import Seen
from readers.office.docx_styles import Styles, W, value_in, value_of
from readers.office.equations import EQUATION, MATH, equation_text
from readers.office.package import (
    CHUNK,
    MAX_PART_TAGS,
    ON,
    Package,
    cell_html,
    whole_number,
)
from readers.office.shapes import (
    ALTERNATIVES,
    RELATION,
    alternative,
    drawn,
    picture,
)
from readers.text.markup import (
    XML_OPTIONS,
    fragment_to_html,
    has_own_entities,
    plain_text,
)
from readers.tree import LABEL_WORDS

_PARAGRAPH, _TABLE, _ROW, _CELL, _BODY = (
    f"{W}{name}" for name in ("p", "tbl", "tr", "tc", "body")
)
_TOP: Final = (_PARAGRAPH, _TABLE, f"{W}sdt")
"""What a body holds but for rare elements, which are read with the next of these."""
_DROPPED_ELEMENTS: Final = frozenset(
    f"{W}{name}"
    for name in (
        *("instrText", "delInstrText", "fldData", "softHyphen", "binData", "sectPr"),
        *("sdtPr", "sdtEndPr", "rubyPr", "pPr", "rPr", "tblPr", "tblGrid", "trPr"),
        *("tcPr", "footnoteRef", "endnoteRef", "annotationRef", "proofErr"),
        *("separator", "continuationSeparator"),
    )
)
"""Elements without text of the document."""
_BLANK_ELEMENTS: Final = {
    **dict.fromkeys((f"{W}tab", f"{W}ptab"), " "),
    **dict.fromkeys((f"{W}br", f"{W}cr"), "<br>"),
    f"{W}noBreakHyphen": "-",
}
_PAGE_WORDS: Final = 4
"""Words of a header's line with the page's number that says no more (`Page 3 of 9`)."""
_SYMBOL: Final = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz£¥«¬®°±³´¶·¸¹º»ÆÎÑÒÓÔÕÖÞåò",
    "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ≤∞↔←→°±≥×∂•÷≠≡≈∅∈∇®©™∏√⇒∑∫",
)
"""Signs of the font Symbol by their codes in Latin-1."""
_WINGDINGS: Final = str.maketrans("Jlnoqr§¨Øßàðûüýþ(*", "☺●■□❑❒▪☐➢←→⇨✗✓☒☑☎✉")


@dataclass(slots=True)
class _WordCell:
    """A cell, its content as HTML."""

    html: str
    width: int = 1
    height: int = 1
    goes_on: bool = False
    """Whether it is a part of the one above."""


@dataclass(slots=True)
class Walk:
    """Writes one part of the file after the other."""

    package: Package
    styles: Styles
    seen: Seen
    ledger: Ledger = field(default_factory=Ledger)
    kinds: dict[str, tuple[str, str]] = field(default_factory=dict)
    links: dict[str, tuple[str, str]] = field(default_factory=dict)
    after: list[str] = field(default_factory=list)
    """HTML that follows the block that is read: its boxes, charts, notes and
    comments."""
    fields: list[bool] = field(default_factory=list)
    """Of each field whose end was not met yet, whether its result was met."""
    notes: dict[tuple[str, str], etree._Element] = field(default_factory=dict)
    """Foot- and endnotes by part and id."""
    comments: dict[str, etree._Element] = field(default_factory=dict)
    numbered: int = 0
    """Notes that were written so far."""
    inserted: int = 0
    deleted: int = 0
    in_margin: bool = False
    """Whether a header or footer is read."""
    in_table: int = 0
    cells: int = 0
    """Cells of tables that were written."""

    # Parts

    def begin(self, part_name: str) -> None:
        """Go to a part, whose relations are its own."""
        self.kinds = self.package.targets(part_name)
        self.links = self.package.targets(part_name, outside=True)

    def body(self, part_name: str) -> Iterator[str]:
        """Yield the blocks of the main part."""
        self.begin(part_name)
        return self.blocks(self._elements(part_name))

    def _elements(self, part_name: str) -> Iterator[etree._Element]:
        """Yield what the body holds, each freed when the next is asked for.

        Nothing where it declares entities of its own; raises `Unreadable` for one element
        of more than `MAX_PART_TAGS` tags."""
        source = self.package.read(part_name)
        if has_own_entities(source):
            return
        parser = etree.XMLPullParser(
            ("end",), tag=_TOP, remove_comments=True, **XML_OPTIONS
        )
        tags = 0
        for start in range(0, len(source), CHUNK):
            check_cancelled()
            chunk = source[start : start + CHUNK]
            parser.feed(chunk)
            tags += chunk.count(b"<")
            for _, element in parser.read_events():
                body = element.getparent()
                while body is not None and body.tag == _BODY:
                    tags = 0
                    is_last = body[0] is element
                    yield self.seen.without_unseen(body[0])
                    # moving it with its children takes time by the square of their number
                    body[0].clear()
                    del body[0]
                    body = None if is_last else body
            if tags > MAX_PART_TAGS:
                raise Unreadable(
                    "it is a Word file with a part of more than "
                    f"{MAX_PART_TAGS:,} XML elements: split the file"
                )
        root = parser.close()
        for body in root.iterchildren(_BODY):
            yield from map(self.seen.without_unseen, body)
        self.package.note_damage(part_name, parser.feed_error_log)

    # Blocks

    def blocks(self, elements: Iterable[etree._Element]) -> Iterator[str]:
        """Yield elements of block level as HTML, each item of a list as a list."""
        for element in elements:
            if html := self._block(element):
                yield html
            if self.after and not self.in_table:
                after, self.after = self.after, []
                yield from after

    def _block(self, element: etree._Element) -> str:
        """Return one element as HTML; one that is not known by what it holds."""
        if element.tag in _DROPPED_ELEMENTS or not isinstance(element.tag, str):
            return ""
        if write := _OF_BLOCK.get(element.tag):
            return write(self, element)
        if next(element.iter(_PARAGRAPH), None) is not None:
            return "\n".join(self.blocks(element))
        text = self.inline(element).strip()
        return f"<p>{text}</p>" if text else ""

    def _chosen_blocks(self, element: etree._Element) -> str:
        return "\n".join(self.blocks(alternative(element)))

    def _paragraph(self, paragraph: etree._Element) -> str:
        number, level = self.styles.number(paragraph), self.styles.level(paragraph)
        self.fields = []  # one that never ends
        text = self._children(paragraph).strip()
        if not text or (self.in_margin and _says_page_only(paragraph, text)):
            return ""
        text = f"{escape(number)} {text}" if number else text
        if level:
            return f"<h{level}>{text}</h{level}>"
        return f"<p>{text}</p>" if number is None else f"<ul><li>{text}</li></ul>"

    def _table(self, table: etree._Element) -> str:
        """Return a table; cells that go on below become one, if they are as wide as the
        one above. Rows beyond `MAX_CELLS` cells are left out."""
        self.in_table += 1
        open_cells: dict[int, _WordCell] = {}
        rows: list[tuple[str, list[_WordCell]]] = []
        for row in _inside(table, _ROW):
            check_cancelled()
            about = row.find(f"{W}trPr")
            if about is not None and about.find(f"{W}del") is not None:
                self._delete(row)
                continue
            if self.cells > MAX_CELLS:
                break
            column = whole_number(value_in(about, "gridBefore"), digits=2)
            cells = [_WordCell("") for _ in range(column)]
            for element in _inside(row, _CELL):
                cell = self._cell(element)
                upper = open_cells.get(column)
                if cell.goes_on and upper is not None and upper.width == cell.width:
                    upper.height += 1
                else:
                    open_cells[column] = cell
                    cells.append(cell)
                column += cell.width
            self.cells += column
            is_head = about is not None and _is_on(about.find(f"{W}tblHeader"))
            rows += [("th" if is_head else "td", cells)] if column else []
        self.in_table -= 1
        return _table_html(rows)

    def _cell(self, cell: etree._Element) -> _WordCell:
        about = cell.find(f"{W}tcPr")
        html = "\n".join(self.blocks(cell))
        if html.count("<p>") == 1 and html.startswith("<p>") and html.endswith("</p>"):
            html = html.removeprefix("<p>").removesuffix("</p>")
        merged = about.find(f"{W}vMerge") if about is not None else None
        goes_on = merged is not None and merged.get(f"{W}val") != "restart"
        width = whole_number(value_in(about, "gridSpan"), 1, digits=3)
        return _WordCell(html, max(1, width), goes_on=goes_on)

    def _delete(self, element: etree._Element) -> str:
        texts = element.iter(f"{W}delText", f"{W}t")
        self.deleted += sum(len((text.text or "").split()) for text in texts)
        return ""

    # Inside of a paragraph

    def _children(self, element: etree._Element) -> str:
        return "".join([self.inline(child) for child in element])

    def inline(self, element: etree._Element) -> str:
        """Return an element inside of a paragraph as HTML; what is deleted or not shown
        is dropped, and of an unknown element its children are read."""
        tag = element.tag
        if tag == f"{W}t":
            return escape(re.sub("[\uf020-\uf0ff]", _sign, element.text or ""))
        if tag in _DROPPED_ELEMENTS or not isinstance(tag, str):
            return ""
        if write := _INLINE_WALKS.get(tag):
            return write(self, element)
        return (
            _BLANK_ELEMENTS[tag] if tag in _BLANK_ELEMENTS else self._children(element)
        )

    def _run(self, run: etree._Element) -> str:
        # The result of a field within another's instruction, such as what an IF compares.
        if not all(self.fields) and run.find(f"{W}fldChar") is None:
            return ""
        text = self._children(run)
        about = run.find(f"{W}rPr")
        if about is None or not text.strip():
            return text
        raised = value_in(about, "vertAlign")
        raised_tag = {"superscript": "sup", "subscript": "sub"}.get(raised)
        if _is_on(about.find(f"{W}strike")) or _is_on(about.find(f"{W}dstrike")):
            text = f"<s>{text}</s>"
        return f"<{raised_tag}>{text}</{raised_tag}>" if raised_tag else text

    def _equation(self, element: etree._Element) -> str:
        return f" {escape(equation_text(element))} "

    def _symbol(self, element: etree._Element) -> str:
        """Return a sign of a font, a box for one that is malformed; fonts that are not
        Wingdings are read as Symbol."""
        code = element.get(f"{W}char", "")
        try:
            letter = chr(int(code, 16) & 0xFF)
        except ValueError:
            return "□"
        is_dingbat = "wingdings" in element.get(f"{W}font", "").lower()
        return escape(letter.translate(_WINGDINGS if is_dingbat else _SYMBOL))

    def _struck(self, element: etree._Element) -> str:
        """Return a short deletion as one, and leave a long one out."""
        text = "".join(piece.text or "" for piece in element.iter(f"{W}delText"))
        self._delete(element)
        is_short = 0 < len(text.split()) <= LABEL_WORDS
        return f"<del>{escape(text)}</del>" if is_short else ""

    def _inserted(self, element: etree._Element) -> str:
        text = self._children(element)
        self.inserted += count_words(element)
        return f"<ins>{text}</ins>" if text.strip() else text

    def _alternatives(self, element: etree._Element) -> str:
        return "".join(map(self.inline, alternative(element)))

    def _box(self, element: etree._Element) -> str:
        fields, after = self.fields, self.after
        self.after = []
        blocks = list(self.blocks(element))
        self.after, self.fields = [*after, *blocks, *self.after], fields
        return ""

    def _field(self, element: etree._Element) -> str:
        """Follow the beginning, the result and the end of a field, whose result is
        written as any text.

        A mark outside of a field is dropped."""
        kind = element.get(f"{W}fldCharType")
        if kind == "begin":
            self.fields.append(False)
            return self._children(element)
        if kind == "end":
            self.fields = self.fields[:-1]
        elif self.fields:
            self.fields[-1] = True
        return ""

    def _link(self, element: etree._Element) -> str:
        target = self.links.get(element.get(f"{RELATION}id", ""), ("", ""))[1]
        text = self._children(element)
        is_address = target.startswith(("http://", "https://", "mailto:"))
        if not is_address or not text.strip():
            return text
        return f'<a href="{escape(target).replace(chr(34), "%22")}">{text}</a>'

    # What follows a block

    def _note(self, element: etree._Element) -> str:
        kind = "footnotes" if element.tag == f"{W}footnoteReference" else "endnotes"
        note = self.notes.pop((kind, element.get(f"{W}id", "")), None)
        if note is None:
            return ""
        self.numbered += 1
        self._append(note, f"[{self.numbered}] ")
        self.ledger.give("footnote")
        return f"<sup>[{self.numbered}]</sup>"

    def _comment(self, element: etree._Element) -> str:
        comment = self.comments.pop(element.get(f"{W}id", ""), None)
        if comment is not None:
            author = escape(" ".join(comment.get(f"{W}author", "").split()))
            self._append(comment, f"Comment by {author}: " if author else "Comment: ")
            self.ledger.give("comment")
        return ""

    def _append(self, element: etree._Element, lead_in: str) -> None:
        after, fields = self.after, self.fields
        self.after = []
        html = "\n".join(self.blocks(self.seen.without_unseen(element)))
        is_text = html.startswith("<p>")
        html = f"<p>{lead_in}{html[3:]}" if is_text else f"<p>{lead_in}</p>\n{html}"
        self.after, self.fields = [*after, html, *self.after], fields

    def _drawing(self, element: etree._Element) -> str:
        """Return a drawing by its description; a chart and a diagram follow the block.

        A large image without a description is counted as unread."""
        figures = list(drawn(element, self.package, self.kinds, self.ledger))
        self.after += figures
        inside = self._children(element)
        if figures or (inside and next(element.iter("{*}blip"), None) is None):
            return inside
        about = next(element.iter("{*}docPr"), None)
        area = 0 if self.in_margin else _area(element)
        return f"{picture(element, about, area, self.ledger)}{inside}"

    def _word_art(self, element: etree._Element) -> str:
        return escape(element.get("string", ""))

    def _file(self, element: etree._Element) -> str:
        """Return a file that is a piece of this one: HTML, a web archive, RTF or text;
        another Word file is not read."""
        self.ledger.hold("embedded object")
        name = self.kinds.get(element.get(f"{RELATION}id", ""), ("", ""))[1]
        try:
            page = converted(Raw(self.package.read(name), name, name, name=name))
        except Unreadable:
            return ""
        self.ledger.give("embedded object")
        return fragment_to_html(page.html)

    def _unread_field(self, _: etree._Element) -> str:
        self.ledger.hold("form field")
        return ""

    def _object(self, element: etree._Element) -> str:
        is_file = next(element.iter("{*}OLEObject"), None) is not None
        self.ledger.hold("embedded object", is_file)
        return self._children(element)


_OF_BLOCK: Final = {
    _PARAGRAPH: Walk._paragraph,
    _TABLE: Walk._table,
    f"{W}altChunk": Walk._file,
    ALTERNATIVES: Walk._chosen_blocks,
    **dict.fromkeys((f"{W}del", f"{W}moveFrom"), Walk._delete),
}
_INLINE_WALKS: Final = {
    EQUATION: Walk._equation,
    f"{W}r": Walk._run,
    f"{W}sym": Walk._symbol,
    f"{W}rt": lambda walk, reading: f"({walk._children(reading)})",
    f"{W}ruby": lambda walk, ruby: "".join(map(walk.inline, reversed(ruby))),
    ALTERNATIVES: Walk._alternatives,
    f"{W}txbxContent": Walk._box,
    f"{W}fldChar": Walk._field,
    f"{W}hyperlink": Walk._link,
    f"{W}commentReference": Walk._comment,
    f"{W}drawing": Walk._drawing,
    f"{W}object": Walk._object,
    "{urn:schemas-microsoft-com:vml}textpath": Walk._word_art,
    f"{W}ins": Walk._inserted,
    f"{W}del": Walk._struck,
    f"{W}moveFrom": Walk._delete,
    **dict.fromkeys((f"{W}checkBox", f"{W}ddList", f"{W}control"), Walk._unread_field),
    **dict.fromkeys((f"{W}footnoteReference", f"{W}endnoteReference"), Walk._note),
}


def _inside(element: etree._Element, tag: str) -> Iterator[etree._Element]:
    """Yield rows of a table or cells of a row, those inside of controls and insertions
    as well."""
    for child in element.iterchildren(tag=etree.Element):
        if child.tag == tag:
            yield child
        elif child.tag not in {*_DROPPED_ELEMENTS, _CELL, _ROW, _TABLE, _PARAGRAPH}:
            yield from _inside(child, tag)


def _table_html(rows: list[tuple[str, list[_WordCell]]]) -> str:
    lines = [
        "".join(cell_html(tag, cell.html, cell.width, cell.height) for cell in cells)
        for tag, cells in rows
    ]
    lines_html = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>\n{lines_html}\n</table>" if lines else ""


def _says_page_only(paragraph: etree._Element, text: str) -> bool:
    """Whether a paragraph of a header or footer has the page's number and little
    else."""
    instructions = [
        *(element.text or "" for element in paragraph.iter(f"{W}instrText")),
        *(element.get(f"{W}instr", "") for element in paragraph.iter(f"{W}fldSimple")),
    ]
    words = plain_text(text).split()
    return len(words) <= _PAGE_WORDS and "PAGE" in " ".join(instructions)


def _sign(match: re.Match[str]) -> str:
    """Return the sign of a code of such fonts, which are for private use in Unicode."""
    return chr(ord(match[0]) & 0xFF).translate(_SYMBOL)


def count_words(element: etree._Element) -> int:
    """Return the words of an element's text nodes."""
    return sum(
        len((text.text or "").split()) for text in element.iter(f"{W}t", f"{MATH}t")
    )


def _is_on(element: etree._Element | None) -> bool:
    """Whether a switch is on: one without a value is."""
    return element is not None and (value_of(element) or "1") in ON


def _area(drawing: etree._Element) -> int:
    """Return the extent of a drawing in square EMU, 0 where it has none."""
    extent = next(drawing.iter("{*}extent"), None)
    if extent is None:
        return 0
    width, height = (
        whole_number(extent.get(key, ""), digits=11) for key in ("cx", "cy")
    )
    return width * height
