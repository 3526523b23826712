"""What is wrong with the pairs of a question that a page answers and a twin that it
almost answers, and how many there are of each kind.

    python -m bench.pairs    looks each gold text up on its page, too (needs ../shared/data)

Not for: asking the questions (`bench/run.py`), or whether a twin is truly
unanswered, which takes a reader (`bench/asked/README.md` says how it was tried)."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from train.reader.data import SHARED, own_rows, page_text

ASKED: Final = Path(__file__).with_name("asked")
PAIRS: Final = ASKED / "pairs_english.jsonl"
KINDS: Final = frozenset(
    {
        "code",
        "date",
        "fact",
        "how_why",
        "keyword",
        "list",
        "multi",
        "paraphrase",
        "speaker",
        "table",
    }
)
TWINS: Final = frozenset(
    {
        "comparison",
        "more_precise",
        "near_number",
        "other_attribute",
        "other_entity",
        "other_place",
        "other_time",
        "wrong_premise",
    }
)
PARTS: Final = frozenset({"train", "held"})

Row = dict[str, Any]


def rows(path: Path = PAIRS) -> list[Row]:
    """Return the rows of a file of pairs."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def faults(pairs: Sequence[Row]) -> Iterator[str]:
    """Yield what is wrong with rows by themselves: unknown kinds, what is said twice, a
    site in both parts."""
    asked: dict[str, str] = {}
    parts: dict[str, str] = {}
    for row in pairs:
        name = row["id"]
        if (
            row["kind"] not in KINDS
            or row["twin_kind"] not in TWINS
            or row["part"] not in PARTS
        ):
            yield f"{name}: unknown kind, twin_kind or part"
        if not row["gold"] or not row["answer"]:
            yield f"{name}: no gold or no answer"
        if parts.setdefault(row["site"], row["part"]) != row["part"]:
            yield f"{name}: {row['site']} is in both parts"
        for text in (name, row["question"], row["twin"]):
            other = asked.setdefault(_words(text), name)
            if other != name or (text == row["twin"] and text == row["question"]):
                yield f"{name}: asked before in {other}: {text}"


def misplaced(pairs: Sequence[Row]) -> Iterator[str]:
    """Yield pages of other sets, and questions of the reader's and of other sets that a
    row asks again; and held sites that the reader was trained on."""
    own = own_rows()
    others = [
        row
        for path in (
            SHARED / "asked" / "questions.jsonl",
            *sorted(ASKED.glob("*.jsonl")),
        )
        if not path.name.startswith("pairs")
        for row in rows(path)
    ]
    pages = {row.get("page") for row in others}
    known = {
        _words(row[field])
        for row in (*own, *others)
        for field in ("question", "twin")
        if row.get(field)
    }
    trained = {row["page"] for row in own if row["split"] == "train"}
    for row in pairs:
        if row["page"] in pages:
            yield f"{row['id']}: {row['page']} is of another set"
        if row["part"] == "held" and row["page"] in trained:
            yield f"{row['id']}: {row['page']} is trained on"
        for text in (row["question"], row["twin"]):
            if _words(text) in known:
                yield f"{row['id']}: asked elsewhere: {text}"


def lost(pairs: Sequence[Row]) -> Iterator[str]:
    """Yield gold texts whose letters and digits the page does not give, as the product
    reads it, and units that are none of it."""
    texts: dict[str, tuple[str, frozenset[str]]] = {}
    for row in pairs:
        if row["page"] not in texts:
            sentences = page_text(row["page"]).sentences
            texts[row["page"]] = _squashed(" ".join(sentences)), frozenset(sentences)
        whole, sentences_of = texts[row["page"]]
        units = _squashed(" ".join(row["units"]))
        for gold in row["gold"]:
            # A row of a table is read with its headers between the cells.
            cells = re.findall(r"\w+", gold.casefold())
            if _squashed(gold) not in whole and not all(
                cell in units for cell in cells
            ):
                yield f"{row['id']}: lost: {gold}"
        if not row["units"] or not sentences_of.issuperset(row["units"]):
            yield f"{row['id']}: units are not of the page"


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _squashed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def main() -> int:
    """Print counts and faults; return 1 where there are any."""
    pairs = rows()
    for field in ("part", "kind", "twin_kind"):
        print(field, dict(Counter(row[field] for row in pairs).most_common()))
    sites = {row["site"]: row["part"] for row in pairs}
    print(
        len(pairs),
        "pairs,",
        len({row["page"] for row in pairs}),
        "pages,",
        len(sites),
        "sites",
    )
    print("sites", dict(Counter(sites.values())))
    found = [*faults(pairs), *misplaced(pairs), *lost(pairs)]
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
