"""Outlook's messages (`.msg`, MS-OXMSG) as mail, which `mail.py` reads: fields of the
head, plain text and HTML, attachments, messages inside it.

Needs the extra `office-legacy`. Not for: a text that is RTF alone (0 of 56 messages), and
fields of appointments, tasks and contacts."""

import io
import mimetypes
import re
import struct
from datetime import UTC, datetime, timedelta
from email.headerregistry import HeaderRegistry
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime
from typing import Any, Final

from extra import importing
from readers.converted import DAMAGED, Converted, Unreadable
from readers.mail.mail import LONGEST_HEADER, message_to_html
from readers.sniff import decode

with importing("office-legacy", "Reading Outlook's messages"):
    import olefile

_AS_SHOWN: Final = EmailPolicy(header_factory=HeaderRegistry(use_default_map=False))
"""Writes names as Outlook shows them (`A; B`), not addresses of RFC 5322."""
_FIELDS: Final = {"Subject": 0x0037, "To": 0x0E04, "Cc": 0x0E03, "Bcc": 0x0E02}
_SENDER: Final = 0x0C1A
_ADDRESSES: Final = (0x5D01, 0x0C1F)
"""Of the sender: by SMTP, and of another kind."""
_TIMES: Final = (0x0039, 0x0E06, 0x3007)
"""When it was sent, arrived, was made."""
_CODE_PAGES: Final = (0x3FFD, 0x3FDE)
_PLAIN, _HTML = 0x1000, 0x1013
_NAMES: Final = (0x3707, 0x3704, 0x3001)
"""Of an attachment: long, short, shown."""
_BODY, _INSIDE, _TYPE, _CONTENT_ID = 0x3701, "__substg1.0_3701000D", 0x370E, 0x3712
_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)
_MOST_INSIDE: Final = 5
"""Messages in each other that are read."""


def msg_to_html(body: bytes) -> Converted:
    """Return a message of Outlook's with its attachments as HTML; raises `Unreadable`
    for one that is damaged or of too many parts."""
    try:
        with olefile.OleFileIO(io.BytesIO(body)) as container:
            message = _Storage(container, (), [2 * len(body)]).message()
    except DAMAGED as error:
        raise Unreadable(
            f"it is a damaged message of Outlook's form ({type(error).__name__})"
        ) from error
    return message_to_html(message)


class _Storage:
    """A message, or an attachment, and its properties by their numbers."""

    def __init__(
        self, container: Any, path: tuple[str, ...], bytes_left: list[int]
    ) -> None:
        """Take the storage at `path`; `bytes_left` is what may still be read of the
        file: streams of a damaged one can lie over each other."""
        self._container, self._path, self._left = container, path, bytes_left
        self._fixed = self._properties()
        pages = (self._fixed.get(number, 0) & 0xFFFFFFFF for number in _CODE_PAGES)
        self._code_page = next(filter(None, pages), 0)

    def _stream(self, name: str) -> bytes:
        path = [*self._path, name]
        if not self._container.exists(path):
            return b""
        self._left[0] -= self._container.get_size(path)
        if self._left[0] < 0:
            raise Unreadable("it is a damaged message of Outlook's form")
        body: bytes = self._container.openstream(path).read()
        return body

    def _properties(self) -> dict[int, int]:
        """Return the values of fixed length."""
        records = self._stream("__properties_version1.0")
        # Its head has 8 bytes in an attachment, 24 in a message inside another, 32 at the top.
        records = records[len(records) % 16 or (32 if not self._path else 16) :]
        rows = struct.iter_unpack("<HHIQ", records[: len(records) // 16 * 16])
        return {number: value for _, number, _, value in rows}

    def text(self, number: int) -> str:
        """Return a property that is text; "" where it is missing."""
        if wide := self._stream(f"__substg1.0_{number:04X}001F"):
            return wide.decode("utf-16-le", "replace").replace("\x00", " ")
        body = self._stream(f"__substg1.0_{number:04X}001E")
        body = body or self._stream(f"__substg1.0_{number:04X}0102")
        try:
            text = body.decode(f"cp{self._code_page}")
        except (LookupError, UnicodeError):
            text = decode(body).text
        return text.replace("\x00", " ")

    def _line(self, *numbers: int) -> str:
        lines = (" ".join(self.text(number).split()) for number in numbers)
        return next(filter(None, lines), "")[:LONGEST_HEADER]

    def _children(self, prefix: str) -> list[tuple[str, ...]]:
        depth = len(self._path)
        return sorted(
            tuple(path)
            for path in self._container.listdir(streams=False, storages=True)
            if len(path) == depth + 1
            and tuple(path[:depth]) == self._path
            and path[depth].startswith(prefix)
        )

    def message(self, depth: int = 0) -> EmailMessage:
        """Return it as mail; messages inside it `_MOST_INSIDE` deep."""
        message = EmailMessage(_AS_SHOWN)
        name, addresses = self._line(_SENDER), map(self._line, _ADDRESSES)
        address = next(
            (text for text in addresses if re.fullmatch(r"[^/\s]+@\S+", text)), ""
        )
        is_named = address and address not in name
        message["From"] = f"{name} <{address}>".strip() if is_named else name
        for header, number in _FIELDS.items():
            message[header] = self._line(number)
        if ticks := next(filter(None, map(self._fixed.get, _TIMES)), 0):
            sent = _EPOCH + timedelta(microseconds=ticks // 10)
            message["Date"] = format_datetime(sent)
        plain, html = self.text(_PLAIN), self.text(_HTML)
        if plain or not html:
            message.set_content(_legible(plain))
        if html and plain:
            message.add_alternative(_legible(html), subtype="html")
        elif html:
            message.set_content(_legible(html), subtype="html")
        for path in self._children("__attach_version1.0_"):
            _Storage(self._container, path, self._left).attach(message, depth)
        return message

    def attach(self, message: EmailMessage, depth: int) -> None:
        """Add this attachment to a message."""
        name = self._line(*_NAMES)
        if self._container.exists([*self._path, _INSIDE]) and depth < _MOST_INSIDE:
            inside = _Storage(self._container, (*self._path, _INSIDE), self._left)
            message.add_attachment(inside.message(depth + 1))
            return
        kind = self._line(_TYPE) or mimetypes.guess_type(name)[0] or ""
        main, _, sub = kind.partition("/")
        is_picture = main == "image" and self._line(_CONTENT_ID)
        message.add_attachment(
            self._stream(f"__substg1.0_{_BODY:04X}0102"),
            maintype=main
            if sub and main not in {"message", "multipart"}
            else "application",
            subtype=sub or "octet-stream",
            filename=_legible(name),
            disposition="inline" if is_picture else "attachment",
        )


def _legible(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
