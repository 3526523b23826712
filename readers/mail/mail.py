"""EML and MBOX to HTML: who wrote what to whom and when, the text, invitations, and
what is attached.

Attachments are read by the readers of their kinds, within bounds of number and size;
the others are named, and count as unread. A message's HTML is cleaned as any page's;
nothing that it names is loaded. Not for: signatures, encrypted parts, mail attached to
mail, the container of Outlook's messages (`outlook.py`)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from email import message_from_bytes
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.policy import EmailPolicy
from email.utils import parsedate_to_datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, cast

from cancellation import check_cancelled
from readers.convert import Raw, converted, kind_of
from readers.converted import (
    DAMAGED,
    MAX_ITEMS,
    Converted,
    Unreadable,
    escape,
    inside,
    placed,
    whole_page,
)
from readers.formats.calendar import FORMAT as CALENDAR
from readers.formats.mail import FORMAT as MAIL
from readers.formats.mbox import FORMAT as MBOX
from readers.html.guard import parse
from readers.ledger import Ledger
from readers.mail.calendar import calendar_to_html
from readers.page import TITLE_CHARACTERS
from readers.secrets import is_secret
from readers.sniff import decode
from readers.text.markup import fragment_to_html, plain_text
from readers.text.plain import plain_to_html, quotes
from readers.tree import count_words

_SHOWN_HEADERS: Final = ("From", "To", "Cc", "Bcc", "Reply-To", "Date")
_MESSAGE_START: Final = re.compile(rb"(?:\A|(?<=\n)\r?\n)From [^\n]*\n")
"""What begins a message in an mbox file (RFC 4155)."""
_MAX_PARTS: Final = 1_000
"""Of one message; each costs about 0.1 ms, and boundaries are looked for at every
depth."""
_MOST_ATTACHED: Final = 20
"""Attachments of one file that are read."""
_ATTACHED_BYTES: Final = 15_000_000
"""Of all that are read, as many as a page has."""
_UNREAD_TYPES: Final = frozenset(
    {
        "application/pgp-signature",
        "application/pkcs7-signature",
        "application/x-pkcs7-signature",
    }
)
"""Types of attachments without words of the sender."""
_BODIES: Final = frozenset({"text/plain", "text/html", *CALENDAR.types})
_SEALED: Final = frozenset(
    {"multipart/encrypted", "message/external-body", "message/partial"}
)
"""Types of parts whose text is not in the message."""
LONGEST_HEADER: Final = 10_000
"""Characters of a header, some 400 addresses; 40,000 of them took 17 s of a processor."""
_OUTLOOK: Final = "__nameid_version1.0".encode("utf-16-le")
"""What a message of Outlook's has (MS-OXMSG)."""
_SCREENSHOT: Final = 40_000
"""Minimum bytes of a picture in a message to be more than a logo or emoji."""


_MARKS: Final = re.compile(r"^(?:\s?>)+ ?")
"""Marks of a quotation before a line."""


class _Policy(EmailPolicy):
    """Reads headers as far as `LONGEST_HEADER`: addresses take time by their square."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """Return name and value of a header, a longer value with a mark of the cut."""
        name, value = super().header_source_parse(sourcelines)
        cut = value[:LONGEST_HEADER]
        return name, value if cut == value else f"{cut} …"

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """Return a header as its name says it is read, as plain text where the standard
        library's parser fails on it: a bad line of addresses costs no message."""
        try:
            return super().header_fetch_parse(name, value)
        except DAMAGED:
            return self.header_factory("X-Text", "".join(value.splitlines()))


def eml_to_html(body: bytes) -> Converted:
    """Return a message with its attachments as HTML; raises `Unreadable` for one that
    is damaged or of too many parts.

    Attachments that cannot be read are named only."""
    return message_to_html(_parsed(body))


def message_to_html(message: EmailMessage) -> Converted:
    """Return a message that was parsed, as `eml_to_html` does."""
    attached = _Attached()
    html = _html(message, "h1", attached)
    title = _header(message, "Subject")
    return Converted(
        whole_page(html, title=title),
        title,
        author=_header(message, "From"),
        published=_day(message),
        unread="; ".join(attached.unread),
        ledger=attached.ledger,
    )


def mbox_to_html(mailbox: bytes) -> Converted:
    """Return the messages of an mbox file as HTML, a section each, the last one first;
    raises `Unreadable` where none can be read.

    Damaged messages are passed over and named as unread, as are those before the last
    `MAX_ITEMS`. What is before the first is dropped."""
    messages = _MESSAGE_START.split(mailbox)[1:]
    sections, damaged, attached = list[str](), list[str](), _Attached()
    for number in range(len(messages), max(0, len(messages) - MAX_ITEMS), -1):
        check_cancelled()
        try:
            body = re.sub(rb"(?m)^>(>*From )", rb"\1", messages[number - 1])
            html = _html(_parsed(body), "h2", attached)
            sections.append(placed(html, f"message={number}"))
        except Unreadable:  # one of many is reported as missing
            damaged.append(str(number))
    if not sections:
        raise Unreadable("it is a mailbox without a readable message")
    unread = attached.unread
    if len(messages) > MAX_ITEMS:
        unread.insert(0, f"the messages before its last {MAX_ITEMS} of {len(messages)}")
    if damaged:
        unread.insert(0, f"damaged messages: {', '.join(damaged[:20])}")
    page = whole_page("\n".join(sections))
    return Converted(page, unread="; ".join(unread), ledger=attached.ledger)


@dataclass(slots=True)
class _Attached:
    """What is attached to the messages of one file: what was read of it, and what
    not."""

    ledger: Ledger = field(default_factory=Ledger)
    unread: list[str] = field(default_factory=list)
    """What of attachments was cut."""
    number: int = 0
    size: int = 0

    def read(self, entity: MIMEPart) -> list[str]:
        """Return an attachment below its name; nothing where it holds no text, is mail
        itself, has keys or passwords, is damaged, or is more than `_MOST_ATTACHED`
        attachments or `_ATTACHED_BYTES` bytes of one file allow."""
        name, kind, body = (
            entity.get_filename(""),
            entity.get_content_type(),
            _content(entity),
        )
        if kind in _UNREAD_TYPES:
            return []
        if (
            kind.startswith("image/")
            and entity.get_content_disposition() != "attachment"
        ):
            self.ledger.hold("image", len(body) >= _SCREENSHOT)
            return []
        self.ledger.hold("attachment")
        raw = Raw(body, name, name, name=name, content_type=kind)
        is_full = (
            self.number >= _MOST_ATTACHED or self.size + len(body) > _ATTACHED_BYTES
        )
        is_mail = kind_of(raw) in {*MAIL.types, *MBOX.types} or _OUTLOOK in body
        if is_full or is_mail or not body.strip() or is_secret(body):
            return []
        self.number += 1
        self.size += len(body)
        try:
            page = converted(raw)
        except Unreadable:
            return []
        self.ledger.give("attachment")
        self.ledger.add(page.ledger)
        if page.unread:
            self.unread.append(f"of attachment {self.number}: {page.unread}")
        heading = f"<h3>{escape(f'Attachment {name or kind}')}</h3>"
        return [heading, fragment_to_html(page.html)]


def _parsed(body: bytes) -> EmailMessage:
    """Return a message; raises `Unreadable` for one of too many parts."""
    boundaries = len(re.findall(rb"(?i)\bboundary\s*=", body))
    if body.count(b"\n--") > _MAX_PARTS * 10 or boundaries > _MAX_PARTS:
        raise Unreadable(f"the message has more than {_MAX_PARTS:,} parts")
    try:
        message = message_from_bytes(body, EmailMessage, policy=_Policy())
    except (*DAMAGED, MessageError) as e:
        raise Unreadable(f"it is a damaged email message ({type(e).__name__})") from e
    return cast(EmailMessage, message)


def _html(message: EmailMessage, level: str, attached: _Attached) -> str:
    """Return a message as HTML under a heading; raises `Unreadable` for one that is
    damaged or of too many parts."""
    try:
        subject = _header(message, "Subject")
        text, names = _parts(message, attached)
        head = _head(message, names)
    except (*DAMAGED, MessageError) as e:
        raise Unreadable(f"it is a damaged email message ({type(e).__name__})") from e
    heading = f"<{level}>{escape(subject or '(without subject)')}</{level}>"
    return "\n".join(filter(None, (heading, head, *text)))


def _head(message: MIMEPart, names: Sequence[str] = ()) -> str:
    values = {name: _header(message, name) for name in _SHOWN_HEADERS}
    values["Attachments"] = ", ".join(names)
    fields = "".join(
        f"<dt>{name}</dt><dd>{escape(value)}</dd>"
        for name, value in values.items()
        if value
    )
    return f"<dl>{fields}</dl>"


def _parts(message: EmailMessage, attached: _Attached) -> tuple[list[str], list[str]]:
    """Return the texts of a message as HTML, then its attachments, and the names of all
    of these.

    Encrypted parts are not read, nor alternatives that a reader does not see. Raises
    `Unreadable` for more than `_MAX_PARTS` parts."""
    texts, files, names = list[str](), list[str](), list[str]()
    skipped = set[int]()
    for number, entity in enumerate(message.walk()):
        check_cancelled()
        kind = entity.get_content_type()
        if number > _MAX_PARTS:
            raise Unreadable(f"the message has more than {_MAX_PARTS:,} parts")
        if id(entity) in skipped:
            continue
        if kind == "multipart/alternative":
            skipped |= _unseen_alternatives(entity)
        elif kind in _SEALED or kind == "message/delivery-status":
            skipped |= set(map(id, entity.walk()))
            attached.ledger.hold("attachment", kind in _SEALED)
            is_report = kind == "message/delivery-status"
            texts += [inside(plain_to_html(entity.as_string()))] if is_report else []
        elif kind == "message/rfc822":
            texts += [_forwarded(html) for html in entity.iter_parts()]
        elif kind in _BODIES and entity.get_content_disposition() != "attachment":
            texts.append(_text(entity, attached))
        elif not entity.is_multipart():
            names.append(f"{entity.get_filename() or 'without a name'} ({kind})")
            files += attached.read(entity)
    return [*texts, *files], names


def _forwarded(message: MIMEPart) -> str:
    subject = _header(message, "Subject")
    return f"<h3>{escape(f'Forwarded message: {subject}')}</h3>\n{_head(message)}"


def _unseen_alternatives(entity: MIMEPart) -> set[int]:
    """Return the ids of those alternatives that a reader does not see: all texts but the
    HTML, or but the plain one where that has twice the words, and but invitations.

    None where there is neither HTML nor plain text."""
    words = Counter[str]()
    for piece in entity.walk():
        kind = piece.get_content_type()
        if kind in {"text/html", "text/plain"}:
            text = _decoded(piece)
            words[kind] += count_words(plain_text(text) if "html" in kind else text)
    is_plain = words["text/plain"] > 2 * words["text/html"] or "text/html" not in words
    return {
        id(text)
        for text in entity.iter_parts()
        if words
        and text.get_content_maintype() == "text"
        and text.get_content_type()
        not in {"text/plain" if is_plain else "text/html", *CALENDAR.types}
    }


def _content(entity: MIMEPart) -> bytes:
    content = entity.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _decoded(entity: MIMEPart) -> str:
    about = str(entity.get("content-type", ""))
    return decode(_content(entity), content_type=about).text


def _text(entity: MIMEPart, attached: _Attached) -> str:
    """Return a text of the message, "" for an invitation that is damaged."""
    text, kind = _decoded(entity), entity.get_content_type()
    if kind == "text/html":
        return _turns(fragment_to_html(text))
    if kind == "text/plain":
        return _turns(_quoting(text))
    # An invitation comes twice: as a part to be answered, and as a file.
    calendar = calendar_to_html(text)
    attached.ledger.hold("attachment", calendar is None)
    return inside(calendar) if calendar is not None else ""


def _quoting(text: str) -> str:
    """Return plain text as HTML. Where all that it quotes is below its own words, and a
    line with a colon is above each quotation, each is inside of the one that quotes it."""
    depths, lines = [0], text.splitlines()
    for line in lines:
        depths.append(quotes(line) if line.strip() else depths[-1])
    runs = groupby(zip(depths[1:], lines, strict=True), key=itemgetter(0))
    turns = [
        "\n".join(_MARKS.sub("", line) for _, line in run).strip() for _, run in runs
    ]
    is_introduced = all(turn.endswith(":") for turn in turns[:-1])
    if depths != sorted(depths) or not is_introduced:
        return inside(plain_to_html(text))
    return "<blockquote>".join(inside(plain_to_html(turn)) for turn in turns)


def _turns(html: str) -> str:
    """Return HTML with a heading over each message that it quotes: the line above the
    quotation, or its first, that ends in a colon. Nothing is changed where an answer is below one."""
    is_last = not plain_text(html.partition("</blockquote>")[2])
    root = parse(html) if "<blockquote" in html and is_last else None
    for quotation in root.css("blockquote") if root is not None else ():
        above = quotation.prev
        while above is not None and not above.text().strip():
            above = above.prev
        for line in filter(None, (above, quotation.first_child)):
            words = " ".join(line.text().split())
            if words.endswith(":") and len(words) <= TITLE_CHARACTERS:
                heading = line.parser.create_node("h3")
                heading.insert_child(words)
                line.replace_with(heading)
                break
    return (root.html if root is not None else None) or html


def _header(message: MIMEPart, name: str) -> str:
    return " ".join(str(message.get(name, "")).split())


def _day(message: EmailMessage) -> str:
    try:
        return parsedate_to_datetime(_header(message, "Date")).date().isoformat()
    except (ValueError, TypeError):
        return ""
