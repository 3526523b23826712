"""Generated parts of the documents: `python -m docs.build` writes them, `--check` compares them.

A part is between the comments `<!-- NAME:begin -->` and `<!-- NAME:end -->` of a
document. Not for: text written by people.
"""

import argparse
import functools
import hashlib
import importlib
import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, get_type_hints

from pydantic import BaseModel

from docs.buttons import buttons
from docs.client_pages import client_entry, client_rows
from docs.constants import tables
from docs.shell import shell_files
from extras.install.clients import CLIENTS
from readers.format import formats
from server.settings import SETTINGS_TABLE

ROOT: Final = Path(__file__).resolve().parents[1]
WIDTH: Final = int(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "ruff"
    ]["line-length"]
)
"""Characters of a line that people read as text, as of code; rows of tables are longer."""
Json = dict[str, Any]


def settings() -> str:
    """Return every setting as a row of a table."""
    rows = [
        (f"`WINNOW_{s.name.upper()}`", _code(s.default), s.help) for s in SETTINGS_TABLE
    ]
    return _table(("environment variable", "default", "meaning"), rows)


def file_types() -> str:
    """Return the endings of names that are read, by the extra that they need."""
    by_extra: dict[str, list[str]] = {}
    for one in formats():
        by_extra.setdefault(one.extra, []).extend(f"`{name}`" for name in one.endings)
    rows = [
        (f"`{extra}`" if extra else "none", " ".join(sorted(names)))
        for extra, names in sorted(by_extra.items())
    ]
    return _table(("extra", "endings"), rows)


def clients() -> str:
    """Return a row for each client that `winnow install` knows, with its page."""
    return _table(("client", "name for `winnow install`"), client_rows())


def tools_in_brief() -> str:
    """Return each tool as a foldable paragraph: what it does in a sentence, and its arguments with
    their defaults."""
    return "\n".join(_folded(listed) for listed in _tools())


def tool(name: str) -> str:
    """Return the arguments of a tool and the fields of its result."""
    listed = next(tool for tool in _tools() if tool["name"] == name)
    properties, required = (
        listed["inputSchema"]["properties"],
        listed["inputSchema"]["required"],
    )
    arguments = [
        (
            f"`{name}`",
            _kind(field),
            "required" if name in required else _code(_default(field)),
            _meaning(field),
        )
        for name, field in properties.items()
    ]
    head = "\n".join(textwrap.wrap(listed["description"], WIDTH))
    table = _table(("argument", "type", "default", "meaning"), arguments)
    return (
        f"{head}\n\n{table}\n\nFields of the result beside the "
        f"text:\n\n{_fields(_result_schema(name))}"
    )


def objects() -> str:
    """Return the fields of the objects in results."""
    found: dict[str, Json] = {}
    for listed in _tools():
        found |= _result_schema(listed["name"]).get("$defs", {})
    return "\n\n".join(
        f"### {name}\n\n{_fields(schema)}" for name, schema in sorted(found.items())
    )


def parts() -> dict[tuple[str, str], Callable[[], str]]:
    """Return what makes each part, by document and name."""
    return {
        ("README.md", "buttons"): buttons,
        ("docs/clients.md", "clients"): clients,
        **{
            (f"docs/clients/{name}.md", "entry"): functools.partial(client_entry, name)
            for name in CLIENTS
        },
        ("README.md", "tools"): tools_in_brief,
        ("docs/settings.md", "settings"): settings,
        ("docs/troubleshooting.md", "file-types"): file_types,
        ("docs/constants.md", "constants"): tables,
        **{
            ("docs/tools.md", listed["name"]): functools.partial(tool, listed["name"])
            for listed in _tools()
        },
        ("docs/tools.md", "objects"): objects,
    }


PLACED: Final = re.compile(r"`(?P<file>[\w/]+\.py):\d+` `(?P<name>\w+)`")
"""Where a README of `papers/` says that a name is."""


def with_lines(path: Path) -> str:
    """Return a README of `papers/` with the line of each name that it places, as
    `cluster.py:12` `cluster`, in a file beside it or from the root; raises `ValueError` where
    the file has no such name."""

    def placed(match: re.Match[str]) -> str:
        name = match["name"]
        beside = path.parent / match["file"]
        code = (beside if beside.exists() else ROOT / match["file"]).read_text("utf-8")
        begins = re.compile(rf"\s*(?:async def|def|class) {name}\b|{name}\b.*=")
        for number, line in enumerate(code.splitlines(), start=1):
            if begins.match(line):
                return f"`{match['file']}:{number}` `{name}`"
        raise ValueError(f"{path}: {match['file']} has no {name}.")

    return PLACED.sub(placed, path.read_text(encoding="utf-8"))


def skills_of_the_server() -> str:
    """Return `server/skills.json`: the entry of each skill, as `skills/list` has it, and its text."""
    skills, texts = [], {}
    for path in sorted((ROOT / "skills").glob("*/SKILL.md")):
        uri, text = f"skill://{path.parent.name}/SKILL.md", path.read_text("utf-8")
        raw = text.encode()
        header = dict(
            line.split(": ", 1) for line in text.split("---\n")[1].splitlines()
        )
        digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
        files = [{"uri": uri, "digest": digest, "size": len(raw)}]
        skills.append({"uri": uri, "frontmatter": header, "resources": files})
        texts[uri] = text
    return json.dumps({"skills": skills, "texts": texts}, indent=1) + "\n"


def skills_of_the_plugin() -> dict[Path, str]:
    """Return the copies of `skills/` in `plugin/`: clients copy that folder alone."""
    skills = ROOT / "skills"
    return {
        ROOT / "plugin/skills" / path.relative_to(skills): path.read_text("utf-8")
        for path in skills.glob("*/SKILL.md")
    }


def main() -> None:
    """Write the parts, or name those that differ from the code and leave with 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit 1 where a part is not as the code is",
    )
    args = parser.parse_args()
    stale = []
    for (name, part), make in parts().items():
        path = ROOT / name
        before = _with_section(path.read_text(encoding="utf-8"), part)
        after = _with_part(before, part, make())
        if after != before:
            stale.append(f"{name}: {part}")
            if not args.check:
                path.write_text(after, encoding="utf-8")
    whole = {
        **{path: with_lines(path) for path in (ROOT / "papers").rglob("README.md")},
        **skills_of_the_plugin(),
        ROOT / "server/skills.json": skills_of_the_server(),
        **shell_files(),
    }
    for path, after in whole.items():
        if not path.exists() or after != path.read_text(encoding="utf-8"):
            stale.append(str(path.relative_to(ROOT)))
            if not args.check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(after, encoding="utf-8")
    if args.check and stale:
        sys.exit(f"Not as the code is: {', '.join(stale)}. Run: python -m docs.build")


def _with_section(text: str, part: str) -> str:
    """Return a document with a section for a tool that is new, before the objects in results."""
    known = f"<!-- {part}:begin -->" in text
    if known or not any(tool["name"] == part for tool in _tools()):
        return text
    head, objects, rest = text.partition("## Objects in results\n")
    return f"{head}## {part}\n\n<!-- {part}:begin -->\n<!-- {part}:end -->\n\n{objects}{rest}"


def _with_part(text: str, part: str, body: str) -> str:
    begin, end = f"<!-- {part}:begin -->", f"<!-- {part}:end -->"
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"There are no markers {begin} … {end}.")
    return f"{head}{begin}\n{body}\n{end}{tail}"


def _tools() -> list[Json]:
    """Return the tools as clients see them, `research` first."""
    listed: list[Json] = json.loads(
        (ROOT / "server" / "tools_list.json").read_text(encoding="utf-8")
    )
    return sorted(listed, key=lambda one: bool(one["name"] != "research"))


def _folded(listed: Json) -> str:
    properties, required = (
        listed["inputSchema"]["properties"],
        listed["inputSchema"]["required"],
    )
    defaults = {
        name: "" if name in required else _default(field)
        for name, field in properties.items()
    }
    given = ", ".join(
        f"{name}={value}" if value else name for name, value in defaults.items()
    )
    # In HTML altogether: Markdown within it needs blank lines around.
    lines = textwrap.wrap(
        f"Arguments: <code>{given}</code>", WIDTH, break_long_words=False
    )
    first = listed["description"].partition(". ")[0]
    return "\n".join(
        [
            f"<details><summary><code>{listed['name']}</code>: {first}.</summary>",
            *lines,
            "</details>",
        ]
    )


def _result_schema(name: str) -> Json:
    """The result model of a tool, which its function names beside its return type."""
    function = getattr(importlib.import_module(f"tools.{name}"), name)
    model: type[BaseModel] = get_type_hints(function, include_extras=True)[
        "return"
    ].__metadata__[0]
    return model.model_json_schema()


def _fields(schema: Json) -> str:
    rows = [
        (f"`{name}`", _kind(field), _meaning(field))
        for name, field in schema["properties"].items()
    ]
    return _table(("field", "type", "meaning"), rows)


def _kind(field: Json) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in field:
        return ", ".join(f"`{value}`" if value else "empty" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_kind(field['items'])}"
    names = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
    }
    name = names.get(field.get("type", ""), "object")
    return (
        f"{name}, {field['minimum']} to {field['maximum']}"
        if "maximum" in field
        else name
    )


def _default(field: Json) -> str:
    """The default as a caller writes it; empty where it is the empty text. A list of tools leaves
    false and 0 out."""
    value = field.get(
        "default", {"boolean": False, "integer": 0}.get(field.get("type", ""), "")
    )
    return value if isinstance(value, str) else json.dumps(value)


def _code(value: str) -> str:
    return f"`{value}`" if value else "–"


def _meaning(field: Json) -> str:
    return str(field.get("description", ""))


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )


if __name__ == "__main__":
    main()
