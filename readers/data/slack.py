"""Exports of Slack, a folder or ZIP archive: messages name people by ids, which a list
beside them gives names.

Not for: what a message says (`readers/data/chats.py`); opening that list on a disk
(`pipeline/fetch/files.py`)."""

import functools
import json
import re
from collections.abc import Mapping
from typing import Final

from cancellation import check_cancelled
from readers.converted import Converted, Unreadable
from readers.data.chats import Message, chat_turns, chats_page
from readers.office.package import open_package

DAY_FILE: Final = re.compile(r"\d{4}-\d\d-\d\d\.json")
"""Name of the file with the messages of one day, in the folder of its channel."""
PEOPLE: Final = "users.json"
"""Name of the list of people, beside the folders of channels."""
_PERSON: Final = re.compile(rb"\b([UW][0-9A-Z]{6,})\b(?:\|[^<>\"\\]{1,80}(?=>))?")
"""The id of a person, in a mention with what it is called there."""


def with_names(day: bytes, people: bytes) -> bytes:
    """Return messages, as JSON, with the names of people in the place of their ids, as
    far as the list `people` has them; unchanged where that cannot be read."""
    names = _names(people)
    return _PERSON.sub(lambda person: names.get(person[1], person[0]), day)


@functools.lru_cache(maxsize=1)
def _names(people: bytes) -> Mapping[bytes, bytes]:
    """Return the names, as JSON has them within quotes, of a list by their ids. Kept
    for the next day of the same export, of which there are thousands."""
    try:
        listed = json.loads(people)
    except (ValueError, RecursionError):
        return {}
    persons = filter(_is_person, listed if isinstance(listed, list) else [])
    return {
        str(person["id"]).encode(): json.dumps(_name(person))[1:-1].encode()
        for person in persons
        if _name(person)
    }


def _is_person(value: object) -> bool:
    return isinstance(value, dict) and "id" in value


def _name(person: Mapping[str, object]) -> str:
    profile = person.get("profile")
    about = profile if isinstance(profile, dict) else {}
    names = (person.get("real_name"), about.get("real_name"), person.get("name"))
    return next((name for name in names if isinstance(name, str) and name), "")


def slack_to_html(body: bytes) -> Converted:
    """Return an export that is a ZIP archive as HTML, the days of each channel in order.

    Raises `Unreadable` for one that is damaged, too large unpacked, or without
    messages."""
    channels: dict[str, list[Message]] = {}
    with open_package(body, "an export of Slack", texts=(".json",)) as package:
        people = package.read(PEOPLE)
        for name in sorted(package.names):
            channel, _, day = name.rpartition("/")
            if not channel or not DAY_FILE.fullmatch(day):
                continue
            check_cancelled()
            try:
                messages = json.loads(with_names(package.read(name), people))
            except (ValueError, RecursionError):
                messages = None
            if isinstance(messages, list):
                channels.setdefault(channel, []).extend(
                    message for message in messages if isinstance(message, dict)
                )
            else:
                package.damaged.append(name)
        damaged = package.unread
    if not any(channels.values()):
        raise Unreadable("it is an export of Slack without messages")
    turns = (
        turn
        for channel, messages in channels.items()
        for turn in chat_turns(channel, messages)
    )
    return chats_page(turns, unread=damaged)
