"""A package of others whose format, provider and tool raise the error that a file, an answer or an
argument names."""

from pathlib import Path
from typing import Final

ERRORS: Final = {
    "field": 'KeyError("start")',
    "type": 'TypeError("no text")',
    "letters": 'UnicodeDecodeError("utf-8", b"x", 0, 1, "surrogates")',
    "depth": "RecursionError()",
    "check": "AssertionError()",
    "index": "IndexError()",
    "system": 'OSError(5, "input")',
    "memory": "MemoryError()",
    "group": 'ExceptionGroup("several", [ValueError("one")])',
}
"""By name, what Python raises."""
_INIT: Final = "ERRORS = {{{}}}\ndef fail(name):\n    raise ERRORS[name]()\n"
_FORMAT: Final = """
import re
from boom_parts import fail
from readers.format import Format
def to_html(body):
    fail(body.split()[1].decode())
FORMAT = Format(types=("application/x-{name}",), to_html=to_html, endings=(".{name}",),
    begins=re.compile(rb"{begins}"), heavy={heavy})
"""
_PROVIDER: Final = """
from boom_parts import fail
from pipeline.search.provider import over
from pipeline.search.service import Request, Service
def rows(answer):
    fail(answer["error"])
PROVIDER = over(Service(name="boom", title="Boom", address="{address}",
    write=lambda api, query, words, count: Request("GET", api.base, {{}}, {{"q": words}}),
    judge=lambda status, answer: None, able=frozenset(), most=50, longest=400, rows=rows,
    snippet=("x",)), key="Key.")
"""
_TOOL: Final = """
from boom_parts import fail
from mcp_types import CallToolResult
from tools.common.context import ToolContext
from tools.common.tool import Tool
async def boom(question: str, ctx: ToolContext) -> CallToolResult:
    \"\"\"Fail.\"\"\"
    fail(question)
TOOL = Tool(function=boom, title="Boom", command="boom", help="fail", advice="Never.")
"""


def boom_file(name: str, *, heavy: bool) -> bytes:
    """Return a file whose reader, in a process of its own if `heavy`, raises an error of
    `ERRORS`."""
    return f"{'HEAVY' if heavy else 'LIGHT'} {name}\n".encode()


def package(folder: Path, address: str) -> Path:
    """Install the package in `folder`, its provider at `address`, and return it. Files ending in
    `.heavy` and `.light` are `boom_file`s; the provider raises what the field `error` of an answer
    names, the tool `boom` what its question names."""
    info, code = folder / "boom-1.0.dist-info", folder / "boom_parts"
    for made in (info, code):
        made.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: boom\nVersion: 1.0\n")
    table = ", ".join(f"{name!r}: lambda: {error}" for name, error in ERRORS.items())
    codes = {
        "__init__": _INIT.format(table),
        "heavy": _FORMAT.format(name="heavy", begins="HEAVY", heavy=True),
        "light": _FORMAT.format(name="light", begins="LIGHT", heavy=False),
        "provider": _PROVIDER.format(address=address),
        "tool": _TOOL,
    }
    for name, text in codes.items():
        (code / f"{name}.py").write_text(text)
    (info / "entry_points.txt").write_text(
        "[winnow.formats]\nheavy = boom_parts.heavy:FORMAT\nlight = boom_parts.light:FORMAT\n"
        "[winnow.providers]\nboom = boom_parts.provider:PROVIDER\n"
        "[winnow.tools]\nboom = boom_parts.tool:TOOL\n"
    )
    return folder
