"""CSS cascade (CSS Cascade 4, §6): of each element what the page's own style sheets and
its style attribute say together.

Lexbor finds the elements of each selector whose declarations may hide something, once a
page. Linked sheets are not fetched. Not for: what declarations do to text
(`style.py`)."""

import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import comb
from typing import Final, NamedTuple

from selectolax.lexbor import LexborNode, SelectolaxError

from readers.converted import MAX_ITEMS
from readers.html.colours import WHITE
from readers.html.rules import (
    SELECTOR_CHARACTERS,
    Declaration,
    StyleSheet,
    declared,
    nested,
    rules_of,
    sheets_of,
    specificity,
    summed,
)
from readers.html.style import (
    COLOURED,
    DECISIVE,
    PRESENTING,
    Hiding,
    Shade,
    how_hidden,
    presented,
)

LEXBOR_STEPS: Final = 100_000_000
"""Of one selector that Lexbor matches, at worst: 0.3 s. Its backtracking is
exponential: `i ~ p ~ p ~ p` takes 2.4 s over 400 paragraphs, three nested `:has` 24
s."""
LEXBOR_SECONDS: Final = 0.4
"""Processor time for all selectors of a page; the slowest of 165 real pages takes
0.03 s."""
_NESTED_VARIABLES: Final = 5
_VARIABLE: Final = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")
_SETS_VARIABLE: Final = re.compile(r"(?<![\w-])(--[\w-]+)\s*:([^;{}]*)")
_BRACKETS: Final = re.compile(r"\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\]")
_CLASS_OR_ID: Final = re.compile(r"[.#](?:[\w-]|[^\x00-\x7f])+")
_BY_SIBLINGS: Final = re.compile(r"~|:nth-|-of-type|:only-")


class _Rule(NamedTuple):
    """What one selector of a sheet gives to the elements that it matches."""

    specificity: int
    declarations: tuple[Declaration, ...]


class StyleJudge:
    """Knows the style of a page's elements: what its sheets say of each, and its own
    style attribute."""

    def __init__(self, top: LexborNode) -> None:
        """Read the sheets of the page below `top`, and match their rules."""
        self._top = top
        self._rules: list[_Rule] = []
        self.rules_at: dict[int, tuple[int, ...]] = {}
        """By the address of an element: the rules that match it, by their place in the
        cascade's order of appearance. Elements that none matches are not in it."""
        self._looks: dict[object, tuple[Hiding, Shade]] = {}
        self._seconds = LEXBOR_SECONDS
        self._bounds: dict[str, int] = {}
        """Maximum nesting (`>`), siblings (`+`), and number of elements (`*`)."""
        sheets, self._is_linked, self.texts = sheets_of(top)
        self._variables = _variables_of(top, sheets)
        if sheets:
            self._match(sheets)
        ground = Shade() if self._is_linked else Shade(WHITE)
        for node in (top, top.css_first("body")):
            if node is not None:
                ground = self.look(node, node.attributes, ground)[1]
        self.ground: Shade = ground
        """What the page's text begins with; of no known ground where a linked sheet may
        set it."""

    def look(
        self, node: LexborNode, attributes: Mapping[str, str | None], inherited: Shade
    ) -> tuple[Hiding, Shade]:
        """Return how an element is hidden, and the style that its text inherits;
        `inherited`: its parent's."""
        rules = self.rules_at.get(node.mem_id, ())
        inline_style = (attributes.get("style") or "").lower()
        if inline_style and not (
            DECISIVE.search(inline_style) or COLOURED.search(inline_style)
        ):
            inline_style = ""
        old = () if PRESENTING.isdisjoint(attributes) else presented(attributes)
        if not (rules or inline_style or old):
            return "", inherited
        key = rules, inline_style, old, inherited
        if (look := self._looks.get(key)) is None:
            declarations = self._declarations(rules, inline_style)
            shade = inherited.under({**dict(old), **declarations})
            look = self._looks[key] = (
                how_hidden(declarations, in_sheet=not inline_style),
                shade,
            )
        return look

    def hides_image(self, style: str) -> bool:
        """Return whether an image's own style hides it whatever scripts do."""
        return how_hidden(self._declarations((), style.lower()), in_sheet=True) != ""

    def _declarations(
        self, rules: tuple[int, ...], inline_style: str
    ) -> dict[str, str]:
        """Return the declarations that count, by property: important ones before
        others, then those of the own style, of the weightier selector, of the later
        rule."""
        cascade = sorted(
            (self._rules[index] for index in rules), key=lambda rule: rule.specificity
        )
        declarations = [entry for rule in cascade for entry in rule.declarations]
        declarations += declared(inline_style)
        declarations.sort(key=lambda declaration: declaration.important)
        return {
            name: self._filled(value) if "(" in value else value
            for name, value, _ in declarations
        }

    def _filled(self, value: str) -> str:
        """Return a value with custom properties worked out.

        A property that is not known is its fallback, or stays. Long values are cut at
        `SELECTOR_CHARACTERS`."""
        for _ in range(_NESTED_VARIABLES):
            if "var(" not in value:
                break
            value = _VARIABLE.sub(
                lambda use: self._variables.get(use[1], (use[2] or use[0]).strip()),
                value[:SELECTOR_CHARACTERS],
            )
        return summed(value)

    def _match(self, sheets: Iterable[StyleSheet]) -> None:
        """Find the elements of each rule that may hide something; colours count where
        no linked sheet may set others. At most `MAX_ITEMS` selectors are matched."""
        names = _names_in(self._top)
        shadowed = {node.mem_id for node in self._top.css("shadow-root *")}
        bodies: dict[str, tuple[Declaration, ...]] = {}
        rules_at: dict[int, list[int]] = {}
        for sheet in sheets:
            for parents, selectors, body in rules_of(sheet.text):
                if not self._decides(body):
                    continue
                for selector in nested(parents, selectors):
                    if len(self._rules) >= MAX_ITEMS or not _may_match(selector, names):
                        continue
                    if body not in bodies:
                        bodies[body] = declared(body)
                    matched = self._matched(selector, sheet.scope or self._top)
                    if sheet.scope is None and shadowed:
                        matched = [
                            node_id for node_id in matched if node_id not in shadowed
                        ]
                    for address in matched:
                        rules_at.setdefault(address, []).append(len(self._rules))
                    self._rules.append(_Rule(specificity(selector), bodies[body]))
        self.rules_at = {node_id: tuple(rules) for node_id, rules in rules_at.items()}

    def _decides(self, body: str) -> bool:
        """Whether a rule with this body, in lower case, may hide or show something."""
        if DECISIVE.search(body):
            return True
        return not self._is_linked and COLOURED.search(body) is not None

    def _matched(self, selector: str, scope: LexborNode) -> list[int]:
        """Return the addresses of the elements in `scope` that a selector matches; none
        where the page's time for it is used up, or the selector is refused or too
        costly."""
        if self._seconds <= 0 or not self._is_short(selector):
            return []
        began = time.thread_time()
        addresses = []
        with suppress(SelectolaxError):  # pseudo-elements, what only one browser knows
            addresses = [node.mem_id for node in scope.css(selector)]
        self._seconds -= time.thread_time() - began
        return addresses

    def _is_short(self, selector: str) -> bool:
        """Whether Lexbor matches a selector within `LEXBOR_STEPS` at worst."""
        bare = re.sub(r"\[[^\]]*\]", "[]", selector)
        bare = re.sub(r"\s*([>+~,()])\s*", r"\1", bare).strip()
        has, blanks = bare.count(":has("), bare.count(" ")
        sibling_steps = len(_BY_SIBLINGS.findall(bare))
        if not (has or blanks or sibling_steps):  # a step for each element
            return True
        steps: int = self._bound("*") ** (1 + has)
        if blanks:
            steps *= comb(self._bound(">"), blanks)
        if sibling_steps:
            steps *= self._bound("+") ** sibling_steps
        return steps <= LEXBOR_STEPS

    def _bound(self, joint: str) -> int:
        """Return a bound on nesting, siblings or number of elements; `MAX_ITEMS` beyond
        the largest that is tried."""
        if joint not in self._bounds:
            css, sizes = self._top.css, (32, 128, 512)
            if joint == "*":
                self._bounds[joint] = len(css("*"))
            else:
                self._bounds[joint] = next(
                    (size for size in sizes if not css("*" + f"{joint}*" * size)),
                    MAX_ITEMS,
                )
        return self._bounds[joint]


def _variables_of(top: LexborNode, sheets: Iterable[StyleSheet]) -> dict[str, str]:
    """Return the custom properties of a page; of equal names the last counts for all
    elements."""
    texts = [sheet.text.lower() for sheet in sheets if "--" in sheet.text]
    styles = [node.attributes["style"] or "" for node in top.css('[style*="--"]')]
    return {
        name: value.replace("!important", "").strip()
        for text in [*texts, *map(str.lower, styles)]
        for name, value in _SETS_VARIABLE.findall(text)
    }


def _names_in(top: LexborNode) -> frozenset[str]:
    """Return the classes of a page as `.a`, and its ids as `#a`, in lower case."""
    nodes = (top, *top.css("[class], [id]"))
    classes = {(node.attrs.get("class") or "").lower() for node in nodes}
    ids = {f"#{(node.id or '').lower()}" for node in nodes}
    return frozenset(ids | {f".{name}" for name in " ".join(classes).split()})


def _may_match(selector: str, names: frozenset[str]) -> bool:
    """Whether all classes and ids that a selector asks for are on the page; longer
    selectors than `SELECTOR_CHARACTERS` are not matched."""
    if len(selector) > SELECTOR_CHARACTERS or "\\" in selector:
        return len(selector) <= SELECTOR_CHARACTERS
    bare = (
        _BRACKETS.sub("", selector) if "(" in selector or "[" in selector else selector
    )
    return names.issuperset(_CLASS_OR_ID.findall(bare.lower()))
