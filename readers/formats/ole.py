"""Old Office files and Outlook's messages (extra `office-legacy`)."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/x-ole-storage",),
    to_html=later("readers.office.container", "ole_to_html"),
    endings=(".doc", ".dot", ".xls", ".xlt", ".ppt", ".pps", ".msg"),
    magic={b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "application/x-ole-storage"},
    binary=True,
    heavy=True,
    extra="office-legacy",
)
