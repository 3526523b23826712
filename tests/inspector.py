"""The official Inspector's command line against our stdio server: every tool in both eras, part of
`make conformance`.

Exits 1 when a call fails or its answer is empty. Needs Node 22 and the Inspector, which `make
conformance` installs. Not for: HTTP (`tests/conformance.py`).
"""

import json
import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Final

from tests.support import LIBRARY, ROOT

ERAS: Final = ("legacy", "modern")
DAEMONS: Final = ("off", "on idle=0")
"""In a process of its own, and through one that clients share."""
WITHIN: Final = 90
PAGE: Final = str(LIBRARY / "ferry-timetable.html")
QUESTION: Final = "When does the first ferry leave on Sundays?"
CALLS: Final[dict[str, dict[str, object]]] = {
    "search_web": {"question": "ferry timetable", "max_results": 3},
    "fetch_and_prune_html": {"sources": [PAGE], "question": QUESTION, "max_tokens": 400},
    "extract_relevant": {"question": QUESTION, "sources": [PAGE]},
    "raptor_query": {"question": QUESTION, "sources": [PAGE]},
    "research": {"question": QUESTION, "max_tokens": 600},
}


def main() -> None:
    """List and call every tool in both eras and kinds of process, print one line a call, leave with 0 or 1."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        # The Inspector passes no environment of ours on, as desktop clients do: a client's file
        # says what there is.
        settings = {
            "PYTHONUNBUFFERED": "1",
            "WINNOW_FOLDERS": str(LIBRARY),
            "WINNOW_CACHE": f"{folder}/cache",
            "XDG_RUNTIME_DIR": folder,
        }
        entry = {
            "type": "stdio",
            "command": sys.executable,
            "args": ["-m", "server"],
            "env": settings,
        }
        for daemon, era in product(DAEMONS, ERAS):
            settings["WINNOW_DAEMON"] = daemon
            Path(folder, "mcp.json").write_text(
                json.dumps({"mcpServers": {"winnow": entry}}), encoding="utf-8"
            )
            failed += not ask(era, folder, "--method", "tools/list", "--strict")
            for tool, arguments in CALLS.items():
                given = ["--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
                failed += not ask(era, folder, "--method", "tools/call", *given)
    print("the Inspector is content" if not failed else f"the Inspector failed {failed} times")
    sys.exit(1 if failed else 0)


def ask(era: str, folder: str, *options: str) -> bool:
    """Run one command of the Inspector; return whether it left with 0 and printed a result."""
    config = ["--config", f"{folder}/mcp.json", "--server", "winnow"]
    command = ["mcp-inspector", "--cli", *config, "--protocol-era", era]
    environment = {**os.environ, "HOME": folder}
    run = subprocess.run(
        [*command, *options, "--format", "json"],
        capture_output=True,
        text=True,
        timeout=WITHIN,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    right = run.returncode == 0 and len(run.stdout) > 200
    asked = f"{'ok  ' if right else 'FAIL'} {era:7} {' '.join(options[:4])[:80]}"
    print(f"{asked} exit {run.returncode}, {len(run.stdout)} bytes")
    if not right:
        print(run.stdout[-600:], run.stderr[-600:])
    return right


if __name__ == "__main__":
    main()
