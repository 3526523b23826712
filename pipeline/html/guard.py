"""Parsing HTML that may be hostile: shapes that make the parser slow are rewritten before it sees them.

Lexbor takes time quadratic in nesting depth and in the attributes of one element, and builds as many nodes as
formatting elements times paragraphs where they are left open (measured: 20,000 nested `dd` 1.9 s, 20,000 attributes
0.7 s, 2,400 open `b` 735 MB). `parse` bounds all three by cheap counts that a page cannot talk down; a page over them
goes through `rebuild`, our own linear tokenizer, and comes out with limited depth, few attributes and no formatting
elements. Not for: what is visible (`clean.py`).
"""

import html as entities
import re
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from pipeline.html.tree import MAX_DEPTH, tags
from pipeline.work import check_cancelled

SMALL: Final = 20_000
"""Bytes below which no shape takes longer than 0.2 s."""
MAX_OPEN: Final = 10_000
"""Start tags that are not closed at once; nesting them all takes Lexbor 0.5 s. Real pages: at most 8,700."""
MAX_ATTRIBUTES: Final = 20_000
"""Attributes of one tag, or as much work in several (it grows with their squares); they take 0.7 s."""
_ROOM: Final = 65_000
"""Bytes below which no page has room for that many: there are not enough short names."""
MAX_FORMATTING: Final = 64
"""Different formatting tags (same name and attributes count once); the most on 495 real pages is 63."""
MANY: Final = 300_000
"""Tags behind which neighbouring leaves without attributes become one, on a page of more than `MOST`: cleaning keeps no
structure there either (`clean.MAX_NODES`), and a million leaves take Lexbor up to 1 s and 400 MB. Real pages have some
15,000 in a MB, and the one with the most 19,000."""
MOST: Final = 450_000
"""Tags behind which a page is not read, its joined leaves counting once; so many take 1.9 s and 250 MB."""
_NEED_NO_END: Final = (b"d[dt]", b"li", b"option", b"p", b"t[dh]")
_NEED_AN_END: Final = b"|".join(
    b"abbr a bdi b cite code del dfn div em i ins kbd mark q samp small span strong sub sup s tt u var".split()
)
_PLAIN_LEAVES: Final = re.compile(
    b"<(?:"
    + b"|".join(rb"%b>[^<]*(?:</%b>\s*)?(?:<%b>[^<]*(?:</%b>\s*)?){1,63}" % ((name,) * 4) for name in _NEED_NO_END)
    + rb"|(%b)>[^<]*</\1>\s*(?:<\1>[^<]*</\1>\s*){1,63})" % _NEED_AN_END
)
"""Whole elements of one kind: a start tag of those that need an end has its own, and the first of them closes what it
would have closed, so what stands around stays as it was."""
_TAG: Final = re.compile(rb"<[^>]*>")
_LINE_BREAKS: Final = re.compile(rb"(?:<(?:br|hr)\s*/?>\s*){3,64}")
MAX_ROOTS: Final = 32
"""Different `html` and `body` tags; their attributes gather on one element. The most on 495 real pages is 4."""

_SET: Final = rb"""(?:\s++[\w:.-]++(?:=(?:"[^"<>\0]*+"|'[^'<>\0]*+'|[^\s"'<>=`\0]++))?+)*+\s*+"""
"""Attributes in the strictest syntax, where no other reading of quotes is possible."""
_FLAT: Final = rb"<(?:br|hr|img|meta)\b" + _SET + rb"/?>|<(?:input|link|source|wbr)\b" + _SET + rb"/>|<!--[^<>\0]*+-->"
"""What never holds anything: inside of `svg` and `math` an `input` does, unless it ends itself."""
_NESTED_IN_ONE: Final = 3


def _whole_elements() -> re.Pattern[bytes]:
    """Return the pattern of elements that hold, up to `_NESTED_IN_ONE` levels deep, text and few such elements alone.

    Not of forms: inside of a form the end tag of another closes the outer one, and what lies between stays open. Few,
    since the matcher keeps a place to go back to for each, and a possessive repeat of groups crashes Python 3.11; in
    the next round many are none.
    """
    whole = b""
    for group in range(_NESTED_IN_ONE, 0, -1):
        held = b"|".join(filter(None, (_FLAT, whole)))
        name = rb"(?!(?i:br|form|hr|img|meta)\b)([a-zA-Z][a-zA-Z0-9-]*+)"
        whole = rb"<%b%b>[^<]*+(?:(?:%b)[^<]*+){0,64}</\%d\s*+>" % (name, _SET, held, group)
    return re.compile(b"|".join((_FLAT, whole)))


_WHOLE: Final = _whole_elements()
_ROUNDS: Final = 6
"""Most times that whole elements are taken out; 10 MB of real pages need two."""
_LONG_TAG: Final = re.compile(rb"<[a-zA-Z][^>]{600,}")
_GOING_ON: Final = re.compile(
    rb"""=(?=\s*+(?:"[^">]*+>[^"]*+"([^>]*)|'[^'>]*+>[^']*+'([^>]*)))""",
)
"""A value that may be quoted and hold a `>`, so that the tag goes on behind it; a group is what it may go on with."""
_SHORT_TAG: Final = 150
"""Most attributes of a tag that is not overlong."""
_GATHERING: Final = re.compile(
    rb"<[bcefhinstu](?:|ig|ody|ode|m|ont|tml|obr|mall|trike|trong|t)(?=[\s/>])[^>]*>", re.IGNORECASE
)
"""Formatting elements (`b big code em font i nobr s small strike strong tt u`), which the parser opens again in every
paragraph, and the roots. One class of first letters makes it twice as fast as a list of names; the few strange names
that it takes for one (`cm`, `e`) do no harm."""

_STEP: Final = re.compile(r"""([^<]*)(?:<(/?)([a-zA-Z][^\s/>]*)((?:[^>=]|=\s*"[^"]*"|=\s*'[^']*'|=)*+)>)?""")
"""Text up to the next `<`, and the tag there if it is a whole one."""
_ATTRIBUTE: Final = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")
_RAW_TEXT: Final = tags(
    "audio canvas iframe noembed noframes noscript object script style svg template textarea title video xmp"
)
"""Read up to their end tag; all but style, text area and title hold nothing that a reader sees."""
_DROPPED: Final = tags("b big code em font i nobr s small strike strong tt u frameset frame plaintext")
_ROOTS: Final = frozenset({b"body", b"html"})
_VOID: Final = tags("area base br col embed hr img input link meta param source track wbr")
_IMPLIED: Final = tags(
    "body caption col colgroup dd dt head html li optgroup option p rp rt rb rtc tbody td tfoot th thead tr"
)
"""Tags whose end may be left out. They nest only with another element between, so the others' depth bounds theirs."""
_KEPT_ATTRIBUTES: Final = tags(
    "alt aria-hidden aria-level bgcolor class color colspan content datetime hidden href id itemprop lang name open "
    "property rel reversed role rowspan scope start style type value"
)


def parse(html: str) -> LexborNode | None:
    """Return the root element of `html` as a browser with scripting sees it, or None where there is none.

    Time and memory are linear in the length of `html`, whatever it holds.
    """
    source = bounded(html)[0].encode("utf-8", "replace").replace(b"\0", b"")
    if len(source) > SMALL and not _is_harmless(source):
        source = _without_scripts(source)
        if not _is_harmless(source):
            source = rebuild(source.decode()).encode()
    # With events each option of a `select` is looked at anew for every further one.
    return LexborHTMLParser(source, scripting=True, options=LexborDocumentOptions.WO_EVENTS).root


def bounded(html: str) -> tuple[str, bool]:
    """Return `html` with `MOST` tags or fewer, and whether something was cut off for it: more than any page needs."""
    if html.count("<") <= MOST:
        return html, False
    source = _with_leaves_joined(html.encode("utf-8", "replace").replace(b"\0", b""))
    if source.count(b"<") <= MOST:
        return source.decode(), False
    behind = source.split(b"<", MOST)[-1]
    return source[: -1 - len(behind)].decode(), True


def _with_leaves_joined(source: bytes) -> bytes:
    """Return `source` with runs of plain leaves joined into their first, from the tag `MANY` on."""
    tail = b"<" + source.split(b"<", MANY)[-1]
    head = source[: len(source) - len(tail)]
    return head + _PLAIN_LEAVES.sub(_joined, _LINE_BREAKS.sub(b"<br><br>", tail))


def _joined(run: re.Match[bytes]) -> bytes:
    leaves = run[0]
    first = leaves.index(b">") + 1
    ended = leaves.startswith(b"</", leaves.rindex(b"<"))
    return leaves[:first] + _TAG.sub(b" ", leaves[first:]) + (b"</" + leaves[1:first] if ended else b"")


def _without_scripts(source: bytes) -> bytes:
    """Return `source` without script elements, whose text looks like tags to the counts."""
    lowered = source.lower()
    kept: list[bytes] = []
    position = 0
    while (start := lowered.find(b"<script", position)) >= 0:
        kept.append(source[position:start])
        end = lowered.find(b"</script", start)
        position = lowered.find(b">", end) + 1 if end >= 0 else 0
        if not position:
            return b"".join(kept)
    kept.append(source[position:])
    return b"".join(kept)


def _is_harmless(source: bytes) -> bool:
    """Whether simple upper bounds of depth, attributes and open formatting elements are all below their limits."""
    return (len(source) <= _ROOM or _attribute_work(source) <= MAX_ATTRIBUTES**2) and _leaves_little_open(source)


def _leaves_little_open(source: bytes) -> bool:
    """Whether few elements can be open at once.

    An element that is closed by the very next tag, both written in the strictest syntax, adds nothing to what is open
    behind it and is taken out; then its parent may be such an element. A NUL, which no page holds any more, marks the
    place: a tag that such a place is part of is not what it seems to be, and stays.
    """
    for _ in range(_ROUNDS):
        left = source.count(b"<")
        if left <= MAX_OPEN or left - source.count(b"</") <= MAX_OPEN:
            gathering = set(_GATHERING.findall(source))
            roots = sum(tag[1:5].lower() in _ROOTS for tag in gathering)
            if roots <= MAX_ROOTS and len(gathering) - roots <= MAX_FORMATTING:
                return True
        source = _WHOLE.sub(b"\0", source)
        if left - source.count(b"<") < left // 20:
            break
    return False


def _attribute_work(source: bytes) -> int:
    """Return an upper bound of the sum of the squares of the tags' numbers of attributes, short tags left out.

    A tag consists of the stretch up to the next `>` and of what stands behind each quoted value that holds a `>`. All
    of the latter are counted to the longest tag, which is the worst that they can do.
    """
    stretches = sorted(map(_most_attributes, _LONG_TAG.findall(source)))
    going_on = sum(_most_attributes(double or single) for double, single in _GOING_ON.findall(source))
    longest = stretches.pop() if stretches else _SHORT_TAG
    return (longest + going_on) ** 2 + sum(count**2 for count in stretches)


def _most_attributes(stretch: bytes) -> int:
    """Return the places where an attribute may begin: after blanks, after a slash, after a quoted value."""
    quotes = stretch.count(b'"') + stretch.count(b"'")
    return len(stretch.split()) + stretch.count(b"/") + min(quotes // 2, stretch.count(b"="))


def rebuild(html: str) -> str:
    """Return `html` written anew in the strictest syntax, at most `MAX_DEPTH` deep, without formatting elements.

    One pass with our own tokenizer. Whatever it takes for text is escaped, so the parser behind sees exactly the tags
    that were counted here.
    """
    out: list[str] = []
    opened: list[str] = []
    dropped: dict[str, int] = {}
    position, steps = 0, 0
    while position < len(html) and (step := _STEP.match(html, position)) is not None:
        steps += 1
        if not steps % 65_536:
            check_cancelled()
        text, closing, name, source = step.groups()
        if text:
            out.append(text.replace(">", "&gt;"))
        position = step.end()
        if name is None:
            position = _after_other(html, position, out)
            continue
        if not source and not closing and name in _IMPLIED:
            out.append(f"<{name}>")  # what `_open` would do, for the tags that pages hold most of
            continue
        name = name.lower()
        if not name.isascii():
            continue
        if closing:
            _close(name, opened, dropped, out)
        elif name in _RAW_TEXT:
            position = _after_raw_text(html, name, position, out)
        elif name not in _DROPPED:
            _open(name, source, opened, dropped, out)
    return "".join(out)


def _after_other(html: str, start: int, out: list[str]) -> int:
    """Return where a comment, a declaration or a `<` that begins no tag ends; the latter goes to `out` as text."""
    if html.startswith("<!--", start):
        end = html.find("-->", start + 2)
        return end + 3 if end >= 0 else len(html)  # one that never ends swallows the rest, as in a browser
    following = html[start + 1 : start + 2]
    if following and following in "!?/" and (end := html.find(">", start)) >= 0:
        return end + 1
    if following.isalpha():
        return len(html)
    if start < len(html):
        out.append("&lt;")
    return start + 1


def _after_raw_text(html: str, name: str, position: int, out: list[str]) -> int:
    """Return where the element's end tag ends; what is of use of its text goes to `out`."""
    end = re.compile(rf"</{name}(?:[\s/][^>]*)?>", re.IGNORECASE).search(html, position)
    stop = end.start() if end else len(html)
    if name in {"style", "textarea", "title"}:
        text = html[position:stop].replace("<", "" if name == "style" else "&lt;")
        out.append(f"<{name}>{text}</{name}>")
    return end.end() if end else len(html)


def _open(name: str, source: str, opened: list[str], dropped: dict[str, int], out: list[str]) -> None:
    if name not in _VOID and name not in _IMPLIED:
        if len(opened) >= MAX_DEPTH:
            dropped[name] = dropped.get(name, 0) + 1
            return
        opened.append(name)
    attributes = ""
    if source and not source.isspace():
        for match in _ATTRIBUTE.finditer(source[:20_000]):
            if match[1].lower() in _KEPT_ATTRIBUTES:
                value = match[2] or match[3] or match[4] or ""
                attributes += f' {match[1].lower()}="{_quoted(value)}"'
    out.append(f"<{name}{attributes}>")


def _quoted(value: str) -> str:
    return entities.escape(entities.unescape(value)) if "&" in value else entities.escape(value)


def _close(name: str, opened: list[str], dropped: dict[str, int], out: list[str]) -> None:
    if name in _VOID or name in _DROPPED:
        if name == "br":
            out.append("<br>")
        return
    if name in _IMPLIED:
        out.append(f"</{name}>")
        return
    if dropped.get(name, 0):
        dropped[name] -= 1
        return
    if name in opened:
        while True:
            last = opened.pop()
            out.append(f"</{last}>")
            if last == name:
                return
