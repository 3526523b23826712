"""Pages that hold no text of their own: empty ones, and shells that a browser fills by running scripts.

A shell often carries its text as JSON-LD for search engines; that is used where it is there, and said. Also what a page
says about itself in `<title>` and `<html lang>`. One linear scan over the tags, no tree: parsing is quadratic in depth
(200,000 nested `div` take Lexbor minutes), and most pages show enough text right after their head. Not for: running
scripts, or what is main text (`pipeline/html`).
"""

import html as entities
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pipeline.fetch.converted import Unreadable, escape, whole_page
from pipeline.work import check_cancelled

NEEDS_BROWSER: Final = "the page is built by scripts in a browser; its text was taken from its JSON-LD data"
MAY_NEED_BROWSER: Final = "the page shows little text; a browser that runs its scripts may show more"
_FEW_LETTERS: Final = 200
"""Visible letters below which a page with scripts may be a shell."""
_NO_LETTERS: Final = 60
"""Letters below which a shell counts as empty: a name, `Loading…`, a copyright line."""
_ROOT: Final = re.compile(
    r"""\bid\s{0,3}=\s{0,3}["']?(?:root|app|__next|__nuxt|___gatsby|svelte|main-app)["'\s>]|\bng-app\b|\bdata-reactroot\b"""
)
_ROOT_NAMES: Final = {"app-root", "app-component"}
_SILENT: Final = {"script", "style", "template", "noscript", "svg", "iframe", "object", "title", "textarea"}
"""Elements whose content is not shown; skipped to their first closing tag."""
_CLOSING: Final = {name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in _SILENT}
_LANG: Final = re.compile(r"""\b(?:xml:)?lang\s{0,3}=\s{0,3}["']?\s{0,3}([A-Za-z]{2})(?![A-Za-z])""", re.IGNORECASE)
_LD_TYPE: Final = re.compile(r"""\btype\s{0,3}=\s{0,3}["']?application/ld\+json""", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9:-]{0,40}")
_TAG_LOOK: Final = 2000
"""Characters of a tag in which its attributes are looked for."""
_LD_TEXTS: Final = ("articleBody", "text", "description", "reviewBody", "recipeInstructions", "step", "acceptedAnswer")
_LD_NAMES: Final = ("headline", "name", "title")
_LD_LISTS: Final = (
    "recipeIngredient",
    "recipeInstructions",
    "step",
    "mainEntity",
    "@graph",
    "itemListElement",
    "review",
)
_LD_MAX: Final = 400
_LD_BYTES: Final = 2_000_000
_LD_SCRIPTS: Final = 20
_WORTH_LETTERS: Final = 120
"""JSON-LD with less text than this says what the page is about, not what it says."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look at an HTML page found."""

    html: str
    """The page, or what JSON-LD gave instead."""
    title: str = ""
    language: str = ""
    notes: tuple[str, ...] = ()


def look_at(html: str) -> Looked:
    """Return an HTML page with its title and language, or its JSON-LD where the page itself is a shell.

    Raises:
        Unreadable: There is no visible text, and nothing in its place.
    """
    scan = _Scan(html)
    scan.run()
    shell = scan.letters < _FEW_LETTERS and scan.has_scripts and (scan.is_shell_form or scan.letters == 0)
    if scan.letters > 0 and not shell:
        return Looked(html, scan.title, scan.language)
    recovered = _from_json_ld(scan.data)
    if recovered:
        page = whole_page(recovered, title=scan.title, language=scan.language)
        return Looked(page, scan.title, scan.language, (NEEDS_BROWSER,))
    if shell and scan.letters >= _NO_LETTERS:
        return Looked(html, scan.title, scan.language, (MAY_NEED_BROWSER,))
    if shell:
        raise Unreadable("it is an empty page that scripts fill in a browser (needs JavaScript)")
    raise Unreadable("it is a page without visible text")


@dataclass(slots=True)
class _Scan:
    """One pass over the tags, which ends where enough letters were seen."""

    html: str
    letters: int = 0
    """Visible letters and digits, counted to a little over `_FEW_LETTERS`."""
    title: str = ""
    language: str = ""
    has_scripts: bool = False
    is_shell_form: bool = False
    """A root element that scripts fill, or a `noscript` that asks for JavaScript."""
    data: list[str] = field(default_factory=list)
    """Texts of the JSON-LD scripts seen."""
    _unclosed: set[str] = field(default_factory=set)

    def run(self) -> None:
        html, at, tags = self.html, 0, 0
        while self.letters < _FEW_LETTERS:
            tags += 1
            if tags % 10_000 == 0:
                check_cancelled()
            start = html.find("<", at)
            self._count(at, start if start >= 0 else len(html))
            if start < 0:
                return
            if html.startswith("<!--", start):
                end = html.find("-->", start)
                at = end + 3 if end >= 0 else len(html)
                continue
            end = html.find(">", start)
            if end < 0:
                return
            at = self._enter(start, end)

    def _count(self, start: int, end: int) -> None:
        for position in range(start, end, 500):
            piece = self.html[position : min(end, position + 500)]
            if not piece.isspace():
                self.letters += sum(map(str.isalnum, piece))
            if self.letters >= _FEW_LETTERS:
                return

    def _enter(self, start: int, end: int) -> int:
        """Note what the tag at `start` says; return where to go on."""
        name_match = _NAME.match(self.html, start + 1)
        if name_match is None:
            return end + 1
        name = name_match.group().lower()
        tag = self.html[start : min(end + 1, start + _TAG_LOOK)]
        if name == "html" and not self.language:
            lang = _LANG.search(tag)
            self.language = lang.group(1).lower() if lang else ""
        if name in _ROOT_NAMES or (name in {"div", "main", "body", "html"} and _ROOT.search(tag)):
            self.is_shell_form = True
        if name not in _SILENT or tag.endswith("/>") or name in self._unclosed:
            return end + 1
        closing = _CLOSING[name].search(self.html, end + 1)
        if closing is None:
            self._unclosed.add(name)  # so that a page of unclosed tags is still read once only
            return len(self.html) if name in {"script", "style"} else end + 1
        self._silent(name, tag, end + 1, closing.start())
        return closing.start()

    def _silent(self, name: str, tag: str, start: int, end: int) -> None:
        if name == "title" and not self.title:
            self.title = " ".join(entities.unescape(self.html[start : min(end, start + 1000)]).split())
        elif name == "noscript":
            self.is_shell_form = self.is_shell_form or "javascript" in self.html[start : min(end, start + 5000)].lower()
        elif name == "script":
            self.has_scripts = True
            if _LD_TYPE.search(tag) and len(self.data) < _LD_SCRIPTS and end - start <= _LD_BYTES:
                self.data.append(self.html[start:end])


def _from_json_ld(scripts: list[str]) -> str:
    """Return HTML of the texts in JSON-LD data, empty when they are too few to stand for the page."""
    parts: list[str] = []
    letters = 0
    for script in scripts:
        try:
            value = json.loads(script)
        except (ValueError, RecursionError):
            continue
        for tag, text in _ld_texts(value):
            parts.append(f"<{tag}>{escape(text)}</{tag}>")
            letters += len(text)
    return "\n".join(parts) if letters >= _WORTH_LETTERS else ""


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
            name = next((item[key] for key in _LD_NAMES if isinstance(item.get(key), str)), "")
            if name.strip():
                yield "h2", name.strip()
            inner = [item[key] for key in (*_LD_TEXTS, *_LD_LISTS) if key in item and item[key] != name]
            seen: list[object] = []
            for part in inner:
                if part not in seen:
                    seen.append(part)
            waiting.extend(reversed(seen))
