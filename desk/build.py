"""Makes `server/desk.html` of the modules, style and texts in this folder: `python -m desk.build`, `--check` compares.

The page must load nothing, so its modules are joined into one script: each without its import lines and the word
`export`, in an order in which nothing is used before it is there. Names are unique throughout, which a browser checks.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
BUILT: Final = HERE.parent / "server" / "desk.html"
MODULES: Final = ("texts", "dom", "door", "evidence", "reading", "tree", "run", "sessions", "health", "main")
"""In the order of their use."""
_IMPORT: Final = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=async |function |const |class )", re.MULTILINE)


def built() -> str:
    """Return the page."""
    texts = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((HERE / "texts").glob("*.json"))
    }
    parts = [f"const TEXTS = {json.dumps(texts, ensure_ascii=False, separators=(',', ':'))};\n"]
    for name in MODULES:
        code = (HERE / f"{name}.js").read_text(encoding="utf-8")
        parts.append(_EXPORT.sub("", _IMPORT.sub("", code)))
    page = (HERE / "page.html").read_text(encoding="utf-8")
    style = (HERE / "style.css").read_text(encoding="utf-8")
    return page.replace("/* style */", style).replace("/* script */", "".join(parts))


def main() -> None:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 where the built page is not that of the sources")
    if parser.parse_args().check:
        sys.exit(BUILT.read_text(encoding="utf-8") != built())
    BUILT.write_text(built(), encoding="utf-8")


if __name__ == "__main__":
    main()
