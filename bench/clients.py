"""Clients of others against our server: what each lists, and what its model would read
of all five tools' answers.

`python -m bench.clients` installs the newest of pydantic-ai, openai-agents, fastmcp,
langchain-mcp-adapters, mcp-use and smolagents into environments of their own below
`build/clients` (once; `--fresh` does it again), and the Inspector's command line by
npm. Each client lists the tools, asks all five the sample question, is refused a
missing file, cancels a long call and asks again. It does so over stdio. Judged is what
its own conversion hands to a model (`bench/clients_foreign.py`). `--check` exits 1 when a
bar falls short. Not for: clients that cannot be installed here (`tests/test_clients.py`
has their ways)."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.mcp_served import LIBRARY, ROOT
from pipeline.text.tokens import count_tokens
from tests.support.clients import ANSWER, ASKED, GONE, QUESTION, TWICE, read_twice
from tools.common.ending import RESULT

Json = dict[str, Any]
FOLDER: Final = ROOT / "build" / "clients"
MOST_SECONDS: Final = 300
"""For one client with all its calls, the first of which builds a tree."""
LEAST_CLIENTS: Final = 6
"""Clients, by package, that must pass."""
INSPECTOR: Final = "the Inspector's command line"
INSPECTED: Final = ("node@22", "@modelcontextprotocol/inspector@2.12.0")
TOOLS: Final[dict[str, Json]] = {
    "search_web": {"question": QUESTION},
    "fetch_and_prune_html": ASKED,
    "extract_relevant": ASKED,
    "raptor_query": ASKED,
    "research": {"question": QUESTION},
}
WRONG: Final = ("fetch_and_prune_html", {"sources": [GONE]})
LONG: Final = (
    "raptor_query",
    {"question": "What changed at the harbour?", "sources": [str(LIBRARY)]},
)
AFTER: Final = ("extract_relevant", ASKED)


class Environment(NamedTuple):
    """Packages that can be installed together, and the clients that they bring."""

    packages: tuple[str, ...]
    clients: tuple[str, ...]


ENVIRONMENTS: Final = {
    # The SDK's second line, which uses the protocol of 2026
    "modern": Environment(
        ("mcp>=2", "pydantic-ai-slim[mcp]", "openai-agents", "fastmcp"),
        ("pydantic-ai", "openai-agents", "openai-agents, structured", "fastmcp"),
    ),
    "legacy": Environment(
        ("mcp<2", "langchain-mcp-adapters", "mcp-use", "smolagents[mcp]"),
        ("langchain-mcp-adapters", "mcp-use", "smolagents", "smolagents, structured"),
    ),
}


class Seen(NamedTuple):
    """What came of one client."""

    client: str
    read: dict[str, str]
    """What its model reads of each tool's answer."""
    reported: str
    """Progress and cancelling, in words."""
    failed: list[str]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit 1 when a bar falls short",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="install the clients again, at their newest",
    )
    parser.add_argument(
        "--only", default="", metavar="NAME", help="clients whose name holds this"
    )
    args = parser.parse_args()
    rows = list(_all(args.only, fresh=args.fresh))
    failed = [f"{row.client}: {line}" for row in rows for line in row.failed]
    spoiled = {_package(row.client) for row in rows if row.failed}
    passed = {_package(row.client) for row in rows} - spoiled
    if len(passed) < LEAST_CLIENTS and not args.only:
        failed.append(
            f"{len(passed)} clients pass < {LEAST_CLIENTS}: {', '.join(sorted(passed))}"
        )
    for line in failed:
        print(f"BAR MISSED: {line}")
    print(
        f"{len(passed)} clients pass; "
        + ("all bars hold" if not failed else f"{len(failed)} bars missed")
    )
    sys.exit(1 if failed and args.check else 0)


def _package(client: str) -> str:
    return client.partition(",")[0]


def _all(only: str, *, fresh: bool) -> Iterator[Seen]:
    print(
        f"{'client':38}  tokens that a model reads: {', '.join(TOOLS)}; "
        f"progress, cancelling"
    )
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        for name, environment in ENVIRONMENTS.items():
            clients = [client for client in environment.clients if only in client]
            python = (
                _installed(name, environment.packages, fresh=fresh)
                if clients
                else Path()
            )
            for client in clients:
                yield _reported(_asked(python, client, cache))
        if only in INSPECTOR:
            yield _reported(_inspected(_inspector(fresh=fresh), cache))


def _reported(seen: Seen) -> Seen:
    tokens = " ".join(f"{count_tokens(text):>6,}" for text in seen.read.values())
    print(
        f"{seen.client:38}  {tokens}  {seen.reported}",
        flush=True,
    )
    return seen


# Clients in Python


def _installed(name: str, packages: Sequence[str], *, fresh: bool) -> Path:
    """Return the Python of an environment with these packages at their newest."""
    folder = FOLDER / name
    stamp, wanted = folder / "packages.txt", "\n".join(packages)
    python = folder / "bin" / "python"
    if fresh or not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"installing {', '.join(packages)} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)  # noqa: S603  our own command
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *packages,
        ]
        subprocess.run(install, check=True)  # noqa: S603  our own command
        stamp.write_text(wanted, encoding="utf-8")
    return python


def _server(cache: Path) -> Json:
    settings = {"FOLDERS": str(LIBRARY), "CACHE": str(cache / "cache")}
    environment = {
        **os.environ,
        **{f"WINNOW_{name}": value for name, value in settings.items()},
    }
    return {
        "command": sys.executable,
        "args": ["-m", "server"],
        "env": environment,
        "cwd": str(ROOT),
    }


def _asked(python: Path, client: str, cache: Path) -> Seen:
    out = cache / "seen.json"
    out.unlink(missing_ok=True)
    server = _server(cache)
    job = {
        "client": client,
        "server": server,
        "out": str(out),
        "calls": TOOLS,
        "wrong": WRONG,
        "long": LONG,
    }
    ran = subprocess.run(  # noqa: S603  our own file, by the Python that we installed
        # Without its own folder on the path: files of ours there have the names of modules.
        [str(python), "-P", str(ROOT / "bench" / "clients_foreign.py")],
        input=json.dumps(job | {"after": AFTER}),
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    if not out.is_file():
        ended = f"ended with {ran.returncode}: {ran.stderr.strip()[-300:]}"
        return Seen(client, {}, "", [ended])
    seen: Json = json.loads(out.read_text(encoding="utf-8"))
    return Seen(client, seen["read"], _way(seen, ran.returncode), _judged(seen))


def _way(seen: Json, code: int) -> str:
    progress_line = (
        "no progress handler"
        if seen["progress"] is None
        else f"progress {seen['progress']}"
    )
    cancels = {None: "no way to cancel", True: "cancelled", False: "not cancelled"}[
        seen["cancelled"]
    ]
    return f"{progress_line}, {cancels}" + (f", ends with {code}" if code else "")


def _judged(seen: Json) -> list[str]:
    """Return what falls short."""
    failed = [f"lists {', '.join(seen['tools'])}"] * (seen["tools"] != sorted(TOOLS))
    for tool, text in seen["read"].items():
        failed += [f"{tool}: {ANSWER!r} does not reach the model"] * (
            ANSWER not in text
        )
        failed += [f"{tool}: the model reads what is meant for hosts"] * (
            RESULT in text
        )
        share = read_twice(text)
        failed += [f"{tool}: {share:.3f} is read twice > {TWICE}"] * (share > TWICE)
    failed += ["no progress arrives"] * (seen["progress"] == 0)
    failed += [f"an error reads {seen['error'][:200]!r}"] * (
        "Check the path" not in seen["error"]
    )
    failed += ["a call cannot be cancelled"] * (seen["cancelled"] is False)
    return failed + ["no answer after a cancelled call"] * (ANSWER not in seen["after"])


# The Inspector


def _inspector(*, fresh: bool) -> Path:
    """Return the folder of the Inspector's command and of a Node that runs it."""
    folder = FOLDER / "node"
    if fresh or not (folder / "node_modules" / ".bin" / "mcp-inspector").exists():
        print(f"installing {', '.join(INSPECTED)} …", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        install = [
            "npm",
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--prefix",
            str(folder),
            *INSPECTED,
        ]
        subprocess.run(install, check=True)  # noqa: S603  our own command
    return folder / "node_modules" / ".bin"


def _inspected(commands: Path, cache: Path) -> Seen:
    """Ask by the Inspector, a process for each call; what it prints is the whole
    result, of which `content` is read."""
    server = _server(cache)
    own = {
        name: value
        for name, value in server["env"].items()
        if name.startswith("WINNOW_")
    }
    config = cache / "mcp.json"
    config.write_text(
        json.dumps({"mcpServers": {"winnow": {**server, "env": own}}}), encoding="utf-8"
    )

    def run(*options: str) -> Json:
        command = [
            str(commands / "mcp-inspector"),
            "--cli",
            "--config",
            str(config),
            "--server",
            "winnow",
            *options,
        ]
        path = f"{commands}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "HOME": str(cache)}
        ran = subprocess.run(  # noqa: S603  our own command
            [*command, "--format", "json"],
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            cwd=ROOT,
            env=environment,
            check=False,
        )
        try:
            printed: Json = json.loads(ran.stdout)
        except ValueError as error:
            raise RuntimeError(
                f"The Inspector ended with {ran.returncode}: {ran.stderr[-300:]}"
            ) from error
        return dict(printed.get("result", printed))

    def call(tool: str, arguments: Json) -> str:
        given = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        content = run("--method", "tools/call", *given)["content"]
        return "\n".join(part.get("text") or json.dumps(part) for part in content)

    listed = [tool["name"] for tool in run("--method", "tools/list")["tools"]]
    seen: Json = {
        "tools": sorted(listed),
        "read": {tool: call(tool, given) for tool, given in TOOLS.items()},
    }
    seen |= {
        "progress": None,
        "cancelled": None,
        "error": call(*WRONG),
        "after": call(*AFTER),
    }
    return Seen(INSPECTOR, seen["read"], _way(seen, 0), _judged(seen))


if __name__ == "__main__":
    main()
