"""Interstitial and error pages with status 200: bot checks, logins, consent, "not
found".

Recognized by their shape: few words and no main text, with a form, a script of a
service that checks for robots, or a title that says so (`[served.*]` of
`pipeline/text/words`). A title alone never decides: articles are about logging in, too.
One linear scan, and only of pages that show a sign. Not for: statuses and headers
(`pipeline/fetch/exchange.py`)."""

import html as entities
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal, get_args

from pipeline.html.scripts import letters_in
from pipeline.text.words import any_of, is_cjk, words

Front = Literal["check", "login", "consent", "missing"]
"""A bot check, a login, a consent page, or a page that says that
there is none."""
_FRONT_KINDS: Final[tuple[Front, ...]] = get_args(Front)
FRONTS: Final[Mapping[Front, str]] = {
    "check": "is behind a bot check",
    "login": "is behind a login",
    "consent": "is behind a cookie consent page",
    "missing": "is not there",
}
"""How messages say it of an address."""
_OWN_TEXT_LETTERS: Final = 600
"""Letters, outside of links, menus and buttons, above which a page has text of its
own."""
_PARAGRAPH_LETTERS: Final = 250
"""Letters of a paragraph above which it is text of its own."""
_FORM_ALONE: Final = 250
"""Letters up to which a page with a field for a password is a log-in, whatever its
title."""
_MOST_CONSENT: Final = 4_000
"""Letters of a whole page that asks for consent: such texts are longer, and have no
other subject."""
_OTHER_LETTERS: Final = 250
"""Maximum letters of such a page on other subjects."""
_SENTENCE_LETTERS: Final = 60
"""Letters from which a line is a sentence and no label."""
_CJK_LETTERS: Final = 3
"""Latin letters per character of Chinese, Japanese or Korean."""
_CHECKED_CHARACTERS: Final = 1_500_000
"""Maximum characters of a page that is checked; longer ones are not interstitials."""
_HEADING_RANGE: Final = 400_000
"""Characters in which its headings are looked for."""
_MENU_LETTERS: Final = 10_000
"""Letters of all menus, links and buttons: more is a page that lists something."""
_EXTRA_WORDS: Final = 4
"""Words that a title has besides those that say it: a site's name, `to continue`."""
_EXTRA_LETTERS: Final = 12
_CHECKS: Final = re.compile(
    r"_cf_chl_opt|cf-challenge|challenge-form|challenge-error-text|captcha-delivery\.com|px-captcha|gokuProps"
    r"|sec-if-cpt-container|cp_challenge|sucuri_cloudproxy|anubis_challenge|KPSDK|_Incapsula_Resource\?[^\"'>]{0,200}edet"
    r"|ddos-guard/js-challenge|/\.well-known/vercel/security|bm-verify|geo\.captcha|arkose-enforcement|aws-waf-token"
)
"""What only the checks themselves have; the scripts that watch over every page of a
site are not among it."""
_INCIDENT: Final = re.compile(
    r"\b(?:ray|incident|reference|request|event)\s{0,3}(?:&#\d{2};|id|number|no\b|#|:|\s){1,6}[\w.-]{6,}",
    re.IGNORECASE,
)
"""The number under which a service keeps what it has refused."""
_WIDGETS: Final = re.compile(
    r"g-recaptcha|h-captcha|hcaptcha\.com|cf-turnstile|turnstile/v0|geetest|smartcaptcha"
)
_PROSE_TAG: Final = re.compile(
    r"<(?:(script|style|nav|footer|aside)\b|(?:p|li|td|dd|div|section|article|blockquote|br"
    r"|/a|/b|/strong|/em|/i)\b[^<>]*+>([^<>]{30,}))",
    re.IGNORECASE,
)
"""An element whose text is not the page's own, or a sentence outside of links and
buttons."""
_PASSWORD: Final = re.compile(
    r"<input\b[^<>]{0,500}?\btype\s{0,3}=\s{0,3}[\"']?password\b", re.IGNORECASE
)
_HEADING: Final = re.compile(
    r"<h[12]\b[^<>]{0,500}>(.{0,400}?)</h[12]", re.IGNORECASE | re.DOTALL
)
_MARKUP: Final = re.compile(r"<[^<>]{0,500}>")
_TITLE_SEPARATOR: Final = re.compile(r"\s[-–—:/]\s|\s*[|»•·]\s*|:\s")
_NO_WORDS: Final = re.compile(r"[^\w\s'-]+")
_STATUS_TITLE: Final = re.compile(r"(?:(?:error|http|code|status)\s)*[45]\d\d\b[\s-]*")
_OPEN_OR_END_TAG: Final = re.compile(
    r"<(/?)([a-z][a-z0-9]*)\b([^<>]{0,2000})>?", re.IGNORECASE
)
_SILENT_TAGS: Final = frozenset(
    {
        "script",
        "style",
        "template",
        "noscript",
        "svg",
        "textarea",
        "title",
        "iframe",
        "head",
    }
)
_ASIDE: Final = frozenset({"nav", "footer", "aside", "button", "select"})
"""Elements whose text, like that of links, is not the page's own."""
_INLINE_ELEMENTS: Final = frozenset(
    {
        "b",
        "i",
        "em",
        "strong",
        "span",
        "code",
        "small",
        "font",
        "u",
        "sub",
        "sup",
        "abbr",
        "wbr",
    }
)
_NO_FIELDS: Final = re.compile(
    r"type\s{0,3}=\s{0,3}[\"']?(?:hidden|search|submit|button|checkbox|radio|image|reset)\b",
    re.I,
)
_ACTS: Final = re.compile(
    r"type\s{0,3}=\s{0,3}[\"']?(?:submit|button)\b[^<>]{0,400}?value\s{0,3}=\s{0,3}[\"']([^\"'<>]{1,60})",
    re.I,
)


def _after_sign(html: str, start: int) -> int:
    """Return where a comment, a declaration, or a sign that opens no tag ends."""
    if html.startswith("<!--", start):
        ends = "-->"
    elif html[start + 1 : start + 2] in {"!", "?"}:
        ends = ">"
    else:
        following = html.find("<", start + 1)
        return following if following >= 0 else len(html)
    end = html.find(ends, start + 1)
    return end + len(ends) if end >= 0 else len(html)


@dataclass(slots=True)
class _Shape:
    """What a page shows, gathered by one scan that is linear in its length."""

    lines: list[str] = field(default_factory=list)
    """Texts between the ends of blocks, outside of links, menus and buttons."""
    buttons: list[str] = field(default_factory=list)
    """Words of these; many links are drawn as buttons."""
    letters: int = 0
    """Of all lines."""
    fields: int = 0
    """Places to write in, but those to search."""
    forms: int = 0
    scripts: int = 0
    _line: list[str] = field(default_factory=list)
    _button: list[str] = field(default_factory=list)
    _within: int = 0
    """Menus and buttons that are open."""
    _in_link: bool = False

    @property
    def others(self) -> int:
        """Letters of links, menus and buttons."""
        return sum(map(_size, self.buttons))

    @property
    def few(self) -> bool:
        """Whether it has almost no text of its own."""
        return (
            self.letters <= _OWN_TEXT_LETTERS
            and max(map(_size, self.lines), default=0) <= _PARAGRAPH_LETTERS
            and self.others <= _MENU_LETTERS
        )

    def scan(self, html: str) -> None:
        """Gather what `html` shows, up to more than any page in front of another
        has."""
        lowered, at = html.lower(), 0
        while self.letters <= _MOST_CONSENT and (start := html.find("<", at)) >= 0:
            if text := html[at:start].strip():
                (self._button if self._within or self._in_link else self._line).append(
                    entities.unescape(text)
                )
            tag = _OPEN_OR_END_TAG.match(html, start)
            if tag is None:
                at = _after_sign(html, start)
                continue
            at, name, closes = tag.end(), tag[2].lower(), bool(tag[1])
            if name in _SILENT_TAGS and not closes and not tag[3].endswith("/"):
                self.scripts += name == "script"
                end = lowered.find(f"</{name}", at)
                at = end if end >= 0 else len(html)
            else:
                self._enter(name, tag[3], closes=closes)
        self._end()

    def _enter(self, name: str, attributes: str, *, closes: bool) -> None:
        if name in _INLINE_ELEMENTS:
            return
        self._end()
        if name == "a":
            # A link that was never closed ends where another begins.
            self._in_link = not closes
        elif name in _ASIDE:
            self._within = max(0, self._within + (-1 if closes else 1))
        elif name == "form":
            self.forms += not closes
        elif name == "input" and (act := _ACTS.search(attributes)):
            self.buttons.append(act[1])
        elif name == "input" and not _NO_FIELDS.search(attributes):
            self.fields += 1

    def _end(self) -> None:
        """Take what was gathered since the last block ended."""
        for pieces, texts in ((self._line, self.lines), (self._button, self.buttons)):
            if pieces:
                texts.append(" ".join(" ".join(pieces).split()))
                pieces.clear()
                if texts is self.lines:
                    self.letters += _size(texts[-1])


def front_of(html: str, title: str) -> Front | None:
    """Return what a page that came with status 200 is in place of the one asked for;
    None for a page.

    A page of more than `_CHECKED_CHARACTERS` characters is always taken for a page."""
    if len(html) > _CHECKED_CHARACTERS or _mentions_check(html):
        return None
    shape = _Shape()
    shape.scan(html)
    said = _said(html, title)
    if shape.few and (found := _instead(html, said, shape)):
        return found
    is_short = shape.letters + shape.others <= _MOST_CONSENT
    named = said == "consent"
    return (
        "consent"
        if (named or is_short) and _asks_for_consent(shape, named=named)
        else None
    )


def _mentions_check(html: str) -> bool:
    """Return True where a page has more text beside sentences about cookies than a
    check or log-in in front of another has.

    False means only that it must be looked at further. Nearly all pages end here, after
    their first paragraphs.
    """
    at, left = 0, _OWN_TEXT_LETTERS
    while left >= 0 and (found := _PROSE_TAG.search(html, at)):
        at = found.end()
        if not found[1]:
            left -= 0 if _about_cookies().search(found[2]) else letters_in(found[2])
        elif (at := html.find(f"</{found[1]}", at)) < 0:
            return False
    return left < 0


def _may_check(html: str, shape: _Shape) -> bool:
    """Whether a page has what checks its reader, or the number of a refusal."""
    return bool(
        shape.scripts or shape.forms or _WIDGETS.search(html) or _INCIDENT.search(html)
    )


def _instead(html: str, said: Front | None, shape: _Shape) -> Front | None:
    """Return what a page of few words is by its scripts, fields and title; None where
    it is a page of its own."""
    password = bool(_PASSWORD.search(html))
    if _CHECKS.search(html) or (said == "check" and _may_check(html, shape)):
        return "check"
    if said == "login" and (password or shape.fields):
        return "login"
    if said == "missing":
        return "missing"
    is_form = password and said is None and shape.letters + shape.others <= _FORM_ALONE
    return "login" if is_form else None


def _said(html: str, title: str) -> Front | None:
    """Return what title or headings say that the page is, "missing" for one that is
    only a status; None for any other."""
    headings = (
        entities.unescape(_MARKUP.sub(" ", found[1]))
        for found in _first(_HEADING.finditer(html[:_HEADING_RANGE]))
    )
    for text in (*_TITLE_SEPARATOR.split(f" {title} "), *headings):
        folded = " ".join(
            _NO_WORDS.sub(" ", text.replace("’", "'").casefold()).split()
        ).strip("-' ")
        for said in dict.fromkeys(
            (folded, _STATUS_TITLE.sub("", folded, count=1).strip())
        ):
            if found := next(
                (front for front in _FRONT_KINDS if _is_said(front, said)), None
            ):
                return found
        if folded and _STATUS_TITLE.fullmatch(folded + " "):
            return "missing"
    return None


def _first(found: Iterator[re.Match[str]]) -> Iterator[re.Match[str]]:
    for _, one in zip(range(2), found, strict=False):
        yield one


def _is_said(front: Front, text: str) -> bool:
    """Whether a text is one of the phrases of a kind, with a few words more."""
    starts = front in {"login", "consent"}
    found = (_phrases(front).match if starts else _phrases(front).search)(text[:200])
    if found is None:
        return False
    more = text[: found.start()] + text[found.end() :]
    return (
        len(more) <= _EXTRA_LETTERS
        if is_cjk(found[0])
        else len(more.split()) <= _EXTRA_WORDS
    )


@cache
def _phrases(front: Front) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w'])(?:{any_of(words(f'served.{front}'))})(?!\w)|{_unparted(f'served.{front}')}"
    )


def _unparted(section: str) -> str:
    return any_of(entry for entry in words(section) if is_cjk(entry))


@cache
def _about_cookies() -> re.Pattern[str]:
    known = words("served.cookies")
    return re.compile(
        rf"(?<!\w)(?:{any_of(known)})|{_unparted('served.cookies')}", re.IGNORECASE
    )


@cache
def _accepts() -> frozenset[str]:
    return words("served.accept")


def _asks_for_consent(shape: _Shape, *, named: bool) -> bool:
    """Whether a page has a button to accept, and every sentence mentions cookies; a
    label is enough where its title asks for consent."""
    folded = (
        " ".join(_NO_WORDS.sub(" ", one.casefold()).split()) for one in shape.buttons
    )
    if shape.letters > _MOST_CONSENT or not any(one in _accepts() for one in folded):
        return False
    about = [line for line in shape.lines if _about_cookies().search(line)]
    beside = sum(_size(line) for line in shape.lines) - sum(map(_size, about))
    longest = max(map(_size, about), default=0)
    return longest >= (1 if named else _SENTENCE_LETTERS) and beside <= _OTHER_LETTERS


def _size(text: str) -> int:
    letters = letters_in(text)
    return letters * _CJK_LETTERS if is_cjk(text) else letters
