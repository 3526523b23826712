"""Small inputs that failed in the field (../shared/data/field, ../shared/data/field2):
which are read rightly now.

    python -m bench.field                 each case of the first set with its outcome
    python -m bench.field --set all       all sets: first; bugs, newcomer, field, honest (files of field2); web
    python -m bench.field --only docx,pdf cases whose id begins so
    python -m bench.field --misses        and what was answered where it is wrong
    python -m bench.field --check         exit code 1 where a case is wrong

A case is `right` where the answer has what a reader of the source would say. It is
`said` where a refusal or a note names exactly what is missing, else `wrong` with a
type: refused (an error that does not name it), lost (words that are not there), false
(words that are there and must not be), verdict (`none` over what was not read). Sources
and calls are those of `index.jsonl`; what is wanted is in `field_wanted.py`. Cases
whose files or pages the judges keep aside are skipped. Not for: how much of a large set
is kept."""

import argparse
import importlib.util
import json
import re
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import anyio
from mcp import Client
from mcp_types import TextContent

from bench.field_site import PASSWORD, USER, field_site
from bench.field_wanted import FILES, FIRST, IN_SQL, WEB, Wanted
from errors import WinnowError
from server.app import build_server
from server.settings import read_settings

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"
TOKENS: Final = 4000
"""Of a call of the first set that names no budget: every file there is shorter."""
_SERVED_TOKENS: Final = 2000
"""Of one of a page that names none."""
_SITE: Final = "127.0.0.1:8791"
"""Where the calls of field2 expect their pages."""
_SERVED_AREAS: Final = frozenset({"html", "forge", "web"})
_FILE_TOOLS: Final = frozenset({"extract_relevant", "fetch_and_prune_html", "research"})
_LOOPBACK: Final = {"networks": "loopback", "web": "named", "robots": "false"}
"""Settings of a server that reads pages of this machine."""
_NONE: Final = re.compile(r"^None: ", re.MULTILINE)
"""How an answer with that verdict begins."""
_KEPT_ASIDE: Final = re.compile(r"returned 404 Not Found\. Check")
"""What is answered of a page that the judges keep."""


class Outcome(NamedTuple):
    """How a case came out."""

    type: Literal["right", "said", "refused", "lost", "false", "verdict"]
    detail: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the bar counts it."""
        return self.type in ("right", "said")


class Case(NamedTuple):
    """A call, and what a right answer to it has."""

    id: str
    tool: str
    arguments: dict[str, Any]
    wanted: Wanted
    expected: str


class Group(NamedTuple):
    """Cases that are asked of one server."""

    reported: dict[str, str]
    """Its settings."""
    cases: Sequence[Case]


def judge(wanted: Wanted, text: str, *, is_error: bool) -> Outcome:
    """Return how an answer compares with what is wanted."""
    flat = " ".join(text.split())
    # The file's own name is not a naming of what is missing.
    ours = re.sub(r"\S*(file|http)://\S*", "", flat)
    named = bool(wanted.says) and re.search(wanted.says, ours) is not None
    shows_one = wanted.shows and re.search(wanted.shows[0], flat)
    if is_error and not named and not shows_one:
        return Outcome("refused", flat[:160])
    hits = (re.search(pattern, flat) for pattern in wanted.hides)
    if (hit := next(filter(None, hits), None)) is not None:
        return Outcome("false", hit[0][:80])
    lost = next((p for p in wanted.shows if re.search(p, flat) is None), None)
    if lost is None and (wanted.shows or (wanted.hides and not wanted.says)):
        return Outcome("right")
    if named:
        return Outcome("said")
    if _NONE.search(text):
        return Outcome("verdict", "none")
    return Outcome("lost", lost or wanted.says)


# Sets


def _index(name: str) -> list[dict[str, Any]]:
    lines = (DATA / name / "index.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def first_set(folder: Path, stack: ExitStack) -> Iterator[Group]:
    """Yield the cases of the first set, with their files copied and their pages
    served."""
    port = stack.enter_context(field_site())
    sources = _case_files(folder)
    cases = []
    for row in _index("field"):
        call, name = row["call"], row["id"]
        arguments = {
            key: call[key] for key in ("question", "part", "max_tokens") if key in call
        }
        if "url" in call:
            source = str(call["url"]).replace("PORT", str(port))
        else:
            source = sources.get(name, str(folder / "files" / Path(row["input"]).name))
        arguments = {"max_tokens": TOKENS, **arguments, "sources": [source]}
        wanted, expected = FIRST[name], str(row["expected"])
        if name == "searxng-auth":
            call = {"tool": "search_web"}
            arguments = {"question": "arnvik"}
        cases.append(Case(name, call["tool"], arguments, wanted, expected))
    yield Group(
        {"folders": str(folder), "search": "folder", **_LOOPBACK},
        [case for case in cases if case.tool != "search_web"],
    )
    searxng = f"http://{USER}:{PASSWORD}@127.0.0.1:{port}/"
    yield Group(
        {"searxng": searxng, "search": "searxng", **_LOOPBACK},
        [case for case in cases if case.tool == "search_web"],
    )


def _case_files(folder: Path) -> dict[str, str]:
    """Copy the cases' files, build the folder of `folder-noext`, and return the sources
    of cases whose name in the index is another."""
    files = DATA / "field" / "files"
    shutil.copytree(files, folder / "files")
    lock = folder / "lock"
    lock.mkdir()
    (lock / "README").write_bytes((files / "noext_dir_README").read_bytes())
    for name, text in {
        "CHANGES": "The gate was painted in April.\n",
        "gate.properties": "gate.width=9.5\ngate.colour=green\n",
        "plan.ics": "BEGIN:VCALENDAR\nEND:VCALENDAR\n",
        "other.txt": "The lock of Mossund has no fee for rowing boats.\n",
    }.items():
        (lock / name).write_text(text, "utf-8")
    return {"folder-noext": str(lock)}


def file_set(name: str, folder: Path, _: ExitStack) -> Iterator[Group]:
    """Yield the cases of a set of field2 that have files here and something wanted,
    each with the folder that is open to it."""
    copied = folder / name
    shutil.copytree(DATA / "field2" / name, copied)
    for row in _index("field2"):
        if row["set"] != name or row["id"] not in FILES:
            continue
        arguments = dict(row.get("args") or row.get("tool/args") or {})
        tool = str(arguments.pop("tool", row.get("tool", "")))
        if row.get("area") in _SERVED_AREAS or tool not in _FILE_TOOLS:
            continue
        files = arguments.pop("sources", [] if tool == "research" else [row["file"]])
        paths = [copied / source for source in files]
        opened = copied if paths or name != "bugs" else copied / str(row["file"])
        if not opened.is_dir() or not all(path.exists() for path in paths):
            continue
        if paths:
            arguments["sources"] = list(map(str, paths))
        case = Case(row["id"], tool, arguments, FILES[row["id"]], row["expect"])
        yield Group({"folders": str(opened), "search": "folder"}, [case])


def web_set(_: Path, stack: ExitStack) -> Iterator[Group]:
    """Yield the cases of field2 that are served."""
    github, gitlab, gitea = (stack.enter_context(_served()) for _ in range(3))
    cases = []
    for row in _index("field2"):
        call = json.dumps(row.get("args"))
        if row["set"] != "bugs" or _SITE not in call or row["id"] not in WEB:
            continue
        port = gitlab if "/g/" in call else gitea if "/o/t/" in call else github
        call = call.replace(_SITE, f"127.0.0.1:{port}")
        arguments = {"max_tokens": _SERVED_TOKENS, **json.loads(call)}
        wanted = WEB[row["id"]]
        cases.append(Case(row["id"], row["tool"], arguments, wanted, row["expect"]))
    forges = {"github": github, "gitlab": gitlab, "gitea": gitea}
    reported = {
        **_LOOPBACK,
        "search": "folder",
        "forges": ",".join(
            f"{kind}=http://127.0.0.1:{port}" for kind, port in forges.items()
        ),
    }
    yield Group(reported, cases)


@contextmanager
def _served() -> Iterator[int]:
    """Serve the pages of field2 on a free port of loopback; yield it."""
    file = DATA / "field2" / "bugs" / "srv.py"
    spec = importlib.util.spec_from_file_location("field2", file)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with ThreadingHTTPServer(("127.0.0.1", 0), module.H) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


SETS: Final[Mapping[str, Callable[[Path, ExitStack], Iterator[Group]]]] = {
    "first": first_set,
    **{
        name: partial(file_set, name)
        for name in ("bugs", "newcomer", "field", "honest")
    },
    "web": web_set,
}


# The runner


async def run(name: str, ids: tuple[str, ...], *, misses: bool) -> list[Outcome]:
    """Ask every case of a set whose id begins with one of `ids`; print each outcome."""
    outcomes = []
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        for group in SETS[name](Path(temporary, "sources"), stack):
            cases = [case for case in group.cases if case.id.startswith(ids)]
            reported = {"cache": str(Path(temporary, "cache")), **group.reported}
            async for case, text, is_error in _answers(cases, reported):
                if name == "web" and _KEPT_ASIDE.search(text):
                    continue
                outcome = judge(case.wanted, text, is_error=is_error)
                outcomes.append(outcome)
                wrong = "" if outcome.is_right else f": wrong: {outcome.detail}"
                print(f"{case.id:26}{outcome.type}{wrong}", flush=True)
                if misses and wrong:
                    shown = text[:900].replace("\n", "\n    ")
                    print(f"    wanted: {case.expected}\n    {shown}")
    return outcomes


async def _answers(
    cases: Sequence[Case], reported: Mapping[str, str]
) -> AsyncIterator[tuple[Case, str, bool]]:
    """Yield what a server with these settings answers to each case, and whether it is an
    error."""
    try:
        server = build_server(read_settings(reported, {}))
    except WinnowError as error:
        for case in cases:
            yield case, str(error), True
        return
    async with Client(server) as client:
        for case in cases:
            part = IN_SQL.get(case.id)
            asked = case.arguments | ({"part": f"sql: {part}"} if part else {})
            result = await client.call_tool(case.tool, asked)
            texts = [b.text for b in result.content if isinstance(b, TextContent)]
            yield case, "\n".join(texts), bool(result.is_error)


def main() -> int:
    """Run the cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="exit code 1 for a miss")
    parser.add_argument("--misses", action="store_true", help="print wrong answers")
    parser.add_argument("--only", default="", help="beginnings of ids, by commas")
    parser.add_argument(
        "--set", choices=(*SETS, "all"), default="first", help="which cases"
    )
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    outcomes = []
    for name in SETS if options.set == "all" else [options.set]:
        asking = partial(
            run, name, tuple(options.only.split(",")), misses=options.misses
        )
        own = anyio.run(asking)
        counts = Counter(outcome.type for outcome in own)
        listed = ", ".join(f"{kind} {n}" for kind, n in counts.items())
        print(f"{name}: {sum(o.is_right for o in own)} of {len(own)}: {listed}")
        outcomes += own
    right = sum(outcome.is_right for outcome in outcomes)
    print(f"{right} of {len(outcomes)} right or said")
    return int(options.check and right < len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
