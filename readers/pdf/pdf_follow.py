"""What the pages of an uncommon PDF draw, followed object by object with pypdf, whose
decoders are capped.

Apart from `readers/pdf/pdf_guard.py`, since few files need it and its import takes a
tenth of a second. Not for: detecting which files are uncommon."""

import io
import logging
from collections import Counter
from typing import Any, Final

from pypdf import Configuration, PdfReader, apply_configuration
from pypdf.errors import DeprecationError, PyPdfError

from cancellation import check_cancelled
from readers.converted import DAMAGED, Unreadable
from readers.pdf.pdf_limits import DRAWS, MOST_CONTENT, MOST_FORMS, MOST_SHOWN, SHOWS

_CAPS: Final = Configuration(
    zlib_maximum_output_length=MOST_CONTENT,
    lzw_maximum_output_length=MOST_CONTENT,
    run_length_maximum_output_length=MOST_CONTENT,
    array_based_stream_maximum_output_length=MOST_CONTENT,
    stream_decoding_work_maximum_length=3 * MOST_CONTENT,
    page_tree_maximum_entries=20_000,
    page_tree_maximum_page_entries=300_000,
)

logging.getLogger("pypdf").setLevel(logging.ERROR)


class FollowedFile:
    """Says of each page of a file whether it may be loaded."""

    def __init__(self, body: bytes) -> None:
        """Open a file. Raises `Unreadable` where it is damaged, or its structure alone
        unpacks to too much."""
        self._known: dict[int, tuple[int, int, int]] = {}
        try:
            with apply_configuration(_CAPS):
                # pypdf finds no beginning in a file whose last mark was cut.
                complete_body = body if b"%%EOF" in body[-1024:] else body + b"\n%%EOF"
                self._reader = PdfReader(io.BytesIO(complete_body), strict=False)
                if self._reader.is_encrypted:
                    self._reader.decrypt("")
                len(self._reader.pages)
        except (PyPdfError, DeprecationError, *DAMAGED) as error:
            raise Unreadable(f"it is a damaged PDF ({type(error).__name__})") from error

    def lets_pass(self, number: int) -> bool:
        """Return whether a page, 1-based, draws no more than PDFium can be given; False
        for a damaged or missing one."""
        try:
            with apply_configuration(_CAPS):
                page = self._reader.pages[number - 1]
                contents = page.get_contents()
                data = contents.get_data() if contents is not None else b""
                size, text_operators, forms = self._cost(
                    data, page.get("/Resources"), ()
                )
        except (PyPdfError, DeprecationError, *DAMAGED):
            return False
        return (
            size <= MOST_CONTENT
            and text_operators <= MOST_SHOWN
            and forms <= MOST_FORMS
        )

    def _cost(
        self, data: bytes, resources: Any, ancestors: tuple[int, ...]
    ) -> tuple[int, int, int]:
        """Return bytes, operators that show text, and forms, of contents with all that
        they draw.

        A form within itself counts once. Raises pypdf's errors for damaged contents."""
        check_cancelled()
        size, text_operators, forms = len(data), sum(1 for _ in SHOWS.finditer(data)), 0
        listed = (
            _got(_got(resources).get("/XObject"))
            if _got(resources) is not None
            else None
        )
        for name, times in Counter(DRAWS.findall(data)).items():
            drawn = (
                listed.get("/" + name.decode("latin-1")) if listed is not None else None
            )
            if drawn is None or _got(drawn).get("/Subtype") != "/Form":
                continue
            form, key = _got(drawn), id(_got(drawn))
            if key in ancestors:  # PDFium draws no form within itself
                continue
            if key not in self._known:
                form_resources = form.get("/Resources") or resources
                self._known[key] = self._cost(
                    form.get_data(), form_resources, (*ancestors, key)
                )
            form_cost = self._known[key]
            size, text_operators, forms = (
                size + times * form_cost[0],
                text_operators + times * form_cost[1],
                forms + times * (form_cost[2] + 1),
            )
        return size, text_operators, forms


def _got(value: Any) -> Any:
    """Return an object, also where only its number is given."""
    return value.get_object() if value is not None else None
