"""The reference for passages: gold shown by a plain growth over the product's own scores,
and by the product, on the same readings.

    python -m bench.grow                      every set, 256, 512 and 1,000 tokens
    python -m bench.grow --sets asked --limit 60

Passages of the product (`pipeline/evidence`) must show as much as `grown`: the best
unit, its better neighbour again and again, and nothing else. It writes no frame; marks,
labels and links are taken to be `FRAME_SHARE` of the budget and `LABEL_TOKENS` a
passage. Not for: answers as a client has them (`bench/answers.py`)."""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Final

import anyio

from bench.answer_sets import read_set
from bench.html_questions import DATA
from pipeline.evidence.assemble import assemble
from pipeline.evidence.show import hint_room
from pipeline.question.question import Question
from pipeline.reading.extract import extract
from pipeline.reading.reading import Reading
from pipeline.sources.gather import load_sources
from pipeline.text.frame import new_delimiter
from pipeline.text.tokens import count_each
from pipeline.work import no_report
from readers.page import Document
from server.settings import read_settings
from server.wiring import open_services

SETS: Final = ("door490", "asked", "asked_more", "asked_kinds")
BUDGETS: Final = (256, 512, 1_000)
FRAME_SHARE: Final = 0.12
LABEL_TOKENS: Final = 6
LEAST: Final = 30
MOST: Final = 100
EDGE: Final = 0.5
HEADING_TOKENS: Final = 16


def grown(documents: Sequence[Document], reading: Reading, budget: int) -> list[int]:
    """Return the units of a reading that a plain growth shows within `budget` tokens."""
    units = [unit for _, unit in reading.places]
    scores: list[float] = reading.values.tolist()
    tokens = count_each([unit.text for unit in units])
    is_heading = [
        documents[index].blocks[unit.block].kind == "heading"
        for index, unit in reading.places
    ]
    room = budget - int(budget * FRAME_SHARE)
    most = min(MOST, max(LEAST, room // 2))
    shown: set[int] = set()
    used = 0
    for row in sorted(range(len(scores)), key=lambda row: -scores[row]):
        if used >= room - 8:
            break
        label = is_heading[row] and tokens[row] <= HEADING_TOKENS
        if row in shown or (label and row + 1 in shown):
            continue
        low = high = row
        size = tokens[row]
        while True:
            options: list[tuple[float, int]] = []
            before, after = low - 1, high + 1
            heading_path = units[row].heading_path
            if (
                before >= 0
                and before not in shown
                and (is_heading[before] or units[before].heading_path == heading_path)
            ):
                gain = 0.05 * (units[before].block == units[low].block)
                options.append((scores[before] + gain, before))
            if (
                after < len(units)
                and after not in shown
                and not is_heading[after]
                and units[after].heading_path == heading_path
            ):
                gain = 0.02 + 0.05 * (units[after].block == units[high].block)
                options.append((scores[after] + gain, after))
            options = [
                (score, unit) for score, unit in options if size + tokens[unit] <= most
            ]
            if not options:
                break
            score, unit = max(options)
            if size >= LEAST and score < EDGE * scores[row]:
                break
            low, high, size = min(low, unit), max(high, unit), size + tokens[unit]
        if used + size + LABEL_TOKENS > room:
            low = high = row
            size = tokens[row]
        if used + size + LABEL_TOKENS <= room:
            shown.update(range(low, high + 1))
            used += size + LABEL_TOKENS
    return sorted(shown)


async def measure(name: str, limit: int) -> dict[tuple[str, int], float]:
    """Return the share of a set's questions whose gold is shown, by way and budget."""
    questions = read_set(name, limit)
    hits: dict[tuple[str, int], list[bool]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as kept:
        for file, raw in questions.files.items():
            (Path(folder) / file).write_bytes(raw)
        settings = read_settings({"folders": folder, "cache": kept}, {})
        async with open_services(settings) as services:
            for question in questions.asked:
                source = str(Path(folder) / question.page)
                loaded = await load_sources(
                    [source], services, seconds=services.seconds, report=no_report
                )
                documents = loaded.documents
                reading = await extract(
                    Question(question.text), documents, reader=services.reader
                )
                for budget in BUDGETS:
                    units = grown(documents, reading, budget)
                    text = "\n".join(reading.places[row][1].text for row in units)
                    hits["plain growth", budget].append(questions.hit(question, text))
                    written = assemble(
                        documents,
                        reading,
                        max_tokens=budget - hint_room(budget),
                        delimiter=new_delimiter(),
                    ).evidence
                    text = "\n".join(
                        "\n".join((*passage.heading_path[-1:], passage.text))
                        for passage in written
                    )
                    hits["passages", budget].append(questions.hit(question, text))
    return {key: mean(shown) for key, shown in hits.items()}


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--limit", type=int, default=0, help="questions of each set")
    arguments = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    for name in arguments.sets:
        shares = anyio.run(measure, name, arguments.limit)
        for way in ("plain growth", "passages"):
            line = "  ".join(
                f"{budget}: {shares[way, budget]:.3f}" for budget in BUDGETS
            )
            print(f"{name:12} {way:14} {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
