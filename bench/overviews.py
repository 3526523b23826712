"""Overviews of folders judged by a labelled list: which themes an answer names, and
whether its titles are right.

    python -m bench.overviews              20 questions over three folders, one of them tuned on, through an MCP client
    python -m bench.overviews --check      exits 1 where a held-aside folder falls short

The folders are mixed files (HTML, Markdown, Word, text) of ../shared/data and the
sample library, labelled by reading. A line of the answer is a theme; its label is that
of most of the documents whose titles it shows. Not for: overviews of one document."""

import argparse
import gzip
import re
import sys
import tempfile
from collections import Counter
from functools import partial
from html import escape
from pathlib import Path
from typing import Final

import anyio
from mcp import Client
from mcp_types import TextContent

from bench.longdoc import DATA, read_lines
from pipeline.fetch.files import read_file
from pipeline.text.frame import one_line
from pipeline.text.tokens import count_tokens
from readers.html.document import read_document
from server.app import build_server
from server.settings import read_settings
from tests.support.docx import make_docx, paragraph

LIBRARY: Final = Path(__file__).resolve().parents[1] / "examples" / "library"
LEAST: Final = 0.1
"""Share of the documents from which a theme must be named."""
RIGHT: Final = 0.8
BEGINNING: Final = 40
"""Characters of a title by which it is known."""

FOLDERS: Final[dict[str, dict[str, str]]] = {
    "house": {
        "moving": "wcxb-0031 wcxb-0054 wcxb-0057 wcxb-0238",
        "plumbing": "wcxb-0104 wcxb-0218 wcxb-0219 wcxb-0220 wcxb-0320",
        "electricity": "wcxb-0102 wcxb-0188 wcxb-0225 wcxb-0358 wcxb-1177",
        "security": "wcxb-0037 wcxb-4103 wcxb-4284 wcxb-4286 wcxb-4287 wcxb-4289",
        "garden": "wcxb-0214 wcxb-0397 wcxb-0400 wcxb-4659 wcxb-0395 wcxb-4704 wcxb-4709",
        "policies": "policyqa/dev0 policyqa/dev1 policyqa/dev3 policyqa/dev5 policyqa/dev8",
        "covid": "covidqa/p10 covidqa/p46 covidqa/p53 covidqa/p62 covidqa/p73 covidqa/p83 "
        "covidqa/p92",
    },
    "leisure": {
        "travel": "wcxb-4083 wcxb-4088 wcxb-4089 wcxb-0009 wcxb-0112 wcxb-0141 wcxb-0148 "
        "wcxb-0332 wcxb-0333",
        "bread": "wcxb-4159 wcxb-4164",
        "coffee": "wcxb-4476 wcxb-4815 wcxb-4818 wcxb-4042 wcxb-4029",
        "headphones": "wcxb-2990 wcxb-3063 wcxb-4427 wcxb-4500 wcxb-4771 wcxb-4828 wcxb-1310",
        "programming": "wcxb-2853 wcxb-0673 wcxb-2857 wcxb-2860 wcxb-2861 wcxb-4310 wcxb-0379 "
        "wcxb-2873",
        "music": "wcxb-0091 wcxb-0092 wcxb-0095 wcxb-1651",
        "meetings": "qmsum_s/test0 qmsum_s/test2 qmsum_s/test4 qmsum_s/test6",
        "games": "wcxb-4682 wcxb-4683 wcxb-4684 wcxb-0412",
    },
    "office": {
        "lakestave": "lakestave-api.html lakestave-bridge-setup.md lakestave-changelog.html "
        "lakestave-cli.html "
        "lakestave-config.html forum-lakestave-drift.html level-sensors-compared.html",
        "ferry": "ferry-faq.html ferry-timetable.html ferry-winter-cuts.html "
        "merganser-hybrid-refit.html",
        "mind": "wcxb-0190 wcxb-0191 wcxb-0196 wcxb-2020 wcxb-4060 wcxb-4866 wcxb-0240",
        "marketing": "wcxb-0040 wcxb-0041 wcxb-0099 wcxb-0100 wcxb-0101 wcxb-0166 wcxb-0171 "
        "wcxb-0703 wcxb-0704",
        "accounting": "wcxb-0026 wcxb-4250 wcxb-4251 wcxb-4253",
        "influenza": "covidqa/p34 covidqa/p40 covidqa/p49 covidqa/p54 covidqa/p66 covidqa/p86 "
        "covidqa/p90 covidqa/p97",
        "policies": "policyqa/test0 policyqa/test2 policyqa/test9 policyqa/test11",
    },
}
"""Theme to documents, by folder. Only `house` was looked at while themes were made."""


def write_folder(name: str, folder: Path) -> dict[str, str]:
    """Write the files of a folder; return the label of each file by its name."""
    labels: dict[str, str] = {}
    for label, listed in FOLDERS[name].items():
        for document in listed.split():
            file, body = _file(document)
            (folder / file).write_bytes(body)
            labels[file] = label
    return labels


def _file(document: str) -> tuple[str, bytes]:
    if document.startswith("wcxb-"):
        return f"{document}.html", gzip.decompress(
            (DATA / "pages" / f"{document}.html.gz").read_bytes()
        )
    if "/" not in document:
        return document, (LIBRARY / document).read_bytes()
    kind, key = document.split("/")
    row = next(
        row
        for row in read_lines(DATA / "longdoc" / kind / "docs.jsonl")
        if row["id"] == key
    )
    text = str(row["text"])
    if kind == "covidqa":
        title, *lines = (
            escape(line)
            for line in (str(row["title"]), *text.split("\n"))
            if line.strip()
        )
        core = (
            f'<cp:coreProperties xmlns:cp="a" '
            f'xmlns:dc="b"><dc:title>{title}</dc:title></cp:coreProperties>'
        )
        return f"{kind}-{key}.docx", make_docx(
            "".join(map(paragraph, lines)), core=core
        )
    return f"{kind}-{key}.{'md' if kind == 'policyqa' else 'txt'}", text.encode()


QUESTIONS: Final[dict[str, tuple[str, ...]]] = {
    "house": (
        "What is in this folder?",
        "Give me an overview of this collection.",
        "What are the main themes of these documents?",
        "Worum geht es in diesen Dokumenten?",
        "tl;dr",
        "Quels sont les thèmes principaux ?",
    ),
    "leisure": (
        "What kinds of documents are here?",
        "Summarise these files for me",
        "What topics do these files cover?",
        "¿De qué tratan estos documentos?",
        "О чём эти документы?",
        "Give me an executive summary.",
        "I need a quick rundown of everything in this directory.",
    ),
    "office": (
        "What are these documents about?",
        "main themes",
        "Gib mir einen Überblick über den Ordner.",
        "这些文件讲了什么？",
        "これらの文書は何についてですか？",
        "Which subjects are covered?",
        "Please provide a high-level summary of the attached files.",
    ),
}
BUDGETS: Final = (1_000, 2_000)


async def judged(name: str, cache: Path) -> tuple[float, float]:
    """Ask a folder its questions within each budget; return the worst share of themes
    named and of titles right."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        labels = write_folder(name, folder)
        due = {
            label
            for label, count in Counter(labels.values()).items()
            if count >= LEAST * len(labels)
        }
        worst = (1.0, 1.0)
        settings = read_settings(
            {"folders": made, "cache": str(cache), "seconds": "3600"}, {}
        )
        async with Client(build_server(settings), read_timeout_seconds=3600) as client:
            for question in QUESTIONS[name]:
                for budget in BUDGETS:
                    arguments = {
                        "question": question,
                        "sources": [made],
                        "max_tokens": budget,
                    }
                    result = await client.call_tool("raptor_query", arguments)
                    text = "\n".join(
                        part.text
                        for part in result.content
                        if isinstance(part, TextContent)
                    )
                    if result.is_error or count_tokens(text) > budget:
                        raise RuntimeError(text[:500])
                    named, right, total = _lines(text, _titles(folder, labels))
                    print(
                        f"  {name} at {budget}: {len(named & due)} of {len(due)} themes, {right} "
                        f"of {total} titles"
                    )
                    worst = (
                        min(worst[0], len(named & due) / len(due)),
                        min(worst[1], right / max(1, total)),
                    )
        print(text)
    return worst


def _titles(folder: Path, labels: dict[str, str]) -> dict[str, str]:
    """The label of each document by the beginning of its title."""
    documents = (
        (read_document(read_file(folder / name, roots=[folder])), label)
        for name, label in labels.items()
    )
    return {
        one_line(document.page.title)[:BEGINNING]: label
        for document, label in documents
    }


def _lines(text: str, labels: dict[str, str]) -> tuple[set[str], int, int]:
    """The labels that lines of themes represent, the titles under the right one, and
    all titles."""
    named: set[str] = set()
    right = total = 0
    for line in re.findall(r"^\(\d+\) \d+ documents?, about .*$", text, re.MULTILINE):
        found = Counter(label for title, label in labels.items() if title in line)
        if found:
            label, count = found.most_common(1)[0]
            named.add(label)
            right += count
            total += found.total()
    return named, right, total


async def run(*, check: bool, kept: str) -> int:
    """Judge every folder; return 1 where one falls short, with `check` of those held
    aside only."""
    fallen = []
    with tempfile.TemporaryDirectory() as cache:
        for name in list(FOLDERS)[check:]:
            named, right = await judged(name, Path(kept or cache))
            print(
                f"{name}: themes named {named:.2f}, titles right {right:.2f} (the worst of its "
                f"answers)"
            )
            fallen += [name] if named < 1 or right < RIGHT else []
    print("\n".join(f"FELL  {name}" for name in fallen) or "all bars hold")
    return int(bool(fallen))


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="the folders held aside; exit code 1 where one falls short",
    )
    parser.add_argument(
        "--cache",
        default="",
        help="folder that keeps embeddings and trees between runs",
    )
    args = parser.parse_args()
    if not DATA.is_dir():
        print(f"no data at {DATA}: nothing was measured", file=sys.stderr)
        return 2
    return anyio.run(partial(run, check=args.check, kept=args.cache))


if __name__ == "__main__":
    sys.exit(main())
