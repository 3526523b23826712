"""Old Office files to HTML, by libraries of the extra `office-legacy`: `.doc` becomes
`.docx` and `.ppt` `.pptx`, which our readers of those read; `.xls` and `.xlsb` give the
values of their cells.

Not for: Word and PowerPoint before 97, which are refused; of workbooks number formats,
notes, charts, text boxes and hidden rows, which a note says."""

import io
import tempfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

from cancellation import check_cancelled
from extra import importing
from readers.converted import DAMAGED, MAX_CELLS, Converted, Unreadable, whole_page
from readers.ledger import Ledger
from readers.office.docx import docx_to_html
from readers.office.number_format import EPOCH, shown
from readers.office.package import hidden_notes
from readers.office.sheet_html import UNREAD_CELLS, Merged, Row, sheet_to_html
from readers.office.slides import pptx_to_html

with importing("office-legacy", "Reading old Office files"):
    import doc2docx
    import olefile
    import ppt2pptx
    import python_calamine
    from doc2docx.errors import Doc2DocxError, EncryptedDocumentError
    from ppt2pptx.errors import EncryptedPresentationError, Ppt2PptxError

ENCRYPTED: Final = "it has a password: save a copy without one"
_NO_LOOKS: Final = (
    "workbook of an old form: numbers are shown without their formats, hidden rows as "
    "others; notes, charts and text boxes are not read"
)


def top_names(body: bytes) -> set[str]:
    """Return the names of what is at the top of a container, in small letters; none of
    a damaged one."""
    try:
        with olefile.OleFileIO(io.BytesIO(body)) as container:
            paths = container.listdir(streams=True, storages=True)
            return {path[0].lower() for path in paths}
    except DAMAGED:
        return set()


def doc_to_html(body: bytes) -> Converted:
    """Return a Word file of 97 to 2003 as HTML; raises `Unreadable` for another, one
    with a password, and as `docx_to_html` does."""
    return docx_to_html(_newer(body, ".docx", doc2docx.convert))


def ppt_to_html(body: bytes) -> Converted:
    """Return a presentation of 97 to 2003 as HTML; raises `Unreadable` for another, one
    with a password, and as `pptx_to_html` does."""
    return pptx_to_html(_newer(body, ".pptx", ppt2pptx.convert))


def _newer(body: bytes, ending: str, convert: Callable[[Path, Path], Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder, "old"), Path(folder, f"new{ending}")
        old.write_bytes(body)
        try:
            convert(old, new)
        except (EncryptedDocumentError, EncryptedPresentationError) as error:
            raise Unreadable(ENCRYPTED) from error
        except (Doc2DocxError, Ppt2PptxError) as error:
            raise Unreadable("it is damaged, or of a form before Office 97") from error
        return new.read_bytes()


def sheets_to_html(body: bytes) -> Converted:
    """Return an old or binary workbook as HTML, a section for each sheet that is shown;
    raises `Unreadable` for one that is damaged, has a password, or holds no text."""
    try:
        return _sheets(python_calamine.load_workbook(io.BytesIO(body)))
    except python_calamine.PasswordError as error:
        raise Unreadable(ENCRYPTED) from error
    except (python_calamine.CalamineError, *DAMAGED) as error:
        raise Unreadable("it is a damaged workbook, or has a password") from error
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        # A panic of Rust's does not derive from `Exception`.
        raise Unreadable("it is a damaged workbook") from error


def _sheets(book: Any) -> Converted:
    hidden, ledger, cells_left = {"sheets": 0}, Ledger(), MAX_CELLS
    sections: list[str] = []
    for about in book.sheets_metadata:
        if about.visible != python_calamine.SheetVisibleEnum.Visible:
            hidden["sheets"] += 1
        elif about.typ != python_calamine.SheetTypeEnum.WorkSheet:
            ledger.hold("sheet")
        elif cells_left > 0:
            sheet = book.get_sheet_by_name(about.name)
            rows: list[Row] = []
            for number, cells in _rows(sheet):
                cells_left -= len(cells)
                if cells_left < 0:
                    break
                rows.append((number, cells))
            merged = [
                Merged(top + 1, left, bottom + 1, right)
                for (top, left), (bottom, right) in sheet.merged_cell_ranges or ()
            ]
            sections.append(sheet_to_html(about.name, rows, merged))
    if not any(sections):
        raise Unreadable("it is a workbook without text in its cells")
    return Converted(
        whole_page("\n".join(filter(None, sections))),
        notes=(*hidden_notes("workbook", hidden), _NO_LOOKS),
        unread=UNREAD_CELLS if cells_left < 0 else "",
        ledger=ledger,
    )


def _rows(sheet: Any) -> Iterator[Row]:
    """Yield the rows that hold something, up to their last filled cell."""
    for number, values in enumerate(sheet.iter_rows(), start=1):
        if number % 1000 == 0:
            check_cancelled()
        cells = list(map(_cell, values))
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield number, cells


def _cell(value: object) -> str:
    """Return a value as a workbook with plain formats shows it."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return shown(float(value), "", EPOCH)
    if isinstance(value, timedelta):
        return shown(value / timedelta(days=1), "[h]:mm", EPOCH)
    if isinstance(value, datetime):
        return (value + timedelta(seconds=0.5)).isoformat(" ", "seconds")
    if isinstance(value, date | time):
        return value.isoformat()
    return " ".join(str(value).split())
