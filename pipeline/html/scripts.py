"""Pages without text of their own: empty ones, and shells that a browser fills by
running scripts; what those carry.

`may_be_filled` says when the text in scripts is read (by `pipeline/html/document.py`).
Also what a page says about itself in `<title>` and `<html lang>`. One linear scan over
the tags, no tree: parsing is quadratic in depth (200,000 nested `div` take Lexbor
minutes), and most pages show enough text right after their head.

One reader for all data beside the markup: JSON-LD, React's flight in `self.__next_f`,
and what frameworks leave in scripts and attributes (`page_data.py`). `linked_data`
serves the metadata of every page; `script_texts` is for pages that show nothing by
themselves. Nothing here takes longer than the page is long. Not for: running scripts,
or what is main text (`pipeline/html`)."""

import html as entities
import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from pipeline.document.converted import MAX_ITEMS, Converted, Unreadable
from pipeline.html.literals import Json
from pipeline.html.page_data import elements, page_values, value_of
from pipeline.text.frame import TITLE_CHARACTERS
from pipeline.work import check_cancelled

ONLY_FRAMES: Final = (
    'the page contains only frames with other pages; part="links" names them'
)
MAY_NEED_BROWSER: Final = (
    "the page shows little text; a browser that runs its scripts may show more"
)
_FEW_LETTERS: Final = 200
"""Visible letters below which a page with scripts may be a shell."""
_ROOT: Final = re.compile(
    r"""\bid\s{0,3}=\s{0,3}["']?(?:root|app|__next|__nuxt|___gatsby|svelte|main-app)["'\s>]|\bng-app\b|\bdata-reactroot\b"""
)
_EMPTY_ROOT: Final = re.compile(
    r"""<(?:div|main|section)\b[^<>]{0,200}?\bid\s{0,3}=\s{0,3}["']?(?:root|app|__next|__nuxt|___gatsby)["'\s>](?:[^<>]*+>)?\s{0,200}</"""
    r"""|<(?:app-root|astro-island)\b[^<>]*+>\s{0,200}</""",
    re.IGNORECASE,
)
_FRAME_LETTERS: Final = 1500
"""Letters of header, menu and footer around an empty root; a page with more has text of
its own."""
_ROOT_NAMES: Final = {"app-root", "app-component"}
_SILENT: Final = {
    "script",
    "style",
    "template",
    "noscript",
    "svg",
    "iframe",
    "object",
    "title",
    "textarea",
}
"""Elements whose content is not shown; skipped to their first closing tag."""
_CLOSING: Final = {name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in _SILENT}
_HELD: Final = re.compile(
    r"""<iframe\b[^<>"']*(?:"[^"]*"[^<>"']*|'[^']*'[^<>"']*){0,20}?\bsrcdoc\s*=\s*(?:"([^"]*)"|'([^']*)')""",
    re.IGNORECASE,
)
"""A frame with what it holds."""
_FRAME_SOURCE: Final = re.compile(
    r"<(?:i?frame|embed)\b[^<>]*\bsrc\s*=|<object\b[^<>]*\bdata\s*=", re.IGNORECASE
)
_LANG_ATTRIBUTE: Final = re.compile(
    r"""\b(?:xml:)?lang\s{0,3}=\s{0,3}["']?\s{0,3}([A-Za-z]{2})(?![A-Za-z])""",
    re.IGNORECASE,
)
_ATTRIBUTE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9:-]{0,40}")


class NeedsScripts(Unreadable):
    """There is no text to read before scripts have run."""


def look_at(html: str, *, rendered: bool = False) -> Converted:
    """Return an HTML page with its title and language, and a note where it may be a
    shell.

    A page that a browser `rendered` is never called a shell. Raises `NeedsScripts` for
    one that is empty until its scripts run and carries no data in their place. Raises
    `Unreadable` where there is no visible text; a page of frames alone is returned with
    a note."""
    scan = _Scan(html)
    scan.run()
    if rendered:
        if scan.letters == 0:
            raise Unreadable(
                "it shows no text even after its scripts have run in a browser"
            )
        return Converted(html, scan.title, scan.language)
    if scan.letters == 0 and not scan.has_scripts:
        if _FRAME_SOURCE.search(html) is None:
            raise Unreadable("it is a page without visible text")
        return Converted(html, scan.title, scan.language, notes=(ONLY_FRAMES,))
    is_shell = scan.is_shell()
    if is_shell and scan.says_nothing():
        shows = f"{scan.letters} letters" if scan.letters else "nothing"
        raise NeedsScripts(
            f"it is an empty page that scripts fill in a browser (needs JavaScript); it shows "
            f"{shows}"
        )
    notes = (MAY_NEED_BROWSER,) if is_shell or scan.has_empty_root() else ()
    return Converted(html, scan.title, scan.language, notes=notes)


def may_be_filled(
    html: str, visible_texts: Sequence[str], framing: Collection[str] = ()
) -> bool:
    """Return whether text in a page's scripts may be read as the page's: it shows none,
    or is a shell that loads.

    Such text may be invisible, so it is never mixed with or preferred to visible text
    (`visible_texts`, without navigation); text around all pages of a site (`framing`: its
    footer) does not count."""
    letters = 0
    for text in visible_texts:
        letters += letters_in(text)
        if letters >= EMPTY_LETTERS:
            return False
    if not (letters or any(framing)):
        return True
    scan = _Scan(html)
    scan.run()
    return scan.is_shell() or (bool(framing) and scan.has_empty_root())


def shows(html: str, letters: int) -> bool:
    """Return whether a page shows at least so many letters and digits; linear, and no
    further than needed."""
    scan = _Scan(html, enough=letters)
    scan.run()
    return scan.letters >= letters


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
        html, offset = self.html, 0
        while self.letters < self.enough:
            check_cancelled()
            start = html.find("<", offset)
            self._count(offset, start if start >= 0 else len(html))
            if start < 0:
                return
            is_comment = html.startswith("<!--", start)
            end = html.find("-->" if is_comment else ">", start)
            if end < 0:
                return
            offset = end + 3 if is_comment else self._enter(start, end)

    def is_shell(self) -> bool:
        return (
            self.letters < _FEW_LETTERS
            and self.has_scripts
            and (self.is_shell_form or self.letters == 0)
        )

    def says_nothing(self) -> bool:
        """Return whether next to no text is seen, and none is in the scripts."""
        return self.letters < EMPTY_LETTERS and not script_texts(self.html)

    def has_empty_root(self) -> bool:
        """Return whether a page with some text of its own (a header, a footer) has a
        place that scripts fill."""
        if _EMPTY_ROOT.search(self.html) is None or "<script" not in self.html:
            return False
        scan = _Scan(self.html, enough=_FRAME_LETTERS)
        scan.run()
        return scan.letters < _FRAME_LETTERS

    def _count(self, start: int, end: int) -> None:
        for position in range(start, end, 500):
            self.letters += letters_in(self.html[position : min(end, position + 500)])
            if self.letters >= self.enough:
                return

    def _enter(self, start: int, end: int) -> int:
        """Note what the tag at `start` says; return where to go on.

        A script or style without an end tag ends the page; text in other silent
        elements without one is read."""
        name_match = _ATTRIBUTE_NAME.match(self.html, start + 1)
        if name_match is None:
            return end + 1
        name = name_match.group().lower()
        if name == "iframe":
            end = self._enter_frame(start, end)
        tag = self.html[start : min(end + 1, start + 2000)]
        if name == "html" and not self.language:
            lang = _LANG_ATTRIBUTE.search(tag)
            self.language = lang.group(1).lower() if lang else ""
        if name in _ROOT_NAMES or (
            name in {"div", "main", "body", "html"} and _ROOT.search(tag)
        ):
            self.is_shell_form = True
        return self._pass_over(name, tag, end) if name in _SILENT else end + 1

    def _enter_frame(self, start: int, end: int) -> int:
        """Count the letters in the frame whose tag is at `start`; return the tag's end,
        which `end` may be too early for."""
        held = _HELD.match(self.html, start)
        if held is None:
            return end
        frame_scan = _Scan(entities.unescape(held[1] or held[2] or ""), self.enough)
        frame_scan.run()
        self.letters += frame_scan.letters
        return max(end, self.html.find(">", held.end()))

    def _pass_over(self, name: str, tag: str, end: int) -> int:
        """Note what a silent element says whose tag ends at `end`; return where to go
        on."""
        if tag.endswith("/>") or name in self._unclosed or "shadowrootmode" in tag:
            return end + 1
        closing = _CLOSING[name].search(self.html, end + 1)
        if closing is None:
            self._unclosed.add(
                name
            )  # so that a page of unclosed tags is still read once only
            return len(self.html) if name in {"script", "style"} else end + 1
        self._silent(name, end + 1, closing.start())
        return closing.start()

    def _silent(self, name: str, start: int, end: int) -> None:
        if name == "title" and not self.title:
            self.title = " ".join(
                entities.unescape(self.html[start : min(end, start + 1000)]).split()
            )
        elif name == "noscript":
            self.is_shell_form = (
                self.is_shell_form
                or "javascript" in self.html[start : min(end, start + 5000)].lower()
            )
        elif name == "script":
            self.has_scripts = True


# What scripts carry

SENTENCE_WORDS: Final = 6
"""A string of a framework's state with fewer words is a label, a path or a class
name."""
EMPTY_LETTERS: Final = 60
"""Letters below which a text says next to nothing: a name, `Loading…`, a copyright
line. Data with less than twice as many says what a page is about, not what it says."""

_LINKED_TEXTS: Final = (
    "articleBody text description abstract reviewBody recipeIngredient recipeInstructions step "
    "mainEntity "
    "acceptedAnswer itemListElement review offers additionalProperty"
)
_TITLE_FIELDS: Final = ("headline", "name", "title")
_LABELS: Final = ("name", "label", "title")
_FIELD_LABEL: Final = re.compile(r"(?=[^a-z]|[^ ]* )[^\W\d_][^_{}<>:/$=]{1,60}")
"""A label for people, in front of a value: begins with a capital or has several
words."""
_PRICES: Final = ("price", "amount", "lowPrice", "highPrice")
_CURRENCY_FIELDS: Final = ("priceCurrency", "currencyCode", "currency")
_PRICE_VALUE: Final = re.compile(r"\d{1,9}(?:[.,]\d{1,3})*")
_FLIGHT: Final = re.compile(r"self\.__next_f\.push\(\s{0,5}(?=\[1,)")
_FLIGHT_ROW: Final = re.compile(r"([0-9a-f]+):(?:T([0-9a-f]+),)?")
_RENDERED_AS: Final = {
    "h1": "h2", "h2": "h2", "h3": "h3", "h4": "h4", "li": "li", "p": "p", "td": "p", "dd": "p", "pre": "pre"
}  # fmt: skip
"""Elements of a flight that hold a text of their own, as what they are read."""
_ABOUT_THE_SITE: Final = frozenset(
    [
        "BreadcrumbList",
        "ImageObject",
        "Organization",
        "Person",
        "SiteNavigationElement",
        "WebSite",
    ]
)
_STYLE_OR_TAG: Final = re.compile(r"<style[^<]*</style>|<[^<>]*>")


def linked_data(html: str) -> list[dict[str, Json]]:
    """Return the JSON-LD objects of a page, graphs opened, in order; without broken
    ones and those about its site.

    After `MAX_ITEMS` objects no more are read."""
    objects: list[dict[str, Json]] = []
    for tag, script in elements(html, "script"):
        waiting = deque([value_of(script)] if "application/ld+json" in tag else [])
        while waiting and len(objects) < MAX_ITEMS:
            item = waiting.popleft()
            if isinstance(item, list):
                waiting.extend(item)
            elif isinstance(item, dict):
                objects.append(item)
                waiting.append(item.get("@graph"))
    return [item for item in objects if not _is_about_the_site(item)]


def script_texts(html: str) -> list[tuple[str, str]]:
    """Return tag and text of what a page's data says, in reading order.

    From the first of JSON-LD, flight and state (`h2` and `p`, `dd` for a name with its
    value; a text may be HTML) that holds more than names, or from `noscript` (HTML)
    where that holds more, as forums write themselves out for crawlers; empty where none
    does."""
    candidates: list[tuple[str, str]] = []
    for texts in (
        _texts([*linked_data(html)], _LINKED_TEXTS.split()),
        _flight_texts(html),
        _texts(page_values(html)),
    ):
        check_cancelled()
        candidates = list(dict.fromkeys(texts))
        if _letters(candidates) >= 2 * EMPTY_LETTERS:
            break
    unscripted = [("noscript", content) for _, content in elements(html, "noscript")]
    longest = max(candidates, unscripted, key=_letters)
    return longest if _letters(longest) >= 2 * EMPTY_LETTERS else []


def _letters(texts: list[tuple[str, str]]) -> int:
    return sum(letters_in(_STYLE_OR_TAG.sub(" ", text)) for _, text in texts)


def letters_in(text: str) -> int:
    """Return how many letters and digits a text holds."""
    return sum(map(str.isalnum, text))


def _is_about_the_site(item: dict[str, Json]) -> bool:
    kinds = item.get("@type")
    names = (
        {kinds}
        if isinstance(kinds, str)
        else set(map(str, kinds))
        if isinstance(kinds, list)
        else set()
    )
    return bool(names) and names <= _ABOUT_THE_SITE


def _texts(data: Iterable[Json], keys: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield tag and text of names and of what they name, without recursion.

    With `keys`, of the values below them; without, of all strings that read like
    sentences. At most `MAX_ITEMS` values are looked at."""
    waiting: list[Json] = [*data][::-1]
    for _ in range(MAX_ITEMS):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, str):
            if item.strip() and (keys or _reads_like_text(item)):
                yield "p", item.strip()
        elif isinstance(item, list):
            waiting.extend(reversed(item))
        elif isinstance(item, dict):
            texts, values = _record(item, keys)
            yield from texts
            waiting.extend(reversed(values))


def _record(
    item: dict[str, Json], keys: Sequence[str]
) -> tuple[list[tuple[str, str]], list[Json]]:
    """Return tag and text of what an object itself says (a pair, or name and price),
    and the values in it that are left to be read."""
    if pair := _pair(item):
        return [("dd", pair)], []
    name = _first_text(item, _TITLE_FIELDS)
    values = [item.get(key) for key in keys or item]
    nested_values: list[Json] = [value for value in values if value and value != name]
    texts = list[tuple[str, str]]()
    price = _price(item)
    if name.strip() and (keys or price or any(map(_is_prose, nested_values))):
        texts.append(("h2", " ".join(name.split())))
    if price:
        texts.append(("dd", price))
    return texts, nested_values


def _first_text(item: dict[str, Json], keys: Sequence[str]) -> str:
    """Return the first text among some values of an object, "" for none."""
    values = map(item.get, keys)
    return next((value for value in values if isinstance(value, str)), "")


def _is_prose(value: Json) -> TypeGuard[str]:
    return isinstance(value, str) and _reads_like_text(value)


def _pair(item: dict[str, Json]) -> str:
    """Return `name: value` of an object that is a label with its value, as of a
    specification; empty for any other.

    So is a label whose value is longer than `TITLE_CHARACTERS` or empty."""
    label = _first_text(item, _LABELS).strip()
    value = item.get("value")
    if (
        isinstance(value, bool)
        or not isinstance(value, str | int | float)
        or not _FIELD_LABEL.fullmatch(label)
    ):
        return ""
    text = " ".join(str(value).split())
    unit = item.get("unitText") or item.get("unit")
    return (
        f"{label}: {text} {unit if isinstance(unit, str) else ''}".strip()
        if 0 < len(text) <= TITLE_CHARACTERS
        else ""
    )


def _price(item: dict[str, Json]) -> str:
    """Return the price that an object states with its currency, in it or one below;
    empty for none; so is a price without a currency."""
    nested = item.get("price")
    if isinstance(nested, dict):
        item = nested
    currency = _first_text(item, _CURRENCY_FIELDS)
    values = [
        str(value)
        for key in _PRICES
        if isinstance(value := item.get(key), str | int | float)
    ]
    prices = dict.fromkeys(value for value in values if _PRICE_VALUE.fullmatch(value))
    return f"price: {' to '.join(prices)} {currency}" if prices and currency else ""


def _flight_texts(html: str) -> Iterator[tuple[str, str]]:
    """Yield tag and text of the elements in React's flight, in the order in which they
    came.

    Malformed chunks and rows are passed over; what begins like no row ends it."""
    scripts = (script for _, script in elements(html, "script"))
    source = "".join(map(_flight_chunk, scripts)).encode("utf-8", "replace")
    offset = 0
    for _ in range(MAX_ITEMS):
        line_end = source.find(b"\n", offset)
        row = _FLIGHT_ROW.match(source[offset : offset + 40].decode("ascii", "replace"))
        if row is None:
            return
        start = offset + row.end()
        if row[2]:
            # A long text, by its length in bytes; another row names it.
            offset = start + int(row[2], 16)
            yield "p", source[start:offset].decode("utf-8", "replace").strip()
            continue
        with suppress(ValueError, RecursionError):  # a module's name, a hint
            yield from _drawn(
                json.loads(
                    source[start : line_end if line_end >= 0 else len(source)],
                    strict=False,
                )
            )
        if line_end < 0:
            return
        offset = line_end + 1


def _flight_chunk(script: str) -> str:
    """Return the part of React's flight that a script brings, "" for none."""
    if (call := _FLIGHT.search(script)) is None:
        return ""
    try:
        chunk = json.JSONDecoder(strict=False).raw_decode(script, call.end())[0]
    except (ValueError, RecursionError):
        return ""
    match chunk:
        case [_, str(text), *_]:
            return text
    return ""


def _drawn(value: Json) -> Iterator[tuple[str, str]]:
    """Yield tag and text of each element of a flight that holds text, inline elements
    within joined to it."""
    waiting: list[Json] = [value]
    for _ in range(MAX_ITEMS):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(
                reversed(
                    [child for child in item.values() if isinstance(child, list | dict)]
                )
            )
        elif isinstance(item, list):
            name, properties = _element(item)
            if isinstance(properties, dict) and name in _RENDERED_AS:
                if text := " ".join(
                    "".join(_strings(properties.get("children"))).split()
                ):
                    yield _RENDERED_AS[name], text
            elif isinstance(properties, dict):
                # Text in it without an element around
                children = properties.get("children")
                if _is_prose(children):
                    yield "p", children.strip()
                waiting.append(properties)
            else:
                waiting.extend(reversed(item))


def _element(item: list[Json]) -> tuple[str, Json]:
    """Return name and properties of an element of a flight, "" for a name that is no
    text, nothing of any other list."""
    match item:
        case ["$", str(name), _, properties]:
            return name, properties
        case ["$", _, _, properties]:
            return "", properties
    return "", None


def _strings(value: Json) -> list[str]:
    """Return the strings that an element's children are and hold; references to other
    rows are empty."""
    strings: list[str] = []
    waiting: list[Json] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str | int | float) and not isinstance(item, bool):
            text = str(item)
            # A dollar leads in a reference, two a text that begins with one.
            strings.append(
                text[1:]
                if text.startswith("$$")
                else ""
                if text.startswith("$")
                else text
            )
        elif isinstance(item, list):
            name, properties = _element(item)
            waiting.extend(
                [properties.get("children")]
                if isinstance(properties, dict)
                else []
                if name
                else reversed(item)
            )
    return strings


def _reads_like_text(text: str) -> bool:
    """Whether the beginning of a string is words; letters are counted where a script
    does not divide words.

    False for addresses, and where fewer than half of the characters are letters."""
    start = text[:400].strip()
    letters = sum(map(str.isalpha, start))
    if 2 * letters < len(start) or "://" in start[:12]:
        return False
    if len(text.split(maxsplit=SENTENCE_WORDS)) >= SENTENCE_WORDS:
        return True
    return (
        letters >= 2 * SENTENCE_WORDS
        and not start.isascii()
        and start.count(" ") * 20 < len(start)
    )
