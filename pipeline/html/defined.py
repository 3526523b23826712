"""What style sheets define for the whole of a page: how animations end, what custom properties
begin with, what functions give.

Only what is the same whenever the page is looked at counts: an animation that ends within a minute
and keeps its last frame, a property that nothing else sets. Not for: which elements use it
(`sheets.py`), or conditions within a value (`rules.py`).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pipeline.html.rules import COMMENT, declarations
from pipeline.html.style import SHADING, how_hidden

DEFINES: Final = re.compile(
    r"@(?:-webkit-)?keyframes\b|@property\b|@function\b", re.IGNORECASE
)
_KEYFRAMES: Final = re.compile(
    r"@(?:-webkit-)?keyframes\s+[\"']?([\w-]++)[\"']?\s*\{((?:[^{}]*+\{[^{}]*+\})*+)"
)
_KEYFRAME: Final = re.compile(r"([^{}]*+)\{([^{}]*+)\}")
_PROPERTY: Final = re.compile(r"@property\s+(--[\w-]++)\s*\{([^{}]*+)\}")
_CSS_FUNCTION: Final = re.compile(
    r"@function\s+(--[\w-]++)\s*\(([^(){}]*+)\)[^{}]*+\{([^{}]*+)\}"
)
_LAST_KEYFRAME: Final = frozenset({"to", "100%"})
_FILL_MODES: Final = frozenset({"both", "forwards"})
_NEVER: Final = frozenset({"infinite", "paused"})
"""Words of an animation that keeps its last frame, and of one that has none."""
_CSS_TIME: Final = re.compile(r"(?<![\w.-])([\d.]+)(m?s)\b")
_ANIMATION_SECONDS: Final = 60.0
"""Seconds of an animation and its delay whose end a reader sees."""


class Defined(NamedTuple):
    """What the sheets of a page define."""

    ends: Mapping[str, Mapping[str, str]]
    """Of each animation that ends hidden or coloured: the declarations of its last frame."""
    initial: Mapping[str, str]
    """Of custom properties: what they are where nothing sets them."""
    functions: Mapping[str, tuple[tuple[str, ...], str]]
    """Of functions: their parameters, and what they give."""

    def called(self, value: str) -> str:
        """Return a value with its calls of functions replaced by what they give."""
        return _CALL.sub(self._given, value) if self.functions else value

    def _given(self, call: re.Match[str]) -> str:
        if call[1] not in self.functions:
            return call[0]
        names, result = self.functions[call[1]]
        for name, argument in zip(names, call[2].split(","), strict=False):
            result = result.replace(f"var({name})", argument.strip())
        return result

    def ended(self, found: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the declarations of an element once its animation is over; None where
        that changes nothing, or the animation is not kept, never ends or takes too
        long."""
        said = [value for name, value in found.items() if "animation" in name]
        words = set(" ".join(said).replace(",", " ").split())
        names = words & self.ends.keys()
        if not names or _FILL_MODES.isdisjoint(words) or not _NEVER.isdisjoint(words):
            return None
        if (
            any("timeline" in name for name in found)
            or _seconds(said) > _ANIMATION_SECONDS
        ):
            return None
        still = {
            name: value for name, value in found.items() if "animation" not in name
        }
        for name in sorted(names):
            still |= self.ends[name]
        return still


_CALL: Final = re.compile(r"(?<![\w-])(--[\w-]+)\(([^()]*)\)")
NONE_DEFINED: Final = Defined({}, {}, {})


def _seconds(said: Iterable[str]) -> float:
    times = [time for value in said for time in _CSS_TIME.findall(value)]
    return sum(
        float(size) * (0.001 if unit == "ms" else 1.0)
        for size, unit in times
        if size.count(".") < 2
    )


def defined_in(sheets: Iterable[str]) -> Defined:
    """Return the animations, initial values and functions that the sheets of a page
    define; of equal names the last, of animations only those that end hidden or change
    colours."""
    ends: dict[str, Mapping[str, str]] = {}
    initial: dict[str, str] = {}
    functions: dict[str, tuple[tuple[str, ...], str]] = {}
    for sheet in sheets:
        if not DEFINES.search(sheet):
            continue
        low = COMMENT.sub(" ", sheet.lower())
        for name, frames in _KEYFRAMES.findall(low):
            last = _last_of(frames)
            if how_hidden(last) or not SHADING.isdisjoint(last):
                ends[name] = last
        for name, body in _PROPERTY.findall(low):
            if (value := declarations(body).get("initial-value")) is not None:
                initial[name] = value
        for name, given, body in _CSS_FUNCTION.findall(low):
            names = tuple(part.split()[0] for part in given.split(",") if part.split())
            functions[name] = names, declarations(body).get("result", "")
    return Defined(ends, initial, functions)


def _last_of(frames: str) -> dict[str, str]:
    """Return the declarations of the last frame of an animation."""
    found: dict[str, str] = {}
    for places, body in _KEYFRAME.findall(frames):
        if not _LAST_KEYFRAME.isdisjoint(place.strip() for place in places.split(",")):
            found |= declarations(body)
    return found
