"""CSS cascade: matches the rules of a page's own style sheets to its elements (CSS
Cascade 4, §6).

As in browsers, a rule is looked up by what its last compound names, and the rest of its
selector is compared with the ancestors. The result depends only on the names of the
element and its ancestors, its *context*, so that elements of one context share it.
Selectors on siblings or descendants are left to Lexbor when a matching element may
exist. Linked sheets are not fetched. Not for: what declarations do to text
(`style.py`)."""

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from math import comb
from typing import Final, NamedTuple

from selectolax.lexbor import LexborNode, SelectolaxError

from pipeline.document.converted import MAX_ITEMS
from pipeline.document.tree import tags
from pipeline.html.colours import WHITE
from pipeline.html.defined import DEFINES, NONE_DEFINED, Defined, defined_in
from pipeline.html.rules import (
    SELECTOR_CHARACTERS,
    declarations,
    declared,
    listed,
    nested,
    rules_of,
    sheets_of,
    specificity,
    unescaped,
    worked_out,
)
from pipeline.html.style import (
    COLOURED,
    CUTTING,
    DECISIVE,
    NOT_PLAIN,
    PRESENTING,
    SHADING,
    SIZED,
    VISIBLE,
    Hiding,
    Shade,
    how_hidden,
    is_used,
    shade_under,
)

SELECTOR_STEPS: Final = 2_000_000
"""Of comparing selectors with contexts, for a page: a second; the slowest of 495 real
pages takes fewer than 40,000."""
LEXBOR_STEPS: Final = 100_000_000
"""Of one selector that Lexbor matches, at worst: 0.3 s. Its backtracking is
exponential: `i ~ p ~ p ~ p` takes 2.4 s over 400 paragraphs, three nested `:has` 24
s."""
LEXBOR_SECONDS: Final = 0.5
"""Processor time for all selectors of a page that Lexbor matches."""
_CSS_VARIABLE: Final = re.compile(
    r"(?:var\(\s*(--[\w-]+)|env\(\s*([a-z-]+)[\d ]*)\s*(?:,([^()]*))?\)"
)
"""A custom property, or a measure of the device, of which a desktop has none."""
_NESTED_VARIABLES: Final = 5
_CUTS: Final = frozenset({"overflow", "overflow-x", "overflow-y"})
_MOST_CUTTING: Final = 200
"""Selectors of rules that cut off, against each of which an element may be matched."""
_IDENT_ESCAPE: Final = r"\\(?:[\da-fA-F]{1,6}\s?|[^\n\da-fA-F])"
_IDENT_PART: Final = rf"(?:[\w\x80-\U0010ffff-]++|{_IDENT_ESCAPE})"
_IDENT: Final = rf"(?:--|-?(?:[^\W\d]|[^\x00-\x7f]|{_IDENT_ESCAPE})){_IDENT_PART}*+"
_SELECTOR_ESCAPE: Final = re.compile(r"\\(?:([\da-fA-F]{1,6})\s?|(.))")
_SELECTOR_PIECE: Final = re.compile(
    rf"""(?P<name>\.?{_IDENT}|\#{_IDENT_PART}++|\*|:root(?![\w-]))|(?P<joint>[ \t\n\r\f]*+>[ \t\n\r\f]*+|[ \t\n\r\f]++)
    |\[\s*+(?P<key>{_IDENT})\s*+(?:(?P<sign>[~|^$*]?=)\s*+(?:"(?P<double>[^"\\]*+)"|'(?P<single>[^'\\]*+)'
    |(?P<bare>{_IDENT}))\s*+)?\]|:(?P<how>not|is|where)\((?P<others>[^()]*+(?:\([^()]*+\)[^()]*+)*+)\)""",
    re.VERBOSE,
)
"""The parts of selectors that are compared here."""
_OF_NAMES: Final = re.compile(r"[\w.#*> \t\n\r\f-]+")
_CASELESS: Final = tags(
    "accept accept-charset align alink axis bgcolor charset checked clear codetype color compact "
    "declare defer dir "
    "direction disabled enctype face frame hreflang http-equiv lang language link media method "
    "multiple nohref "
    "noresize noshade nowrap readonly rel rev rules scope scrolling selected shape target text "
    "type valign valuetype "
    "vlink"
)
"""Attributes whose values are the same in any case (HTML, 4.16.2)."""
_POINTED_AT: Final = re.compile(
    r"(?<!\\):(?:hover|focus|active|target\b|:|before|after|host|visited|-)"
)
"""Pseudo-classes that never match without user action, and pseudo-elements."""
_PLAINLY: Final = {
    ":not(:target)": ":not(._)",
    ":defined": ":not(._)",
    ":dir(ltr)": ":not([dir=rtl])",
    ":-webkit-any(": ":is(",
    ":-moz-any(": ":is(",
    ":matches(": ":is(",
}
"""What is true of nearly each element of a page that was just opened, and old names."""
_ODDLY_SAID: Final = re.compile("|".join(map(re.escape, _PLAINLY)), re.IGNORECASE)
_LANG_SELECTOR: Final = re.compile(
    r""":lang\(\s*["']?([\w-]+)["']?\s*\)""", re.IGNORECASE
)
_BRACKETS: Final = re.compile(
    r"(?<!\\)(?:\([^()]*+(?:\([^()]*+(?:\([^()]*+\)[^()]*+)*+\)[^()]*+)*+\)|\[[^\[\]]*+\])"
)
_CLASS_OR_ID: Final = re.compile(rf"[.#]{_IDENT_PART}++")
"""Classes and ids in a selector."""
_SETS: Final = re.compile(r"(?:^|;)\s*+(--[^:;]*+):([^;]*+)")
_SIBLING: Final = re.compile(r"[^\s>+~]+\s*[+~]")
_SELECTOR_NAMES: Final = re.compile(r":+[\w-]+|([.#]?[\w-]+)")
"""Names in a selector without its brackets; pseudo-classes have none."""
_BY_SIBLINGS: Final = re.compile(r"~|:nth-|-of-type|:only-")
_Given = dict[str, tuple[tuple[bool, int, int], str]]
"""Of each property: how much its declaration weighs, and its value."""
_Attributes = Mapping[str, str | None]
_Known = tuple[str, str | None, str | None, tuple[tuple[str, str | None], ...]]
"""Of an element its tag, class, id, and attributes that selectors ask for."""


class _Style:
    """What some rules together say; elements that the same rules match share it."""

    __slots__ = ("found", "given", "known", "may_be_cut", "owned", "rules", "said")

    def __init__(self, rules: "tuple[_Rule, ...]", given: _Given) -> None:
        self.rules = rules
        self.given = given
        self.said = False
        """Whether that hides or colours an element without a style of its own."""
        self.may_be_cut = False
        """Whether that would hide an element that another rule lets cut off what does
        not fit."""
        self.found: tuple[Mapping[str, str], Hiding] | None = None
        """Declarations of an element without a style of its own, and how they hide it;
        None until they are asked for."""
        self.known: dict[Shade, tuple[Hiding, Shade | None]] = {}
        """By parent, for an element without own style: how it is hidden, and its shade
        if that differs."""
        self.owned: dict[tuple[str, Shade], tuple[Hiding, Shade]] = {}
        """By parent and the element's own style: how it is hidden, and its shade."""


class ElementContext:
    """Selector context of an element: what rules may ask of it, and of its ancestors."""

    __slots__ = ("above", "below", "inner", "is_plain", "names", "single", "style")

    def __init__(self, above: "ElementContext | None", names: "_Names") -> None:
        """Make a context that no rule is known to match."""
        self.above = above
        self.names = names
        """Of its tag, its classes as `.a`, its id as `#a` and tests that its attributes
        pass those that rules ask for."""
        self.inner: _Names = (
            names
            if above is None
            else above.inner
            if names <= above.inner
            else above.inner | names
        )
        """All names of its content's ancestors."""
        self.below: dict[object, ElementContext] = {}
        self.style = _UNSTYLED
        """What all elements of this context are given."""
        self.single: list[_Rule] = []
        """Rules that match some of them."""
        self.is_plain = True
        """Whether no rule says anything of them."""

    def shade_in(self, around: Shade) -> Shade | None:
        """Return what text inherits in an element of no style of its own that is not
        hidden; None where it is asked."""
        if self.is_plain or self.single:
            return around if self.is_plain else None
        known = self.style.known.get(around)
        return None if known is None or known[0] else known[1] or around


class _Test(NamedTuple):
    """What is asked of an attribute."""

    name: str
    sign: str
    wanted: str

    def holds(self, value: str) -> bool:  # noqa: PLR0911  one return a sign
        wanted = self.wanted
        if self.name in _CASELESS:
            value, wanted = value.lower(), wanted.lower()
        if self.sign == "":
            return True
        if self.sign == "=":
            return value == wanted
        if self.sign == "~=":
            return wanted in value.split()
        if self.sign == "|=":
            return value == wanted or value.startswith(f"{wanted}-")
        if not wanted:
            return False
        if self.sign == "^=":
            return value.startswith(wanted)
        return value.endswith(wanted) if self.sign == "$=" else wanted in value


_Names = frozenset[str | _Test]
"""Of an element, or asked of one."""


class _Compound(NamedTuple):
    """What a selector asks of one element."""

    names: _Names = frozenset()
    sides: "tuple[tuple[bool, tuple[_Compound, ...]], ...]" = ()
    """Whether it must be one of the compounds, or none."""

    def fits(self, context: ElementContext) -> bool:
        """Whether the element of a context is such a one."""
        return self.names <= context.names and (
            not self.sides
            or all(
                any(one.fits(context) for one in some) is wanted
                for wanted, some in self.sides
            )
        )

    def parts(self) -> "Iterator[_Compound]":
        """Yield it and all compounds in it."""
        yield self
        for _, others in self.sides:
            for other in others:
                yield from other.parts()


_Chain = tuple[_Compound, ...]
"""Compounds joined by `>`, from right to left."""


class _Rule:
    """A selector of a sheet with what it says."""

    __slots__ = (
        "around",
        "body",
        "chains",
        "names",
        "nodes",
        "order",
        "said",
        "selector",
        "weight",
    )

    def __init__(
        self, selector: str, body: str, order: int, chains: tuple[_Chain, ...] | None
    ) -> None:
        self.selector = selector
        self.body = body
        self.order = order
        self.chains = chains
        """Joined by blanks, from right to left; None where Lexbor has to match it."""
        self.names: _Names = frozenset()
        """What an element must be named, or pass."""
        self.around: _Names = frozenset()
        """What its ancestors must be named, or pass."""
        self.nodes: set[int] | None = None
        """Addresses of what Lexbor found."""
        self.said: tuple[tuple[str, str, bool], ...] | None = None
        """Property, value, whether it is important; None until they are read."""
        self.weight = 0


_UNSTYLED: Final = _Style((), {})
_UNSTYLED.found = {}, VISIBLE


class StyleJudge:
    """Knows the style of a page's elements: what its sheets say of each, and its own
    style attribute."""

    def __init__(self, top: LexborNode | None = None) -> None:
        """Read the sheets of the page below `top`."""
        self._alone: dict[tuple[str, Shade], tuple[Hiding, Shade]] = {}
        """Result of `look` by own style and parent, if no other style applies."""
        self._owned: dict[str, tuple[Mapping[str, str], Hiding]] = {}
        """By the style that an element has of its own, if that refers to no other: its
        declarations, and how they hide."""
        self._parsed: dict[str, dict[str, str]] = {}
        """Of any other style, in lower case: its declarations as they are written."""
        self._used: dict[str, tuple[tuple[str, str, bool], ...]] = {}
        """Of a rule's body: its declarations of which something is said."""
        self._bodies: dict[str, bool] = {}
        """Whether a rule with a body may hide something; half of all are repeated."""
        self._variables: dict[str, str] = {}
        self._rules: dict[str | _Test, list[_Rule]] = {}
        """By what an element must be named, or pass; the rest under `*`."""
        self._present: frozenset[str] = frozenset()
        """Classes and ids of the page."""
        self._named: set[str] = set()
        """Names in selectors; other names do not distinguish elements."""
        self._asked: dict[str, set[_Test]] = {}
        """Of attributes that selectors ask for: the tests."""
        self._names: dict[_Known, _Names] = {}
        """Of elements with the same tag, class, id and attributes that are asked for:
        what selectors ask of them that holds."""
        self._styles: dict[tuple[_Rule, ...], _Style] = {(): _UNSTYLED}
        self._known: list[_Style] = []
        """Styles of which something is known."""
        self._folds = False
        """Whether classes and ids are the same in any case, as without a doctype."""
        self._read_rules = self._steps = self._contexts = 0
        self._top = top
        self._bounds: dict[str, int] = {}
        """Maximum nesting (`>`), siblings (`+`), and number of elements (`*`)."""
        self._lexbor = LEXBOR_SECONDS
        self._defined: Defined = NONE_DEFINED
        self._cutting: list[_Rule] = []
        """Rules that cut off what does not fit, and do nothing else that hides."""
        self.texts: list[str] = []
        """What the `style` elements of the page hold."""
        self.root_context: ElementContext | None = None
        """That of the root element; None where no rule says anything."""
        self.ground: Shade = Shade()
        """What the page's text begins with."""
        if top is not None:
            self._read(top)

    def look(
        self,
        context: ElementContext | None,
        node: LexborNode,
        attributes: _Attributes,
        around: Shade,
    ) -> tuple[Hiding, Shade]:
        """Return how an element is hidden, and the style that its text inherits;
        `around`: its parent's."""
        style, own = self._style_at(context, node), attributes.get("style") or ""
        if own or not PRESENTING.isdisjoint(attributes):
            return self._look_at_own(style, own, node, attributes, around)
        if style.may_be_cut:
            hiding = self._cut(node, _hides_if_cut(self._of(style)[0]))
            if hiding:
                return hiding, around
        if not style.said:
            return VISIBLE, around
        if (shaded := style.known.get(around)) is None:
            found, hiding = self._of(style)
            shade = around.under(found)
            shaded = style.known[around] = hiding, None if shade is around else shade
        return shaded[0], shaded[1] or around

    def _look_at_own(
        self,
        style: _Style,
        own: str,
        node: LexborNode,
        attributes: _Attributes,
        around: Shade,
    ) -> tuple[Hiding, Shade]:
        """Return what `look` does, for an element that says by its attribute `own`, or
        by others, how it looks."""
        known = style.owned if style.given else self._alone
        is_style_alone = PRESENTING.isdisjoint(attributes)
        if is_style_alone and (seen := known.get((own, around))):
            return seen
        found, hiding = self._found(style, own)
        may_be_known = is_style_alone and own in self._owned
        if self._cutting and not hiding and (cut := _hides_if_cut(found)):
            hiding, may_be_known = self._cut(node, cut), False
        seen = hiding, shade_under(around, attributes, found)
        if may_be_known:
            known[own, around] = seen
            if style.given and len(known) == 1:
                self._known.append(style)
        return seen

    def _cut(self, node: LexborNode, hiding: Hiding) -> Hiding:
        """Return `hiding` of an element that cuts off what does not fit, as rules may
        say that say nothing else; `VISIBLE` of any other.

        Only the first `_MOST_CUTTING` rules are asked; a selector that Lexbor refuses
        matches nothing."""
        for rule in self._cutting[:_MOST_CUTTING]:
            with suppress(SelectolaxError):
                # Lexbor is quick here, but also matches what is inside the node.
                if node.css_matches(rule.selector) and (
                    node.mem_id in self._matched(rule)
                ):
                    return hiding
        return VISIBLE

    def hides(self, node: LexborNode) -> Hiding:
        """Return how an element is hidden by the page's sheets alone."""
        return self._of(self._style_at(self._context_of(node), node))[1]

    def hides_image(self, style: str) -> bool:
        """Return whether an image's own style hides it whatever scripts do."""
        found, hiding = self._own(style)
        return hiding != VISIBLE and how_hidden(found, in_sheet=True) != VISIBLE

    def _context_of(self, node: LexborNode) -> ElementContext | None:
        above = node.parent
        if self.root_context is None or above is None or not above.is_element_node:
            return self.root_context
        return self.enter(self._context_of(above), node.tag or "", node.attributes)

    def _style_at(self, context: ElementContext | None, node: LexborNode) -> _Style:
        """Return what rules say of an element."""
        if context is None or not context.single:
            return _UNSTYLED if context is None else context.style
        at = node.mem_id
        single = [rule for rule in context.single if rule.nodes and at in rule.nodes]
        return (
            self._said_by((*context.style.rules, *single)) if single else context.style
        )

    def _said_by(self, rules: tuple[_Rule, ...]) -> _Style:
        """Return what rules say together."""
        style = self._styles.get(rules)
        if style is None:
            style = self._styles[rules] = _Style(rules, {})
            for rule in rules:
                self._take(style.given, rule)
            style.said = (
                not SHADING.isdisjoint(style.given)
                or any("var(" in value for _, value in style.given.values())
                or self._of(style)[1] != VISIBLE
                or bool(
                    self._defined.ends and not SHADING.isdisjoint(self._of(style)[0])
                )
            )
            if self._cutting and not style.said:
                style.said = style.may_be_cut = (
                    _hides_if_cut(self._of(style)[0]) != VISIBLE
                )
        return style

    def _found(self, style: _Style, own: str) -> tuple[Mapping[str, str], Hiding]:
        """Return the declarations that count for an element, and how they hide it."""
        if not own:
            return self._of(style)
        mine, hiding = self._own(own)
        if not (given := style.given):
            return mine, hiding
        inline = {
            name: value
            for name, value in mine.items()
            if name not in given or not given[name][0][0]
        }
        found, hiding = self._of(style)
        return self._seen({**found, **inline}) if inline else (found, hiding)

    def _seen(
        self, found: Mapping[str, str], *, in_sheet: bool = False
    ) -> tuple[Mapping[str, str], Hiding]:
        """Return declarations as they are once animations are over, and how they
        hide."""
        if self._defined.ends and (ended := self._defined.ended(found)) is not None:
            return ended, how_hidden(ended)
        return found, how_hidden(found, in_sheet=in_sheet)

    def _of(self, style: _Style) -> tuple[Mapping[str, str], Hiding]:
        """Return the declarations that count for an element without a style of its own,
        and how they hide it."""
        if style.found is None:
            found = {
                name: self._filled(value) if "(" in value else value
                for name, (_, value) in style.given.items()
            }
            style.found = self._seen(found, in_sheet=True)
            self._known.append(style)
        return style.found

    def enter(
        self, above: ElementContext | None, tag: str, attributes: _Attributes
    ) -> ElementContext:
        """Return the context of an element from its name, attributes and parent's;
        `above` is None for the root alone.

        Beyond `MAX_ITEMS`, contexts are made again each time; after `SELECTOR_STEPS` no
        further rule matches."""
        known: _Known = tag, None, None, ()
        if attributes:
            asked = self._asked and tuple(
                [one for one in attributes.items() if one[0] in self._asked]
            )
            known = tag, attributes.get("class"), attributes.get("id"), asked or ()
        if above is None:
            return self._met(ElementContext(None, self._names_of(known) | {":root"}))
        context = above.below.get(known)
        if context is None:
            context = self._inner_context(above, self._names_of(known))
            if len(above.below) < MAX_ITEMS:
                above.below[known] = context
        return context

    def _inner_context(self, above: ElementContext, names: _Names) -> ElementContext:
        """Return the child context of some names, created at its first use."""
        context = above.below.get(names)
        if context is None:
            context = self._met(ElementContext(above, names))
            self._contexts += 1
            if self._contexts <= MAX_ITEMS:
                above.below[names] = context
        return context

    def _names_of(self, known: _Known) -> _Names:
        """Return what selectors ask of an element that holds; after `SELECTOR_STEPS` no
        test of an attribute does."""
        names = self._names.get(known)
        if names is None:
            tag, classes, own = known[0], known[1] or "", known[2] or ""
            if self._folds:
                classes, own = classes.lower(), own.lower()
            called = [tag, f"#{own}", *[f".{name}" for name in classes.split()]]
            names = frozenset(self._named.intersection(called))
            for attribute, value in known[3]:
                tests = self._asked[attribute] if self._steps < SELECTOR_STEPS else ()
                self._steps += len(tests)
                names |= {test for test in tests if test.holds(value or "")}
            if len(self._names) < MAX_ITEMS:
                self._names[known] = names
        return names

    def _met(self, context: ElementContext) -> ElementContext:
        """Match a new context with the rules, set its style and return it. After
        `SELECTOR_STEPS` steps over the whole page it is returned without a style."""
        names = context.names
        around = context.above.inner if context.above is not None else frozenset()
        rules: list[_Rule] = []
        for name in (*names, "*"):
            for rule in self._rules.get(name, ()):
                if (steps := self._steps + 1) > SELECTOR_STEPS:
                    return context
                self._steps = steps
                if not (rule.around <= around and rule.names <= names):
                    continue
                if rule.chains is None:
                    if self._matched(rule):
                        context.single.append(rule)
                        context.is_plain = False
                elif self._fits(context, rule.chains):
                    rules.append(rule)
        context.style = self._said_by(tuple(rules))
        context.is_plain &= not context.style.said
        return context

    def _fits(self, context: ElementContext, chains: tuple[_Chain, ...]) -> bool:
        """Return whether a selector matches a context; ancestors are matched greedily,
        nearest first."""
        at: ElementContext | None = context
        for chain in chains:
            while True:
                self._steps += len(chain)
                if at is None:
                    return False
                if _matches_position(chain, at):
                    break
                if chain is chains[0]:
                    return False
                at = at.above
            for _ in chain:
                at = at and at.above
        return True

    def _take(self, given: _Given, rule: _Rule) -> None:
        """Add what a rule says, where nothing says otherwise that weighs more."""
        if rule.said is None:
            rule.said = self._used.get(rule.body)
            if rule.said is None:
                said = [
                    one for one in declared(rule.body) if one[1] and is_used(one[0])
                ]
                rule.said = self._used[rule.body] = tuple(said)
            rule.weight = specificity(rule.selector)
        self._steps += len(rule.said)
        for name, value, important in rule.said:
            rank = (important, rule.weight, rule.order)
            if name not in given or given[name][0] <= rank:
                given[name] = rank, value

    def _matched(self, rule: _Rule) -> Collection[int]:
        """Return the addresses of the elements that Lexbor finds for a selector; none
        where the page's time for it is used up, or the selector is refused or too
        costly."""
        if rule.nodes is None:
            rule.nodes = set()
            if self._top is not None and self._lexbor > 0:
                began = time.thread_time()
                if self._is_short(rule.selector):
                    with suppress(SelectolaxError):  # what only one browser knows
                        rule.nodes = {
                            node.mem_id for node in self._top.css(rule.selector)
                        }
                self._lexbor -= time.thread_time() - began
        return rule.nodes

    def _is_short(self, selector: str) -> bool:
        """Whether Lexbor matches a selector within `LEXBOR_STEPS` at worst."""
        bare = re.sub(
            r"\s*([>+~,()])\s*", r"\1", re.sub(r"\[[^\]]*\]", "[]", selector)
        ).strip()
        has, blanks = bare.count(":has("), bare.count(" ")
        beside = len(_BY_SIBLINGS.findall(bare))
        if not (has or blanks or beside):  # a step for each element
            return True
        steps: int = self._bound("*") ** (1 + has)
        if blanks:
            steps *= comb(self._bound(">"), blanks)
        if beside:
            steps *= self._bound("+") ** beside
        return steps <= LEXBOR_STEPS

    def _bound(self, joint: str) -> int:
        """Return a bound on nesting, siblings or number of elements; 0 without a page,
        `MAX_ITEMS` beyond the largest that is tried."""
        if joint not in self._bounds and self._top is not None:
            css, sizes = self._top.css, (32, 128, 512)
            if joint == "*":
                self._bounds[joint] = len(css("*"))
            else:
                self._bounds[joint] = next(
                    (most for most in sizes if not css("*" + f"{joint}*" * most)),
                    MAX_ITEMS,
                )
        return self._bounds.get(joint, 0)

    def _own(self, style: str) -> tuple[Mapping[str, str], Hiding]:
        """Return the declarations of a style attribute, and how they hide."""
        if (known := self._owned.get(style)) is not None:
            return known
        low = style.lower()
        if not NOT_PLAIN.search(low) and not self._animates(low):
            known = {}, VISIBLE
        elif "--" not in low and "env(" not in low:
            known = self._seen(_plainly(low))
        if known is not None:
            self._owned[style] = known
            return known
        if (found := self._parsed.get(low)) is None:
            found = self._parsed[low] = declarations(low)
        if "--" in low:
            self._set(found.items())
        found = {
            name: self._filled(value) if "(" in value else value
            for name, value in found.items()
        }
        return self._seen(found)

    def _set(self, found: Iterable[tuple[str, str]]) -> None:
        """Remember what custom properties are, the last of equal names for the whole
        page; if that is new, forget the styles that were worked out."""
        new = {
            name.strip(): value.replace("!important", "").strip()
            for name, value in found
            if name.startswith("--")
        }
        if not new.items() <= self._variables.items():
            self._variables |= new
            while self._known:
                style = self._known.pop()
                style.found = None
                style.known.clear()
                style.owned.clear()

    def _filled(self, value: str) -> str:
        """Return a value with custom properties and small sums worked out.

        One that is not known is its fallback or empty. Beyond `_NESTED_VARIABLES`
        levels they stay, and long values are cut at `SELECTOR_CHARACTERS`."""
        for _ in range(_NESTED_VARIABLES):
            value = self._defined.called(value)
            if "var(" not in value and "env(" not in value:
                break
            value = _CSS_VARIABLE.sub(
                lambda use: self._variables.get(use[1] or use[2], use[3] or "").strip(),
                value[:SELECTOR_CHARACTERS],
            )
        return worked_out(value)

    def _read(self, top: LexborNode) -> None:
        """Take the rules of all sheets that the page holds; the ground is known where
        no linked sheet may set it."""
        sheets, linked, self.texts = sheets_of(top)
        if sheets:
            self._folds = _folds_case(top)
            self._present = _names_in(top, folds=self._folds)
        if any(map(DEFINES.search, sheets)):
            self._defined = defined_in(sheets)
        for sheet in sheets:
            for above, selector, body in rules_of(sheet):
                self._read_rule(nested(above, selector), body, coloured=not linked)
        for name, value in self._defined.initial.items():
            self._variables.setdefault(name, value)
        self.ground = self._ground_of(top, Shade() if linked else Shade(WHITE))

    def _read_rule(
        self, selectors: Iterable[str], body: str, *, coloured: bool
    ) -> None:
        """Take a rule that may hide something, or cut it off; colours count where
        `coloured`."""
        if "--" in body:
            self._set(_SETS.findall(body))
        if (counts := self._bodies.get(body)) is None:
            decides = DECISIVE.search(body) or (coloured and COLOURED.search(body))
            counts = self._bodies[body] = bool(decides) or self._animates(body)
        if counts:
            for one in selectors:
                self._add(one, body)
        elif "overflow" in body and CUTTING.search(body):
            self._cutting += [_Rule(one, body, 0, None) for one in selectors]

    def _ground_of(self, top: LexborNode, ground: Shade) -> Shade:
        """Return the background of the text in the page's body; `ground` where no rule
        sets it."""
        at = None
        for node in (top, top.css_first("body")):
            if node is not None:
                attributes = node.attributes
                at = self.enter(at, node.tag or "", attributes) if self._rules else None
                self.root_context = self.root_context or at
                ground = self.look(at, node, attributes, ground)[1]
        return ground

    def _animates(self, body: str) -> bool:
        """Whether declarations may name an animation whose end decides."""
        return bool(self._defined.ends) and "animation" in body

    def _add(self, selector: str, body: str) -> None:
        """Take a selector of a rule that may hide, or show again, if all that it names
        is on the page.

        Longer ones than `SELECTOR_CHARACTERS`, those for what is pointed at, and any after
        `MAX_ITEMS` are dropped."""
        if ":" in selector:
            selector = _ODDLY_SAID.sub(lambda said: _PLAINLY[said[0].lower()], selector)
            selector = _LANG_SELECTOR.sub(
                r':is([lang|="\1"], [lang|="\1"] *)', selector
            )
        bare = (
            _BRACKETS.sub(":_", selector)
            if "(" in selector or "[" in selector
            else selector
        )
        if len(selector) > SELECTOR_CHARACTERS or not self._present.issuperset(
            self._called(bare)
        ):
            return
        is_pointed_at = ":" in bare and _POINTED_AT.search(bare.lower())
        if is_pointed_at or self._read_rules >= MAX_ITEMS:
            return
        self._read_rules += 1
        chains = _chains(selector, folds=self._folds)
        rule = _Rule(selector, body, self._read_rules, chains)
        if chains is not None:
            self._read_chains(rule, chains)
        elif "\\" not in bare:
            self._read_names(rule, bare)
        key = max(rule.names, key=_weighed, default="*")
        self._rules.setdefault(key, []).append(rule)

    def _called(self, bare: str) -> Iterable[str]:
        """Return the classes and ids in a selector without brackets."""
        called: list[str] = _CLASS_OR_ID.findall(bare)
        return self._folded(called) if self._folds or "\\" in bare else called

    def _read_names(self, rule: _Rule, bare: str) -> None:
        """Note what a rule asks for whose selector without brackets is `bare`, and is
        not compared here."""
        plain = _SIBLING.sub("", bare).replace(">", " ")
        *around, last = plain.rsplit(None, 1) or [""]
        rule.names = self._folded(_SELECTOR_NAMES.findall(last))
        rule.around = self._folded(_SELECTOR_NAMES.findall("".join(around)))
        self._named |= rule.names | rule.around

    def _read_chains(self, rule: _Rule, chains: tuple[_Chain, ...]) -> None:
        """Note what the compounds of a rule ask for."""
        first, *others = [compound for chain in chains for compound in chain]
        rule.names = first.names
        rule.around = frozenset().union(*(other.names for other in others))
        parts = [part for compound in (first, *others) for part in compound.parts()]
        for name in frozenset[str | _Test]().union(*(part.names for part in parts)):
            if isinstance(name, _Test):
                self._asked.setdefault(name.name, set()).add(name)
            else:
                self._named.add(name)

    def _folded(self, names: Iterable[str]) -> frozenset[str]:
        """Return names in a selector as they are compared."""
        found = [
            name.lower() if self._folds or name[0] not in ".#" else name
            for name in names
            if name
        ]
        return frozenset(
            [
                _SELECTOR_ESCAPE.sub(unescaped, name) if "\\" in name else name
                for name in found
            ]
        )


def _hides_if_cut(found: Mapping[str, str]) -> Hiding:
    """Return how declarations would hide an element that cuts off what does not fit, if
    they do not say whether it does."""
    if SIZED.isdisjoint(found) or not _CUTS.isdisjoint(found):
        return VISIBLE
    return how_hidden({**found, "overflow": "hidden"})


def _plainly(style: str) -> Mapping[str, str]:
    """Return the declarations of a style attribute, in lower case, that refers to no
    property of another."""
    found = declarations(style)
    for name, value in found.items():
        if "(" in value:
            found[name] = worked_out(value)
    return found


def _names_in(top: LexborNode, *, folds: bool) -> frozenset[str]:
    """Return the classes of a page as `.a`, and its ids as `#a`."""
    named = (top, *top.css("[class], [id]"))
    classes = {node.attrs.get("class") or "" for node in named}
    names = {f"#{node.id}" for node in named} | {
        f".{name}" for name in " ".join(classes).split()
    }
    return frozenset(map(str.lower, names) if folds else names)


def _weighed(name: str | _Test) -> tuple[int, str | _Test]:
    """Order names by how few elements have one."""
    return (-2 if isinstance(name, _Test) else ".#".find(name[0])), name


def _matches_position(chain: _Chain, context: ElementContext) -> bool:
    """Whether a chain of compounds ends in a context."""
    at: ElementContext | None = context
    for compound in chain:
        if at is None or not compound.fits(at):
            return False
        at = at.above
    return True


def _chains(selector: str, *, folds: bool) -> tuple[_Chain, ...] | None:
    """Return a selector's compounds, None where it holds what is not compared here."""
    if _OF_NAMES.fullmatch(selector):
        return _chains_of_names(selector, folds=folds)
    chains: list[list[_Compound]] = [[]]
    parts: list[_Compound] = []
    at, selector = 0, f"{selector.strip()} "
    while at < len(selector):
        piece = _SELECTOR_PIECE.match(selector, at)
        if piece is None or (piece["joint"] and not parts):
            return None
        at = piece.end()
        if piece["joint"]:
            chains[-1].append(_joined(parts))
            parts = []
            if ">" not in piece["joint"]:
                chains.append([])
        elif (part := _part(piece, folds=folds)) is None or (
            parts and (piece["name"] or ".")[0] not in ".#:"
        ):
            return None
        else:
            parts.append(part)
    if chains.pop():
        return None
    return tuple(tuple(reversed(chain)) for chain in reversed(chains)) or None


def _chains_of_names(selector: str, *, folds: bool) -> tuple[_Chain, ...] | None:
    """Return the compounds of a selector that holds names, blanks and `>` only; None
    where one of them cannot be compared or is missing."""
    chains: list[list[_Compound]] = []
    is_below = False
    for word in selector.replace(">", " > ").split():
        if word == ">":
            if is_below or not chains:
                return None
            is_below = True
            continue
        if (compound := _of_names(word, folds)) is None:
            return None
        if is_below:
            chains[-1].append(compound)
        else:
            chains.append([compound])
        is_below = False
    if is_below or not chains:
        return None
    return tuple(tuple(reversed(chain)) for chain in reversed(chains))


@lru_cache(4096)
def _of_names(word: str, folds: bool) -> _Compound | None:
    """Return the requirements of a compound of names on one element; None where it
    holds anything else."""
    parts, at = list[_Compound](), 0
    while at < len(word):
        piece = _SELECTOR_PIECE.match(word, at)
        if piece is None or (part := _part(piece, folds=folds)) is None:
            return None
        if parts and word[at] not in ".#":
            return None
        parts.append(part)
        at = piece.end()
    return _joined(parts)


def _joined(parts: list[_Compound]) -> _Compound:
    """Return what asks as much as all of some compounds."""
    if len(parts) == 1:
        return parts[0]
    return _Compound(
        frozenset().union(*(part.names for part in parts)),
        tuple(side for part in parts for side in part.sides),
    )


def _part(piece: re.Match[str], *, folds: bool) -> _Compound | None:
    """Return what one part of a compound asks, None where it is not compared here."""
    if name := piece["name"]:
        if name[0] not in ".#:" or folds:
            name = name.lower()
        name = _SELECTOR_ESCAPE.sub(unescaped, name) if "\\" in name else name
        return _Compound(frozenset() if name == "*" else frozenset((name,)))
    return _tested(piece) if piece["key"] else _of_others(piece, folds=folds)


def _tested(piece: re.Match[str]) -> _Compound | None:
    """Return what a part in square brackets asks, None for one with an escape."""
    key: str = piece["key"]
    wanted = piece["double"] or piece["single"] or piece["bare"] or ""
    test = _Test(key.lower(), piece["sign"] or "", wanted)
    return None if "\\" in key + wanted else _Compound(frozenset((test,)))


def _of_others(piece: re.Match[str], *, folds: bool) -> _Compound | None:
    """Return what a part asks by other selectors (`:is`, `:not`), None where one of
    them is not compared here or has more than one compound."""
    others = []
    for other in listed(piece["others"]):
        found = _chains(other, folds=folds)
        if found is None or len(found) > 1 or len(found[0]) > 1:
            return None
        others.append(found[0][0])
    wanted = piece["how"] != "not"
    return (
        others[0]
        if wanted and len(others) == 1
        else _Compound(sides=((wanted, tuple(others)),))
    )


def _folds_case(top: LexborNode) -> bool:
    """Whether classes are the same in any case, as Lexbor knows by the doctype."""
    probe = top.parser.create_node("p")
    probe.attrs["class"] = "A"
    return probe.css_matches(".a")
