"""The server as a client sees it: start, latency of each tool, answers on real pages,
memory, cost of the tool list.

`python -m bench.mcp` starts our server as a process on stdio and calls it with the
SDK's client. Real pages are those of ../shared/data/pages, served on loopback; a
question counts as answered when one of its gold answers is in the text that came back.
The baseline of the same run is the head of the page's text, cut at the same budget.
`--check` is the quick form; it exits 1 when a bar falls short. How it starts and ends
on each transport comes first (`bench/mcp_ends.py`). Not for: parts alone, or the sample
library (`bench/run.py`)."""

import argparse
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

from bench.loopback import Answer, serving
from bench.mcp_ends import ends, starts
from bench.mcp_transcript import transcript
from pipeline.text.tokens import count_tokens, cut_to_tokens
from readers.html.document import read_document
from readers.page import Page
from server.toolbox import listing
from tools.common.ending import data_of

ROOT: Final = Path(__file__).resolve().parents[1]
LIBRARY: Final = ROOT / "examples" / "library"
DATA: Final = ROOT.parent / "shared" / "data"
START_BAR: Final = 5.0
"""Seconds from starting the process to the list of tools; clients give up after 30 to
60."""
CALL_BAR: Final = 30.0
"""Seconds of the slowest call; clients give up after 30 to 60."""
ANSWER_BAR: Final = {1024: 0.75}
"""Share of real questions whose answer is kept at a budget; plain chunks with BM25 keep
0.85 of an easier mix."""
BUDGETS: Final = (512, 1024, 2048)
QUICK_PAGES: Final = 10
QUESTIONS: Final = (
    "How deep is Lake Orvane?",
    "What does the ferry cost for a bicycle?",
    "Which sensor is the cheapest?",
    "When was the lighthouse lit again?",
    "Welche Öffnungszeiten hat das Strandbad?",
)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="the quick form; exit 1 when a bar falls short",
    )
    parser.add_argument(
        "--pages",
        type=int,
        default=0,
        help="real questions to ask (default 150, quick form 30)",
    )
    parser.add_argument(
        "--tools",
        action="store_true",
        help="only print the list of tools, as a test pins it",
    )
    parser.add_argument(
        "--ends",
        action="store_true",
        help="only how the server starts and ends on each transport",
    )
    parser.add_argument(
        "--transcript",
        action="store_true",
        help="only a client that is cancelled, late, killed, back",
    )
    args = parser.parse_args()
    if args.tools:
        print(json.dumps(listing(), indent=1, ensure_ascii=False))
        return
    if args.transcript:
        failed = anyio.run(transcript, sys.executable)
    else:
        failed = [*starts(2 if args.check else 5), *ends(worker=not args.check)]
    if not args.ends and not args.transcript:
        pages, budgets = (
            args.pages or (QUICK_PAGES if args.check else 150),
            BUDGETS[1:2] if args.check else BUDGETS,
        )
        failed += anyio.run(_measure, pages, budgets)
    for line in failed:
        print(f"BAR MISSED: {line}")
    print("all bars hold" if not failed else f"{len(failed)} bars missed")
    sys.exit(1 if failed and (args.check or args.transcript) else 0)


async def _measure(pages: int, budgets: Sequence[int]) -> list[str]:
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as cache, serving(_answer) as port:
        environment = {
            **os.environ,
            "WINNOW_CACHE": cache,
            "WINNOW_FOLDERS": str(LIBRARY),
            "WINNOW_NETWORKS": "loopback",
            "WINNOW_WEB": "named",
        }
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "server"], env=environment, cwd=ROOT
        )
        started = time.perf_counter()
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            seconds = time.perf_counter() - started
            sent = [
                tool.model_dump(by_alias=True, mode="json", exclude_none=True)
                for tool in tools
            ]
            listed = count_tokens(json.dumps(sent, separators=(",", ":")))
            print(f"start to tool list: {seconds:.2f} s; tool list: {listed:,} tokens")
            if seconds > START_BAR:
                failed.append(f"start took {seconds:.1f} s > {START_BAR} s")
            failed += await _latency(client)
            if DATA.is_dir():
                failed += await _real_pages(client, port, pages, budgets)
            else:
                print("real pages: ../shared is not beside this checkout; skipped")
            print(f"\nresident memory of the server: {_child_megabytes():.0f} MB")
    return failed


async def _latency(client: Client) -> list[str]:
    page = [str(LIBRARY / "lake-orvane.html")]
    report = [str(LIBRARY / "orvane-flood-report.html")]
    print(f"\n{'tool':24}{'first s':>9}{'median s':>10}{'slowest s':>11}")
    failed = []
    makers: dict[str, Callable[[str], dict[str, Any]]] = {
        "search_web": lambda q: {"question": q},
        "fetch_and_prune_html": lambda q: {"sources": page, "question": q},
        "extract_relevant": lambda q: {"question": q, "sources": page},
        "raptor_query": lambda q: {"question": q, "sources": report},
        "research": lambda q: {"question": q},
    }
    for tool, make in makers.items():
        times = []
        for question in QUESTIONS:
            started = time.perf_counter()
            result = await client.call_tool(tool, make(question))
            times.append(time.perf_counter() - started)
            if result.is_error:
                failed.append(f"{tool}: {_text(result)[:200]}")
        print(
            f"{tool:24}{times[0]:>9.2f}{statistics.median(times):>10.2f}{max(times):>11.2f}"
        )
        if max(times) > CALL_BAR:
            failed.append(f"{tool}: slowest call {max(times):.1f} s > {CALL_BAR} s")
    return failed


async def _real_pages(
    client: Client, port: int, count: int, budgets: Sequence[int]
) -> list[str]:
    lines = (
        (DATA / "html_qa" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    )
    every = [json.loads(line) for line in lines]
    questions = every[:: max(1, len(every) // count)][:count]
    print(
        f"\n{len(questions)} questions on real pages, share with the answer in the text; tokens "
        f"of the raw pages beside"
    )
    print(f"{'':34}" + "".join(f"{b:>8}" for b in budgets))
    kept: dict[int, list[bool]] = {b: [] for b in budgets}
    heads: dict[int, list[bool]] = {b: [] for b in budgets}
    extracted: list[bool] = []
    raw: list[int] = []
    times: list[float] = []
    for question in questions:
        url = f"http://127.0.0.1:{port}/{question['page']}"
        text = read_document(_page(question["page"], url)).text
        for budget in budgets:
            started = time.perf_counter()
            arguments = {
                "sources": [url],
                "question": question["question"],
                "max_tokens": budget,
                "format": "markdown",
            }
            result = await client.call_tool("fetch_and_prune_html", arguments)
            times.append(time.perf_counter() - started)
            kept[budget].append(_holds(question, _text(result)))
            heads[budget].append(_holds(question, cut_to_tokens(text, budget)))
        data: dict[str, Any] = data_of(result)
        raw.extend(page["raw_tokens"] for page in data["pages"])
        arguments = {
            "question": question["question"],
            "sources": [url],
            "max_tokens": 512,
        }
        extracted.append(
            _holds(
                question, _text(await client.call_tool("extract_relevant", arguments))
            )
        )
    print(
        f"{'fetch_and_prune_html':34}"
        + "".join(f"{_share(kept[b]):>8.3f}" for b in budgets)
    )
    print(
        f"{'head of the cleaned text':34}"
        + "".join(f"{_share(heads[b]):>8.3f}" for b in budgets)
    )
    print(f"{'extract_relevant at 512':34}{_share(extracted):>8.3f}")
    print(
        f"raw page, median: {statistics.median(raw):,.0f} tokens; call, median "
        f"{statistics.median(times):.2f} s,",
        end=" ",
    )
    print(f"slowest {max(times):.2f} s")
    return [
        f"answers kept at {budget} tokens: {_share(kept[budget]):.3f} < {bar}"
        for budget, bar in ANSWER_BAR.items()
        if budget in kept and _share(kept[budget]) < bar
    ]


def _page(name: str, url: str) -> Page:
    html = gzip.decompress((DATA / "pages" / f"{name}.html.gz").read_bytes()).decode(
        "utf-8", "replace"
    )
    return Page(url, url, "", html, "text/html")


def _holds(question: dict[str, Any], text: str) -> bool:
    folded = " ".join(text.replace("|", " ").split()).casefold()
    return any(
        " ".join(str(answer).split()).casefold() in folded
        for answer in question["answers"]
    )


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _text(result: CallToolResult) -> str:
    return "\n".join(
        part.text for part in result.content if isinstance(part, TextContent)
    )


def _child_megabytes() -> float:
    """Resident memory of the newest child process, from /proc; nan where there is
    none."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if not children.exists() or not children.read_text(encoding="ascii").split():
        return float("nan")
    child = children.read_text(encoding="ascii").split()[-1]
    status = Path(f"/proc/{child}/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


def _answer(path: str) -> Answer:
    """Return a real page by its name."""
    kept = DATA / "pages" / f"{Path(path).name}.html.gz"
    return Answer(gzip.decompress(kept.read_bytes()) if kept.is_file() else b"")


if __name__ == "__main__":
    main()
