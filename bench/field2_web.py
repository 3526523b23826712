"""Cases of the second field set that come over HTTP (../shared/data/field2): which are
read rightly now.

    python -m bench.field2_web           each case with its outcome
    python -m bench.field2_web --misses  and what was answered where it is wrong

Cases whose page the judges keep aside are skipped. Not for: local files.
"""

import argparse
import importlib.util
import json
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client
from mcp_types import TextContent

from bench.field import Outcome, Wanted, judge
from server.app import build_server
from server.settings import read_settings

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "field2"
_SITE: Final = "127.0.0.1:8791"
_STRUCK: Final = Wanted((r"~~80 crowns~~ 70 crowns",))
_FROM_TOP: Final = Wanted((r"ana, 2026.*user0,.*user1,.*user2,",))
_UNREAD: Final = Wanted((r"transcript.{0,60}could not be read",), (r"None: ",))
WANTED: Final[Mapping[str, Wanted]] = {
    "fr4": _FROM_TOP,
    "gh3": Wanted((r"user120,.*burns the seal",)),
    "gh14": Wanted((r"user37,.*intake\.min_level",)),
    "fr3": Wanted((r"user37,.*intake\.min_level",)),
    "gh1": Wanted((r"intake\.min_level = 0\.6",)),
    "gh2": Wanted((r"Use 0\.7 at least",)),
    "gh4": Wanted((r"140",)),
    "gh5": Wanted((r"closed without merge", r"[Rr]equested changes")),
    "gh6": Wanted((r"use 50 ms",)),
    "gh7": Wanted((r"src/float\.c.*use 50 ms",)),
    "gh9": Wanted((r"needle shows 0\.4 bar",)),
    "gh13": Wanted((r"use 50 ms",)),
    "gl1": Wanted((r"flickers at night", r"Not read: .*comments")),
    "gl2": Wanted((r"Not read: .*comments",)),
    "gt1": Wanted((r"tallow",)),
    "gt2": Wanted((r"tallow",)),
    "ge1x": Wanted((r"tallow",)),
    "f2": Wanted((r"int f300\(",)),
    "f3": Wanted((r"red button for 4 seconds",)),
    "f5": Wanted((r"pump-2\.1\.0-win\.zip",)),
    "f5b": Wanted((r"pump-2\.1\.0-win\.zip",), (r"None: ",)),
    "f6": Wanted((r"archived",)),
    "m2": _UNREAD,
    "yt2": _UNREAD,
    "fe1": Wanted((r"14 percent",)),
    "fe2": Wanted((r"Episode 42", r"09 Feb 2026")),
    "fe3": Wanted((r"14 percent",)),
    **dict.fromkeys(("st1", "st2", "u1", "u2", "u6"), _STRUCK),
    "qa6": Wanted((r"Butyl tape",)),
    "mp1": Wanted((r"p2\.html",)),
    "mp2": Wanted((r"p2\.html",)),
    "se1": Wanted((r"\(5,021\)",)),
    "se2": Wanted((r"\(5,021\)",)),
    "se3": Wanted((r"\(0\.15\)",)),
    "ta1": Wanted((r"pnpm add -D keelson",)),
    "ta2": Wanted((r"pnpm add -D keelson",)),
    "ta3": Wanted((r"C:\\ProgramData\\Keelson",)),
    "pr1": Wanted((r"Small 89\.00 €", r"Large 119\.00 €")),
    "pr2": Wanted((r"89\.00 €",)),
    "pr3": Wanted((r"Large 119\.00 €", r"3 left")),
    "th1": Wanted((r"K1\W+1\.4 t\W+winter",)),
    "th2": Wanted((r"K1 \| 1\.4 t \| winter",)),
    "da1": Wanted((r"12 March",)),
    "da2": Wanted((r"12 March",)),
    "la1": Wanted((r"under 6 metres", r"goods for sale")),
    "la2": Wanted((r"5,000 crowns\. \[Repealed",)),
    "la3": Wanted((r"1 January 2024",)),
    "la4": Wanted((r"§ 12 Fees",)),
    "bu1": Wanted((r"18:45",)),
    "bu2": Wanted((r"\\\|",)),
    "bu3": Wanted((r"22:36",)),
    **dict.fromkeys(("pm1", "pm2", "pm3"), Wanted((r"(?i)corrected|erratum",))),
    "sh1": Wanted((r"38 Kronen",)),
    "sh2": Wanted((r"1\. Dezember",)),
    "wp2": Wanted((r"12.tonnes",), (r"&nbsp;", r"<strong>")),
    "ap1": Wanted((r"seek_port.*Default 25",)),
    "ap2": Wanted((r"write_port.*port is full",)),
    "js1": Wanted((r"browser that runs its scripts",)),
    "js2": Wanted((r"browser that runs its scripts",)),
    "ge1": Wanted((r"legal reasons",), (r"None: ",)),
    "ja1": Wanted((r"北防波堤",)),
    "ja2": Wanted((r"午前五時",)),
    "zh1": Wanted((r"十二吨",)),
    "zh2": Wanted((r"北防波堤",)),
    "ar1": Wanted((r"٤٠",)),
    "ar2": Wanted((r"٤٠",)),
    "kf": Wanted((r"S0 Why.*S1 Why.*S2 Why",)),
    "kt": Wanted((r"S0 user0.*S1 user1.*S2 user2",)),
    "ts3": Wanted((r"user0,.*user1,.*user2,",)),
}


@contextmanager
def site() -> Iterator[int]:
    """Serve the cases' pages on a free port of loopback; yield it."""
    spec = importlib.util.spec_from_file_location("field2", DATA / "bugs" / "srv.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(DATA)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with ThreadingHTTPServer(("127.0.0.1", 0), module.H) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


async def run(*, misses: bool) -> list[Outcome]:
    """Ask every case and print its outcome."""
    lines = (DATA / "index.jsonl").read_text("utf-8").splitlines()
    cases: list[dict[str, Any]] = [
        case for case in map(json.loads, lines) if case["set"] == "bugs"
    ]
    outcomes = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        github, gitlab, gitea = (stack.enter_context(site()) for _ in range(3))
        reported = {
            "cache": folder,
            "search": "folder",
            "networks": "loopback",
            "web": "named",
            "robots": "false",
            "forges": f"github=http://127.0.0.1:{github},"
            f"gitlab=http://127.0.0.1:{gitlab},gitea=http://127.0.0.1:{gitea}",
        }
        async with Client(build_server(read_settings(reported, {}))) as client:
            for case in cases:
                call = json.dumps(case["args"])
                if _SITE not in call or case["id"] not in WANTED:
                    continue
                port = gitlab if "/g/" in call else gitea if "/o/t/" in call else github
                call = call.replace(_SITE, f"127.0.0.1:{port}")
                arguments = {"max_tokens": 2000, **json.loads(call)}
                result = await client.call_tool(case["tool"], arguments)
                text = "\n".join(
                    block.text
                    for block in result.content
                    if isinstance(block, TextContent)
                )
                if re.search(r"returned 404 Not Found\. Check", text):
                    continue
                outcome = judge(
                    WANTED[case["id"]], text, is_error=bool(result.is_error)
                )
                outcomes.append(outcome)
                print(f"{case['id']:8}{outcome.type} {outcome.detail}", flush=True)
                if misses and not outcome.is_right:
                    print(text[:900])
    return outcomes


def main() -> int:
    """Run the cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--misses", action="store_true", help="print wrong answers")
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    outcomes = anyio.run(lambda: run(misses=options.misses))
    print(f"{sum(outcome.is_right for outcome in outcomes)} of {len(outcomes)} right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
