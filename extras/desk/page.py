"""Builds the desk as one self-contained HTML file from the modules, style and texts of
this folder.

Modules are joined in order of dependency, without their import lines and `export`.
Names are unique over all modules, which a browser checks.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Final

DESK_FOLDER: Final = Path(__file__).resolve().parent
MODULES: Final = (
    "texts",
    "dom",
    "door",
    "evidence",
    "reading",
    "run",
    "main",
)
"""Modules in order of dependency."""
_IMPORT: Final = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=async |function |const |class )", re.MULTILINE)


@cache
def desk_html() -> str:
    """Return the HTML of the desk."""
    texts = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((DESK_FOLDER / "texts").glob("*.json"))
    }
    scripts = [
        f"const TEXTS = {json.dumps(texts, ensure_ascii=False, separators=(',', ':'))};\n"
    ]
    for name in MODULES:
        code = (DESK_FOLDER / f"{name}.js").read_text(encoding="utf-8")
        scripts.append(_EXPORT.sub("", _IMPORT.sub("", code)))
    page = (DESK_FOLDER / "page.html").read_text(encoding="utf-8")
    style = (DESK_FOLDER / "style.css").read_text(encoding="utf-8")
    return page.replace("/* style */", style).replace("/* script */", "".join(scripts))
