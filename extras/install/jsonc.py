"""JSON with comments and trailing commas (JSONC), as editors write their settings:
read, and one entry of it changed.

An edit replaces the text of one member only, so comments, order and indentation of the
rest stay. PyPI libraries that keep comments reformat the file or need a JavaScript
engine. Not for: JSON5, such as names without quotes.
"""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_JSONC_TOKEN: Final = re.compile(r'("(?:\\.|[^"\\])*")|(//[^\n]*|/\*.*?\*/)', re.DOTALL)
_TRAILING: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_REST_OF_LINE: Final = re.compile(
    r",?(?:[ \t]*/\*(?:(?!\*/).)*\*/)*(?:[ \t]*//[^\n]*)?(?=[ \t]*\n)", re.DOTALL
)
_TWO_SPACES: Final = "  "


class _Member(NamedTuple):
    """A member of an object in the text: name, begin and end of its value."""

    name: str
    start: int
    value: int
    end: int


def read_jsonc(text: str) -> object:
    """Return the value of `text`, {} for an empty text; raises `ValueError` like
    `json.loads`."""
    plain = _plain(text)
    return json.loads(plain) if plain.strip() else {}


def with_member(text: str, path: tuple[str, ...], value: object) -> str:
    """Return `text` with the member at `path` set to `value`; missing objects are
    created.

    Values on the path must be objects; `text` may be empty. Of members with one name
    the last is changed. Raises `ValueError` for a text without an object.
    """
    plain = _plain(text)
    if not plain.strip():
        return f"{text}{_written(_nested(path, value), '', _TWO_SPACES)}\n"
    unit = found[1] if (found := _INDENT.search(plain)) else _TWO_SPACES
    at, start, end = plain.index("{"), 0, 0
    for depth, name in enumerate(path):
        members = list(_members(plain, at))
        member = next((one for one in reversed(members) if one.name == name), None)
        if member is None:
            return _inserted(
                text,
                plain,
                at,
                members,
                (name, _nested(path[depth + 1 :], value)),
                unit,
            )
        start, at, end = member.start, member.value, member.end
    return text[:at] + _written(value, _indent_of(text, start), unit) + text[end:]


def without_member(text: str, path: tuple[str, ...]) -> str:
    """Return `text` without the member at `path`, the last of one name; raises
    `ValueError` if there is none."""
    plain = _plain(text)
    at = plain.index("{")
    for name in path:
        members = list(_members(plain, at))
        index = max(index for index, one in enumerate(members) if one.name == name)
        at = members[index].value
    member, bare = members[index], _without_comments(text)
    comma = re.compile(r"\s*,").match(bare, member.end)
    end = comma.end() if comma else member.end
    start = len(text[: member.start].rstrip())
    if "\n" in text[start : member.start] and not text[end:].lstrip(" \t").startswith(
        "\n"
    ):
        start = member.start  # the text before may end with a line comment
    rest = text[:start], text[end:]
    if comma or index == 0:
        return "".join(rest)
    # The comma before the last member is removed too; a comment after it stays.
    gap = bare.index(",", members[index - 1].end)
    return rest[0][:gap] + rest[0][gap + 1 :] + rest[1]


def _inserted(
    text: str,
    plain: str,
    at: int,
    members: list[_Member],
    entry: tuple[str, object],
    unit: str,
) -> str:
    """Return `text` with an entry added after the last member of the object at `at`."""
    name = json.dumps(entry[0], ensure_ascii=False)
    if not members:
        outer = _indent_of(text, at)
        ours = f"\n{outer}{unit}{name}: {_written(entry[1], outer + unit, unit)}"
        rest = _REST_OF_LINE.match(text, at + 1)
        offset = rest.end() if rest else at + 1
        close = "" if text[offset:].lstrip(" \t").startswith("\n") else f"\n{outer}"
        return text[:offset] + ours + close + text[offset:]
    last = members[-1]
    if "\n" not in plain[at : last.start]:  # object on one line
        return (
            f"{text[: last.end]}, {name}: "
            f"{json.dumps(entry[1], ensure_ascii=False)}{text[last.end :]}"
        )
    indent = _indent_of(text, last.start)
    ours = f"\n{indent}{name}: {_written(entry[1], indent, unit)}"
    rest = _REST_OF_LINE.match(text, last.end)
    offset = rest.end() if rest else last.end
    said = text[last.end : offset]
    if said.startswith(","):  # this file uses trailing commas
        return text[: last.end] + said + ours + "," + text[offset:]
    return text[: last.end] + "," + said + ours + text[offset:]


def _members(plain: str, at: int) -> Iterator[_Member]:
    """Yield the members of the object whose `{` is at `at`, in text without comments or
    trailing commas.

    Raises `ValueError` or `IndexError` where no whole object begins there."""
    decoder = json.JSONDecoder()
    offset = _past(plain, at + 1)
    while plain[offset] != "}":
        name, end = decoder.raw_decode(plain, offset)
        value = _past(plain, plain.index(":", end) + 1)
        _, end = decoder.raw_decode(plain, value)
        yield _Member(name, offset, value, end)
        offset = _past(plain, end)
        if plain[offset] == ",":
            offset = _past(plain, offset + 1)


def _past(text: str, offset: int) -> int:
    """Return the offset of the next non-space character."""
    while text[offset].isspace():
        offset += 1
    return offset


def _without_comments(text: str) -> str:
    """Return `text` with comments replaced by spaces; offsets stay valid."""
    return _JSONC_TOKEN.sub(
        lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text
    )


def _plain(text: str) -> str:
    """Return `text` as plain JSON with unchanged offsets."""
    return _TRAILING.sub(lambda found: found[1] or " ", _without_comments(text))


def _indent_of(text: str, offset: int) -> str:
    """Return the indentation of the line at `offset`."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip())]


def _written(value: object, indent: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace(
        "\n", f"\n{indent}"
    )


def _nested(path: tuple[str, ...], value: object) -> object:
    for name in reversed(path):
        value = {name: value}
    return value
