"""Exports of Slack."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/x-slack-export",),
    to_html=later("readers.data.slack", "slack_to_html"),
    parts=("channels.json",),
    binary=True,
    heavy=True,
)
