"""Files of nearly the same words are named with the day of their last change."""

import os
import re
from pathlib import Path

import pytest

from tests.support import Connect, text_of

MINUTES = (
    "# Minutes of 3 March 2025\n\nThe slip fee is 60 crowns a year. The board thanked the crew.\n"
)
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


@pytest.mark.anyio
async def test_a_file_that_another_time_was_set_for_is_named_with_that_time(
    connect: Connect, tmp_path: Path
) -> None:
    paths = [tmp_path / "lease.md", tmp_path / "lease v2.md"]
    for path, rent in zip(paths, ("40", "50"), strict=True):
        path.write_text(LEASE.replace("40", rent))
    question = {"question": "What is the rent of the boathouse?", "max_tokens": 300}
    async with connect(folders=str(tmp_path)) as client:
        for times, days in (
            ((1.2e9, 1.5e9), "2017-07-14, [^ ]+ 2008-01-10"),
            ((1.6e9, 1.5e9), "2020-09-13, [^ ]+ 2017-07-14"),
            ((1.6e9, 1.5e9), "2020-09-13, [^ ]+ 2017-07-14"),
        ):
            for path, changed in zip(paths, times, strict=True):
                os.utime(path, (changed, changed))
            text = text_of(await client.call_tool("research", question))
            assert re.search(rf"by last change: [^ ]+ {days}\.", text), text
