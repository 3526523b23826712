"""Ten questions of newcomers and ten of operators are answered from the documents alone, by Winnow."""

import csv
import shutil
from pathlib import Path

import pytest
from mcp import Client

from server.app import build_server
from server.settings import read_settings
from tests.support import ROOT, text_of

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.anyio]
BUDGET = 1000
"""Tokens of an answer, which may quote several documents."""
NOT_FOR_USERS = ("log*", "*.py", "*.cast", "*.png", "*.svg", "__pycache__")


async def test_the_documents_answer_what_newcomers_and_operators_ask(tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(ROOT / "docs", site, ignore=shutil.ignore_patterns(*NOT_FOR_USERS))
    for name in ("README.md", "PRIVACY.md"):
        shutil.copy(ROOT / name, site)
    given = {"folders": str(site), "search": "folder", "cache": str(tmp_path / "cache")}
    with open(ROOT / "tests/site_questions.tsv", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    assert [row[0] for row in rows] == ["newcomer"] * 10 + ["operator"] * 10
    missed = []
    async with Client(build_server(read_settings({**given, "seconds": "120"}, {}))) as client:
        for _, question, words in rows:
            arguments = {"question": question, "max_tokens": BUDGET}
            answer = text_of(await client.call_tool("research", arguments))
            if words not in " ".join(answer.split()):
                missed.append(question)
    assert missed == []
