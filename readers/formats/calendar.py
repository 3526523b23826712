"""Calendars."""

import re
from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("text/calendar",),
    to_html=later("readers.mail.calendar", "calendar_to_html"),
    reads="text",
    endings=(".ics",),
    begins=re.compile(rb"BEGIN:VCALENDAR\s"),
)
