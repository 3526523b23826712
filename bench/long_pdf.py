"""Measures answers from a long PDF on the command line: processor seconds of a first
answer, of the same question again and of another one, each in a new process.

    python -m bench.long_pdf                  127 pages of prose
    python -m bench.long_pdf FILE.pdf "…" "…" a file of yours, with two questions
    python -m bench.long_pdf --check          127 and 1,000 pages; exit code 1 where a bar falls short

What a process costs that reads a text of a line is taken off: starting, and loading the
models. The process that converts is counted. Bytecode is there, as after an
installation, and no call ends by the clock (`WINNOW_SECONDS`), so that a busy machine
does the work of a quiet one. The PDF is written with FPDF from papers of
../shared/data/longdoc that are cut into pages. Not for: how good answers are
(`bench/raptor.py`, `docs/log.md`)."""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from fpdf import FPDF

from bench.longdoc import DATA, read_lines

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES, MANY = 127, 1_000
LETTERS: Final = 3_000
"""Characters of a dense page."""
QUESTIONS: Final = (
    "Where is the highest risk of HPAI H5N1 like disease emergence?",
    "Which cells does the virus enter?",
)
FIRST: Final = {PAGES: 2.0, MANY: 12.0}
"""Most processor seconds of a first answer, by pages."""
CALL_SECONDS: Final = "600"
"""After which a call ends by the clock: longer than any takes here."""
RUNS: Final = 3
"""A shared machine's processor seconds differ by a tenth from run to run."""
WARM: Final = {PAGES: 0.5, MANY: 2.0}
"""Most processor seconds for the question that was asked before, by pages."""


class Answer(NamedTuple):
    """What one process made of one question."""

    seconds: float
    text: str


def write_pdf(path: Path, pages: int) -> None:
    """Write a PDF of dense pages of prose."""
    rows = read_lines(DATA / "longdoc" / "covidqa" / "docs.jsonl")
    prose = (
        " ".join(str(row["text"]) for row in rows)
        .encode("latin-1", "replace")
        .decode("latin-1")
    )
    whole = prose * (1 + pages * LETTERS // len(prose))
    made = FPDF()
    made.set_font("Helvetica", size=9)
    for start in range(0, pages * LETTERS, LETTERS):
        made.add_page()
        made.multi_cell(0, 4, whole[start : start + LETTERS])
    made.output(str(path))


def answer(question: str, source: Path, cache: str, bytecode: Path) -> Answer:
    """Return what `winnow extract` says, started again, and what that cost with all its
    processes.

    Raises `RuntimeError`: it failed.
    """
    environment = {
        **os.environ,
        "WINNOW_CACHE": cache,
        "WINNOW_SECONDS": CALL_SECONDS,
        "PYTHONPYCACHEPREFIX": str(bytecode),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    before = _spent()
    command = [
        sys.executable,
        "-m",
        "server",
        "extract",
        "-q",
        "--folder",
        str(source.parent),
    ]
    ran = subprocess.run(  # noqa: S603  ours
        [*command, question, str(source)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    if ran.returncode not in {0, 3}:
        raise RuntimeError(
            f"winnow extract ended with {ran.returncode}: {ran.stderr[-500:]}"
        )
    return Answer(_spent() - before, re.sub(r"«/?\w+»", "«»", ran.stdout))


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep so many processes busy beside the block."""
    spin = [sys.executable, "-c", "while True: pass"]
    begun = [subprocess.Popen(spin) for _ in range(processes)]  # noqa: S603  ours
    try:
        yield
    finally:
        for process in begun:
            process.kill()
            process.wait()


def measure(source: Path, questions: Sequence[str], folder: Path) -> list[Answer]:
    """Return the first answer, the same again, and that to the other question; less the
    start. Seconds are the median of `RUNS`, each with a cache of its own."""
    runs = [_measure_once(source, questions, folder) for _ in range(RUNS)]
    return [
        answers[0]._replace(seconds=median(one.seconds for one in answers))
        for answers in zip(*runs, strict=True)
    ]


def _measure_once(source: Path, questions: Sequence[str], folder: Path) -> list[Answer]:
    tiny, page, bytecode = folder / "tiny.txt", folder / "page.pdf", folder / "bytecode"
    tiny.write_text("Boats leave at nine.\n", encoding="utf-8")
    write_pdf(page, 1)
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
        answer(questions[1], page, str(folder / "unused"), bytecode)
        cold, warm = (
            answer("When do boats leave?", tiny, other, bytecode).seconds
            for _ in range(2)
        )
        first, again, further = (
            answer(question, source, cache, bytecode)
            for question in (questions[0], questions[0], questions[1])
        )
    starts = (cold, warm, cold)
    return [
        one._replace(seconds=one.seconds - start)
        for one, start in zip((first, again, further), starts, strict=True)
    ]


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "file", type=Path, nargs="?", help="a PDF in place of a generated one"
    )
    parser.add_argument(
        "questions", nargs="*", default=QUESTIONS, help="two questions for it"
    )
    parser.add_argument(
        "--busy", type=int, default=0, help="processes that are busy beside it"
    )
    parser.add_argument("--check", action="store_true", help="both sizes, and the bars")
    options = parser.parse_args()
    short = []
    with tempfile.TemporaryDirectory() as made, busy(options.busy):
        sources = {0: options.file.resolve()} if options.file else {}
        for pages in (
            () if options.file else (PAGES, MANY) if options.check else (PAGES,)
        ):
            sources[pages] = Path(made) / f"{pages}.pdf"
            write_pdf(sources[pages], pages)
        for pages, source in sources.items():
            first, again, further = measure(source, options.questions, Path(made))
            print(
                f"{source.name}: first {first.seconds:.2f}, again {again.seconds:.2f}, "
                f"another {further.seconds:.2f} processor s; same text: {again.text == first.text}"
            )
            if first.seconds > FIRST.get(pages, FIRST[PAGES]):
                short.append(f"{source.name}: first answer {first.seconds:.2f} s")
            if again.seconds > WARM.get(pages, WARM[PAGES]) or again.text != first.text:
                short.append(f"{source.name}: again {again.seconds:.2f} s")
    for one in short:
        print(f"SHORT {one}")
    return int(bool(short) and options.check)


if __name__ == "__main__":
    sys.exit(main())
