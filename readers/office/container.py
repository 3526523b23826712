"""Files of Microsoft's older container (MS-CFB), and binary workbooks: which of the old
forms one is, and what reads it.

Libraries of the extra `office-legacy` do (`legacy.py`, `readers/mail/outlook.py`); without
it the refusal says what a file is, and what to do."""

from contextlib import suppress
from typing import Final, NamedTuple

from errors import BrokenExtra, MissingExtra
from readers.converted import Converted, Unreadable, without_extra
from seams import later


class _OldForm(NamedTuple):
    label: str
    newer: str
    """Ending of the form to save it in."""
    module: str
    function: str


_WORKBOOK: Final = _OldForm(
    "a workbook of the old form", ".xlsx", "readers.office.legacy", "sheets_to_html"
)
_OLD_FORMS: Final = {
    "__properties_version1.0": _OldForm(
        "a message of Outlook's form", ".eml", "readers.mail.outlook", "msg_to_html"
    ),
    "worddocument": _OldForm(
        "a Word file of the old form", ".docx", "readers.office.legacy", "doc_to_html"
    ),
    "powerpoint document": _OldForm(
        "a presentation of the old form",
        ".pptx",
        "readers.office.legacy",
        "ppt_to_html",
    ),
    "workbook": _WORKBOOK,
    "book": _WORKBOOK,
}
"""By a stream that only files of this form have at the top, in small letters."""


def ole_to_html(body: bytes) -> Converted:
    """Return a file of the older container as HTML; raises `Unreadable` for one of no
    form that is read, with a password, damaged or without text, and without the extra."""
    names = _top_names(body)
    if "encryptedpackage" in names:
        raise Unreadable(
            "it is an Office file with a password: save a copy without one"
        )
    form = next((_OLD_FORMS[name] for name in _OLD_FORMS if name in names), None)
    if form is None:
        raise Unreadable(
            "it is a file of Microsoft's older container: save it in a newer form"
        )
    return _read(form, body)


def xlsb_to_html(body: bytes) -> Converted:
    """Return a binary workbook as HTML; raises `Unreadable` as `ole_to_html` does."""
    return _read(_WORKBOOK._replace(label="a binary workbook"), body)


def _top_names(body: bytes) -> set[str]:
    """Return the names at the top of a container; of a damaged one, and without the
    extra, those of `_OLD_FORMS` that are anywhere in it."""
    top: set[str] = set()
    with suppress(MissingExtra, BrokenExtra):
        top = later("readers.office.legacy", "top_names")(body)
    names = {"encryptedpackage", *_OLD_FORMS}
    return top or {name for name in names if name.encode("utf-16-le") in body.lower()}


def _read(form: _OldForm, body: bytes) -> Converted:
    hint = f"Save it as {form.newer} or text."
    try:
        as_html: Converted = later(form.module, form.function)(body)
    except Unreadable as error:
        raise Unreadable(str(error), hint=error.hint or hint) from error
    except (MissingExtra, BrokenExtra) as error:
        raise Unreadable(
            f"it is {form.label}: {without_extra(error)}", hint=hint
        ) from error
    return as_html
