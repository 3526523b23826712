"""The texts in data that a page carries in its scripts: JSON-LD, and the state that a framework draws in the browser.

Read only where the page shows nothing by itself (`pipeline/read/shell.py`). Not for: running scripts; what is no JSON
is left alone.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pipeline.read.converted import escape
from pipeline.work import check_cancelled

_TYPE: Final = re.compile(r"""\btype\s{0,3}=\s{0,3}["']?\s{0,3}([\w.+/-]{1,60})""", re.IGNORECASE)
_ASSIGNED: Final = re.compile(
    r"\s{0,200}(?:(?:window|self|globalThis|var|let|const)[\s.]\s{0,5})?[\w$.\[\]\"']{1,80}\s{0,5}=\s{0,5}(JSON\.parse\(\s{0,5})?(?=[{\[\"])"
)
"""`window.__INITIAL_STATE__ = {` and its kin, where data stands first in a script."""
_LD_TEXTS: Final = ("articleBody", "text", "description", "reviewBody", "recipeInstructions", "step", "acceptedAnswer")
_LD_LISTS: Final = (
    "recipeIngredient",
    "recipeInstructions",
    "step",
    "mainEntity",
    "@graph",
    "itemListElement",
    "review",
)
_NAMES: Final = ("headline", "name", "title")
_LD_MAX: Final = 400
_STATE_MAX: Final = 20_000
"""Values looked at in one script; a shop's state of 2 MB holds about so many."""
_TEXTS_MAX: Final = 1000
_LONGEST: Final = 5_000_000
"""Characters of a script that are read; JSON of this size takes 50 ms."""
_SCRIPTS: Final = 20
_WORTH_LETTERS: Final = 120
"""Data with less text than this says what the page is about, not what it says."""
_SENTENCE_WORDS: Final = 6
"""A string with fewer words is a label, a path or a class name; counted in letters where words are not divided."""
_SENTENCE_LETTERS: Final = 12
_LETTER_SHARE: Final = 0.6
_MARKUP: Final = re.compile(
    r"<(?:p|div|h[1-6]|ul|ol|li|table|br|strong|em|a|span|section)\b[^<>]{0,2000}>", re.IGNORECASE
)


@dataclass(slots=True)
class ScriptData:
    """Collects what a page's scripts carry."""

    linked: list[str] = field(default_factory=list)
    """JSON-LD."""
    state: list[str] = field(default_factory=list)
    """JSON, or a script that assigns it."""

    def add(self, tag: str, script: str) -> None:
        """Take one script, if it can be data; `tag` is its opening tag."""
        said = _TYPE.search(tag)
        kind = said.group(1).lower() if said else ""
        if len(script) > _LONGEST:
            return
        if kind == "application/ld+json" and len(self.linked) < _SCRIPTS:
            self.linked.append(script)
        elif len(self.state) < _SCRIPTS and (
            kind.endswith("json") or (kind in {"", "text/javascript", "module"} and _ASSIGNED.match(script))
        ):
            self.state.append(script)

    def as_html(self) -> str:
        """Return the texts as HTML, JSON-LD before all else; empty when they are too few to stand for the page."""
        return _written(self.linked, _ld_texts) or _written(self.state, _state_texts)


def _written(scripts: list[str], texts: Callable[[object], Iterator[tuple[str, str]]]) -> str:
    parts: dict[str, None] = {}
    letters = 0
    for script in scripts:
        check_cancelled()
        for tag, text in texts(_value(script)):
            from pipeline.read.fragment import fragment_to_html  # noqa: PLC0415  lxml, which other pages do without

            part = fragment_to_html(text) if tag == "p" and _MARKUP.search(text) else f"<{tag}>{escape(text)}</{tag}>"
            if part not in parts and len(parts) < _TEXTS_MAX:
                parts[part] = None
                letters += len(text)
    return "\n".join(parts) if letters >= _WORTH_LETTERS else ""


def _value(script: str) -> object:
    """Return the JSON that a script is or assigns, None when it is neither."""
    source = script.strip().removeprefix("<!--").removeprefix("//<![CDATA[").removesuffix("-->").removesuffix("//]]>")
    assigned = _ASSIGNED.match(source) if source[:1] not in "{[" else None
    try:
        value: object = json.JSONDecoder(strict=False).raw_decode(source.lstrip(), 0)[0] if assigned is None else None
        if assigned is not None:
            value = json.JSONDecoder(strict=False).raw_decode(source, assigned.end())[0]
            if assigned.group(1) and isinstance(value, str):
                value = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return None
    return value


def _ld_texts(value: object) -> Iterator[tuple[str, str]]:
    """Yield tag and text of names and texts in reading order; bounded, without recursion."""
    waiting: list[object] = [value]
    for _ in range(_LD_MAX):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, str):
            if item.strip():
                yield "p", item.strip()
        elif isinstance(item, list):
            waiting.extend(reversed(item[:_LD_MAX]))
        elif isinstance(item, dict):
            name = _name(item)
            if name:
                yield "h2", name
            inner = [item[key] for key in (*_LD_TEXTS, *_LD_LISTS) if key in item and item[key] != name]
            seen: list[object] = []
            for part in inner:
                if part not in seen:
                    seen.append(part)
            waiting.extend(reversed(seen))


def _state_texts(value: object) -> Iterator[tuple[str, str]]:
    """Yield tag and text of strings that read like sentences, each after the name of what it belongs to."""
    waiting: list[object] = [value]
    for _ in range(_STATE_MAX):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, str):
            if _reads_like_text(item):
                yield "p", item.strip()
        elif isinstance(item, list):
            waiting.extend(reversed(item[:_STATE_MAX]))
        elif isinstance(item, dict):
            name = _name(item)
            if name and any(
                isinstance(inner, str) and inner != name and _reads_like_text(inner) for inner in item.values()
            ):
                yield "h2", name
            waiting.extend(reversed([inner for inner in item.values() if inner != name]))


def _name(item: dict[object, object]) -> str:
    found = next((item[key] for key in _NAMES if isinstance(item.get(key), str)), "")
    return " ".join(str(found).split())[:300]


def _reads_like_text(text: str) -> bool:
    start = text[:400]
    letters = sum(map(str.isalpha, start))
    if letters < _LETTER_SHARE * len(start.strip()) or "://" in start[:12]:
        return False
    if len(text.split(maxsplit=_SENTENCE_WORDS)) >= _SENTENCE_WORDS:
        return True
    return letters >= _SENTENCE_LETTERS and not start.isascii() and start.count(" ") * 20 < len(start)
