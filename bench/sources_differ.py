"""Asks what several sources answer differently (RAMDocs), and says how often all values
are shown, and that they differ.

    python -m bench.sources_differ RAMDOCS.jsonl             30 questions, each with its documents as files
    python -m bench.sources_differ RAMDOCS.jsonl --show --seed 7

Rows have `question`, `documents` (`text`, `answer`) and `gold_answers`; the file is not
in this repository. `shown`: every right value that a document has is in the answer's
passages. `said`: of the questions whose documents give two or more values, the answer
says that sources differ and names two of them; by questions whose values are all
numbers, and all. `false`: it says so and names a value that no document gives."""

import argparse
import json
import random
import re
import tempfile
from calendar import month_name
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client

from server.app import build_server
from server.settings import read_settings

QUESTIONS: Final = 30
SAID: Final = re.compile(r"^Sources differ: (.*)$", re.MULTILINE)
Row = dict[str, Any]


def worded(text: str) -> str:
    """Return a text with the months of its ISO dates by name."""
    return re.sub(
        r"(\d{4})-(\d\d)-(\d\d)",
        lambda date: f"{int(date[3])} {month_name[int(date[2])]} {date[1]}",
        text,
    )


def folded(text: str) -> str:
    """Return the letters and digits of a text, blanks between."""
    return " ".join(re.findall(r"[^\W_]+", worded(text).casefold().replace(",", "")))


def bare(value: str) -> str:
    """Return a value without the words around its numbers, folded."""
    numbers = re.findall(r"\d[\d,.]*", worded(value))
    dated = re.findall(r"\d{3,}|\d{1,2}|[A-Z][a-z]+", worded(value))
    return folded(" ".join(dated if len(numbers) > 1 else numbers) or value)


def holds(value: str, text: str) -> bool:
    """Whether a text has a value: its words in any order, near each other."""
    text = folded(text)
    words = bare(value).split()
    spots = [at.start() for at in re.finditer(rf"\b{re.escape(words[0])}", text)]
    near = (f" {text[max(0, spot - 60) : spot + 80]} " for spot in spots)
    return any(all(f" {word}" in around for word in words) for around in near)


def judged(row: Row, text: str) -> dict[str, Any]:
    """Return how an answer does."""
    given = [one for one in row["documents"] if one["answer"] != "unknown"]
    values = {bare(one["answer"]): one["answer"] for one in given}
    right = {
        value: gold
        for gold in row["gold_answers"]
        for value, answer in values.items()
        if value == bare(gold)
    }
    said = SAID.search(text)
    quoted = SAID.sub("", text)
    named = re.split(r"(?: \[[^\]]+\])+(?:, |\.$)", said[1]) if said else []
    wrong = [
        name
        for name in filter(None, named)
        if not any(
            holds(name, answer) or holds(answer, name) for answer in values.values()
        )
    ]
    return {
        "question": row["question"],
        "values": list(values.values()),
        "right": list(right.values()),
        "lost": [gold for gold in right.values() if not holds(gold, quoted)],
        "said": said[1] if said else "",
        "wrong": wrong,
        "differs": len(values) > 1,
        "numbers": all(any(map(str.isdigit, value)) for value in values),
    }


async def asked(client: Client, folder: Path, row: Row, max_tokens: int) -> str:
    """Return the answer to a question over its documents, which are put into a folder."""
    folder.mkdir()
    for number, document in enumerate(row["documents"], start=1):
        (folder / f"source{number:02}.txt").write_text(document["text"], "utf-8")
    arguments = {"question": row["question"], "max_tokens": max_tokens}
    files = sorted(map(str, folder.iterdir()))
    result = await client.call_tool("extract_relevant", {"sources": files, **arguments})
    return "\n".join(part.text for part in result.content if part.type == "text")


async def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seed", type=int, default=60)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--budget", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    rows = [
        json.loads(line) for line in options.data.read_text("utf-8").split("\n") if line
    ]
    chosen = random.Random(options.seed).sample(rows, options.questions)
    found = []
    with tempfile.TemporaryDirectory() as place:
        settings = read_settings({"folders": place, "seconds": "100"}, {})
        async with Client(build_server(settings)) as client:
            for number, row in enumerate(chosen):
                folder = Path(place) / f"question{number:03}"
                text = await asked(client, folder, row, options.budget)
                found.append(judged(row, text))
                if options.show:
                    facts = json.dumps(found[-1], ensure_ascii=False)
                    print(f"\n=== {facts}\n{text}", flush=True)
    differ = [one for one in found if one["differs"]]
    numbers = [one for one in differ if one["numbers"]]
    right = [one for one in found if one["right"]]
    print(f"shown {sum(not one['lost'] for one in right)} of {len(right)}")
    for name, those in ("numbers", numbers), ("all", differ):
        print(
            f"said ({name}) {sum(bool(one['said']) for one in those)} of {len(those)}"
        )
    wrong = [
        one for one in found if one["wrong"] or (one["said"] and not one["differs"])
    ]
    print(f"false {len(wrong)} of {len(found)}")
    for one in wrong:
        print("  ", one["question"], "|", one["said"], "|", one["wrong"])


if __name__ == "__main__":
    anyio.run(main)
