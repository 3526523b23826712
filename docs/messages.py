"""Every message that a person or a model reads, in one file: `tests/golden/messages.txt`.

    python -m docs.messages           writes the file
    python -m docs.messages --check   exits with 1 if the code has other messages (`make lint`)

Collected from the code: texts of errors and their hints, lines that answers and reports add, help of
commands and settings, reasons and notes, texts that functions return or yield; and the desk's English texts.
`{}` is a value. Read the file after a change of wording: each message says what happened, with which
value, and what to do.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from typing import Final, TypeGuard

from docs.words import ROOT, tracked

SNAPSHOT: Final = ROOT / "tests" / "golden" / "messages.txt"
FOLDERS: Final = (
    "cli/",
    "server/",
    "tools/",
    "pipeline/",
    "readers/",
    "models/",
    "cache/",
    "papers/",
    "extras/",
    "errors.py",
    "extra.py",
    "seams.py",
    "cancellation.py",
)
CALLS: Final = frozenset(
    {"add", "add_cut", "append", "warning", "info", "print", "Check", "_setting"}
)
"""Functions besides errors whose texts are messages."""
KEYWORDS: Final = frozenset(
    {"hint", "help", "reason", "note", "unread", "why", "epilog", "fault"}
)
"""Arguments and fields whose texts are messages."""
_CODE: Final = re.compile(
    r"<\w|</|HTTP/1|\[[\w*]+[\^$*~]?=|\bfont:|PRAGMA|redis\.call|\w+=\{\}\]|\(\?|\bconst\b|^(?:\S{2} ){5}|^\.\w+ \."
)
"""Text of markup, selectors, queries and lists, which is not a message."""
LETTERS: Final = 8
"""Minimum letters of a message; shorter texts are labels."""


def messages(source: str) -> Iterator[str]:
    """Yield the messages in the code of one file, in order."""
    found: dict[tuple[int, int], str] = {}
    for node in ast.walk(ast.parse(source)):
        for value in _texts(node):
            text = " ".join(_text(value).split())
            if (
                any(" " in form for form in text.split(" | "))
                and sum(map(str.isalpha, text)) >= LETTERS
                and not _CODE.search(text)
            ):
                found[value.lineno, value.col_offset] = text
    yield from (found[place] for place in sorted(found))


def _texts(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions of a call or assignment that may be messages."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            raises = name[:1].isupper() and name not in ("Path", "Final", "TypeVar")
            if raises or name in CALLS:
                yield from node.args
            yield from (
                one.value for one in node.keywords if raises or one.arg in KEYWORDS
            )
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            if name.isupper() or name.lower().strip("_") in KEYWORDS | {"what", "line"}:
                yield value
        case ast.Return(value=value) | ast.Yield(value=value) if value is not None:
            yield value
        case ast.AugAssign(value=value) | ast.Lambda(body=value):
            yield value
        case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
            yield value
        case ast.IfExp(body=one, orelse=other):
            yield from (one, other)
        case ast.Dict(keys=keys, values=values):
            yield from filter(_is_filled, (*keys, *values))
        case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
            yield from filter(_is_filled, values)


def _is_filled(node: ast.expr | None) -> TypeGuard[ast.expr]:
    """Whether an element of a collection is a text with values or of several forms;
    constant ones are words that code compares."""
    return isinstance(node, ast.JoinedStr | ast.IfExp)


def _text(node: ast.expr) -> str:
    """Return the text of a string expression, `{}` for each value; "" for other expressions."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(one) or "{}" for one in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            both = _text(left), _text(right)
            return "".join(one or "{}" for one in both) if any(both) else ""
        case ast.IfExp(body=body, orelse=orelse):
            return " | ".join(filter(None, map(_text, (body, orelse))))
    return ""


def snapshot() -> str:
    """Return the content of `SNAPSHOT`."""
    lines: list[str] = []
    for path in tracked():
        if path.startswith(FOLDERS) and path.endswith(".py"):
            found = list(dict.fromkeys(messages((ROOT / path).read_text("utf-8"))))
            lines += ["", path, *(f"  {text}" for text in found)] if found else []
    texts = json.loads(
        (ROOT / "extras" / "desk" / "texts" / "en.json").read_text("utf-8")
    )
    lines += [
        "",
        "extras/desk/texts/en.json",
        *(f"  {name}: {text}" for name, text in texts.items()),
    ]
    return "\n".join(lines).lstrip("\n") + "\n"


def main() -> None:
    """Write the snapshot, or compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="compare instead of writing"
    )
    now = snapshot()
    if parser.parse_args().check:
        if not SNAPSHOT.exists() or SNAPSHOT.read_text("utf-8") != now:
            sys.exit(
                "tests/golden/messages.txt is outdated: run python -m docs.messages, and read the difference"
            )
        return
    SNAPSHOT.write_text(now, "utf-8")


if __name__ == "__main__":
    main()
