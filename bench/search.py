"""Mixed ranking of search results beside the engine's order and the paper's form.

    python -m bench.search           the table, some minutes: the embedder reads about 6,000 passages
    python -m bench.search --check   BM25 on a part, pinned floors; exit code 1 names each that is missed

Needs ../shared/data. The rule was chosen on the half of the questions with an even hash. Not for: answers
(`bench/run.py`)."""

import argparse
import hashlib
import html
import json
import math
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import numpy as np
from numpy.typing import NDArray

from cache.store import open_stores
from models.onnx import OnnxEmbedder
from models.protocols import Embedder
from papers.zero_index.ranking import rank_as_printed
from pipeline.cached_models import CachedEmbedder
from pipeline.question.question import Question
from pipeline.search.mixed import RankedPage, mixed_rank
from pipeline.search.query import SearchResult
from readers.html.document import read_document
from readers.page import Document, Page

ROOT: Final = Path(__file__).resolve().parents[1]
DATA: Final = ROOT.parent / "shared" / "data"
FLOORS: Final = {"mixed": 0.93, "above the engine": 0.015, "above the paper": 0.005}
"""Of nDCG@10 by BM25 alone, on every third question."""
Row = dict[str, Any]
Scores = NDArray[np.float64]


def main() -> int:
    """Print the table or check the floors; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="a part, pinned floors, exit code 1 on a miss",
    )
    wanted = parser.parse_args()
    if not DATA.is_dir():
        print("left out: ../shared/data is not beside this checkout")
        return 0
    measured = anyio.run(_ranking, wanted.check)
    missed = [
        f"{name}: {measured[name]:.3f} < {floor}"
        for name, floor in FLOORS.items()
        if measured[name] < floor
    ]
    print("".join(f"MISSED {line}\n" for line in missed), end="")
    return int(wanted.check and bool(missed))


def _lines(path: Path) -> list[Row]:
    return [
        json.loads(line)
        for line in path.read_text(encoding="utf-8").split("\n")
        if line.strip()
    ]


@dataclass(frozen=True, slots=True)
class _Case:
    """A question with its hits and the pages after them."""

    question: str
    results: list[SearchResult]
    documents: dict[str, Document]
    relevant: frozenset[str]

    @property
    def held_out(self) -> bool:
        """Whether the question lies in the half that the rule was not chosen on."""
        return (
            hashlib.blake2b(self.question.encode(), digest_size=1).digest()[0] % 2 == 1
        )


def _cases(step: int) -> list[_Case]:
    """The questions, every `step`-th."""
    documents = {
        row["doc"]: _document(row)
        for row in _lines(DATA / "ranking" / "wikipedia.docs.jsonl")
    }
    cases = []
    for row in _lines(DATA / "ranking" / "wikipedia.queries.jsonl")[::step]:
        hits = [
            SearchResult(
                documents[hit["doc"]].page.title,
                hit["doc"],
                hit["snippet"],
                rank=hit["rank"],
            )
            for hit in row["hits"]
        ]
        pages = {hit.url: documents[hit.url] for hit in hits}
        cases.append(_Case(row["query"], hits, pages, frozenset(row["relevant"])))
    return cases


def _document(row: Row) -> Document:
    paragraphs = row["content"].removeprefix(f"Title: {row['doc']}").split("\n")
    body = "".join(f"<p>{html.escape(text)}</p>" for text in paragraphs if text.strip())
    title = html.escape(row["title"])
    source = f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1>{body}</main></body></html>"
    return read_document(
        Page(row["doc"], row["doc"], row["title"], source, "text/html")
    )


def _ndcg(order: Sequence[str], relevant: frozenset[str]) -> float:
    gained = sum(
        1 / math.log2(place + 2)
        for place, url in enumerate(order[:10])
        if url in relevant
    )
    return gained / sum(
        1 / math.log2(place + 2) for place in range(min(10, len(relevant)))
    )


def _mrr(order: Sequence[str], relevant: frozenset[str]) -> float:
    return next(
        (1 / place for place, url in enumerate(order[:10], start=1) if url in relevant),
        0.0,
    )


async def _ranking(check: bool) -> dict[str, float]:
    """Print nDCG@10 of each form; return what floors are of."""
    cases = _cases(3 if check else 1)
    held = np.asarray([case.held_out for case in cases])
    with tempfile.TemporaryDirectory() as folder:
        stores = open_stores(Path(folder), size_limit=1_000_000_000, clock=time.time)
        alone = await _forms(cases, None)
        embedder = CachedEmbedder(OnnxEmbedder(), stores.embeddings)
        beside = {} if check else await _forms(cases, embedder)
        stores.close()
    heads = [f"all {len(cases)} questions", f"{held.sum()} held aside"]
    heads += ["with the embedder, all", "held aside"] * (not check)
    print(f"| nDCG@10 | {' | '.join(heads)} | more than the engine |")
    print(f"|---|---|{'---|' * len(heads)}")
    for form, scores in alone.items():
        cells = [scores.mean(), scores[held].mean()]
        if form in beside:
            cells += [beside[form].mean(), beside[form][held].mean()]
        tables = beside or alone
        more = _interval(tables[form] - tables["engine"]) if form != "engine" else ""
        print(f"| {form} | {' | '.join(f'{cell:.3f}' for cell in cells)} | {more} |")
    means = {form: float(scores.mean()) for form, scores in alone.items()}
    return {
        "mixed": means["mixed"],
        "above the engine": means["mixed"] - means["engine"],
        "above the paper": means["mixed"] - means["as printed"],
    }


async def _forms(
    cases: Sequence[_Case], embedder: Embedder | None
) -> dict[str, Scores]:
    """Return nDCG@10 of each question by form."""
    rankings: dict[str, Callable[..., Awaitable[tuple[RankedPage, ...]]]] = {
        "engine": partial(mixed_rank, form="engine"),
        "as printed": rank_as_printed,
        "mixed": mixed_rank,
    }
    return {
        form: np.asarray(
            [
                _ndcg(
                    [
                        page.result.url
                        for page in await rank(
                            Question(case.question),
                            case.results,
                            {} if form == "engine" else case.documents,
                            embedder=embedder,
                        )
                    ],
                    case.relevant,
                )
                for case in cases
            ]
        )
        for form, rank in rankings.items()
    }


def _interval(differences: NDArray[np.float64]) -> str:
    """Mean and 95 % interval of a paired bootstrap."""
    rng = np.random.default_rng(7)
    means = differences[
        rng.integers(0, len(differences), (2_000, len(differences)))
    ].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{differences.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


if __name__ == "__main__":
    sys.exit(main())
