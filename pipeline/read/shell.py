"""Pages that hold no text of their own: empty ones, and shells that a browser fills by running scripts.

A shell often carries its text in its scripts; `may_be_filled` says when that is read (by `pipeline/html/document.py`).
Also what a page says about itself in `<title>` and `<html lang>`. One linear scan over the tags, no tree: parsing is
quadratic in depth (200,000 nested `div` take Lexbor minutes), and most pages show enough text right after their head.
Not for: running scripts, or what is main text (`pipeline/html`).
"""

import html as entities
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pipeline.read.converted import Converted, Unreadable
from pipeline.read.script_data import EMPTY_LETTERS, letters_in, script_texts
from pipeline.work import check_cancelled

MAY_NEED_BROWSER: Final = "the page shows little text; a browser that runs its scripts may show more"
_FEW_LETTERS: Final = 200
"""Visible letters below which a page with scripts may be a shell."""
_ROOT: Final = re.compile(
    r"""\bid\s{0,3}=\s{0,3}["']?(?:root|app|__next|__nuxt|___gatsby|svelte|main-app)["'\s>]|\bng-app\b|\bdata-reactroot\b"""
)
_EMPTY_ROOT: Final = re.compile(
    r"""<(?:div|main|section)\b[^<>]{0,200}?\bid\s{0,3}=\s{0,3}["']?(?:root|app|__next|__nuxt|___gatsby)["'\s>][^<>]{0,200}>?\s{0,200}</"""
    r"""|<app-root\b[^<>]{0,200}>\s{0,200}</""",
    re.IGNORECASE,
)
_FRAME_LETTERS: Final = 1500
"""Letters of header, menu and footer around an empty root; a page with more has text of its own."""
_ROOT_NAMES: Final = {"app-root", "app-component"}
_SILENT: Final = {"script", "style", "template", "noscript", "svg", "iframe", "object", "title", "textarea"}
"""Elements whose content is not shown; skipped to their first closing tag."""
_CLOSING: Final = {name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in _SILENT}
_LANG: Final = re.compile(r"""\b(?:xml:)?lang\s{0,3}=\s{0,3}["']?\s{0,3}([A-Za-z]{2})(?![A-Za-z])""", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9:-]{0,40}")


class NeedsScripts(Unreadable):
    """There is no text to read before scripts have run."""


def look_at(html: str, *, rendered: bool = False) -> Converted:
    """Return an HTML page with its title and language, and a note where it may be a shell.

    Of one that was `rendered` by a browser no more is to be had than it shows. Raises `NeedsScripts` for one that is
    empty until its scripts run and carries no data in their place, `Unreadable` where there is no visible text.
    """
    scan = _Scan(html)
    scan.run()
    if rendered and scan.letters == 0:
        raise Unreadable("it shows no text even after its scripts have run in a browser")
    if scan.letters == 0 and not scan.has_scripts:
        raise Unreadable("it is a page without visible text")
    is_shell = not rendered and scan.is_shell()
    if is_shell and scan.letters < EMPTY_LETTERS and not script_texts(html):
        shows = f"{scan.letters} letters" if scan.letters else "nothing"
        raise NeedsScripts(f"it is an empty page that scripts fill in a browser (needs JavaScript); it shows {shows}")
    notes = (MAY_NEED_BROWSER,) if is_shell or (not rendered and scan.has_empty_root()) else ()
    return Converted(html, scan.title, scan.language, notes=notes)


def may_be_filled(html: str, shown: Sequence[str]) -> bool:
    """Return whether text in a page's scripts may be read as the page's: it shows none, or is a shell that loads.

    No reader is sure to see that text, so that it never stands beside what a page does say (the texts `shown`, without
    its navigation), let alone for it.
    """
    letters = sum(map(letters_in, shown))
    if not letters or letters >= EMPTY_LETTERS:
        return not letters
    scan = _Scan(html)
    scan.run()
    return scan.is_shell()


@dataclass(slots=True)
class _Scan:
    """One pass over the tags, which ends where enough letters were seen."""

    html: str
    enough: int = _FEW_LETTERS
    letters: int = 0
    """Visible letters and digits, counted to a little over `enough`."""
    title: str = ""
    language: str = ""
    has_scripts: bool = False
    is_shell_form: bool = False
    """A root element that scripts fill, or a `noscript` that asks for JavaScript."""
    _unclosed: set[str] = field(default_factory=set)

    def run(self) -> None:
        html, at = self.html, 0
        while self.letters < self.enough:
            check_cancelled()
            start = html.find("<", at)
            self._count(at, start if start >= 0 else len(html))
            if start < 0:
                return
            is_comment = html.startswith("<!--", start)
            end = html.find("-->" if is_comment else ">", start)
            if end < 0:
                return
            at = end + 3 if is_comment else self._enter(start, end)

    def is_shell(self) -> bool:
        return self.letters < _FEW_LETTERS and self.has_scripts and (self.is_shell_form or self.letters == 0)

    def has_empty_root(self) -> bool:
        """Return whether a page with some text of its own (a header, a footer) has a place that scripts fill."""
        if _EMPTY_ROOT.search(self.html) is None or "<script" not in self.html:
            return False
        whole = _Scan(self.html, enough=_FRAME_LETTERS)
        whole.run()
        return whole.letters < _FRAME_LETTERS

    def _count(self, start: int, end: int) -> None:
        for position in range(start, end, 500):
            self.letters += letters_in(self.html[position : min(end, position + 500)])
            if self.letters >= self.enough:
                return

    def _enter(self, start: int, end: int) -> int:
        """Note what the tag at `start` says; return where to go on."""
        name_match = _NAME.match(self.html, start + 1)
        if name_match is None:
            return end + 1
        name = name_match.group().lower()
        tag = self.html[start : min(end + 1, start + 2000)]
        if name == "html" and not self.language:
            lang = _LANG.search(tag)
            self.language = lang.group(1).lower() if lang else ""
        if name in _ROOT_NAMES or (name in {"div", "main", "body", "html"} and _ROOT.search(tag)):
            self.is_shell_form = True
        if name not in _SILENT or tag.endswith("/>") or name in self._unclosed or "shadowrootmode" in tag:
            return end + 1
        closing = _CLOSING[name].search(self.html, end + 1)
        if closing is None:
            self._unclosed.add(name)  # so that a page of unclosed tags is still read once only
            return len(self.html) if name in {"script", "style"} else end + 1
        self._silent(name, end + 1, closing.start())
        return closing.start()

    def _silent(self, name: str, start: int, end: int) -> None:
        if name == "title" and not self.title:
            self.title = " ".join(entities.unescape(self.html[start : min(end, start + 1000)]).split())
        elif name == "noscript":
            self.is_shell_form = self.is_shell_form or "javascript" in self.html[start : min(end, start + 5000)].lower()
        elif name == "script":
            self.has_scripts = True
