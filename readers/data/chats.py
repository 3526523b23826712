"""Exports of chats in JSON to HTML: who wrote what, and when, a turn each.

Forms: Slack, Telegram, Discord (DiscordChatExporter), Facebook and Instagram, ChatGPT and
Claude. Ids, reactions and discarded answers are left out, with a note. Not for: WhatsApp's
text files, whose lines say all this as they are; names in another file of an export
(`readers/data/slack.py`)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from html import unescape
from itertools import islice
from typing import Any, Final

from readers.converted import MAX_ITEMS, Converted, escape, inside, placed, whole_page
from readers.text.plain import plain_to_html
from readers.tree import tags

_MESSAGE_FIELDS: Final = (
    tags("type user ts text"),  # Slack
    tags("from_id date text"),  # Telegram
    tags("isPinned timestamp author content"),  # Discord
    tags("sender_name timestamp_ms"),  # Facebook, Instagram
    tags("author create_time content"),  # ChatGPT
    tags("uuid sender created_at text"),  # Claude
)
"""Fields of most messages of a chat."""
_SENT_FIELDS: Final = tags("ts date timestamp timestamp_ms create_time created_at")
_SENDERS: Final = tags(
    "user_profile bot_profile username user from actor author sender_name sender"
)
_WORDS: Final = tags(
    "real_name role name title text content parts action fileName file_name description "
    "elements value attachments files photo photos embeds fields fallback share link uri"
)
"""Fields with words of a message, its sender, what is attached, and pieces of text."""
_PIECES: Final = tags("text elements")
_DEEPEST: Final = 8
"""Levels down to which messages and words are looked for."""
_MILLISECONDS: Final = 100_000_000_000
"""From here on a time does not count seconds since 1970."""
_SLACK_ID: Final = re.compile(r"\b[UW][0-9A-Z]{6,}\b")
_LEFT_OUT: Final = (
    "chat: who wrote what and when (in UTC where the file counts seconds); ids, reactions "
    "and discarded answers are left out"
)
_UNNAMED: Final = re.compile(r"(?:<(?:p|h3)>[\d :-]{16} |&lt;@)[UW][0-9A-Z]{6,}\b")
"""An id of Slack where a turn names its author, or whom it mentions."""
_IDS_STAY: Final = (
    "chat: people without a name are shown by their ids; the export's list users.json, "
    "beside the folders of its channels, names them"
)

Message = Mapping[str, Any]


def chats_to_html(value: object) -> Converted | None:
    """Return the chats of parsed JSON as HTML, a section each; None where it has none."""
    turns = list(_chats(value, "", 0))
    return chats_page(turns) if turns else None


def chats_page(turns: Iterable[str], unread: str = "") -> Converted:
    """Return the turns of chats as a page; those after `MAX_ITEMS` count as unread,
    beside what is `unread` already."""
    parts = list(islice(turns, MAX_ITEMS + 1))
    cut = f"what follows its first {MAX_ITEMS} messages" * (len(parts) > MAX_ITEMS)
    html = whole_page("\n".join(parts[:MAX_ITEMS]))
    notes = (_LEFT_OUT, _IDS_STAY) if _UNNAMED.search(html) else (_LEFT_OUT,)
    return Converted(html, notes=notes, unread="; ".join(filter(None, (unread, cut))))


def _chats(value: object, title: str, depth: int) -> Iterator[str]:
    """Yield the HTML of each chat's title, and of its messages."""
    if isinstance(value, dict):
        named = value.get("title") or value.get("name") or value.get("channel")
        title = _name(named) or title
        value = _branch(value) or [*value.values()]
    if not isinstance(value, list) or depth > _DEEPEST:
        return
    messages: list[Message] = [child for child in value if isinstance(child, dict)]
    matching = [
        m for m in messages if any(form <= m.keys() for form in _MESSAGE_FIELDS)
    ]
    if 2 * len(matching) > len(messages):
        yield from chat_turns(title, messages)
    else:
        for child in value:
            yield from _chats(child, title, depth + 1)


def _branch(conversation: Message) -> list[Message]:
    """Return the messages of ChatGPT's tree that lead to its present end."""
    mapping, name = conversation.get("mapping"), conversation.get("current_node")
    tree = {**mapping} if isinstance(mapping, dict) else {}
    branch: list[Message] = []
    while isinstance(node := tree.pop(str(name), None), dict):
        branch.append(node.get("message") or {})
        name = node.get("parent")
    return branch[::-1]


def chat_turns(title: str, messages: list[Message]) -> Iterator[str]:
    """Yield the title of a chat, and what each message says that has words, people of
    Slack by their names."""
    yield f"<h2>{escape(title)}</h2>"
    people = {
        str(message["user"]): _name(message["user_profile"])
        for message in messages
        if message.keys() >= {"user", "user_profile"}
    }
    for number, message in enumerate(messages, start=1):
        sender, time = _name(_field(message, _SENDERS)), _field(message, _SENT_FIELDS)
        words = _said(message) or _said(message.get("blocks"))
        head, text = (
            _SLACK_ID.sub(lambda name: people.get(name[0], name[0]), part)
            for part in (f"{_minute(str(time))} {sender}".strip(), unescape(words))
        )
        if "\n" in text:
            html = f"<h3>{escape(head)}</h3>{inside(plain_to_html(text))}"
        else:
            html = f"<p>{escape(f'{head}: {text}')}</p>"
        if text:
            yield placed(html, f"message={number}")


def _field(message: Message, names: frozenset[str]) -> object:
    return next((message[name] for name in message if name in names), "")


def _name(value: object) -> str:
    return _said(value).partition("\n")[0]


def in_utf8(text: str) -> str:
    """Return UTF-8 that was escaped byte by byte, as in exports of Facebook, as its
    letters; other text as it is."""
    with suppress(UnicodeError):
        return text.encode("latin-1").decode()
    return text


def _said(value: object, glue: str = "\n", depth: int = 0) -> str:
    """Return the words of a part of a message, those of a list with `glue` between
    them: nothing between the pieces of a text."""
    if isinstance(value, str):
        return in_utf8(value)
    if depth > _DEEPEST:
        return ""
    if isinstance(value, dict):
        words = list[str]()
        for name in filter(_WORDS.__contains__, value):
            pieces = "" if name in _PIECES else "\n"
            words.append(_said(value[name], pieces, depth + 1))
        return "\n".join(dict.fromkeys(filter(None, words)))
    items = value if isinstance(value, list) else []
    return glue.join(_said(item, glue, depth + 1) for item in items)


def _minute(time: str) -> str:
    """Return a time to the minute."""
    with suppress(ValueError, OverflowError, OSError):
        seconds = float(time)
        seconds /= 1000 if seconds > _MILLISECONDS else 1
        time = datetime.fromtimestamp(seconds, UTC).isoformat()
    return time[:16].replace("T", " ")
