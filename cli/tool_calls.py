"""Every tool as a command, called through an MCP client in this process, so that
arguments, errors and answers are the server's.

Not for: what a tool does, nor commands beside the tools (`subcommand.py`).
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from cli.output import FAILED, NO_ANSWER, OK, drawn_progress, print_json
from cli.subcommand import Subcommand
from errors import UsageError
from server.offered import by_order
from server.settings import Settings, for_a_person, read_settings
from tools.common.tool import OURS

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_LISTED: Final = {tool["name"]: tool for tool in by_order()}
TOOL_OF_COMMAND: Final = {tool[OURS]["command"]: name for name, tool in _LISTED.items()}
"""Command to tool."""


def tool_commands() -> list[Subcommand]:
    """Return the command of each tool."""
    return [
        Subcommand(
            command,
            help=_LISTED[tool][OURS]["help"],
            arguments=partial(_add_arguments, tool),
            run=_run,
        )
        for command, tool in TOOL_OF_COMMAND.items()
    ]


def call(
    args: argparse.Namespace,
    settings: Settings,
    tool: str,
    arguments: Mapping[str, object],
) -> int:
    """Call `tool` and print its answer; return the exit code."""
    return anyio.run(_call_tool, settings, tool, dict(arguments), args.json, args.quiet)


def with_sources(
    overrides: Mapping[str, str], sources: Sequence[str]
) -> dict[str, str]:
    """Return `overrides` with the folders of files among `sources`: who names a file on the
    command line may read it; MCP clients have no such right.

    Raises `UsageError` if all are files that do not exist.
    """
    local = [path for name in sources if (path := _local_path(name)) is not None]
    if sources and len(local) == len(sources) and not any(map(os.path.exists, local)):
        raise UsageError(
            f"no such file: {sources[0]!r}.",
            hint="Give a file, a folder, or a URL with https://.",
        )
    folders_named = [
        str(path.resolve() if path.is_dir() else path.resolve().parent)
        for path in local
        if os.path.exists(path)
    ]
    folders = dict.fromkeys([*filter(None, [overrides.get("folders")]), *folders_named])
    return (
        {**overrides, "folders": os.pathsep.join(folders)}
        if folders
        else dict(overrides)
    )


def _local_path(source: str) -> Path | None:
    """Return the path that a source names as such or by a `file:` address, None for
    others. Raises `AddressRefused` for a file on another machine."""
    if source.startswith("file:"):
        from pipeline.fetch.files import path_of_url  # noqa: PLC0415  takes .3 s to load

        return path_of_url(source)
    is_other = "://" in source or source.startswith("site:")
    return None if is_other else Path(source).expanduser()


def absolute(source: str) -> str:
    """Return the absolute path of an existing file, and other sources unchanged."""
    path = Path(source).expanduser()
    return str(path.resolve()) if "://" not in source and path.exists() else source


def as_typed(argv: list[str]) -> list[str]:
    """Return a command line in which a call is as answers name it: with the tool for its
    command, `max_tokens=800` for `--max-tokens=800`, and `sources=["a", "b"]` for a
    and b."""
    commands = {tool: command for command, tool in TOOL_OF_COMMAND.items()}
    argv = [commands.get(name, name) for name in argv[:1]] + argv[1:]
    if not argv or argv[0] not in TOOL_OF_COMMAND:
        return argv
    tool = TOOL_OF_COMMAND[argv[0]]
    options = {
        name: field["type"] == "boolean"
        for name, field in _LISTED[tool]["inputSchema"]["properties"].items()
        if name not in _positional(tool)
    }
    typed = []
    for argument in argv:
        name, equals, value = argument.partition("=")
        if name == "sources" and value.startswith("["):
            # A shell may have taken the quotation marks away
            typed += re.findall(r'[^]["\s,][^]",]*', value)
        elif not equals or name not in options:
            typed.append(argument)
        elif not options[name]:
            typed.append(f"--{name.replace('_', '-')}={value}")
        elif value == "true":
            typed.append(f"--{name}")
    return typed


def _positional(tool: str) -> tuple[str, ...]:
    """Return the arguments of a tool that its command takes by their place."""
    listed = _LISTED[tool]
    return (*listed[OURS]["by_place"], *listed["inputSchema"].get("required", []))


def _add_arguments(tool: str, parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a tool's schema; required ones are positional."""
    fields, positional = _LISTED[tool]["inputSchema"]["properties"], _positional(tool)
    for argument, field in sorted(fields.items(), key=lambda one: one[0] != "question"):
        described = {"help": field.get("description", "").replace("%", "%%")}
        if argument in positional:
            free = "?" if argument == "question" and "draft" in fields else None
            parser.add_argument(
                argument,
                nargs="+" if field["type"] == "array" else free,
                **described,
            )
        elif field["type"] == "boolean":
            parser.add_argument(
                f"--{argument}", action="store_const", const=True, **described
            )
        else:
            kind = int if field["type"] == "integer" else str
            option = f"--{argument.replace('_', '-')}"
            parser.add_argument(
                option, type=kind, choices=field.get("enum"), **described
            )


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    """Raises `UsageError` for `extract` without a question or draft, and for invalid
    settings."""
    if getattr(args, "draft", "") is None and args.question is None:
        raise UsageError(
            "extract needs a question and a source.",
            hint=f"Write winnow {args.command} QUESTION SOURCE, or SOURCE --draft TEXT.",
        )
    overrides = (
        with_sources(overrides, args.sources) if "sources" in args else dict(overrides)
    )
    settings, tool = read_settings(overrides), TOOL_OF_COMMAND[args.command]
    arguments = {
        name: [absolute(source) for source in value] if name == "sources" else value
        for name in _LISTED[tool]["inputSchema"]["properties"]
        if (value := getattr(args, name)) is not None
    }
    return call(args, for_a_person(settings), tool, arguments)


async def _call_tool(
    settings: Settings, tool: str, arguments: dict[str, Any], as_json: bool, quiet: bool
) -> int:
    """Call `tool` through an MCP client connected in this process, print its answer and
    return the exit code."""
    from mcp import Client  # noqa: PLC0415  the pipeline, which help and other commands start without

    from server.app import build_server  # noqa: PLC0415  the pipeline, which help and other commands start without

    code, gone = OK, None
    async with Client(build_server(settings)) as client:
        with drawn_progress(quiet=quiet) as draw:
            result = await client.call_tool(tool, arguments, progress_callback=draw)
        try:  # before the end, which waits for a page of the folders that is being read
            code = _print_result(result, as_json)
            sys.stdout.flush()
        except BrokenPipeError as error:  # the client's task group would wrap it
            gone = error
    if gone is not None:
        raise gone
    return code


def _print_result(result: CallToolResult, as_json: bool) -> int:
    """Print an answer; return the exit code.

    `FAILED` for an error, which goes to stderr; `NO_ANSWER` for the verdict `none`,
    without hits or pages, or if something of a draft is in no source.
    """
    from mcp_types import TextContent  # noqa: PLC0415  the pipeline, which help and other commands start without

    from tools.common.ending import data_of  # noqa: PLC0415  the pipeline, which help and other commands start without

    text = "\n".join(
        block.text for block in result.content if isinstance(block, TextContent)
    )
    if result.is_error:
        print(f"winnow: {text}", file=sys.stderr)
        return FAILED
    data = data_of(result)
    if as_json:
        print_json({"text": text, **data})
    else:
        print(text)
    if "checked" in data:
        # What lacks something comes first.
        first = next(iter(data["checked"]), {"lacks": True})
        return NO_ANSWER if first.get("lacks") else OK
    results = [data[key] for key in ("passages", "hits", "pages") if key in data]
    is_none = data.get("verdict") == "none" or (results and not results[0])
    return NO_ANSWER if is_none else OK
