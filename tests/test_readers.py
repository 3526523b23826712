"""The readers alone: without any other room of ours, as a library and as a command."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.house import FOLDERS
from errors import SourceUnreadable
from readers import read
from readers.as_markdown import to_markdown
from readers.format import formats
from tests.support.docx import make_docx, paragraph
from tests.support.odd_documents import odd_documents

ROOT = Path(__file__).resolve().parents[1]
OTHER_ROOMS = [folder for folder in FOLDERS if folder != "readers"]
ALONE = f"""
import sys
class NoOtherRoom:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OTHER_ROOMS}:
            raise ImportError(f"readers import {{name}}")
sys.meta_path.insert(0, NoOtherRoom())
from readers.__main__ import main
sys.exit(main())
"""


def printed(*arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", ALONE, *arguments],
        check=False,
        cwd=ROOT,
        input=data,
        capture_output=True,
    )


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.html", b"<h1>Tide</h1><p>High at six.</p>", b"# Tide\n\nHigh at six."),
        ("a.md", b"# Tide\n\n- six\n- noon\n", b"# Tide\n\n- six\n- noon"),
        ("a.csv", b"port,boats\nQuay,3\n", b"| port | boats |\n| --- | --- |\n| Quay | 3 |"),
        ("a.json", b'[{"port": "Quay", "boats": 3}]', b"Quay"),
        ("a.eml", b"From: a@b.example\nSubject: Boats\n\nThree boats.", b"Three boats."),
        ("a.docx", make_docx(paragraph("Three boats.")), b"Three boats."),
        ("a.txt", b"Three boats.", b"Three boats."),
    ],
)
def test_a_file_is_printed_as_markdown_without_any_other_room(
    tmp_path: Path, name: str, data: bytes, words: bytes
) -> None:
    (tmp_path / name).write_bytes(data)
    run = printed(str(tmp_path / name))
    assert run.returncode == 0, run.stderr
    assert words in run.stdout


def test_standard_input_is_read_with_the_type_that_is_named() -> None:
    run = printed("-", "--type", "text/html", data=b"<h1>Tide</h1><p>High at six.</p>")
    assert run.stdout == b"# Tide\n\nHigh at six.\n"


def test_what_cannot_be_read_is_one_sentence_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7\nnothing")
    for name in ("a.pdf", "nowhere.txt"):
        run = printed(str(tmp_path / name))
        assert (run.returncode, run.stdout) == (1, b"")
        assert run.stderr.startswith(b"readers: ")
        assert run.stderr.count(b"\n") == 1


def test_every_format_says_its_words_or_why_not() -> None:
    for name, document in odd_documents():
        try:
            page = read(document.body, name=document.file)
        except SourceUnreadable as error:
            assert document.file in error.what, name
            continue
        text = " ".join(block.text for block in page.blocks)
        unread = page.page.unread or page.page.notes or page.page.hidden
        assert unread or all(word in text for word in document.words), name


def test_a_web_page_that_would_be_hidden_for_the_most_part_is_shown_with_a_note() -> None:
    hidden = "<p style='font-size:0'>The keeper lights the lamp.</p>" * 50
    document = read(f"<h1>Tide</h1>{hidden}".encode(), name="a.html")
    assert "lights the lamp" in document.text
    assert document.page.notes == ("most words are marked as hidden, and shown here",)


def test_the_readme_names_every_ending() -> None:
    text = (ROOT / "readers/README.md").read_text(encoding="utf-8")
    endings = {ending for file_format in formats() for ending in file_format.endings}
    assert endings <= set(re.findall(r"\.\w+", text))


def test_markdown_keeps_levels_numbers_code_and_what_was_not_read() -> None:
    document = read(
        b"<h2>Ports</h2><ol start=3><li>Quay<li>Mole</ol><pre>ls\n  -l</pre>"
        b"<table><tr><th>a|b<th>c<tr><td>1<td>2</table>",
        name="a.html",
    )
    assert to_markdown(document) == (
        "## Ports\n\n3. Quay\n4. Mole\n\n```\nls\n  -l\n```\n\n| a\\|b | c |\n| --- | --- |\n| 1 | 2 |\n"
    )
