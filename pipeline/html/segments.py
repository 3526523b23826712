"""Pages streamed by React: what came later and is moved to its place by a script.

Such a segment `S:…` comes closed, behind the page, and a template `B:…` or `P:…` marks its place. Ids alone pair them
where the page calls the mover (`$RC(`) or was stored without its scripts; elsewhere closed text would be let in by ids.
"""

import re
from typing import Final

from selectolax.lexbor import LexborNode

_PLACE: Final = re.compile(r"(.*)[BP]:([0-9a-f]+)")
_MOVER: Final = "$RC("
MAX_FALLBACK: Final = 100
"""Nodes beside the place of a segment among which the end of what stands there meanwhile is looked for."""


class Segments:
    """The segments of one page, each for one place."""

    def __init__(self, top: LexborNode) -> None:
        """Take a page's root; nothing is looked for until a place is met."""
        self._top = top
        self._found: dict[str, LexborNode] | None = None

    def at(self, place: LexborNode) -> tuple[LexborNode | None, LexborNode | None]:
        """Return the first node of the segment that belongs at `place`, once, and the node to go on with behind it.

        What stands there meanwhile, between the marks `$?` and `/$`, is passed over.
        """
        named = _PLACE.fullmatch(place.attributes.get("id") or "")
        if named is None:
            return None, place.next
        if self._found is None:
            scripts = [text for script in self._top.css("script") if (text := script.text(deep=True).strip())]
            is_moved = not scripts or any(_MOVER in text for text in scripts)
            nodes = self._top.css("[hidden][id*='S:']") if is_moved else []
            self._found = {node.attributes["id"] or "": node for node in nodes}
        segment = self._found.pop(f"{named[1]}S:{named[2]}", None)
        if segment is None:
            return None, place.next
        before, depth, behind = place.prev, 0, place.next
        if before is not None and _mark(before).startswith("$"):
            for _ in range(MAX_FALLBACK):
                if behind is None or (depth == 0 and _mark(behind) == "/$"):
                    return segment.first_child, behind
                depth += {"/$": -1, "$": 1, "$?": 1, "$!": 1}.get(_mark(behind), 0)
                behind = behind.next
        return segment.first_child, place.next


def _mark(node: LexborNode) -> str:
    """Return the text of a comment, empty for any other node."""
    return (node.comment_content or "").strip() if node.is_comment_node else ""
