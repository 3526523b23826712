"""Calendars (iCalendar, RFC 5545) to HTML: what is when and where, who invites, and
what is said of it.

Times are shown as in the file, with their zone; a rule of repetition is shown by its
own words. Not for: when a repeated event is.
"""

import re
from collections.abc import Iterator
from typing import Final

from readers.converted import MAX_ITEMS, Converted, escape, whole_page

_SHOWN_FIELDS: Final = {
    "DTSTART": "Begins", "DTEND": "Ends", "DURATION": "Lasts", "DUE": "Due",
    "LOCATION": "Place", "ORGANIZER": "Organizer", "ATTENDEE": "Attendee",
    "STATUS": "Status", "RRULE": "Repeats", "URL": "Address",
}  # fmt: skip
_ENTRY: Final = re.compile(
    r"(?ims)^BEGIN:(VEVENT|VTODO|VJOURNAL)\s*?$(.*?)(?:^END:\1\s*?$|\Z)"
)
_ICS_LINE: Final = re.compile(
    r"(?m)^([A-Za-z-]{1,40})((?:;[^:\"\n]*(?:\"[^\"\n]*\")?[^:\"\n]*)*):(.*)$"
)
_ICS_TIME: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?")


def calendar_to_html(text: str) -> Converted | None:
    """Return the entries of a calendar as HTML, None where there is none; entries after
    `MAX_ITEMS` are named as unread."""
    unfolded = re.sub(r"\n[ \t]", "", text.replace("\r\n", "\n"))
    entries = [_fields(entry[2]) for entry in _ENTRY.finditer(unfolded)]
    if not entries:
        return None
    is_cut = len(entries) > MAX_ITEMS
    unread = f"the entries after its first {MAX_ITEMS} of {len(entries)}"
    title = " ".join(entries[0].get("SUMMARY", [])) if len(entries) == 1 else ""
    blocks = [block for fields in entries[:MAX_ITEMS] for block in _blocks(fields)]
    page = whole_page("\n".join(blocks), title=title)
    return Converted(page, title, unread=unread if is_cut else "")


def _fields(entry: str) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    alarm = r"(?ims)^BEGIN:(\w+)\s*?$.*?(?:^END:\1\s*?$|\Z)"
    for name, about, value in _ICS_LINE.findall(re.sub(alarm, "", entry)):
        key = name.upper()
        fields.setdefault(key, []).append(_value(key, about, value.strip()))
    return fields


def _value(name: str, about: str, value: str) -> str:
    """Return a value as a person writes it: a time with its zone, a person by name.

    A malformed time is returned as it is written."""
    settings = re.findall(r"(?i)(TZID|CN)=\"?([^;:\"]+)", about)
    parameters = {key.upper(): setting for key, setting in settings}
    if time := _ICS_TIME.fullmatch(value):
        clock = f" {time[4]}:{time[5]}" if time[4] else ""
        zone = f" ({parameters['TZID']})" if "TZID" in parameters and clock else ""
        return f"{time[1]}-{time[2]}-{time[3]}{clock}{' UTC' if time[6] else zone}"
    if name in {"ORGANIZER", "ATTENDEE"}:
        address = re.sub(r"(?i)^mailto:", "", value)
        return f"{parameters['CN']} ({address})" if "CN" in parameters else address
    return re.sub(r"\\([,;\\])", r"\1", re.sub(r"\\[nN]", "\n", value))


def _blocks(fields: dict[str, list[str]]) -> Iterator[str]:
    """Yield an entry as HTML: its heading, its fields, what is said of it."""
    yield f"<h2>{escape(' '.join(fields.get('SUMMARY', ['(without title)'])))}</h2>"
    rows = (
        f"<dt>{label}</dt><dd>{escape(', '.join(fields[name]))}</dd>"
        for name, label in _SHOWN_FIELDS.items()
        if name in fields
    )
    yield f"<dl>{''.join(rows)}</dl>"
    for line in "\n".join(fields.get("DESCRIPTION", [])).split("\n"):
        if line.strip():
            yield f"<p>{escape(line.strip())}</p>"
