"""Searching local documents: what is found, what is left out and said, what is remembered."""

import os
import random
import re
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.store import Store, open_stores
from models.onnx import OnnxEmbedder
from models.protocols import TextKind, Vectors
from pipeline.conversion.converter import Converter
from pipeline.fetch.files import Files, split_span
from pipeline.question.question import Question
from pipeline.search.chain import Chain
from pipeline.search.folder import BATCH, OUTLINES, FolderProvider
from pipeline.search.listing import list_files
from pipeline.search.query import SearchOutcome, SearchQuery
from pipeline.search.word_index import FileStamp, WordIndex, title_text_outline
from tests.support import Connect
from tests.support.pdf import make_pdf
from tests.support.waiting import bounded, moment, until

ROOT: Final = Path(__file__).resolve().parents[1]
PATIENT: Final = 60.0
"""So that a busy machine answers as an idle one does."""


def ask(
    provider: FolderProvider,
    text: str,
    *,
    limit: int = 8,
    language: str = "",
    fresh: bool = False,
    **filters: Any,
) -> SearchOutcome:
    """Search once."""
    query = SearchQuery(text, language=language, freshness="week" if fresh else "any", **filters)

    async def main() -> SearchOutcome:
        return await provider.search(query, limit=limit)

    return anyio.run(main)


def found_by(index: WordIndex, word: str, language: str) -> list[str]:
    """The paths of the files of an index that have a word, best first."""
    scores = index.word_scores(Question(word), language=language)
    return [path for path, *_ in index.titles(list(scores))]


def index_of(texts: dict[str, str]) -> WordIndex:
    """An index in memory of these paths with their words."""
    index = WordIndex(None)
    with index.writing() as mine:
        assert mine
        for path, text in texts.items():
            index.add(FileStamp(path, 1, 1), text)
    return index


def names(outcome: SearchOutcome) -> list[str]:
    return [result.url.rsplit("/", 1)[-1] for result in outcome.results]


def docx(path: Path, *paragraphs: str) -> None:
    """Write the smallest Word file that holds these paragraphs."""
    kinds = "application/vnd.openxmlformats-"
    space = "http://schemas.openxmlformats.org"
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{space}/package/2006/content-types"><Default Extension="rels" '
            f'ContentType="{kinds}package.relationships+xml"/><Override '
            f'PartName="/word/document.xml" '
            f'ContentType="{kinds}officedocument.wordprocessingml.document.main+xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{space}/package/2006/relationships"><Relationship Id="r1" '
            f'Type="{space}/officeDocument/2006/relationships/officeDocument" '
            f'Target="word/document.xml"/>'
            "</Relationships>",
        )
        archive.writestr(
            "word/document.xml",
            f"<w:document "
            f'xmlns:w="{space}/wordprocessingml/2006/main"><w:body>{body}</w:body></w:document>',
        )


def pdf(path: Path, line: str) -> None:
    """Write a one-page PDF with one line of text."""
    stream = f"BT /F1 12 Tf 72 720 Td ({line}) Tj ET".encode("latin-1")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
    ]
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(out)
    out += b"xref\n0 5\n0000000000 65535 f \n" + b"".join(
        b"%010d 00000 n \n" % place for place in places
    )
    out += b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % table
    path.write_bytes(bytes(out))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Where providers keep what they counted."""
    return tmp_path / "index"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder with a document of each format."""
    folder = tmp_path / "library"
    (folder / "deep" / "er").mkdir(parents=True)
    page = (
        "<html lang=en><head><title>Lake Orvane</title><meta name=date content=2024-05-03>"
        "<style>.x{color:red}</style></head>"
        "<body><nav><a href=/>Home</a></nav><main><h1>Lake Orvane</h1><p>Its deepest point lies "
        "at 213&nbsp;metres.</p>"
        "<p>The water is cold.</p></main><script>var secretword = 1</script></body></html>"
    )
    (folder / "orvane.html").write_text(page)
    (folder / "notes.md").write_text(
        "# Ferry notes\n\nThe last boat leaves Brindle Quay at 17:30 on Sundays.\n"
    )
    (folder / "deep" / "er" / "plain.txt").write_text(
        "The lighthouse at Pell Head was relit in 2019."
    )
    (folder / "preise.html").write_text(
        "<html lang=de><title>Preise</title><main><p>Eine Saisonkarte kostet 88 Kronen. Die "
        "H&auml;user sind "
        "zu Fuß offen.</p></main>"
    )
    (folder / "ryokin.txt").write_text("フェリーの料金は大人二十三クローネです。\n犬は無料です。")
    docx(folder / "minutes.docx", "The council voted for the footbridge on 14 March.")
    pdf(folder / "report.pdf", "The flood of May 2021 crested at 4.12 metres.")
    return folder


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("How deep is Lake Orvane at its deepest point?", "orvane.html"),
        ("When does the last boat leave Brindle Quay?", "notes.md"),
        ("When was the lighthouse relit?", "plain.txt"),
        ("Was kostet eine Saisonkarte?", "preise.html"),
        ("Welche Häuser sind offen?", "preise.html"),
        ("zu Fuß", "preise.html"),
        ("フェリーの料金はいくらですか", "ryokin.txt"),
        ("What did the council vote for in March?", "minutes.docx"),
        ("How high did the flood of 2021 crest?", "report.pdf"),
    ],
)
def test_each_format_and_language_is_found(library: Path, question: str, name: str) -> None:
    outcome = ask(FolderProvider([library], None, seconds=PATIENT), question)
    assert outcome.status == "ok"
    assert names(outcome)[0] == name


def test_results_are_file_addresses_with_title_and_places(library: Path) -> None:
    result = ask(
        FolderProvider([library], None, seconds=PATIENT), "deepest point of Lake Orvane"
    ).results[0]
    assert result.url == (library / "orvane.html").resolve().as_uri()
    assert (result.title, result.engine, result.rank) == ("Lake Orvane", "folder", 1)


def test_only_files_with_a_word_of_the_question_come_back(library: Path) -> None:
    assert names(ask(FolderProvider([library], None, seconds=PATIENT), "lighthouse")) == [
        "plain.txt"
    ]
    outcome = ask(FolderProvider([library], None, seconds=PATIENT), "zeppelin")
    assert (outcome.status, outcome.results) == ("empty", ())
    assert "7 files" in outcome.reason


def test_a_question_in_other_words_finds_the_file_whose_headings_mean_the_same(
    library: Path,
) -> None:
    (library / "stay.html").write_text(
        "<title>Visitors</title><h1>Where to spend the night</h1><h2>Hotels and guest "
        "houses</h2><p>By the quay.</p>"
    )
    (library / "mill.html").write_text(
        "<title>The mill</title><h1>Grinding corn</h1><p>The wheel turns on Mondays.</p>"
    )
    question = "accommodation for tourists"
    assert ask(FolderProvider([library], None, seconds=PATIENT), question).status == "empty"
    outcome = ask(FolderProvider([library], None, embedder=OnnxEmbedder()), question)
    assert names(outcome)[0] == "stay.html"
    assert "nearest in meaning" in outcome.reason


def test_files_without_a_word_of_the_question_stand_aside_where_enough_have_one(
    library: Path,
) -> None:
    outcome = ask(FolderProvider([library], None, embedder=OnnxEmbedder()), "lighthouse", limit=1)
    assert names(outcome) == ["plain.txt"]
    assert outcome.reason == ""


def test_words_of_scripts_and_styles_find_nothing(library: Path) -> None:
    assert ask(FolderProvider([library], None, seconds=PATIENT), "secretword").status == "empty"


def test_the_file_name_helps_to_find_a_file(tmp_path: Path) -> None:
    (tmp_path / "harbour_car-park.txt").write_text("Open from six to ten.")
    (tmp_path / "other.txt").write_text("Open from six to ten, the harbour is near.")
    assert (
        names(ask(FolderProvider([tmp_path], None, seconds=PATIENT), "harbour car park opening"))[0]
        == "harbour_car-park.txt"
    )


def test_what_cannot_be_honoured_is_said(library: Path) -> None:
    reason = ask(
        FolderProvider([library], None, seconds=PATIENT), "lake", language="en", fresh=True
    ).reason
    assert "whatever their age" in reason
    assert "not as a filter" in reason
    assert ask(FolderProvider([library], None, seconds=PATIENT), "lake").reason == ""
    assert (
        ask(
            FolderProvider([library], None, seconds=PATIENT), "How deep is the lake?", language="en"
        ).reason
        == ""
    )


DAY = "2022-01-01"


def test_a_site_and_days_are_said_to_choose_no_files(library: Path) -> None:
    provider = FolderProvider([library], None, seconds=PATIENT)
    assert "site=gnu.org was ignored" in ask(provider, "lake", site="gnu.org").reason
    for dated in (ask(provider, "lake", since=DAY), ask(provider, "lake", until=DAY)):
        assert "whatever their age" in dated.reason


def test_the_next_page_of_results_goes_on_after_the_one_before(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text(f"The ferry of quay {number} leaves at noon.")
    provider = FolderProvider([tmp_path], None, seconds=PATIENT)
    pages = [ask(provider, "ferry", limit=2, page=page) for page in (1, 2, 3, 4)]
    assert [len(page.results) for page in pages] == [2, 2, 1, 0]
    assert len({result.url for page in pages for result in page.results}) == 5
    assert [result.rank for page in pages for result in page.results] == [1, 2, 3, 4, 5]
    assert "holds no further file: 5 in all" in pages[3].reason


def test_hidden_linked_large_and_foreign_files_are_left_out(tmp_path: Path) -> None:
    folder, outside = tmp_path / "in", tmp_path / "outside.txt"
    (folder / ".git").mkdir(parents=True)
    (folder / "node_modules").mkdir()
    outside.write_text("orvane")
    for place in (
        folder / ".hidden.txt",
        folder / ".git" / "a.txt",
        folder / "node_modules" / "a.txt",
        folder / "~$minutes.docx",
        folder / "a.exe",
    ):
        place.write_text("orvane")
    (folder / "link.txt").symlink_to(outside)
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "large.txt").write_text("orvane " * 200)
    (folder / "good.txt").write_text("orvane")
    outcome = ask(FolderProvider([folder], None, file_bytes=1_000), "orvane")
    assert names(outcome) == ["good.txt"]
    assert outcome.reason == ""
    assert outcome.unsearched == "1 file not searched: .exe 1. Files left out for their size: 1."


def test_a_listing_is_bounded_and_says_so(tmp_path: Path) -> None:
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text("x")
    listing = list_files([tmp_path], most=3)
    assert [Path(stamp.path).name for stamp in listing.files] == ["0.txt", "1.txt", "2.txt"]
    assert listing.cut


def test_a_pipe_with_a_document_name_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert list_files([tmp_path]).files == ()


def test_a_folder_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    outcome = ask(FolderProvider([tmp_path / "gone"], None), "lake")
    assert outcome.status == "unreachable"
    assert "gone" in outcome.reason


def test_a_broken_file_is_named_and_costs_no_other(library: Path) -> None:
    (library / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")
    outcome = ask(FolderProvider([library], None, seconds=PATIENT), "lighthouse")
    assert names(outcome) == ["plain.txt"]
    assert "broken.pdf" in outcome.unsearched
    assert "broken.pdf" in ask(FolderProvider([library], None, seconds=PATIENT), "zeppelin").reason


def test_a_file_that_cannot_be_read_is_found_by_its_name_alone(library: Path) -> None:
    (library / "lodging.pdf").write_bytes(b"%PDF-1.4 nothing more")
    provider = FolderProvider([library], None, embedder=OnnxEmbedder(), seconds=PATIENT)
    assert "lodging.pdf" not in names(ask(provider, "accommodation for tourists"))
    assert "lodging.pdf" in names(ask(provider, "lodging"))


def test_changes_are_seen_by_the_next_call(library: Path) -> None:
    provider = FolderProvider([library], None, seconds=PATIENT)
    assert ask(provider, "zeppelin").status == "empty"
    (library / "new.txt").write_text("The zeppelin landed in June.")
    assert names(ask(provider, "zeppelin")) == ["new.txt"]
    (library / "new.txt").write_text("The airship landed in June, says the paper.")
    assert ask(provider, "zeppelin").status == "empty"
    (library / "new.txt").unlink()
    assert ask(provider, "airship").status == "empty"


def test_a_file_that_was_only_touched_is_found_as_before(library: Path, index: Path) -> None:
    provider = FolderProvider([library], index, seconds=PATIENT)
    before = ask(provider, "footbridge flood boat")
    for name in ("minutes.docx", "report.pdf", "notes.md"):
        os.utime(library / name, ns=(1, 1))
    assert ask(provider, "footbridge flood boat") == before
    (library / "notes.md").unlink()
    (library / "report.pdf").rename(library / "high water.pdf")
    assert sorted(names(ask(provider, "footbridge flood boat"))) == [
        "high%20water.pdf",
        "minutes.docx",
    ]
    assert names(ask(FolderProvider([library], index, seconds=PATIENT), "high")) == [
        "high%20water.pdf"
    ]


def test_many_files_are_counted_and_none_is_lost(tmp_path: Path) -> None:
    for i in range(1_203):
        (tmp_path / f"{i}.txt").write_text(f"harbour lantern number{i} tail")
    docx(tmp_path / "m.docx", "harbour minutes")
    provider = FolderProvider([tmp_path], None, seconds=PATIENT)
    for i in (0, 999, 1_000, 1_202):
        assert names(ask(provider, f"number{i}")) == [f"{i}.txt"]
    assert names(ask(provider, "minutes")) == ["m.docx"]


def test_five_thousand_files_answer_cold_and_warm(tmp_path: Path) -> None:
    rng = random.Random(5)
    words = ["".join(rng.choices("abdfgiklmoprstuv", k=rng.randint(3, 9))) for _ in range(20_000)]
    for i in range(5_000):
        text = " ".join(rng.choices(words, k=300))
        page = f"<title>{i}</title><main><p>{text}</p></main>"
        (tmp_path / f"{i}.{'html' if i % 2 else 'md'}").write_text(page if i % 2 else text)
    (tmp_path / "wanted.md").write_text("The zeppelin landed at Brindle Quay.")
    provider = FolderProvider([tmp_path], None, seconds=60)
    for question in ("zeppelin", "quays zeppelin", "zeppelins landing", "landed zeppelin"):
        with bounded():
            assert names(ask(provider, question)) == ["wanted.md"]


def test_a_second_process_finds_by_the_counts_of_the_first(library: Path, index: Path) -> None:
    ask(FolderProvider([library], index, seconds=PATIENT), "lighthouse relit")
    stamp = (library / "deep" / "er" / "plain.txt").stat()
    (library / "deep" / "er" / "plain.txt").write_text(
        "X" * stamp.st_size
    )  # same size, and then the same time
    os.utime(library / "deep" / "er" / "plain.txt", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert names(ask(FolderProvider([library], index, seconds=PATIENT), "lighthouse relit")) == [
        "plain.txt"
    ]
    assert (
        ask(FolderProvider([library], None, seconds=PATIENT), "lighthouse relit").status == "empty"
    )


@pytest.mark.parametrize("damage", [b"damaged beyond repair " * 500, b""])
def test_a_damaged_index_is_recreated(library: Path, index: Path, damage: bytes) -> None:
    provider = FolderProvider([library], index, seconds=PATIENT)
    ask(provider, "lighthouse")
    [place] = index.glob("*.sqlite")
    place.write_bytes(damage)
    assert names(ask(FolderProvider([library], index, seconds=PATIENT), "lighthouse")) == [
        "plain.txt"
    ]
    assert names(ask(provider, "boat")) == ["notes.md"]


def test_without_time_the_call_says_what_is_left_and_the_next_goes_on(library: Path) -> None:
    provider = FolderProvider([library], None, seconds=-1)
    outcome = ask(provider, "lighthouse")
    assert outcome.status == "timeout"
    assert outcome.unread == "0 of 7 documents are read; repeat the call to continue."


def test_that_an_unfinished_index_is_searched_by_words_only_is_said(library: Path) -> None:
    embedder = _Counting()
    provider = FolderProvider([library], None, seconds=-1, embedder=embedder)
    outcome = ask(provider, "lighthouse")
    assert outcome.unread.startswith("0 of 7 documents are read, searched by words only;")
    assert embedder.count == 0


@pytest.mark.anyio
async def test_nothing_is_counted_while_an_answer_is_made_of_what_was_found(
    library: Path,
) -> None:
    provider = FolderProvider([library], None, seconds=0, quiet=1_000)
    async with provider.indexing():
        await asked(provider, "lighthouse")
        for _ in range(10):
            await moment()
        assert provider.progress == (0, 7)
    assert provider.progress[0] > 0  # a process that ends counts its piece


def test_a_folder_that_is_not_read_yet_is_no_failed_search(library: Path) -> None:
    folder = FolderProvider([library], None, seconds=-1)
    chain = Chain([], None, time.time, beside=[folder])
    findings = anyio.run(partial(chain.search, [SearchQuery("lighthouse")], limit=8))
    assert (findings.results, findings.silent) == ((), ())
    assert findings.outcomes[0].unread.startswith("0 of 7 documents are read")


def test_parallel_questions_share_one_look_around(library: Path) -> None:
    provider = FolderProvider([library], None, seconds=PATIENT)
    found: dict[str, list[str]] = {}

    async def one(word: str) -> None:
        found[word] = names(await provider.search(SearchQuery(word), limit=3))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for word in ("lighthouse", "council", "boat", "flood", "Saisonkarte"):
                group.start_soon(one, word)

    anyio.run(main)
    assert found == {
        "lighthouse": ["plain.txt"],
        "council": ["minutes.docx"],
        "boat": ["notes.md"],
        "flood": ["report.pdf"],
        "Saisonkarte": ["preise.html"],
    }


def test_words_are_counted_without_markup_entities_and_case(tmp_path: Path) -> None:
    page = "<TITLE>Z&uuml;rich &amp; See</TITLE><p class=deep>Deep&nbsp;LAKE<!-- hidden --> a < b &Auml;pfel"
    assert title_text_outline(page, ".html")[0] == "Zürich & See"
    (tmp_path / "page.html").write_text(page)
    provider = FolderProvider([tmp_path], None, seconds=PATIENT)
    for word in ("deep", "lake", "äpfel", "ZÜRICH"):
        assert names(ask(provider, word, language="de")) == ["page.html"], word
    for word in ("hidden", "class", "nbsp"):
        assert ask(provider, word).status == "empty", word


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.csv", "name,berth\nZeppelin,Größe 4\n"),
        ("berths.py", 'def berth():\n    return {"Zeppelin": "Größe 4"}\n'),
        ("data.tsv", "name\tberth\nZeppelin\tGröße 4\n"),
        ("data.json", '{"name": "The\\nZeppelin", "berth": "Gr\\u00f6\\u00dfe 4"}'),
        ("data.jsonl", '{"name": "Zeppelin"}\n{"berth": "Größe 4"}\n'),
        (
            "note.ipynb",
            '{"cells": [{"cell_type": "markdown", "source": ["# A\\n", "Zeppelin of Größe 4"]}]}',
        ),
        ("data.xml", "<airships><name>Zeppelin</name><berth>Gr&#246;&#223;e 4</berth></airships>"),
    ],
)
def test_tables_and_data_are_searched_as_they_can_be_read(
    tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    found = ask(
        FolderProvider([tmp_path], None, seconds=PATIENT), "Größe der Zeppeline", language="de"
    )
    assert names(found) == [name]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("aB1 -\nüß湖,'’\x00"), max_size=200), min_size=1, max_size=6)
)
def test_a_file_is_found_by_every_word_that_it_holds(texts: list[str]) -> None:
    index = index_of({f"/{number}": text for number, text in enumerate(texts)})
    for number, text in enumerate(texts):
        for word in re.findall("[a-zA-Z1üß]+|湖+", text):
            assert f"/{number}" in found_by(index, word, "de"), (text, word)
    index.close()


def test_words_that_share_a_long_beginning_stay_apart() -> None:
    words = ["a" * n for n in range(1, 60)] + ["a" * 8 + "b", "a" * 39 + "b"]
    index = index_of({word: word for word in words})
    for word in words:
        assert found_by(index, word, "xx") == [word]
    index.close()


def test_the_end_of_a_long_file_is_found() -> None:
    index = index_of({"/log.txt": "line of a log\n" * 400_000 + "Osgrave was appointed"})
    assert found_by(index, "Osgrave", "en") == ["/log.txt"]
    index.close()


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<script>", "<a ", "&", "&#x", "<title>", "<h1>", "</", "# "]
)
def test_hostile_markup_is_counted_in_linear_time(piece: str) -> None:
    title, text, _ = title_text_outline(piece * 200_000, ".html")
    assert len(title) < 1_000
    index_of({"/a.html": piece * 200_000, "/a": text}).close()


def test_an_index_on_disk_is_for_its_owner_alone_and_goes_with_the_cache(
    library: Path, tmp_path: Path
) -> None:
    stores = open_stores(tmp_path / "cache", size_limit=10_000_000)
    ask(FolderProvider([library], stores.folders), "lighthouse")
    files = list(stores.folders.iterdir())
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert stores.folders.stat().st_mode & 0o777 == 0o700
    stores.clear()
    assert not stores.folders.exists()
    stores.close()


def test_an_index_of_files_that_are_mostly_gone_is_recreated(tmp_path: Path, index: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(1_020):
        (folder / f"{i}.txt").write_text(f"harbour number{i}")
    ask(FolderProvider([folder], index, seconds=PATIENT), "harbour")
    for i in range(1_015):
        (folder / f"{i}.txt").unlink()
    ask(FolderProvider([folder], index, seconds=PATIENT), "harbour")
    assert newest(index) == 1_020
    assert names(ask(FolderProvider([folder], index, seconds=PATIENT), "number1016")) == [
        "1016.txt"
    ]
    assert newest(index) == 5


def newest(index: Path) -> int:
    """The highest number that a file was counted under."""
    database = sqlite3.connect(next(index.glob("*.sqlite")))
    [(number,)] = database.execute("SELECT max(seq) FROM sqlite_sequence")
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()
    return int(number)


COUNTING: Final = """
import sys, anyio
from pathlib import Path
from pipeline.search.query import SearchQuery
from pipeline.search.folder import FolderProvider

async def main():
    provider = FolderProvider([Path(sys.argv[1])], Path(sys.argv[2]), seconds=float(sys.argv[3]), quiet=0)
    async with provider.indexing():
        print((await provider.search(SearchQuery("harbour"), limit=8)).unread or "all", flush=True)
        await anyio.sleep_forever() if sys.argv[3] == "0" else None

anyio.run(main)
"""
"""Another process over a folder: asks once, waiting so many seconds; after no wait at all it counts
until killed."""


def counting(folder: Path, index: Path, seconds: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", COUNTING, str(folder), str(index), seconds]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Two thousand notes."""
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(2_000):
        (folder / f"{i}.txt").write_text(f"harbour lantern number{i} " + "winter anchor " * 20)
    return folder


@pytest.mark.slow
def test_two_processes_at_once_count_each_file_once(many: Path, index: Path) -> None:
    both = [counting(many, index, "100"), counting(many, index, "100")]
    assert [process.communicate(timeout=100)[0] for process in both] == ["all\n", "all\n"]
    assert newest(index) == 2_000
    assert names(ask(FolderProvider([many], index, seconds=PATIENT), "number1234")) == ["1234.txt"]


@pytest.mark.slow
def test_what_a_killed_process_counted_is_not_counted_again(many: Path, index: Path) -> None:
    process = counting(many, index, "0")
    assert process.stdout is not None
    assert process.stdout.readline() != "all\n"
    database = sqlite3.connect(next(index.glob("*.sqlite")))
    kept = 0
    while not kept:
        [(kept,)] = database.execute("SELECT count(*) FROM files")
    process.kill()
    process.communicate()
    database.close()
    before = newest(index)
    assert kept <= before
    # On a busy machine all may have been counted before the signal came.
    again = ask(FolderProvider([many], index, seconds=0), "harbour").unread or "2000 of 2000"
    assert again.startswith(f"{before} of 2000")
    assert names(ask(FolderProvider([many], index, seconds=60), "number1999")) == ["1999.txt"]
    assert newest(index) == 2_000


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_document_is_read_by_processes_that_end_before_a_page_of_it_is(
    tmp_path: Path, store: Store, index: Path
) -> None:
    (folder := tmp_path / "manuals").mkdir()
    lines = [(f"Words of line {n} in the manual.", 11) for n in range(70)]
    pages = [*[lines] * 30, [("The zeppelin lands.", 11)]]
    (folder / "manual.pdf").write_bytes(make_pdf(pages))
    for _ in range(20):
        async with aclosing(Converter(store, processes=1)) as converter:
            files = Files([folder], store=store, converter=converter)
            provider = FolderProvider([folder], index, files=files, seconds=0, quiet=0)
            async with provider.indexing():
                outcome = await asked(provider, "zeppelin")
        if not outcome.unread:
            break
    assert names(outcome) == ["manual.pdf"]


async def asked(provider: FolderProvider, text: str) -> SearchOutcome:
    return await provider.search(SearchQuery(text), limit=8)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Three notes beside a PDF that takes seconds of processor time."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    for number, word in enumerate(("lighthouse", "footbridge", "orchard")):
        (folder / f"note{number}.md").write_text(
            f"# Note {number}\n\nThe {word} rests by the harbour.\n"
        )
    pages = [[(f"Words of line {n} on page {page}.", 11) for n in range(70)] for page in range(490)]
    (folder / "manual.pdf").write_bytes(
        make_pdf([*pages, [("The zeppelin lands at the harbour.", 11)]])
    )
    return folder


@pytest.mark.slow
@pytest.mark.anyio
async def test_notes_answer_at_once_and_a_long_document_is_counted_after_the_answer(
    mixed: Path, store: Store, index: Path
) -> None:
    async with aclosing(Converter(store, processes=1)) as converter:
        files = Files([mixed], store=store, converter=converter)
        provider = FolderProvider([mixed], index, files=files, seconds=0.5, quiet=0)
        async with provider.indexing():
            with anyio.fail_after(100):
                while len(names(outcome := await asked(provider, "harbour"))) < 3:
                    pass
            assert sorted(names(outcome)) == ["note0.md", "note1.md", "note2.md"]
            assert outcome.unread.startswith("3 of 4 documents are read")
            missing = await asked(provider, "zeppelin")
            assert missing.status == "timeout"
            assert missing.unread.endswith("; repeat the call to continue.")
            with anyio.fail_after(100):
                while (outcome := await asked(provider, "zeppelin")).unread:
                    pass
        assert names(outcome) == ["manual.pdf"]
        once = converter.converted
        again = FolderProvider([mixed], index, files=files)
        assert names(await asked(again, "zeppelin lands")) == ["manual.pdf"]
        assert converter.converted == once
        outcome = await asked(again, "zeppelin harbour")
        assert names(outcome)[0] == "manual.pdf"


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_call_reports_how_many_files_are_read_by_then(
    mixed: Path, connect: Connect
) -> None:
    messages: list[str] = []

    async def keep(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message or "")

    async with connect(folders=str(mixed)) as client:
        await client.call_tool(
            "search_web", {"question": "Where is the orchard?"}, progress_callback=keep
        )
    assert "3 of 4 files are read" in messages


@pytest.mark.slow
@pytest.mark.anyio
async def test_of_files_that_are_not_read_those_come_first_whose_names_are_asked_for(
    tmp_path: Path, index: Path
) -> None:
    for number in range(2_000):
        (tmp_path / f"note{number}.md").write_text("The barge. " * 2_000)
    (tmp_path / "zeppelin.md").write_text("It lands at noon.")
    provider = FolderProvider([tmp_path], index, seconds=0.1)
    with anyio.fail_after(100):
        while not names(outcome := await asked(provider, "When does the zeppelin land?")):
            pass
    assert outcome.unread
    assert names(outcome)[:1] == ["zeppelin.md"]


@pytest.mark.anyio
async def test_a_process_of_one_question_leaves_vectors_though_it_had_no_time_for_them(
    library: Path, index: Path, embedder: OnnxEmbedder
) -> None:
    for _ in range(2):
        provider = FolderProvider([library], index, embedder=embedder, seconds=0, quiet=0)
        async with provider.indexing():
            while (await asked(provider, "boat")).unread:
                pass
    provider = FolderProvider([library], index, embedder=embedder)
    assert (await provider.status()).vectors >= min(BATCH, len(list(library.iterdir())))


@pytest.mark.slow
@pytest.mark.anyio
async def test_long_documents_answer_by_their_first_pages_before_any_is_read_whole(
    tmp_path: Path, store: Store, index: Path
) -> None:
    (folder := tmp_path / "manuals").mkdir()
    for name in ("boiler", "harbour"):
        text = [(f"Words of line {n} on the {name}.", 11) for n in range(70)]
        pages = [[(f"Approved: the {name} manual.", 11)], *[text] * 300, [("Zeppelin.", 11)]]
        (folder / f"{name}.pdf").write_bytes(make_pdf(pages))
    async with aclosing(Converter(store, processes=1)) as converter:
        files = Files([folder], store=store, converter=converter)
        provider = FolderProvider([folder], index, files=files, seconds=0, quiet=0)
        async with provider.indexing():
            with anyio.fail_after(100):
                while "2 more" not in (outcome := await asked(provider, "approved")).unread:
                    await moment()
            assert outcome.unread.startswith("0 of 2 documents are read, 2 more by the first pages")
            for url in (result.url for result in outcome.results):
                path, (first, last) = split_span(url)
                assert path.endswith(".pdf")
                assert first == 1
                assert 1 <= last < 300
            with anyio.fail_after(100):
                while (outcome := await asked(provider, "zeppelin")).unread:
                    await moment()
    assert sorted(names(outcome)) == ["boiler.pdf", "harbour.pdf"]


class _Counting(OnnxEmbedder):
    """Counts the outlines that it embeds."""

    count = 0

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        self.count += len(texts) * (kind == "passage")
        return await super().embed(texts, kind=kind)


@pytest.mark.anyio
async def test_a_document_and_an_outline_are_the_work_of_one_of_those_who_read_a_folder(
    tmp_path: Path, store: Store, index: Path
) -> None:
    (folder := tmp_path / "manuals").mkdir()
    for number in range(6):
        pages = [[(f"Words of line {n} of manual {number}.", 11) for n in range(9)]] * 9
        (folder / f"manual{number}.pdf").write_bytes(make_pdf(pages))
    embedders, converted = [_Counting() for _ in range(3)], list[int]()

    async def read(embedder: _Counting) -> None:
        async with aclosing(Converter(store, processes=1)) as converter:
            files = Files([folder], store=store, converter=converter)
            await FolderProvider([folder], index, files=files, embedder=embedder).finish()
            converted.append(converter.converted)

    async with anyio.create_task_group() as group:
        for embedder in embedders:
            group.start_soon(read, embedder)
    assert sum(converted) == 6
    assert sum(embedder.count for embedder in embedders) == 6


class _Noting(OnnxEmbedder):
    """Notes when the last outlines are embedded, which are fewer than a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.behind = anyio.Event()

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        if kind == "passage" and len(texts) < BATCH:
            self.behind.set()
        return await super().embed(texts, kind=kind)


@pytest.mark.anyio
async def test_outlines_are_embedded_behind_a_question(
    tmp_path: Path,
) -> None:
    # Some batches may be embedded before the question lists its own
    for number in range(OUTLINES + 4 * BATCH + 4):
        (tmp_path / f"{number}.md").write_text(f"# Boat {number}\n\nIt sails.")
    embedder = _Noting()
    provider = FolderProvider([tmp_path], None, embedder=embedder, seconds=PATIENT, quiet=0)
    async with provider.indexing():
        await asked(provider, "boat")
        with anyio.fail_after(100):
            await embedder.behind.wait()


@pytest.mark.slow
@pytest.mark.anyio
async def test_what_is_counted_stays_counted_when_the_question_is_cancelled(
    mixed: Path, index: Path
) -> None:
    async with aclosing(Converter(None, processes=1)) as converter:
        provider = FolderProvider([mixed], index, files=Files([mixed], converter=converter))
        async with anyio.create_task_group() as group:
            group.start_soon(asked, provider, "harbour")
            await until(lambda: converter.pids)
            group.cancel_scope.cancel()
    # Another process, which has no time to count anything.
    later = FolderProvider([mixed], index, seconds=0.0)
    outcome = await asked(later, "lighthouse")
    assert outcome.unread == "3 of 4 documents are read; repeat the call to continue."
