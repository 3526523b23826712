"""Questions that choose, compare, filter and add, over tables of the web, CSV, PDF and
spreadsheets saved as pages.

    python -m bench.tables_asked              80 questions over 25 tables, by each tool, within 300 tokens
    python -m bench.tables_asked --misses     and what was shown instead; of the half held aside only totals
    python -m bench.tables_asked --false      values computed for questions of other sets and their twins, which tables
                                              seldom answer; those that do not hold the gold are printed, to be judged
    python -m bench.tables_asked --check      exit code 1 where a bar falls short

Right values come from pandas, over its own reading of the source; CSV and pages are
written by pandas, PDF printed by Chromium. A question counts where the right value and
a row that it is based on are shown, through an MCP client."""

import argparse
import gzip
import io
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import anyio
from mcp import Client
from mcp_types import TextContent

from bench.answer_sets import read_set
from bench.html_questions import DATA, questions
from bench.table_sources import SOURCES, Frame, Source
from extras.tables.asked import ask_parts
from pipeline.document.page import Page
from pipeline.evidence.values import values_text
from pipeline.html.document import read_document
from pipeline.question.question import Question
from server.app import build_server
from server.settings import read_settings

TOKENS: Final = 300
BAR: Final = 0.80
ROUNDED: Final = 0.006
"""What a mean that was rounded to two places may differ."""
TOOLS: Final = ("extract_relevant", "fetch_and_prune_html", "research")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question over a file, and what has to be shown."""

    source: Source
    path: Path
    question: str
    gold: tuple[str, ...]


def tables(folder: Path) -> list[Asked]:
    """Write all tables into a folder and return their questions; what cannot be made
    here is left out, and said."""
    import pandas as pd  # type: ignore[import-untyped]  # noqa: PLC0415  of the benchmark's own, not ours

    asked: list[Asked] = []
    for source in SOURCES:
        made = _written(source, folder, pd)
        if made is None:
            print(f"left out: {source.name} ({source.kind}), which cannot be made here")
            continue
        path, frame = made
        for question, gold in source.questions:
            asked.append(Asked(source, path, question, tuple(map(_plain, gold(frame)))))
    return asked


def _written(source: Source, folder: Path, pd: Any) -> tuple[Path, Frame] | None:
    own = folder / source.name
    own.mkdir(exist_ok=True)
    if source.make is None:
        packed = DATA / "pages" / f"{source.name}.html.gz"
        if not packed.is_file():
            return None
        html = gzip.decompress(packed.read_bytes()).decode("utf-8", "replace")
        (own / f"{source.name}.html").write_text(html, "utf-8")
        warnings.simplefilter("ignore")
        return own / f"{source.name}.html", pd.read_html(io.StringIO(html))[
            source.index
        ]
    frame = pd.DataFrame(source.make(Random(source.name)))
    path = own / f"{source.name}.{'html' if source.kind == 'sheet' else source.kind}"
    if source.kind == "csv":
        frame.to_csv(path, index=False)
        return path, frame
    page = own / f"{source.name}.html"
    page.write_text(
        f"<style>td, th {{ padding: .3em 1em "
        f"}}</style><h1>{source.name.title()}</h1>{frame.to_html(index=False)}",
        "utf-8",
    )
    if source.kind == "pdf" and not _printed(page, path):
        return None
    return path, frame


def _printed(page: Path, path: Path) -> bool:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        return False
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--print-to-pdf={path}",
        page.as_uri(),
    ]
    subprocess.run(command, capture_output=True, check=False, timeout=60)  # noqa: S603  a page of ours
    page.unlink()
    return path.is_file()


def _plain(value: object) -> str:
    """Return a value as it is looked for: numbers without separators, notes and
    signs."""
    text = re.sub(r"\[[^\[\]]*\]", "", str(value)).strip()
    return re.sub(r"(?<=\d),(?=\d{3})", "", text).replace("$", "").replace("€", "")


def shown(asked: Asked, text: str) -> bool:
    """Return whether an answer shows all of the gold."""
    flat = _plain(" ".join(text.split()))
    numbers = [float(found) for found in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", flat)]
    return all(_holds(gold, flat, numbers) for gold in asked.gold)


def _holds(gold: str, text: str, numbers: Sequence[float]) -> bool:
    if re.fullmatch(r"-?\d+(?:\.\d+)?", gold):
        return any(abs(number - float(gold)) < ROUNDED for number in numbers)
    return re.search(rf"(?<!\w){re.escape(gold)}(?!\w)", text) is not None


async def _ask(client: Client, tool: str, one: Asked) -> str:
    arguments: dict[str, object] = {"question": one.question, "max_tokens": TOKENS}
    if tool != "research":
        arguments["sources"] = [str(one.path)]
    result = await client.call_tool(tool, arguments)
    return "\n".join(
        block.text for block in result.content if isinstance(block, TextContent)
    )


async def measure(
    tools: Sequence[str], *, misses: bool
) -> dict[tuple[str, bool], list[bool]]:
    """Ask every question of every tool; return which were shown, by tool and half."""
    found: dict[tuple[str, bool], list[bool]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = tables(folder)
        for source in dict.fromkeys(one.source.name for one in asked):
            own = [one for one in asked if one.source.name == source]
            reported = {
                "cache": str(folder / "cache"),
                "folders": str(own[0].path.parent),
                "search": "folder",
            }
            async with Client(build_server(read_settings(reported, {}))) as client:
                for tool in tools:
                    for one in own:
                        text = await _ask(client, tool, one)
                        right = shown(one, text)
                        found.setdefault((tool, one.source.held), []).append(right)
                        if misses and not right and not one.source.held:
                            print(
                                f"\nMISS {tool} {source}: {one.question}\n  gold {one.gold}\n{text}"
                            )
    return found


def false_values() -> tuple[int, int]:
    """Print each value computed for questions of other sets, none of a half held aside,
    whose gold is not in it.

    Return how many were computed, and of how many questions. A set's twins have no
    answer on their page."""
    held = {question.id for question in questions() if question.held}
    asked = reported = 0
    for name in ("asked", "asked_more", "html_qa", "tables"):
        of = read_set(name, 0)
        own = [one for one in of.asked if one.half != "aside" and one.id not in held]
        for page in dict.fromkeys(one.page for one in own):
            html = of.files[page].decode("utf-8", "replace")
            documents = [
                read_document(
                    Page(f"https://{page}/", f"https://{page}/", "", html, "text/html")
                )
            ]
            for one in (one for one in own if one.page == page):
                for text in filter(None, (one.text, one.twin)):
                    asked += 1
                    found = ask_parts(Question(text), Question(text).parts, documents)
                    shown_text = values_text(found, documents, "0" * 12, 2 * TOKENS)
                    reported += bool(found)
                    if found and (text == one.twin or not of.hit(one, shown_text)):
                        print(
                            f"\n{name} {one.id} {'(twin)' if text == one.twin else one.gold}: "
                            f"{text}\n{shown_text}"
                        )
    return reported, asked


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 where a bar falls short"
    )
    parser.add_argument(
        "--misses",
        action="store_true",
        help="what was shown instead, of the half tuned on",
    )
    parser.add_argument(
        "--false", action="store_true", help="values computed for the asked questions"
    )
    parser.add_argument("--tools", default=",".join(TOOLS))
    wanted = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    if vars(wanted)["false"]:
        print(
            "{} values computed for {} questions; above those without the gold".format(
                *false_values()
            )
        )
        return 0
    short = checked(wanted.tools.split(","), misses=wanted.misses)[1]
    for line in short:
        print(f"BAR MISSED: {line}")
    return 1 if short and wanted.check else 0


def checked(
    tools: Sequence[str] = TOOLS, *, misses: bool = False
) -> tuple[int, list[str]]:
    """Ask all questions by each tool and print the shares; return how many were asked,
    and what fell short."""
    found = anyio.run(lambda: measure(tools, misses=misses))
    short = []
    for tool in tools:
        cells = []
        for held in (False, True):
            right = found.get((tool, held), [])
            share = sum(right) / max(1, len(right))
            cells.append(
                f"{'held aside' if held else 'tuned on'} {share:.3f} of {len(right)}"
            )
            short += [f"{tool}: {share:.3f} < {BAR}"] if share < BAR else []
        print(f"{tool:24}{'   '.join(cells)}")
    return sum(map(len, found.values())), short


if __name__ == "__main__":
    sys.exit(main())
