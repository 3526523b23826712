"""The main job, shown: `python -m examples.demo` starts our server as a process and calls every
tool over stdio.

Answers go to stdout, progress to stderr. Not for: testing (`tests/`) or measuring (`bench/`).
"""

import argparse
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Final

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent, TextResourceContents

ROOT: Final = Path(__file__).resolve().parent.parent
LIBRARY: Final = ROOT / "examples" / "library"
QUESTION: Final = (
    "What replaced the Sunday evening boat from Brindle Quay, and when does the "
    "last Sunday boat reach Skellmouth?"
)
Show = Callable[[str, dict[str, Any]], Awaitable[CallToolResult]]


def main() -> None:
    """Read the arguments and run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--question", default=QUESTION)
    parser.add_argument(
        "--live",
        action="store_true",
        help="search the web through WINNOW_SEARXNG, not the samples",
    )
    args = parser.parse_args()
    if args.live and not os.environ.get("WINNOW_SEARXNG"):
        sys.exit(
            "LIVE=1 needs a search provider: set WINNOW_SEARXNG to the base URL of a SearXNG "
            "instance."
        )
    anyio.run(demonstrate, args.question, args.live)


async def demonstrate(question: str, live: bool) -> None:
    """Call all five tools for one question and print what each returns."""
    started = time.perf_counter()
    environment = {"PATH": os.environ.get("PATH", "")} | {
        k: v for k, v in os.environ.items() if k.startswith("WINNOW_")
    }
    if not live:
        environment["WINNOW_FOLDERS"] = str(LIBRARY)
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "server"], env=environment, cwd=ROOT
    )
    async with Client(server) as client:
        show = _caller(client)
        _title(f"Question: {question}")
        pages = await _search(show, question)
        if pages:
            await _prune(show, question, pages[0])
            await _extract(show, question, pages[:4])
            await _tree(client, show, question, pages)
        await _research(show, question)
    _title(
        f"Five tools in {time.perf_counter() - started:.1f} s, server start included."
    )


async def _search(show: Show, question: str) -> list[str]:
    result = await show(
        "search_web", {"question": question, "max_results": 6, "max_tokens": 900}
    )
    data = _data(result)
    _title("1. search_web: the queries and the ranked pages")
    print(f"queries:   {'; '.join(data['queries'])}")
    for hit in data["hits"]:
        print(f"  {hit['place']}. {hit['url']}")
        print(f"     {hit['score']:.3f} by {hit['made_by']}")
    return [hit["url"] for hit in data["hits"]]


async def _prune(show: Show, question: str, page: str) -> None:
    result = await show(
        "fetch_and_prune_html",
        {"sources": [page], "question": question, "max_tokens": 500},
    )
    _title(f"2. fetch_and_prune_html: {_data(result)['tokens']:,} tokens of the page")
    print(_text(result))


async def _extract(show: Show, question: str, pages: list[str]) -> None:
    result = await show(
        "extract_relevant", {"question": question, "sources": pages, "max_tokens": 500}
    )
    _title(
        "3. extract_relevant: the sentences that answer, with links to the very words"
    )
    print(_text(result))
    data = _data(result)
    for passage in data["passages"]:
        page = data["pages"][int(passage["label"].rstrip(ascii_lowercase)) - 1]
        print(f"  {passage['label']}: {page}{passage['link']}")


async def _tree(client: Client, show: Show, question: str, pages: list[str]) -> None:
    result = await show(
        "raptor_query", {"question": question, "sources": pages, "max_tokens": 700}
    )
    tree = _data(result)["tree"]
    _title("4. raptor_query: the tree over these pages, and its passages")
    outline = await client.read_resource(tree)
    for part in outline.contents:
        if isinstance(part, TextResourceContents):
            print("\n".join(part.text.splitlines()[:24]))
    print(_text(result))


async def _research(show: Show, question: str) -> None:
    result = await show("research", {"question": question, "max_tokens": 1500})
    data = _data(result)
    _title(
        f"5. research: the assembled evidence, {data['tokens']} tokens, answered: "
        f"{data['answered']}"
    )
    print(_text(result))


def _caller(client: Client) -> Show:
    async def on_progress(
        progress: float, total: float | None, message: str | None
    ) -> None:
        print(f"  … {message} ({progress:g}/{total or 0:g})", file=sys.stderr)

    async def show(tool: str, arguments: dict[str, Any]) -> CallToolResult:
        result = await client.call_tool(tool, arguments, progress_callback=on_progress)
        if result.is_error:
            sys.exit(_text(result))
        return result

    return show


def _text(result: CallToolResult) -> str:
    return "\n".join(
        part.text for part in result.content if isinstance(part, TextContent)
    )


def _data(result: CallToolResult) -> dict[str, Any]:
    """What hosts and programs read beside the text."""
    data: dict[str, Any] = (result.meta or {})["winnow/result"]
    return data


def _title(text: str) -> None:
    print(f"\n=== {text}\n", flush=True)


if __name__ == "__main__":
    main()
