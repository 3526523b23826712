"""The pictures of README.md and docs/gallery.md, drawn from real answers: an answer in a client beside
the page with its words marked, and a cast of the command line.

    python -m docs.picture --chromium /usr/bin/chromium     writes docs/answer.png
    python -m docs.picture --cast                           writes docs/demo.cast (asciinema, 90 seconds)

Not for: screenshots of the desk (`tests/test_desk.py` looks at it).
"""

import argparse
import html
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

ROOT: Final = Path(__file__).resolve().parents[1]
QUESTION: Final = "May I use the trademarks of the licensor?"
SOURCE: Final = "LICENSE"
MAX_TOKENS: Final = "150"
WIDTH, HEIGHT = 1280, 420
DEMO: Final = (
    ("winnow --version", ""),
    (
        f'winnow extract "{QUESTION}" {SOURCE} --max-tokens {MAX_TOKENS}',
        "one question, one document",
    ),
    (
        'winnow research "When does the first ferry leave on Sundays?" --folder examples/library --max-tokens 250',
        "a folder of documents, without an index",
    ),
    (
        'winnow extract "Which enzyme unwinds the DNA double helix?" examples/library/ferry-timetable.html',
        "it says when nothing answers",
    ),
    (
        "winnow fetch examples/library/ferry-timetable.html "
        '--part "sql: SELECT journey, adult FROM t5 WHERE adult > 10"',
        "tables are asked in SQL",
    ),
    (
        "winnow install claude-desktop --folder examples/library --dry-run",
        "in a client",
    ),
)
"""What the cast types, and the comment above it."""
SECONDS: Final = 90.0
"""Of the whole cast."""
LETTER: Final = 0.035
"""Seconds of a typed letter."""
STYLE: Final = """
body { margin: 0; display: grid; grid-template-columns: 1fr 1fr; height: 420px; color: #222;
  font: 15px/1.45 'Liberation Sans', sans-serif }
section { padding: 22px 26px; overflow: hidden; box-sizing: border-box }
.client { background: #f4f1ea; border-right: 1px solid #d8d2c4 }
.client p { margin: 0 0 14px; padding: 12px 16px; border-radius: 12px; background: #fff; border: 1px solid #e2dccd }
.client .asked { margin-left: 70px; background: #1f4d3a; color: #fff }
.client .called { font: 13px 'Liberation Mono', monospace; background: none; border: none; color: #666; padding: 0 4px }
.page { font: 13px/1.5 'Liberation Mono', monospace; white-space: pre-wrap }
mark { background: #ffe08a; padding: 1px 0 }
small { color: #777 }
"""


def main() -> None:
    """Draw the picture, or record the cast."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default="chromium", help="the browser that draws")
    parser.add_argument("--cast", action="store_true")
    args = parser.parse_args()
    if args.cast:
        (ROOT / "docs/demo.cast").write_text("\n".join(cast()) + "\n", encoding="utf-8")
        return
    data = json.loads(
        run_winnow(f'extract "{QUESTION}" {SOURCE} --max-tokens {MAX_TOKENS} --json')
    )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "picture.html")
        page.write_text(
            picture(data, (ROOT / SOURCE).read_text("utf-8")), encoding="utf-8"
        )
        subprocess.run(
            [
                args.chromium,
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                f"--window-size={WIDTH},{HEIGHT}",
                f"--screenshot={ROOT / 'docs/answer.png'}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
        )


def picture(data: dict[str, object], text: str) -> str:
    """Return the picture as HTML: the answer of `extract_relevant`, and its source with the best
    passage marked."""
    passages = data["passages"]
    assert isinstance(passages, list)
    best = max(passages, key=lambda passage: passage["score"])
    shown, begins = marked(text, best["link"])
    words = shown[begins:].partition("</mark>")[0].partition("<mark>")[2]
    quoted = " ".join(words.split())
    left = (
        f"<p class=asked>{html.escape(QUESTION)} Use winnow, and cite.</p>"
        f'<p class=called>winnow · extract_relevant("{SOURCE}") · {data["tokens"]} tokens</p>'
        f"<p>No. “{quoted}” [{best['label']}]<br><br><small>[{best['label']}] {SOURCE}, section 6</small></p>"
    )
    right = shown[max(0, shown.rfind("\n\n", 0, max(0, begins - 420))) :].strip("\n")
    head = f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>"
    return (
        f"{head}<section class=client>{left}</section>"
        f"<section class=page>{right}</section>"
    )


def marked(text: str, link: str) -> tuple[str, int]:
    """Return a text as HTML with the words between a link's first and last ones marked, and where
    that begins; raises `ValueError` where the text has them not."""
    ends = [unquote(part) for part in link.removeprefix("#:~:text=").split(",")]
    pattern = r".*?".join(r"\s+".join(map(re.escape, end.split())) for end in ends)
    found = re.search(pattern, text, re.DOTALL)
    if not found:
        raise ValueError(f"No words for {link}.")
    before, words, after = text[: found.start()], found[0], text[found.end() :]
    head = html.escape(before)
    return f"{head}<mark>{html.escape(words)}</mark>{html.escape(after)}", len(head)


def cast() -> Iterator[str]:
    """Yield the lines of the cast (asciicast v2): each command typed, and what it really printed."""
    yield json.dumps({"version": 2, "width": 110, "height": 32, "title": "Winnow"})
    answers = [
        (command, why, run_winnow(command.removeprefix("winnow ")))
        for command, why in DEMO
    ]
    typed = sum(len(command) for command, _ in DEMO) * LETTER
    pause = (SECONDS - typed) / len(DEMO)
    now = 0.0
    for command, why, answer in answers:
        if why:
            yield json.dumps([round(now, 3), "o", f"\x1b[2m# {why}\x1b[0m\r\n"])
        yield json.dumps([round(now, 3), "o", "$ "])
        for letter in command:
            now += LETTER
            yield json.dumps([round(now, 3), "o", letter])
        shown = answer.rstrip().replace("\n", "\r\n")
        yield json.dumps([round(now + 0.3, 3), "o", f"\r\n{shown}\r\n\r\n"])
        now += pause


def run_winnow(arguments: str) -> str:
    """Return what the command `winnow` prints, without paths of this machine."""
    home = "/home/me"
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "server", *shlex.split(arguments)],
            cwd=ROOT,
            env={**os.environ, "HOME": home, "COLUMNS": "110", "WINNOW_CACHE": cache},
            capture_output=True,
            text=True,
            check=False,
        )
    shown = done.stdout.replace(str(ROOT), f"{home}/winnow")
    return shown.replace(sys.executable, f"{home}/winnow/.venv/bin/python")


if __name__ == "__main__":
    main()
