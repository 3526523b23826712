"""The desk as one HTML file that loads nothing: the modules, style and texts of this folder, joined
when asked for.

Each module goes without its import lines and the word `export`, in an order in which nothing is
used before it is there. Names are unique throughout, which a browser checks.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
MODULES: Final = (
    "texts",
    "dom",
    "door",
    "evidence",
    "reading",
    "tree",
    "run",
    "sessions",
    "health",
    "library",
    "main",
)
"""In the order of their use."""
_IMPORT: Final = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=async |function |const |class )", re.MULTILINE)


@cache
def desk_html() -> str:
    """Return the page."""
    texts = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((HERE / "texts").glob("*.json"))
    }
    parts = [
        f"const TEXTS = {json.dumps(texts, ensure_ascii=False, separators=(',', ':'))};\n"
    ]
    for name in MODULES:
        code = (HERE / f"{name}.js").read_text(encoding="utf-8")
        parts.append(_EXPORT.sub("", _IMPORT.sub("", code)))
    page = (HERE / "page.html").read_text(encoding="utf-8")
    style = (HERE / "style.css").read_text(encoding="utf-8")
    return page.replace("/* style */", style).replace("/* script */", "".join(parts))
