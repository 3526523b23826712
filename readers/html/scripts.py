"""Pages without text of their own: empty ones, and shells that a browser fills by
running scripts; what those carry.

`may_be_filled` says when the text in scripts is read (by `readers/html/document.py`).
Also what a page says about itself in `<title>` and `<html lang>`. One linear scan over
the tags, no tree: parsing is quadratic in depth (200,000 nested `div` take Lexbor
minutes), and most pages show enough text right after their head.

`linked_data` serves the metadata of every page; `script_texts` is for pages that show
nothing by themselves: JSON-LD and the states of frameworks (`page_data.py`). Nothing
here takes longer than the page is long. Not for: running scripts, or what is main text
(`readers/html`)."""

import html as entities
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cancellation import check_cancelled
from readers.converted import MAX_ITEMS, Converted, Unreadable, letters_in
from readers.html.page_data import Json, elements, page_values, value_of
from readers.tree import tags

MAY_NEED_BROWSER: Final = (
    "the page shows little text; a browser that runs its scripts may show more"
)
EMPTY_LETTERS: Final = 60
"""Letters below which a text says next to nothing: a name, `Loading…`, a copyright
line. Data with less than twice as many says what a page is about, not what it says."""
_FEW_LETTERS: Final = 200
"""Visible letters below which a page with scripts may be a shell."""
_FRAME_LETTERS: Final = 1500
"""Letters of header, menu and footer around an empty root; a page with more has text of
its own."""
_ROOT: Final = re.compile(
    r"""<(?:app-root|app-component)\b|\bid\s{0,3}=\s{0,3}["']?(?:root|app|__next|__nuxt|___gatsby|svelte|main-app)["'\s>]|\bng-app\b|\bdata-reactroot\b"""
    r"|<noscript[^>]*>[^<]{0,500}javascript",
    re.IGNORECASE,
)
"""An element that scripts fill, or a note that asks for them."""
_EMPTY_ROOT: Final = re.compile(
    r"""<(?:div|main|section)\b[^<>]{0,200}?\bid\s{0,3}=\s{0,3}["']?(?:root|app|__next|__nuxt|___gatsby)["'\s>](?:[^<>]*+>)?\s{0,200}</"""
    r"""|<app-root\b[^<>]*+>\s{0,200}</""",
    re.IGNORECASE,
)
_UNSHOWN: Final = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style|template|noscript|svg|object|iframe|title|textarea)\b(?![^>]*shadowrootmode)[^>]*+(?<!/)>(.*?)(?:(?=</\1\b)|\Z)"
    r"|<[^>]*+(?:>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
"""A comment, an element whose content is not shown, or the tag of another; what never
ends swallows the rest, which keeps the search linear."""
_FRAME_SOURCE: Final = re.compile(
    r"<(?:i?frame|embed)\b[^<>]*\bsrc\s*=|<object\b[^<>]*\bdata\s*=", re.IGNORECASE
)
_HTML_LANGUAGE: Final = re.compile(
    r"""<html\b[^>]{0,2000}?\blang\s{0,3}=\s{0,3}["']?\s{0,3}([A-Za-z]{2})(?![A-Za-z])""",
    re.IGNORECASE,
)


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
    notes: tuple[str, ...] = ()
    if rendered and not scan.letters:
        raise Unreadable(
            "it shows no text even after its scripts have run in a browser"
        )
    if not rendered and not scan.letters and not scan.has_scripts:
        if not _FRAME_SOURCE.search(html):
            raise Unreadable("it is a page without visible text")
        notes = (
            'the page contains only frames with other pages; part="links" names them',
        )
    elif not rendered and (scan.is_shell or has_empty_root(html)):
        is_bare = scan.is_shell and scan.letters < EMPTY_LETTERS
        if is_bare and not script_texts(html):
            shown = f"{scan.letters} letters" if scan.letters else "nothing"
            raise NeedsScripts(
                "it is an empty page that scripts fill in a browser (needs JavaScript); "
                f"it shows {shown}"
            )
        notes = (MAY_NEED_BROWSER,)
    language = _HTML_LANGUAGE.search(html)
    return Converted(
        html, scan.title, language[1].lower() if language else "", notes=notes
    )


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
    return _Scan(html).is_shell or (bool(framing) and has_empty_root(html))


def shows(html: str, letters: int) -> bool:
    """Return whether a page shows at least so many letters and digits; linear, and no
    further than needed."""
    return _Scan(html, letters).letters >= letters


def has_empty_root(html: str) -> bool:
    """Return whether a page with some text of its own (a header, a footer) has a place
    that scripts fill."""
    has_root = "<script" in html and _EMPTY_ROOT.search(html) is not None
    return has_root and not shows(html, _FRAME_LETTERS)


@dataclass(slots=True, init=False)
class _Scan:
    """What one pass over the tags of a page finds, which ends where enough letters were
    seen."""

    letters: int
    """Visible letters and digits, counted to a little over `enough`."""
    title: str
    has_scripts: bool
    is_shell: bool
    """Whether it shows little, and scripts fill it."""

    def __init__(self, html: str, enough: int = _FEW_LETTERS) -> None:
        self.letters, self.title, self.has_scripts, end = 0, "", False, 0
        for match in _UNSHOWN.finditer(html):
            check_cancelled()
            self.letters += letters_in(html[end : match.start()])
            end = match.end()
            if self.letters >= enough:
                break
            self._pass(match)
        else:
            self.letters += letters_in(html[end:])
        self.is_shell = (
            self.letters < _FEW_LETTERS
            and self.has_scripts
            and (self.letters == 0 or _ROOT.search(html) is not None)
        )

    def _pass(self, match: re.Match[str]) -> None:
        """Note what an element whose content is not shown says."""
        name = (match[1] or "").lower()
        if name == "title" and not self.title:
            self.title = " ".join(entities.unescape(match[2][:1000]).split())
        elif name == "iframe" and "srcdoc" in match[0][:2000].lower():
            self.letters += _FEW_LETTERS
        self.has_scripts |= name == "script"


# What scripts carry

_SENTENCE_WORDS: Final = 6
"""A string of a framework's state with fewer words is a label, a path or a class
name."""
_LINKED_TEXTS: Final = (
    "articleBody text description abstract reviewBody recipeIngredient recipeInstructions "
    "step mainEntity acceptedAnswer itemListElement review offers additionalProperty"
)
_ABOUT_THE_SITE: Final = tags(
    "BreadcrumbList ImageObject Organization Person SiteNavigationElement WebSite"
)
_PRICES: Final = ("price", "amount", "lowPrice", "highPrice")
_PRICE_VALUE: Final = re.compile(r"\d{1,9}(?:[.,]\d{1,3})*")
_STYLE_OR_TAG: Final = re.compile(r"<style[^<]*</style>|<[^<>]*>")
Texts = Iterator[tuple[str, str]]
"""Tag and text of what data says."""


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
    return [item for item in objects if item.get("@type") not in [*_ABOUT_THE_SITE]]


def script_texts(html: str) -> list[tuple[str, str]]:
    """Return tag and text of what a page's data says, in reading order.

    From JSON-LD, else a state (`h2` and `p`; a text may be HTML), that holds more than
    names, or from `noscript` (HTML) where that holds more, as forums write themselves
    out for crawlers; empty where none does."""
    candidates: list[tuple[str, str]] = []
    for texts in (
        _texts(linked_data(html), _LINKED_TEXTS.split()),
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


def _texts(data: Iterable[Json], keys: Sequence[str] = ()) -> Texts:
    """Yield names and what they name, without recursion.

    With `keys`, of the values below them; without, of all strings that read like
    sentences, and of the JSON that strings hold. At most `MAX_ITEMS` values are looked
    at."""
    waiting: list[Json] = [*data][::-1]
    for _ in range(MAX_ITEMS):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, str):
            if (value := value_of(item)) is not None:
                waiting.append(value)
            elif item.strip() and (keys or _reads_like_text(item)):
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
    """Return what an object itself says (its name and price), and the values in it that
    are left to be read."""
    name = " ".join(_text_of(item, ("headline", "name", "title", "label")).split())
    values = [item.get(key) for key in keys or item]
    nested_values: list[Json] = [value for value in values if value and value != name]
    price = _price(item)
    texts = [("p", price)] if price else []
    is_named = keys or price or any(map(_reads_like_text, nested_values))
    return [("h2", name), *texts] if name and is_named else texts, nested_values


def _text_of(item: dict[str, Json], keys: Sequence[str]) -> str:
    """Return the first text among some values of an object, "" for none."""
    values = map(item.get, keys)
    return next((value for value in values if isinstance(value, str)), "")


def _price(item: dict[str, Json]) -> str:
    """Return the price that an object states with its currency, in it or one below;
    empty for none; so is a price without a currency."""
    nested = item.get("price")
    prices = nested if isinstance(nested, dict) else item
    currency = _text_of(prices, ("priceCurrency", "currencyCode", "currency"))
    values = dict.fromkeys(str(prices[key]) for key in _PRICES if key in prices)
    amounts = " to ".join(filter(_PRICE_VALUE.fullmatch, values))
    return f"price: {amounts} {currency}" if amounts and currency else ""


def _reads_like_text(value: Json) -> bool:
    """Whether a value is a string that begins with words; letters are counted where a
    script does not divide words.

    False for addresses, and where fewer than half of the characters are letters."""
    if not isinstance(value, str):
        return False
    start = value[:400].strip()
    letters = sum(map(str.isalpha, start))
    if 2 * letters < len(start) or "://" in start[:12]:
        return False
    if len(value.split(maxsplit=_SENTENCE_WORDS)) >= _SENTENCE_WORDS:
        return True
    is_undivided = not start.isascii() and start.count(" ") * 20 < len(start)
    return letters >= 2 * _SENTENCE_WORDS and is_undivided
