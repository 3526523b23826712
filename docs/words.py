"""Check the wording of code and documents against the project's rules (docs/glossary.md).

    python -m docs.words            every finding, and exit code 1 if there is one
    python -m docs.words --count    findings of each path
    python -m docs.words PATH ...   findings below these paths

Names, docstrings, comments and messages of Python files and the text of Markdown files are
checked; no path is excepted but the log of the past (`LOGS`). Strings of `tests/` and
`bench/` are data and are not checked. Over all of the product, a module constant or a
class has a name of its own: two values of one name are a finding.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
LONGEST_SENTENCE: Final = 30
"""Words of the longest sentence in a docstring or comment."""
COMMENT_LINES: Final = 3
"""Lines of the longest comment that may hold figures; longer ones belong into the log."""
DATA: Final = ("tests/", "bench/", "examples/")
"""Folders whose strings are data."""
NOT_PRODUCT: Final = (*DATA, "docs/", "train/", "papers/recipes/")
"""Folders that no installed program imports."""
LOGS: Final = (
    "docs/log",
    "docs/glossary.md",
    "AGENTS.md",
    "docs/words.py",
    "examples/library",
)
"""Not checked: the log, which quotes names and texts as they were on their day; files that
name the banned words; sample documents."""
BANNED: Final = re.compile(
    r"\b(?:told|tell(?! the user)|tells|telling|heard|hear|hears|stand|stands|stood|anew|nobody|whoever"
    r"|speaks?|spoken|wished|the same of|(?<!there )(?:is|are|was) no(?= (?!longer|more|less|need|\w+er\b)))\b"
    r"|\bbehind\b(?!: | (?:an? |the |its |one )?(?:[\w-]+ )?"
    r"(?:prox|load balancer|HAProxy|Caddy|TLS|login|paywall|check|consent))",
    re.IGNORECASE,
)
BANNED_NAMES: Final = frozenset(
    {
        "anew",
        "hear",
        "heard",
        "hears",
        "nobody",
        "speaks",
        "stands",
        "stood",
        "tell",
        "tells",
        "told",
    }
)
"""Words that no identifier has."""
BY_ROLE: Final = frozenset(
    {
        "BACKEND",
        "CACHE",
        "COMMAND",
        "EXPORT",
        "FORMAT",
        "NAME",
        "PAGE_SOURCE",
        "PROMPT",
        "PROVIDER",
        "ROOT",
        "SEAM",
        "STEP",
        "TOOL",
        "TRANSPORT",
        "VIEW",
    }
)
"""Constants that many files define with one meaning: what a seam finds there, the name of
its tool or prompt, and the folder of the repository."""
_FIGURE: Final = re.compile(r"(?<![\w+:/.])\d*\.\d|\d ?%|\b\d{2,} of\b")
_CODE: Final = re.compile(r"`[^`\n]*`")
_FILE: Final = re.compile(
    r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|toml|txt|json|ini|sh|js))(?::\d+)?`"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?;:])\s+|\n\s*\n|\n\s*[-*|]|\n(?=\s*\w+: )")


class Finding(NamedTuple):
    """One place where the wording breaks a rule."""

    path: str
    line: int
    rule: str
    text: str


class Prose(NamedTuple):
    """One docstring, comment or message, and its first line."""

    line: int
    kind: str
    text: str
    name: str = ""


def tracked() -> list[str]:
    """Return the Python and Markdown files of the repository."""
    command = ["git", "ls-files", "*.py", "*.md"]  # git is on every developer's path
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def read_prose(path: str, source: str) -> Iterator[Prose]:
    """Yield all prose of a file: a Markdown file is one text without its code blocks."""
    if path.endswith(".md"):
        yield Prose(1, "text", re.sub(r"```.*?```", "", source, flags=re.DOTALL))
        return
    yield from _comments(source)
    tree = ast.parse(source)
    docstrings = dict(_docstrings(tree))
    for node, (text, name) in docstrings.items():
        yield Prose(node.lineno, "docstring", text, name)
    for child in ast.walk(tree):
        match child:
            case ast.Constant(value=str() as text) if (
                child not in docstrings and " " in text and not path.startswith(DATA)
            ):
                yield Prose(child.lineno, "message", text)


def _docstrings(tree: ast.AST) -> Iterator[tuple[ast.Constant, tuple[str, str]]]:
    """Yield each string that is a statement, with the name it describes."""
    for node in ast.walk(tree):
        name = getattr(node, "name", "")
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else ():
            match child:
                case ast.Expr(value=ast.Constant(value=str() as text) as constant):
                    yield constant, (text, name)
            name = ""


def _comments(source: str) -> Iterator[Prose]:
    """Yield comments; those on lines of their own that follow each other are one."""
    first, last, lines = 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        own = not token.line[: token.start[1]].strip()
        if lines and not (own and token.start[0] == last + 1):
            yield Prose(first, "comment", "\n".join(lines))
            lines = []
        first, last = (first if lines else token.start[0]), token.start[0]
        lines.append(token.string.lstrip("#!: "))
    if lines:
        yield Prose(first, "comment", "\n".join(lines))


def check(path: str, source: str) -> Iterator[Finding]:
    """Yield what breaks a rule in one file."""
    for prose in read_prose(path, source):
        plain = _CODE.sub(lambda code: "`" * len(code[0]), prose.text)
        for found in BANNED.finditer(plain):
            line = prose.line + prose.text.count("\n", 0, found.start())
            shown = prose.text[max(0, found.start() - 30) : found.end() + 30]
            yield Finding(path, line, f"word {found[0]!r}", " ".join(shown.split()))
        for found in _FILE.finditer(prose.text):
            if prose.kind != "message" and not _exists(path, found[1]):
                yield Finding(path, prose.line, "no such file", found[1])
        if prose.kind in ("docstring", "comment"):
            yield from _check_sentences(path, prose)
        if prose.kind == "docstring":
            yield from _check_docstring(path, prose)
    if path.endswith(".py"):
        yield from _check_names(path, ast.parse(source))


def _exists(path: str, named: str) -> bool:
    """Return whether a file is there, from the root or from the folder of the file that names it;
    capitals are placeholders (`prompts/NAME.md`)."""
    roots = (ROOT, (ROOT / path).parent)
    placeholder = re.search(r"\b[A-Z]{3,}\b", named)
    foreign = path.endswith(".md") and not (ROOT / named.partition("/")[0]).exists()
    return (
        bool(placeholder) or foreign or any((root / named).exists() for root in roots)
    )


def _check_sentences(path: str, prose: Prose) -> Iterator[Finding]:
    """Yield long sentences, and long comments with figures."""
    long_comment = prose.kind == "comment" and prose.text.count("\n") >= COMMENT_LINES
    if long_comment and _FIGURE.search(prose.text):
        yield Finding(path, prose.line, "figures in a long comment", prose.text[:60])
    for sentence in _SENTENCE.split(prose.text):
        words = len(sentence.split())
        if words > LONGEST_SENTENCE and "    " not in sentence.strip().replace(
            "\n", ""
        ):
            shown = " ".join(sentence.split())[:60]
            yield Finding(path, prose.line, f"sentence of {words} words", shown)


def _check_docstring(path: str, prose: Prose) -> Iterator[Finding]:
    """Yield docstrings that need another docstring, or none."""
    if prose.text.startswith("The same"):
        yield Finding(path, prose.line, "begins with The same", prose.text[:60])
    words = [word.lower() for word in re.findall(r"[A-Za-z]+", prose.text)]
    plain = [word for word in words if word not in ("return", "the", "a", "an", "of")]
    if prose.name and "".join(plain) == prose.name.replace("_", "").lower():
        yield Finding(path, prose.line, "repeats the name", prose.text[:60])


def _check_names(path: str, tree: ast.AST) -> Iterator[Finding]:
    """Yield the names that a file binds and that hold a banned word."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
                if BANNED_NAMES & {part.lower() for part in parts}:
                    yield Finding(path, node.lineno, "name", name)


def check_constants(sources: Mapping[str, str]) -> Iterator[Finding]:
    """Yield constants and classes of the product whose name has another meaning in another
    file.

    Args:
        sources: Python source of each path, in the order in which they are reported.
    """
    seen = dict[str, tuple[str, str]]()
    for path, source in sources.items():
        for line, name, value in _defined(ast.parse(source)):
            first, meaning = seen.setdefault(name, (path, value))
            if first != path and meaning != value:
                yield Finding(path, line, "name of two meanings", f"{name}, in {first}")


def _defined(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and value of each constant and class of a module.

    The value is the text of the expression, so that files which repeat a constant agree.
    Type variables and `BY_ROLE` are left out.
    """
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                yield node.lineno, name, ast.unparse(node)
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.Assign(targets=[ast.Name(id=name)], value=value)
            ) if name.isupper() and len(name) > 1 and name not in BY_ROLE:
                yield node.lineno, name, ast.unparse(value)


def main() -> None:
    """Print findings; exit with 1 where there is one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", help="check these only")
    parser.add_argument("--count", action="store_true", help="count by path instead")
    options = parser.parse_args()
    every = [path for path in tracked() if not path.startswith(LOGS)]
    if options.paths:
        every = [path for path in every if path.startswith(tuple(options.paths))]
    sources = {path: (ROOT / path).read_text("utf-8") for path in every}
    found = [one for path, source in sources.items() for one in check(path, source)]
    product = {
        path: source
        for path, source in sources.items()
        if path.endswith(".py") and not path.startswith(NOT_PRODUCT)
    }
    found += check_constants(product)
    if options.count:
        counts = Counter("/".join(one.path.split("/")[:2]) for one in found)
        print("\n".join(f"{count:5} {path}" for path, count in sorted(counts.items())))
        return
    for one in found:
        print(f"{one.path}:{one.line}: {one.rule}: {one.text}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
