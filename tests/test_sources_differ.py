"""Where sources answer with different numbers or dates, the answer says so, and shows each; where
that is not sure, it says nothing."""

import os
import re
from pathlib import Path

import pytest

from tests.support import Connect, text_of

FEE = "What is the slip fee?"
MINUTES = (
    "# Minutes of 3 March 2025\n\nThe slip fee is 60 crowns a year. The board thanked the crew.\n"
)
LATER = "# Minutes of 5 March 2026\n\nThe slip fee is 65 crowns a year. Nobody objected.\n"
DATED = "---\ndate: 2026-03-05\n---\n" + LATER
BORN = "When was Ada Holm born?"

DIFFERENT = {
    "an amount": (FEE, (MINUTES, LATER), ("60 crowns [2a]", "65 crowns [1a]")),
    "a newer date is beside its value": (
        FEE,
        (MINUTES, DATED),
        ("60 crowns [1a]", "65 crowns [2a, 2026-03-05]"),
    ),
    "a copy says nothing further": (
        FEE,
        (MINUTES, MINUTES.replace("The board", "Then the board"), LATER),
        ("60 crowns", "65 crowns"),
    ),
    "a date": (
        BORN,
        (
            "# Holm\n\nAda Holm was born on 4 May 1911 in Skagen.\n",
            "# Family\n\nAda Holm, born May 6, 1911, was a pilot.\n",
        ),
        ("4 May 1911", "May 6, 1911"),
    ),
    "a time": (
        "When does the museum open on Sunday?",
        (
            "# Museum\n\nOn Sunday the museum does open at 10:00.\n",
            "# Town\n\nOn Sunday the museum does open at 11:30.\n",
        ),
        ("10:00", "11:30"),
    ),
}
ALIKE = {
    "the same amount": (FEE, (MINUTES, LATER.replace("65", "60"))),
    "the same date in another form": (
        BORN,
        (
            "# Holm\n\nAda Holm was born on 4 May 1911 in Skagen.\n",
            "# Family\n\nAda Holm, born May 4, 1911, was a pilot.\n",
            "# Pilots\n\nAda Holm was born in 1911.\n",
        ),
    ),
    "another unit": (FEE, (MINUTES, LATER.replace("65 crowns", "3 euros"))),
    "another fee": (FEE, (MINUTES, LATER.replace("slip fee", "mast fee"))),
    "somebody else": (
        BORN,
        (
            "# Holm\n\nAda Holm was born on 4 May 1911 in Skagen.\n",
            "# Berg\n\nOle Berg was born on 9 May 1915 in Ribe.\n",
        ),
    ),
    "a year beside an amount": (FEE, (MINUTES, LATER.replace("65 crowns", "older than 1911"))),
    "two values in one sentence": (
        FEE,
        (MINUTES, LATER.replace("65 crowns", "65 crowns and the guest slip fee is 80 crowns")),
    ),
    "a choice among several": ("What is the lowest slip fee?", (MINUTES, LATER)),
    "one source": (FEE, (MINUTES,)),
}


async def said(connect: Connect, folder: Path, question: str, texts: tuple[str, ...]) -> str:
    """Return the answer over files of these texts."""
    for number, text in enumerate(texts):
        (folder / f"{number}.md").write_text(text, "utf-8")
    async with connect(folders=str(folder)) as client:
        asked = {"question": question, "sources": sorted(map(str, folder.iterdir()))}
        return text_of(await client.call_tool("extract_relevant", asked))


@pytest.mark.parametrize("case", DIFFERENT)
@pytest.mark.anyio
async def test_different_values_are_named_with_their_passages(
    case: str, connect: Connect, tmp_path: Path
) -> None:
    question, texts, values = DIFFERENT[case]
    answer = await said(connect, tmp_path, question, texts)
    line = re.search(r"^Sources differ: (.*)\.$", answer, re.MULTILINE)
    assert line and all(value in line[1] for value in values), answer
    assert len(line[1].split("], ")) == len(values)


@pytest.mark.parametrize("case", ALIKE)
@pytest.mark.anyio
async def test_nothing_is_said_where_it_is_not_sure(
    case: str, connect: Connect, tmp_path: Path
) -> None:
    question, texts = ALIKE[case]
    assert "differ" not in await said(connect, tmp_path, question, texts)


LEASE = (
    "# Lease of the boathouse\n\nThe rent of the boathouse is 40 crowns a month. Notice is given "
    "three months before. The tenant paints the doors. It ends in 2025.\n"
)
LAST_CHANGED = {
    "newest first": (
        {"lease.md": (LEASE, 1.2e9), "lease v2.md": (LEASE.replace("40", "50"), 1.5e9)},
        r"Files of nearly the same words, by last change: \[\d\] 2017-07-14, \[\d\] 2008-01-10\.",
    ),
    "what is not quoted, too": (
        {"lease.md": (LEASE, 1.2e9), "lease (1).md": (LEASE, 1.5e9)},
        r"change: \S+ 2017-07-14, \[1\] 2008-01-10\.|change: \[1\] 2017-07-14, \S+ 2008-01-10\.",
    ),
    "many are counted, beside the words that answer": (
        {
            f"lease of the boathouse as it was signed in year {year}.md": (
                LEASE.replace("40", str(year)),
                1.2e9 + year,
            )
            for year in range(1990, 1998)
        },
        r"(?s)by last change: [^\n]* and \d more\..*crowns a month",
    ),
    "other words are another file": (
        {"lease.md": (LEASE, 1.2e9), "minutes.md": (MINUTES + " The rent is due.", 1.5e9)},
        "",
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", LAST_CHANGED)
async def test_files_that_are_nearly_one_are_named_with_the_day_of_their_last_change(
    connect: Connect, tmp_path: Path, case: str
) -> None:
    files, line = LAST_CHANGED[case]
    for name, (text, changed) in files.items():
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (changed, changed))
    async with connect(folders=str(tmp_path)) as client:
        result = await client.call_tool(
            "research", {"question": "What is the rent of the boathouse?", "max_tokens": 300}
        )
    text = text_of(result)
    assert bool(re.search(line, text)) if line else "nearly the same" not in text
