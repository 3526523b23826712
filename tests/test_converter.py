"""Documents are converted in processes of their own: what these give, what they cost, how they end,
what is kept."""

import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from cache.store import Store
from errors import SourceUnreadable
from pipeline.conversion.converter import LIMITS, Converter
from pipeline.fetch.files import Files
from pipeline.raptor.build import build_tree
from pipeline.raptor.tree import Tree, TreeOptions
from readers.convert import Raw, to_page
from readers.html.document import read_document
from readers.page import Page
from tests.support.docx import make_docx, paragraph
from tests.support.doubles import Letters
from tests.support.pdf import make_pdf
from tests.support.waiting import until

pytestmark = pytest.mark.slow


def raw(body: bytes, name: str = "x.pdf") -> Raw:
    return Raw(body, f"https://example.org/{name}", f"https://example.org/{name}", name=name)


def long_pdf(pages: int) -> bytes:
    """Return a PDF whose pages take some 11 ms each."""
    return make_pdf(
        [
            [(f"Words of line {n} on page {page} of this report.", 11) for n in range(70)]
            for page in range(pages)
        ]
    )


def fields(pid: int) -> list[str]:
    """What the kernel knows of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()


def processor_seconds(pid: int) -> float:
    return (int(fields(pid)[11]) + int(fields(pid)[12])) / os.sysconf("SC_CLK_TCK")


def is_gone(pid: int) -> bool:
    try:
        return fields(pid)[0] == "Z"
    except OSError:
        return True


async def until_gone(pid: int) -> None:
    await until(lambda: is_gone(pid))


async def until_still(pid: int) -> None:
    """Wait until a process is gone, or sleeps as one without work does."""
    await until(lambda: is_gone(pid) or fields(pid)[0] == "S")


async def until_worked(converter: Converter, seconds: float) -> int:
    """Wait until a process of `converter` has used so much processor time; return its id."""

    def at_work() -> list[int]:
        return [
            pid for pid in converter.pids if not is_gone(pid) and processor_seconds(pid) > seconds
        ]

    await until(at_work)
    return at_work()[0]


@pytest.mark.anyio
async def test_a_process_gives_what_a_thread_gives_and_runs_only_while_documents_come() -> None:
    documents = [raw(long_pdf(3)), raw(make_docx(paragraph("The council met.")), "m.docx")]
    texts = [
        raw(b"# Salt\n\nof Piran", "salt.md"),
        raw(b"<title>Salt</title><p>of Piran " * 20, "salt.html"),
    ]
    async with aclosing(Converter(None, processes=1)) as converter:
        for one in texts:
            assert await converter.page(one) == to_page(one)
        assert not converter.pids
        for one in documents:
            assert await converter.page(one) == to_page(one)
        [pid] = converter.pids
    assert is_gone(pid)


@pytest.mark.anyio
async def test_a_process_without_work_ends_and_the_next_document_starts_another() -> None:
    async with aclosing(
        Converter(None, processes=1, limits=replace(LIMITS, idle_seconds=0.1))
    ) as converter:
        one = raw(long_pdf(1))
        first = await converter.page(one)
        await until(lambda: not converter.pids or is_gone(converter.pids[0]))
        assert await converter.page(one) == first


@pytest.mark.anyio
async def test_an_error_says_the_same_from_a_process() -> None:
    async with aclosing(Converter(None, processes=1)) as converter:
        for body in (b"%PDF-1.4 nothing more", make_pdf([[("", 10)]])):
            with pytest.raises(SourceUnreadable) as here:
                to_page(raw(body))
            with pytest.raises(SourceUnreadable) as there:
                await converter.page(raw(body))
            assert (there.value.what, there.value.hint) == (here.value.what, here.value.hint)


@pytest.mark.anyio
async def test_a_file_that_wants_too_much_memory_costs_its_own_call_only() -> None:
    # 6.3 MB are taken in whole: where a process ends amid a request, asyncio before Python 3.11.4
    # reports the broken pipe once more, as an error that no task awaited.
    greedy = make_pdf([[("Hello there world", 11)] * 100_000])
    async with aclosing(
        Converter(None, processes=1, limits=replace(LIMITS, memory_bytes=32_000_000))
    ) as converter:
        for _ in range(3):
            with pytest.raises(SourceUnreadable, match=r"could not be converted: .*memory"):
                await converter.page(raw(greedy))
            assert "page 0" in (await converter.page(raw(long_pdf(1)))).html


MEMORY_FILES: dict[str, bytes] = {
    "a.pdf": make_pdf([[("Hello there world", 11)] * 20_000]),
    "a.docx": make_docx(paragraph("Words of the council.") * 30_000),
    "a.csv": b"name,tons\n" + b"Arn of the northern harbour,5\n" * 200_000,
    "a.json": b"[" + b'{"name": "%s"},' % (b"Arn of the harbour " * 40) * 4_000 + b"{}]",
}
"""Each takes more memory to open, lay out or send than a process near its limit has."""


@pytest.mark.anyio
@pytest.mark.parametrize("megabytes", [1, 2, 6, 12, 20, 32, 48])
async def test_a_process_near_its_memory_limit_answers_in_words_in_every_phase(
    megabytes: int,
) -> None:
    """It lacks memory to take the file in, to import what reads it, to lay it out, or to send the
    page: at each limit a file is read, or said to need more, and the next call is served."""
    limits = replace(LIMITS, memory_bytes=megabytes * 1_000_000)
    async with aclosing(Converter(None, processes=1, limits=limits)) as converter:
        for name, body in MEMORY_FILES.items():
            try:
                page = await converter.page(raw(body, name))
            except SourceUnreadable as error:
                assert "memory" in error.what and name in error.what
                assert "Split it" in error.hint
            else:
                assert page.html and page.unread == ""
        assert "Boats" in (await converter.page(raw(b"Boats leave at nine.", "x.txt"))).html


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"612 792", b"99999999999999 1"),
        (b"612 792", b"1 99999999999999"),
        (b"612 792", b"99999999999999999999999999999 792"),
        (b"612 792", b"0.00000001 99999999"),
        (b"612 792", b"-99999999999999 792"),
        (b"72 743.2 Tm", b"99999999999 743.2 Tm"),
        (b"/F1 12 Tf", b"/F1 99999999999 Tf"),
    ],
)
def test_a_page_of_any_size_takes_little_memory(old: bytes, new: bytes) -> None:
    """Pages and places that a damaged file makes huge, of which a picture or a search for columns
    would fill any memory."""
    lines = [(f"Line {number} of the report on the harbour", 12) for number in range(20)]
    body = make_pdf([lines, lines]).replace(old, new)
    tracemalloc.start()
    try:
        with suppress(SourceUnreadable):
            to_page(raw(body))
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.anyio
async def test_a_page_that_ends_the_process_costs_that_page_alone() -> None:
    heavy = [("Hello there world", 11)] * 50_000
    body = make_pdf([[("The first page", 11)], heavy, [("The third page", 11)]])
    # Room for pypdf, which this file has imported within the limit, not for the second page.
    limits = replace(LIMITS, memory_bytes=200_000_000)
    async with aclosing(Converter(None, processes=1, limits=limits)) as converter:
        page = await converter.page(raw(body))
    assert "The first page" in page.html and "The third page" in page.html
    assert (
        page.unread
        == "pages not read: 1 of 3 (the first is page 2), since they ended the process that read them"
    )


@pytest.mark.anyio
async def test_a_cancelled_word_file_takes_no_more_time() -> None:
    """It stops by itself where it can, else its process is killed; read to its end it takes over
    four seconds."""
    body = make_docx(paragraph("Words of the council.") * 500_000)
    async with (
        aclosing(Converter(None, processes=1)) as converter,
        anyio.create_task_group() as group,
    ):
        await converter.page(raw(make_docx(paragraph("The council met.")), "s.docx"))
        # On a slow machine the start alone takes a second.
        begun = max(map(processor_seconds, converter.pids))
        group.start_soon(converter.page, raw(body, "m.docx"))
        pid = await until_worked(converter, begun + 0.5)
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await until_still(pid)
        assert is_gone(pid) or processor_seconds(pid) < begun + 3


@pytest.mark.anyio
async def test_a_cancelled_pdf_stops_at_once_and_another_process_goes_on_where_it_was(
    store: Store,
) -> None:
    one = raw(long_pdf(250))
    async with aclosing(Converter(store, processes=1)) as converter:
        whole = await converter.page(raw(long_pdf(249)))
        needed = processor_seconds(converter.pids[0])
        assert len(whole.html) > 50_000
    async with aclosing(Converter(store, processes=1)) as converter:
        async with anyio.create_task_group() as group:
            group.start_soon(converter.page, one)
            pid = await until_worked(converter, 0.75 * needed)
            group.cancel_scope.cancel()
        before = 0.0 if is_gone(pid) else processor_seconds(pid)
        await converter.page(raw(long_pdf(1)))
        assert processor_seconds(converter.pids[0]) - before < 0.25 * needed
    async with aclosing(Converter(store, processes=1)) as converter:
        assert await converter.page(one) == to_page(one)
        assert processor_seconds(converter.pids[0]) < 0.75 * needed


@pytest.mark.anyio
async def test_a_small_document_does_not_wait_for_the_end_of_a_long_one() -> None:
    done: list[str] = []
    async with aclosing(Converter(None, processes=1)) as converter:

        async def convert(name: str, body: bytes) -> None:
            await converter.page(raw(body, name))
            done.append(name)

        async with anyio.create_task_group() as group:
            group.start_soon(convert, "long.pdf", long_pdf(300))
            await until_worked(converter, 0.1)
            group.start_soon(convert, "small.pdf", long_pdf(1))
    assert done == ["small.pdf", "long.pdf"]


@pytest.mark.anyio
async def test_a_file_is_converted_once_whichever_process_asks(
    tmp_path: Path, store: Store
) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(make_pdf([[("The flood crested at 4.12 metres.", 11)]]))

    async def conversions(path: Path) -> int:
        async with aclosing(Converter(None, processes=1)) as converter:
            page = await Files([tmp_path], store=store, converter=converter).read(path)
            assert "4.12" in page.html
            assert (page.url, page.title) == (path.as_uri(), path.stem)
            return converter.converted

    assert await conversions(path) == 1
    assert await conversions(path) == 0
    path.write_bytes(make_pdf([[("The second one at 4.12 as well.", 11)]]))
    assert await conversions(path) == 1


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep so many processes busy."""
    burn = "while True: pass"
    started = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


async def read_all(
    folder: Path, names: Sequence[str], store: Store | None
) -> tuple[list[Page], Tree]:
    async with aclosing(Converter(store)) as converter:
        files = Files([folder], store=store, converter=converter)
        pages: dict[str, Page] = {}

        async def read(name: str) -> None:
            pages[name] = await files.read(folder / name)

        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(read, name)
    read_pages = [pages[name] for name in names]
    documents = [read_document(page) for page in read_pages]
    return read_pages, await build_tree(
        documents, embedder=Letters(), options=TreeOptions(), store=None
    )


@pytest.mark.anyio
async def test_a_busy_machine_reads_the_same_text_and_builds_the_same_tree(tmp_path: Path) -> None:
    (tmp_path / "long.pdf").write_bytes(long_pdf(15))
    (tmp_path / "short.pdf").write_bytes(long_pdf(4))
    (tmp_path / "m.docx").write_bytes(make_docx(paragraph("The council met in March.") * 300))
    (tmp_path / "n.md").write_text("# Notes\n\nThe boat leaves at 17:30.\n")
    names = ["long.pdf", "short.pdf", "m.docx", "n.md"]
    pages, tree = await read_all(tmp_path, names, None)
    with busy(20):
        pressed, grown = await read_all(tmp_path, names, None)
    assert pressed == pages
    assert [page.unread for page in pages] == [""] * 4
    assert grown.id == tree.id
    assert [leaf.id for leaf in grown.leaves] == [leaf.id for leaf in tree.leaves]


@pytest.mark.anyio
async def test_a_killed_process_is_reported_and_replaced() -> None:
    async with aclosing(Converter(None, processes=1)) as converter:
        failed: list[SourceUnreadable] = []

        async def convert() -> None:
            try:
                await converter.page(raw(long_pdf(150)))
            except SourceUnreadable as error:
                failed.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(convert)
            os.kill(await until_worked(converter, 0.5), signal.SIGKILL)
        assert "could not be converted" in failed[0].what
        assert (await converter.page(raw(long_pdf(1)))).html
