"""Values written in JavaScript: objects whose names need no quotes, single quotes, a
function that names its arguments.

    {post: {title: a, html: "<p>…"}}        (function (a, b) {return {title: a, text: b}}("Lock", "It is shut."))

Nothing is executed: an expression (sum, call, condition) ends the reading. One reader
has a number of steps for all of a page, so that it takes no longer than the page is
long. Not for: JSON, which `json` reads faster.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pipeline.work import check_cancelled

Json = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

LITERAL_DEPTH: Final = 100
LITERAL_STEPS: Final = 300_000
"""Names, values and signs that are read in one page: half a second."""
_JS_TOKEN: Final = re.compile(
    r"""\s*+(?:(?P<string>"(?:[^"\\\n]|\\.|(?!))*+"|'(?:[^'\\\n]|\\.|(?!))*+'|`(?:[^`\\$]|\\.|\$(?!\{)|(?!))*+`)"""
    r"""|(?P<number>-?(?:0x[\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))n?(?![\w$])"""
    r"""|(?P<name>[A-Za-z_$][\w$]*+(?:\.[\w$]++|(?!))*+)|(?P<mark>[{}\[\](),:!;]))""",
    re.DOTALL,
)
_JS_ESCAPE: Final = re.compile(
    r"\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|u\{([\da-fA-F]{1,6})\}|\r?\n|(.))",
    re.DOTALL,
)
_JS_ESCAPED: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "0": "",
}
_SURROGATE_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONSTANTS: Final[Mapping[str, Json]] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": None,
    "NaN": None,
}
_JS_FUNCTION: Final = re.compile(
    r"(?:\bfunction\s*+[\w$]{0,60}+\s*+\(([\w$\s,]*+)\)|(?<![\w$])\(([\w$\s,]*+)\)\s*+=>)\s*+\{"
)
_RETURN: Final = re.compile(r"\breturn\s*(?=[{\[])")
_CALLED_AT_ONCE: Final = re.compile(r"\s*;?\s*\}\s*\)?\s*\(")
"""From the end of what a function returns to its arguments."""
_JS_ASSIGNMENT: Final = re.compile(
    r"(?<![\w$.])([\w$]{1,60})\.([\w$]{1,60})\s{0,3}=(?!=)"
)
_SCRIPT_FUNCTIONS: Final = 20
"""Functions of a script, and returns of each, that are looked at."""


class NoLiteral(Exception):
    """The text is not a value, or no steps are left."""


class Literals:
    """Reads the values of one page, in a number of steps for all of them."""

    def __init__(self) -> None:
        """Begin with all steps."""
        self._left = LITERAL_STEPS

    def value(
        self,
        source: str,
        offset: int,
        names: Mapping[str, Json] = _CONSTANTS,
        depth: int = 0,
    ) -> tuple[Json, int]:
        """Return the value at an offset and where it ends; raises `NoLiteral` where
        there is none, or it is nested deeper than `LITERAL_DEPTH`.

        A name that is not in `names` gives None. Of a whole number the first 300 digits
        count."""
        kind, text, end = self._token(source, offset)
        if depth > LITERAL_DEPTH:
            raise NoLiteral
        if kind == "string":
            return string_of(text), end
        if kind == "number":
            return (
                int(text, 16)
                if "x" in text
                else float(text)
                if set(text) & set(".eE")
                else int(text[:300])
            ), end
        if kind == "name":
            return self._named(source, text, end, names, depth)
        if text == "!":
            operand, end = self.value(source, end, names, depth + 1)
            return not operand, end
        if text == "[":
            return self._list(source, end, "]", names, depth)
        if text == "{":
            return self._object(source, end, names, depth)
        raise NoLiteral

    def called(self, source: str) -> list[Json]:
        """Return what the first function returns that a script calls where it makes it,
        the arguments filled in; at most one value, nothing where it cannot be read."""
        results: list[Json] = []
        for _, function in zip(
            range(_SCRIPT_FUNCTIONS), _JS_FUNCTION.finditer(source), strict=False
        ):
            parameters = [
                name.strip() for name in (function[1] or function[2] or "").split(",")
            ]
            for _, back in zip(
                range(_SCRIPT_FUNCTIONS),
                _RETURN.finditer(source, function.end()),
                strict=False,
            ):
                try:
                    _, end = self.value(source, back.end())
                    if (call := _CALLED_AT_ONCE.match(source, end)) is None:
                        continue
                    arguments, _ = self._list(source, call.end(), ")", _CONSTANTS, 0)
                    names = {
                        **_CONSTANTS,
                        **dict(zip(parameters, arguments, strict=False)),
                    }
                    self._assign(source[function.end() : back.start()], names)
                    results.append(self.value(source, back.end(), names)[0])
                    return results
                except NoLiteral:
                    continue
        return results

    def _assign(self, source: str, names: dict[str, Json]) -> None:
        """Put the values into objects that a function does before it returns: `a.title
        = b; …`; what cannot be read, or is assigned to anything but an object, is
        passed over."""
        for assigned in _JS_ASSIGNMENT.finditer(source):
            holder = names.get(assigned[1])
            if isinstance(holder, dict):
                with suppress(NoLiteral):
                    holder[assigned[2]] = self.value(source, assigned.end(), names)[0]

    def _token(self, source: str, offset: int) -> tuple[str, str, int]:
        self._left -= 1
        if not self._left & 0xFFF:
            check_cancelled()
        token = _JS_TOKEN.match(source, offset) if self._left > 0 else None
        if token is None or token.lastgroup is None:
            raise NoLiteral
        return token.lastgroup, token[token.lastgroup], token.end()

    def _named(
        self, source: str, name: str, end: int, names: Mapping[str, Json], depth: int
    ) -> tuple[Json, int]:
        """Return what a name is: of an argument its value, of a call its first
        argument, of any other None; raises `NoLiteral` for a function or class."""
        if name in {"void", "new"}:
            return self.value(source, end, names, depth + 1)
        if name in {"function", "async", "class", "return"} or source.startswith(
            "=>", end
        ):
            raise NoLiteral
        if name not in names and source.startswith("(", end):
            arguments, end = self._list(source, end + 1, ")", names, depth)
            return (arguments[0] if arguments else None), end
        return names.get(name), end

    def _list(
        self,
        source: str,
        offset: int,
        closing: str,
        names: Mapping[str, Json],
        depth: int,
    ) -> tuple[list[Json], int]:
        values: list[Json] = []
        while True:
            kind, text, end = self._token(source, offset)
            if kind == "mark" and text == closing:
                return values, end
            if kind == "mark" and text == ",":
                offset = end
                continue
            value, offset = self.value(source, offset, names, depth + 1)
            values.append(value)
            _, text, _ = self._token(source, offset)
            if text not in {",", closing}:
                raise NoLiteral

    def _object(
        self, source: str, offset: int, names: Mapping[str, Json], depth: int
    ) -> tuple[dict[str, Json], int]:
        properties: dict[str, Json] = {}
        while True:
            kind, text, offset = self._token(source, offset)
            if kind == "mark" and text == "}":
                return properties, offset
            if kind == "mark" and text == ",":
                continue
            if kind == "mark":
                raise NoLiteral
            key = string_of(text) if kind == "string" else text
            _, delimiter, end = self._token(source, offset)
            if delimiter == ":":
                properties[key], offset = self.value(source, end, names, depth + 1)
                _, delimiter, _ = self._token(source, offset)
            else:
                properties[key] = names.get(key)
            if delimiter not in {",", "}"}:
                raise NoLiteral


def string_of(quoted: str) -> str:
    """Return what a string of JavaScript with its quotes says; half of a surrogate pair
    becomes U+FFFD."""
    content = quoted[1:-1]
    if "\\" not in content:
        return content
    text = _JS_ESCAPE.sub(_plain, content)
    text = _SURROGATE_PAIR.sub(
        lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"),
        text,
    )
    return _LONE_SURROGATE.sub("\ufffd", text)


def _plain(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code:
        return chr(min(int(code, 16), 0x10FFFF))
    return _JS_ESCAPED.get(escape[4] or "", escape[4] or "")
