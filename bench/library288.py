"""Asks the questions of `../shared/data/library288`, a person's library of 288 files,
at the door.

    python -m bench.library288                  all questions by `research` and by the fitting tool, and follow-ups
    python -m bench.library288 --modes tool,follow --show
    python -m bench.library288 --check          exit code 1, naming each bar that falls short

`core`: the answer is shown; `full`: enough to act on. `research` asks over all files
with no budget named, `tool` asks the known file for 512 tokens; a follow-up goes to
`research` with the session of the question before it, and needs one, so that `tool` is
not asked it. `follow` asks the pairs of `bench/asked/followups.jsonl`: `file` counts
where the file that was just read is quoted. `bare`: sources of answers without an
address. Calls have `--seconds` each, since a busy machine leaves files unread; the
product's own time is in `server/settings.py`."""

import argparse
import json
import re
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client

from bench.answer_sets import shown
from bench.html_questions import DATA
from server.app import build_server
from server.settings import read_settings

SET: Final = DATA / "library288"
PAIRS: Final = Path(__file__).parent / "asked" / "followups.jsonl"
MODES: Final = ("research", "tool", "follow")
BUDGET: Final = 512
SECONDS: Final = 60
BARS: Final = {
    ("research", "core"): 0.85,
    ("research", "full"): 0.75,
    ("tool", "core"): 0.88,
    ("tool", "full"): 0.80,
    ("follow", "file"): 0.80,
}
"""Least shares; sources without an address are none at all."""
_SOURCE: Final = re.compile(r"\[\d+\](.*)")
_MARK: Final = re.compile(r"«/?\w+»")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """How one question went."""

    id: str
    kind: str
    core: bool
    full: bool
    bare: int
    """Sources without an address."""
    text: str


async def ask(client: Client, tool: str, **arguments: Any) -> str:
    """Return the text of an answer; a call that did not end is repeated with what the
    cache has, twice."""
    text = ""
    for _ in range(3):
        result = await client.call_tool(tool, arguments)
        text = "\n".join(part.text for part in result.content if part.type == "text")
        if not text.startswith("Not ready"):
            break
    return text


def sources_in(text: str) -> list[str]:
    """Return the heads of an answer's sources: lines of ours, not those that a page has
    (`[1] 2 3` in R)."""
    found: list[str] = []
    quoted = False
    for line in text.splitlines():
        if _MARK.fullmatch(line):
            quoted = "/" not in line
        elif not quoted and (source := _SOURCE.match(line)):
            found.append(source[1])
    return found


def judged(row: Row, text: str) -> Answered:
    """Return how an answer's text does by the golds of a question."""
    bare = sum("://" not in line for line in sources_in(text))
    core, full = (
        all(shown(gold, text) for gold in row[name]) for name in ("gold", "full")
    )
    return Answered(row["id"], row["kind"], core, full, bare, text)


async def researched(client: Client, rows: Sequence[Row]) -> list[Answered]:
    """Ask `research` over all files; the second of a pair with the session of the
    first."""
    found: list[Answered] = []
    sessions: dict[str, str] = {}
    for row in rows:
        pair = row["id"][:-1]
        goes_on = row["kind"] == "followup" and row["id"].endswith("b")
        text = await ask(
            client,
            "research",
            question=row["question"],
            session=sessions[pair] if goes_on else "",
        )
        sessions[pair] = session_of(text)
        found.append(judged(row, text))
    return found


async def by_tool(client: Client, rows: Sequence[Row], folder: Path) -> list[Answered]:
    """Ask the fitting tool about the known files."""
    found: list[Answered] = []
    for row in rows:
        if row["kind"] == "followup" and row["id"].endswith("b"):
            continue
        sources = [str(folder / name) for name in row["file"]]
        text = await ask(
            client,
            row["tool"],
            question=row["question"],
            sources=sources,
            max_tokens=BUDGET,
        )
        found.append(judged(row, text))
    return found


async def followed(client: Client) -> list[Answered]:
    """Ask pairs; `core` where the file is quoted that the first question read, `full`
    where the answer is shown."""
    found: list[Answered] = []
    for number, line in enumerate(PAIRS.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        first = await ask(client, "research", question=row["first"])
        text = await ask(
            client, "research", question=row["question"], session=session_of(first)
        )
        named = judged(
            {"id": f"p{number}", "kind": "followup", "gold": [], "full": [row["gold"]]},
            text,
        )
        at_file = any(row["file"] in source for source in sources_in(text))
        found.append(
            Answered(named.id, named.kind, at_file, named.full, named.bare, text)
        )
    return found


def session_of(text: str) -> str:
    """Return the session that an answer names, empty for none."""
    found = re.search(r"Session: (\S+)", text)
    return found[1] if found else ""


def reported(
    mode: str, answers: Sequence[Answered], *, show: bool
) -> dict[tuple[str, str], float]:
    """Print one mode's figures, and return them by mode and name."""
    asked = [one for one in answers if one.kind != "none"]
    names = ("file", "answer") if mode == "follow" else ("core", "full")
    right = (sum(one.core for one in asked), sum(one.full for one in asked))
    bare = sum(one.bare for one in answers)
    figures = "  ".join(
        f"{name} {count}/{len(asked)}" for name, count in zip(names, right, strict=True)
    )
    print(f"{mode:10}{figures}  sources without address {bare}")
    kinds = Counter(one.kind for one in asked)
    for kind, count in sorted(kinds.items()):
        own = [one for one in asked if one.kind == kind]
        print(
            f"    {kind:14}{sum(one.core for one in own)} {sum(one.full for one in own)} of {count}"
        )
    for one in asked:
        if not one.full:
            print(f"    missed: {one.id} {one.kind}{'' if one.core else ', core'}")
            print(one.text if show else "", end="\n" if show else "")
    found = {
        (mode, name): count / len(asked)
        for name, count in zip(names, right, strict=True)
    }
    return found | {(mode, "bare"): float(bare)}


async def measured(
    modes: Sequence[str], folder: Path, cache: Path, seconds: int, *, show: bool
) -> list[str]:
    """Ask in each mode, print, and return the bars that fall short."""
    rows = [
        json.loads(line)
        for line in (SET / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    settings = read_settings(
        {"folders": str(folder), "cache": str(cache), "seconds": str(seconds)}, {}
    )
    figures: dict[tuple[str, str], float] = {}
    async with Client(build_server(settings)) as client:
        for mode in modes:
            if mode == "research":
                answers = await researched(client, rows)
            else:
                answers = await (
                    followed(client)
                    if mode == "follow"
                    else by_tool(client, rows, folder)
                )
            figures |= reported(mode, answers, show=show)
    short = {
        key: bar for key, bar in BARS.items() if key in figures and figures[key] < bar
    }
    failed = [
        f"{mode} {name} {figures[mode, name]:.2f} < {bar}"
        for (mode, name), bar in short.items()
    ]
    bare = [mode for mode in modes if figures[mode, "bare"]]
    return failed + [
        f"{mode}: {figures[mode, 'bare']:.0f} sources without an address"
        for mode in bare
    ]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="exit 1 when a bar falls short"
    )
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of a call")
    parser.add_argument(
        "--show", action="store_true", help="with the answers that miss"
    )
    parser.add_argument(
        "--cache",
        default="",
        help="a folder that stays, so that files are converted once",
    )
    args = parser.parse_args()
    if not SET.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(SET / "library.tar.xz") as archive:
            archive.extractall(place, filter="data")
        folder, cache = Path(place) / "lib", Path(args.cache or place) / "cache"
        failed = anyio.run(
            lambda: measured(
                args.modes.split(","), folder, cache, args.seconds, show=args.show
            )
        )
    for line in failed:
        print(f"BAR MISSED: {line}")
    print("all bars hold" if not failed else f"{len(failed)} bars missed")
    sys.exit(1 if failed and args.check else 0)


if __name__ == "__main__":
    main()
