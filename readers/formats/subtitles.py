"""Subtitles and transcripts with times."""

import re
from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("text/vtt",),
    to_html=later("readers.media.subtitles", "subtitles_to_html"),
    reads="text",
    endings=(".vtt", ".srt", ".ass", ".ssa"),
    also=(
        "application/x-subrip",
        "text/srt",
    ),
    begins=re.compile(
        rb"WEBVTT|\s*\d+[ \t]*\r?\n(?:\d\d:){2}\d\d,\d{3} --> |\[Script Info\]\s"
    ),
)
