"""A folder of notes of a few words: what they answer is never said to be answered by nothing."""

from pathlib import Path

import pytest

from bench.sets import notes
from tests.support import Connect, text_of

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

FAR = ("How many goals did Pelé score for Santos?", "When was the Eiffel tower painted pink?")


@pytest.mark.parametrize("part", ["tuned", "held"])
async def test_no_note_that_answers_is_called_no_answer(
    connect: Connect, tmp_path: Path, part: str
) -> None:
    rows = notes(f"notes-{part}")
    for row in rows:
        (tmp_path / row["file"]).write_text(row["text"], "utf-8")
    async with connect(folders=str(tmp_path), search="folder", seconds="100") as client:

        async def said(question: str) -> str:
            return text_of(
                await client.call_tool(
                    "extract_relevant", {"question": question, "sources": [str(tmp_path)]}
                )
            )

        for row in rows[::3]:
            for question in row["questions"]:
                answer = await said(question)
                assert "None: " not in answer, question
                assert row["text"].split("\n")[0].strip("# ") in answer, question
        for question in FAR:
            assert "None: " in await said(question), question
