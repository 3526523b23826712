"""The command line `winnow`: every tool as a subcommand, and serve, models, cache,
sessions, install, doctor.

A command calls its tool through an MCP client in this process, so arguments, errors and
answers are the server's. Exit codes: 0 an answer, 1 a failure, 2 wrong usage, 3 no
answer. Not for: anything a tool does."""

import argparse
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn, get_args, get_type_hints

import anyio

from cli.install import CLIENTS, client_name, install
from cli.output import FAILED, NO_ANSWER, OK, USAGE, drawn_progress, print_json
from errors import UsageError, WinnowError
from server.offered import by_order
from server.settings import Settings, did_you_mean, read_settings, refuse_unknown
from tools.common.tool import OURS

CommandMaker = Callable[[str, str], argparse.ArgumentParser]
TOOL_OF_COMMAND: Final = {tool[OURS]["command"]: tool["name"] for tool in by_order()}
"""Command to tool."""
_COMMAND_OF_TOOL: Final = {tool: command for command, tool in TOOL_OF_COMMAND.items()}
WITHOUT_LOG: Final = frozenset({"models", "cache", "sessions", "eval"})
"""Commands that do not start a server, so they print warnings about settings
themselves."""
_MOST_PORT: Final = 65_535


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code: 1 for a failure, 2 for wrong usage,
    130 after Ctrl-C.

    Output that is closed early, as by `| head`, counts as success.
    """
    argv = sys.argv[1:] if argv is None else argv
    _open_streams(wire=argv[:1] == ["serve"])
    try:
        parser, commands = _parser()
        if argv and not argv[0].startswith("-") and argv[0] not in commands:
            hint = did_you_mean(argv[0], commands).strip() or "See winnow --help."
            raise UsageError(f"unknown command {argv[0]!r}.", hint=hint)
        code = _run(parser.parse_args(argv))
    except UsageError as error:
        print(f"winnow: {error}", file=sys.stderr)
        code = USAGE
    except WinnowError as error:
        print(f"winnow: {error}", file=sys.stderr)
        code = FAILED
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # The reader closed our output, as `| head` does; that is not a failure.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = OK
    sys.stdout.flush()
    sys.exit(code)


def _open_streams(*, wire: bool) -> None:
    """Make stdout and stderr writable in any locale, and if a descriptor is closed.

    If stdout is the protocol's `wire` it is not changed: reconfiguring would flush text
    that a library printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        # Otherwise the next opened file would get this descriptor and our output.
        if getattr(sys, name) is None and os.open(os.devnull, os.O_RDWR) == number:
            setattr(sys, name, open(number, "r" if number == 0 else "w"))  # noqa: SIM115  for the whole run
    for stream in (sys.stderr,) if wire else (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _run(args: argparse.Namespace) -> int:
    """Run one command; each imports only what it needs, so that startup is fast.

    Raises `UsageError` for `extract` without a question or draft, and for invalid
    settings.
    """
    if getattr(args, "draft", "") is None and args.question is None:
        raise UsageError(
            "extract needs a question and a source.",
            hint=f"Write winnow {args.command} QUESTION SOURCE, or SOURCE --draft TEXT.",
        )
    given = _given(args)
    if args.command == "doctor":
        from cli.doctor import doctor  # noqa: PLC0415  as said above

        return anyio.run(doctor, given, args.json)
    if args.command == "install":
        return install(args, given)
    settings = read_settings(given)
    if args.command in WITHOUT_LOG:
        for name, warning in settings.warnings().items():
            print(f"winnow: {name}: {warning}", file=sys.stderr)
    match args.command:
        case "serve":
            code = _serve(args, settings)
        case "models":
            from cli.models import run_models  # noqa: PLC0415  as said above

            code = run_models(args, settings)
        case "cache":
            from cli.kept import look_after_cache  # noqa: PLC0415  as said above

            code = look_after_cache(settings, args.action, args.file, as_json=args.json)
        case "sessions":
            from cli.kept import look_after_sessions  # noqa: PLC0415  as said above

            code = look_after_sessions(
                settings, args.action, args.handle, form=args.format, as_json=args.json
            )
        case "desk":
            from cli.desk import serve_desk  # noqa: PLC0415  as said above

            code = serve_desk(settings, given, port=args.port, show=not args.no_browser)
        case _:
            code = _call(args, settings)
    return code


def _serve(args: argparse.Namespace, settings: Settings) -> int:
    from server.transports import serve_http, serve_stdio  # noqa: PLC0415  as said above

    if not args.http:
        serve_stdio(settings)
        return OK
    serve_http(
        settings,
        host=args.host,
        port=args.port,
        allowed_hosts=args.allow_host,
        allowed_origins=args.allow_origin,
        open_to_all=args.without_auth,
    )
    return OK


def _call(args: argparse.Namespace, settings: Settings) -> int:
    if args.command == "raptor" and args.question == "tree":
        from cli.trees import draw_tree  # noqa: PLC0415  as said above

        sources = [_absolute(source) for source in args.sources]
        return anyio.run(
            draw_tree,
            settings,
            sources,
            args.chunking or "sentences",
            args.html,
            args.json,
        )
    tool, arguments = (
        TOOL_OF_COMMAND.get(args.command, TOOL_OF_COMMAND["extract"]),
        _arguments(args),
    )
    if args.command == "check":
        from tools.common.context import LARGEST_BUDGET  # noqa: PLC0415  as said above

        # Shown to a person in full.
        named = {"draft": _draft(args.report), "sources": arguments["sources"]}
        arguments = {"max_tokens": LARGEST_BUDGET, **named}
    return anyio.run(_call_tool, settings, tool, arguments, args.json, args.quiet)


async def _call_tool(
    settings: Settings, tool: str, arguments: dict[str, Any], as_json: bool, quiet: bool
) -> int:
    """Call `tool` through an MCP client connected in this process, and print its
    answer.

    Returns the exit code: `FAILED` for an error, which goes to stderr; `NO_ANSWER`
    without passages, hits or pages, or if not all of a draft is supported.
    """
    from mcp import Client  # noqa: PLC0415  as said above
    from mcp_types import TextContent  # noqa: PLC0415  as said above

    from cli.terminal import drawn_answer, pen_for  # noqa: PLC0415  as said above
    from server.app import build_server  # noqa: PLC0415  as said above
    from tools.common.answer import data_of  # noqa: PLC0415  as said above

    async with Client(build_server(settings)) as client:
        with drawn_progress(quiet=quiet) as draw:
            result = await client.call_tool(tool, arguments, progress_callback=draw)
    text = "\n".join(
        part.text for part in result.content if isinstance(part, TextContent)
    )
    if result.is_error:
        print(f"winnow: {text}", file=sys.stderr)
        return FAILED
    data = data_of(result)
    if as_json:
        print_json({"text": text, **data})
    else:
        pen = pen_for(sys.stdout)
        print(drawn_answer(text, pen, _COMMAND_OF_TOOL) if pen else text)
    if "checked" in data:
        return OK if data["answered"] else NO_ANSWER
    found = [data[key] for key in ("passages", "hits", "pages") if key in data]
    return NO_ANSWER if found and not found[0] else OK


def _given(args: argparse.Namespace) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in args.set or []:
        # The value may be a key or a password, so it is not repeated.
        name, equals, value = pair.partition("=")
        refuse_unknown(name, f"--set {name!r}")
        if not equals:
            raise UsageError(
                f"--set {name} has no value.", hint=f"Write --set {name}=VALUE."
            )
        given[name] = value
    folders = [given["folders"]] if given.get("folders") else []
    folders += args.folder or []
    # A file named on the command line may be read; MCP clients have no such right.
    sources = getattr(args, "sources", [])
    local = [
        Path(name).expanduser()
        for name in sources
        if "://" not in name and not name.startswith("site:")
    ]
    if sources and len(local) == len(sources) and not any(map(os.path.exists, local)):
        raise UsageError(
            f"no such file: {sources[0]!r}.",
            hint="Give a file, a folder, or a URL with https://.",
        )
    folders += [
        str(path.resolve() if path.is_dir() else path.resolve().parent)
        for path in local
        if os.path.exists(path)
    ]
    if folders:
        given["folders"] = os.pathsep.join(dict.fromkeys(folders))
    for name in ("searxng", "clustering"):
        if value := getattr(args, name, None):
            given[name] = value
    return given


def _arguments(args: argparse.Namespace) -> dict[str, object]:
    own = {"command", "set", "folder", "searxng", "json", "quiet", "html", "clustering"}
    return {
        name: [_absolute(v) for v in value] if name == "sources" else value
        for name, value in vars(args).items()
        if name not in own and value is not None
    }


def _draft(name: str) -> str:
    """Return a report's text as Markdown; `-` reads standard input. Raises `UsageError`
    for a file that cannot be read as UTF-8."""
    from extras.drafts.draft import markdown_of  # noqa: PLC0415  as said above

    try:
        text = (
            sys.stdin.read()
            if name == "-"
            else Path(name).expanduser().read_text(encoding="utf-8")
        )
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The report {name!r} cannot be read: {error}.",
            hint="Give a UTF-8 text file.",
        ) from error
    return markdown_of(text) if name.lower().endswith((".html", ".htm")) else text


def _absolute(source: str) -> str:
    path = Path(source).expanduser()
    return str(path.resolve()) if "://" not in source and path.exists() else source


def _parser() -> tuple[argparse.ArgumentParser, list[str]]:
    """Return the argument parser and the command names."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON object")
    common.add_argument(
        "-q", "--quiet", action="store_true", help="no progress on stderr"
    )
    common.add_argument(
        "--folder",
        action="append",
        metavar="DIR",
        help="folder to search and read; may be repeated",
    )
    common.add_argument(
        "--searxng", metavar="URL", help="base URL of a SearXNG instance"
    )
    common.add_argument(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        help="any setting (docs/settings.md)",
    )
    parser = argparse.ArgumentParser(
        prog="winnow",
        description="The web and your own documents as small, cited evidence.",
        epilog="Exit codes: 0 an answer, 1 a failure, 2 wrong usage, 3 no answer.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common])

    _add_tools(command)
    check = command(
        "check",
        "check a report's quotations, statements and references against its sources",
    )
    check.epilog = "Exit code 3: something is not supported."
    check.add_argument("report", help="Markdown, HTML or text; - for standard input")
    check.add_argument(
        "sources",
        nargs="*",
        help="URLs, files or a session; default: what the report cites",
    )
    serve = command("serve", "serve MCP over stdio, or over HTTP with --http")
    serve.add_argument(
        "--http", action="store_true", help="Streamable HTTP instead of stdio"
    )
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=_port, default=8765)
    serve.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="Host header to accept",
    )
    serve.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="origin of web pages that may call this server (CORS)",
    )
    serve.add_argument(
        "--without-auth",
        action="store_true",
        help="accept all clients without authentication, also from other machines",
    )
    models = command(
        "models",
        "show, list, pull, remove or benchmark models",
    )
    models.add_argument(
        "action",
        nargs="?",
        choices=["show", "list", "pull", "remove", "bench"],
        default="show",
    )
    models.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a profile, a model, or OWNER/REPO/FILE.gguf",
    )
    models.add_argument(
        "--dry-run",
        action="store_true",
        help="pull: only print what would be downloaded",
    )
    cache = command(
        "cache",
        "show, clear, verify, back up or restore the cache",
    )
    actions = ["stats", "clear", "verify", "path", "backup", "restore"]
    cache.add_argument("action", nargs="?", choices=actions, default="stats")
    cache.add_argument(
        "file",
        nargs="?",
        type=Path,
        help="backup: file to create; restore: file to read",
    )
    sessions = command("sessions", "list, show, export or remove research sessions")
    sessions.add_argument(
        "action",
        nargs="?",
        choices=["list", "show", "export", "remove"],
        default="list",
    )
    sessions.add_argument(
        "handle", nargs="?", default="", metavar="HANDLE", help="winnow://session/…"
    )
    forms = ["markdown", "html", "json", "bibtex", "ris", "csl"]
    sessions.add_argument(
        "--format",
        choices=forms,
        default="markdown",
        help="export: format (default: markdown)",
    )
    client = command("install", "add Winnow to a client's configuration")
    client.add_argument(
        "client",
        type=client_name,
        metavar="CLIENT",
        help=f"one of {', '.join(CLIENTS)}",
    )
    client.add_argument(
        "--scope",
        choices=["user", "project"],
        default="user",
        help="for your user account, or for this folder",
    )
    client.add_argument(
        "--dry-run", action="store_true", help="only show what would change"
    )
    client.add_argument("--yes", action="store_true", help="write without confirmation")
    client.add_argument("--undo", action="store_true", help="remove Winnow again")
    desk = command(
        "desk",
        "open the desk, a page to ask and to view evidence, pages, trees and sessions",
    )
    desk.add_argument(
        "--port", type=_port, default=0, help="port on 127.0.0.1; default: a free one"
    )
    desk.add_argument(
        "--no-browser", action="store_true", help="only print the address"
    )
    command("doctor", "check models, cache, folders, clients and search providers")
    return parser, list(commands.choices)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _MOST_PORT:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port; use a number up to {_MOST_PORT}"
        )
    return int(text)


def _add_tools(command: CommandMaker) -> None:
    """Add a command for each tool with its schema's arguments; required ones are
    positional."""
    for tool in by_order():
        name, required = tool[OURS]["command"], tool["inputSchema"].get("required", [])
        parser = command(name, tool[OURS]["help"])
        fields = tool["inputSchema"]["properties"]
        for argument, field in sorted(
            fields.items(), key=lambda one: one[0] != "question"
        ):
            described = {"help": field.get("description", "").replace("%", "%%")}
            if argument in (tool[OURS]["by_place"] or required):
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
        if name == "raptor":
            parser.epilog = "The question `tree` draws the tree of the sources instead."
            parser.add_argument(
                "--html",
                default="",
                metavar="FILE",
                help="tree: also write it to this HTML file",
            )
            ways = get_args(get_type_hints(Settings)["clustering"])
            parser.add_argument(
                "--clustering", choices=ways, help="clustering of tree nodes"
            )
