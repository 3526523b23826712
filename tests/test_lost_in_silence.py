"""Every word of a document is read, or its page says that something was not; where it says so, no
verdict is `none`.

One file for each kind of content (`tests/support/odd_documents.py`). Not for: common kinds mixed at
random (`test_generated_documents.py`), pages that a reading had no time for (`test_unread.py`).
"""

from pathlib import Path

import pytest

import readers
from tests.support import Connect, data_of, text_of
from tests.support.odd_documents import odd_documents

DOCUMENTS = dict(odd_documents())
SAID = (
    "docx: a control",
    "xlsx: a sheet of macros",
    "pptx: ink",
    "odt: a film",
    "rtf: an object",
    "epub: a chapter that is encrypted",
    "eml: S/MIME",
    "pdf: a form for few programs",
)
"""One of each format with content that cannot be read."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_word_is_read_or_the_page_says_that_something_was_not(name: str) -> None:
    document = DOCUMENTS[name]
    read = readers.read(document.body, name=document.file)
    lost = [word for word in document.words if word not in read.text]
    assert document.words
    assert not lost or read.page.unread, lost


@pytest.mark.parametrize("name", SAID)
@pytest.mark.anyio
async def test_a_question_that_the_rest_may_answer_is_not_answered_by_none(
    name: str, connect: Connect, tmp_path: Path
) -> None:
    document = DOCUMENTS[name]
    path = tmp_path / document.file
    path.write_bytes(document.body)
    async with connect(
        folders=str(tmp_path), cache=str(tmp_path.parent / f"{tmp_path.name}c")
    ) as client:
        for question in ("When does the harbour open?", "Who painted the zeppelin mast?"):
            asked = {"question": question, "sources": [str(path)]}
            result = await client.call_tool("extract_relevant", asked)
            assert "not read" in text_of(result).lower()
            assert data_of(result)["verdict"] != "none"
