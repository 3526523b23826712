"""Winnow's desk."""

from typing import Final

from seams import later
from tools.common.view import View

VIEW: Final = View(
    uri="ui://winnow/desk",
    name="desk",
    title="Winnow's desk",
    html=later("extras.desk.page", "desk_html"),
    evidence=later("extras.desk.view", "view_evidence"),
    pages=later("extras.desk.view", "view_pages"),
)
