"""Calendars (iCalendar, RFC 5545) to HTML: what is when and where, who invites, and
what is said of it.

Times are shown as in the file, with their zone; a rule of repetition is shown by its
own words. Not for: when a repeated event is.
"""

import re
from collections.abc import Iterator
from typing import Final

from pipeline.document.converted import MAX_ITEMS, Converted, escape, whole_page

_SHOWN_FIELDS: Final = (
    ("DTSTART", "Begins"), ("DTEND", "Ends"), ("DURATION", "Lasts"), ("DUE", "Due"),
    ("LOCATION", "Place"), ("ORGANIZER", "Organizer"), ("ATTENDEE", "Attendee"), ("STATUS", "Status"),
    ("RRULE", "Repeats"), ("URL", "Address"),
)  # fmt: skip
_ENTRIES: Final = frozenset({"VEVENT", "VTODO", "VJOURNAL"})
_FOLD: Final = re.compile(r"\r?\n[ \t]")
_ICS_LINE: Final = re.compile(
    r"(?P<name>[A-Za-z-]{1,40})(?P<about>(?:;[^:\"]*(?:\"[^\"]*\")?[^:\"]*)*):(?P<value>.*)"
)
_ICS_TIME: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?")
_ICS_ESCAPE: Final = re.compile(r"\\([nN,;\\])")
Fields = dict[str, list[str]]


def calendar_to_html(text: str) -> Converted | None:
    """Return the entries of a calendar as HTML, None where there is none; entries after
    `MAX_ITEMS` are named as unread."""
    entries = list(_entries(_FOLD.sub("", text)))
    if not entries:
        return None
    unread = (
        f"the entries after its first {MAX_ITEMS} of {len(entries)}"
        if len(entries) > MAX_ITEMS
        else ""
    )
    title = next(iter(entries[0].get("SUMMARY", [])), "") if len(entries) == 1 else ""
    return Converted(
        whole_page("\n".join(map(_entry, entries[:MAX_ITEMS])), title=title),
        title,
        unread=unread,
    )


def _entries(text: str) -> Iterator[Fields]:
    held: Fields | None = None
    inner = 0
    for line in text.splitlines():
        found = _ICS_LINE.fullmatch(line)
        if found is None:
            continue
        name, value = found["name"].upper(), found["value"].strip()
        if held is None:
            if name == "BEGIN" and value.upper() in _ENTRIES:
                held = {}
        elif name == "BEGIN":
            inner += 1  # an alarm
        elif name == "END" and inner:
            inner -= 1
        elif name == "END":
            yield held
            held = None
        elif not inner:
            held.setdefault(name, []).append(_value(name, found["about"], value))


def _value(name: str, about: str, value: str) -> str:
    """Return a value as a person writes it: a time with its zone, a person by name.

    A malformed time is returned as it is written."""
    if time := _ICS_TIME.fullmatch(value):
        zone = re.search(r"TZID=\"?([^;:\"]+)", about, re.IGNORECASE)
        clock = f" {time[4]}:{time[5]}" if time[4] else ""
        named = " UTC" if time[6] else f" ({zone[1]})" if zone and clock else ""
        return f"{time[1]}-{time[2]}-{time[3]}{clock}{named}"
    if name in {"ORGANIZER", "ATTENDEE"}:
        called = re.search(r"CN=\"?([^;:\"]+)", about, re.IGNORECASE)
        address = re.sub(r"(?i)^mailto:", "", value)
        return f"{called[1]} ({address})" if called else address
    return _ICS_ESCAPE.sub(lambda sign: "\n" if sign[1] in "nN" else sign[1], value)


def _entry(fields: Fields) -> str:
    heading = f"<h2>{escape(' '.join(fields.get('SUMMARY', ['(without title)'])))}</h2>"
    rows = (
        (label, ", ".join(fields[name]))
        for name, label in _SHOWN_FIELDS
        if fields.get(name)
    )
    listed = "".join(
        f"<dt>{label}</dt><dd>{escape(value)}</dd>" for label, value in rows
    )
    said = (
        line.strip()
        for one in fields.get("DESCRIPTION", [])
        for line in one.split("\n")
    )
    return "\n".join(
        [
            heading,
            f"<dl>{listed}</dl>",
            *(f"<p>{escape(line)}</p>" for line in said if line),
        ]
    )
