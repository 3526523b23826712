"""Files of Microsoft's old forms, by the extra `office-legacy`: what a reader of them sees.

`tests/support/old_office.zip` holds a small file each: `.doc` and `.ppt` of Apache POI's tests
(Apache-2.0), `.xls` saved by LibreOffice, `.msg` made by msgforge, `.xlsb` written record by record.
"""

import zipfile
from pathlib import Path

import pytest

from errors import SourceUnreadable
from readers import read
from tests.support.extras import need

ARCHIVE = Path(__file__).with_name("support") / "old_office.zip"


def old(ending: str) -> bytes:
    with zipfile.ZipFile(ARCHIVE) as archive:
        return archive.read(f"old.{ending}")


@pytest.mark.parametrize(
    ("ending", "says"),
    [
        ("doc", ["Cell 1,1 | Cell 1,2 | Cell 1,3", "This text is below the table."]),
        ("ppt", ["Test Slide", "With a comment on it", "Comment: This is a test comment"]),
        (
            "xls",
            [
                "Mossund | 84.5 | 2026-03-01 | 1234567890123450",
                "Arnvik | 120 | 2026-04-02 08:30:00 | 1234567890123451",
            ],
        ),
        ("xlsb", ["Port | Fare", "Mossund | 84.5", "Arnvik | 120"]),
        (
            "msg",
            [
                "From: Ann Harbour <ann@example.org>",
                "To: Bo, of Arnvik",
                "The Sunday ferry is cancelled.",
                "The replacement bus leaves at 09:05.",
                "notice.txt (text/plain)",
            ],
        ),
    ],
)
def test_an_old_form_is_read_whatever_its_name_says(ending: str, says: list[str]) -> None:
    need("office-legacy")
    text = read(old(ending), name="a.bin").text
    assert [line for line in says if line not in text] == []


def test_hidden_sheets_and_missing_formats_of_an_old_workbook_are_said() -> None:
    need("office-legacy")
    document = read(old("xls"), name="a.xls")
    assert "999" not in document.text
    assert document.page.notes[0] == "workbook: hidden sheets removed: 1"
    assert "without their formats" in document.page.notes[1]


@pytest.mark.parametrize("ending", ["doc", "ppt", "xls", "xlsb", "msg"])
def test_a_damaged_old_file_is_refused_with_what_to_do(ending: str) -> None:
    need("office-legacy")
    body = old(ending)
    for cut in (len(body) // 3, len(body) * 2 // 3):
        broken = body[:cut] + bytes(len(body) - cut)
        try:
            text = read(broken, name=f"a.{ending}").text
        except SourceUnreadable as refused:
            assert "save it" in str(refused).lower() or "application/zip" in str(refused)
        else:
            assert text.strip()
