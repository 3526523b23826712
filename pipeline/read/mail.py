"""EML and MBOX to HTML: who wrote what to whom and when, the text, and the names of what is attached.

A message's HTML is cleaned as any page's; nothing that it names is loaded. Not for: what attachments hold, signatures,
encrypted parts, Outlook's `.msg`.
"""

import re
from email import policy
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from typing import Final

from pipeline.read.converted import DAMAGED, MAX_ITEMS, Converted, Unreadable, escape, placed, whole_page
from pipeline.read.plain import plain_to_html
from pipeline.read.sniff import decode
from pipeline.read.text import fragment_to_html
from pipeline.work import check_cancelled

_SHOWN: Final = ("From", "To", "Cc", "Date")
_BETWEEN: Final = re.compile(rb"(?:\A|(?<=\n)\r?\n)From [^\n]*\n")
"""What begins a message in an mbox file (RFC 4155)."""
_QUOTED_FROM: Final = re.compile(rb"^>(>*From )", re.MULTILINE)
_MAX_PARTS: Final = 1_000
"""Of one message; each costs about 0.1 ms, and boundaries are looked for at every depth."""
_TOLD: Final = 20
"""Damaged messages that are named."""


def eml_to_html(body: bytes) -> Converted:
    """Return a message as HTML; raises `Unreadable` for one without a head or text."""
    message, inner = _read(body, "h1")
    title = _header(message, "Subject")
    when = _day(message)
    return Converted(whole_page(inner, title=title), title, author=_header(message, "From"), published=when)


def mbox_to_html(body: bytes) -> Converted:
    """Return the messages of an mbox file as HTML, a section each; raises `Unreadable` where none can be read."""
    pieces = _BETWEEN.split(body)[1:]
    sections, damaged = list[str](), list[str]()
    for number, piece in enumerate(pieces[:MAX_ITEMS], start=1):
        check_cancelled()
        try:
            _, inner = _read(_QUOTED_FROM.sub(rb"\1", piece), "h2")
            sections.append(placed(inner, f"message={number}"))
        except Unreadable:  # one of many is told as missing
            damaged.append(str(number))
    if not sections:
        raise Unreadable("it is a mail box without a message that can be read")
    unread = f"what follows its first {MAX_ITEMS} of {len(pieces)} messages" if len(pieces) > MAX_ITEMS else ""
    if damaged:
        unread = f"damaged messages: {', '.join(damaged[:_TOLD])}{f'; {unread}' if unread else ''}"
    return Converted(whole_page("\n".join(sections)), unread=unread)


def _read(body: bytes, level: str) -> tuple[EmailMessage, str]:
    """Return a message, and it as HTML under a heading."""
    if body.count(b"\n--") > _MAX_PARTS * 10 or len(re.findall(rb"(?i)\bboundary\s*=", body)) > _MAX_PARTS:
        raise Unreadable(f"it is mail of more than {_MAX_PARTS:,} parts")
    try:
        message = BytesParser(EmailMessage, policy=policy.default).parsebytes(body)
        head = "".join(f"<dt>{name}</dt><dd>{escape(said)}</dd>" for name in _SHOWN if (said := _header(message, name)))
        subject = _header(message, "Subject")
        text, attached = _parts(message)
    except (*DAMAGED, MessageError) as e:
        raise Unreadable(f"it is mail that is damaged ({type(e).__name__})") from e
    names = "".join(f"<li>{escape(name)}</li>" for name in attached)
    listed = f"<p>Attachments:</p><ul>{names}</ul>" if names else ""
    heading = f"<{level}>{escape(subject or '(without subject)')}</{level}>"
    return message, "\n".join(filter(None, (heading, f"<dl>{head}</dl>", *text, listed)))


def _parts(message: EmailMessage) -> tuple[list[str], list[str]]:
    """Return the texts of a message as HTML, and the names of its attachments."""
    texts, attached, skipped = list[str](), list[str](), set[int]()
    for number, part in enumerate(message.walk()):
        check_cancelled()
        name, kind = part.get_filename(), part.get_content_type()
        if number > _MAX_PARTS:
            raise Unreadable(f"it is mail of more than {_MAX_PARTS:,} parts")
        if part.get_content_disposition() == "attachment" or (name and not kind.startswith("text/")):
            attached.append(f"{name or 'without a name'} ({kind})")
        elif kind == "multipart/alternative" and any(one.get_content_type() == "text/html" for one in part.walk()):
            # Of alternatives the HTML is what a reader sees.
            skipped |= {id(one) for one in part.iter_parts() if one.get_content_type() == "text/plain"}
        elif kind in {"text/plain", "text/html"} and id(part) not in skipped:
            texts.append(_text(part))
        elif kind == "message/rfc822":
            texts.append("<h3>Forwarded message</h3>")
    return texts, attached


def _text(part: MIMEPart) -> str:
    content = part.get_payload(decode=True)
    text = decode(content if isinstance(content, bytes) else b"", content_type=str(part.get("content-type", ""))).text
    if part.get_content_type() == "text/html":
        return fragment_to_html(text)
    return plain_to_html(text).html.partition("<body>")[2].rpartition("</body>")[0].strip()


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).split())


def _day(message: EmailMessage) -> str:
    try:
        return parsedate_to_datetime(_header(message, "Date")).date().isoformat()
    except (ValueError, TypeError):
        return ""
