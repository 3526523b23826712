"""Questions in another language than the page's, through an MCP client, beside a naive sum of the
same run.

    python -m bench.languages            six pairs of languages, 100 questions each, by `extract_relevant`
    python -m bench.languages --check    24 of each; exit code 1, naming each bar that falls short

XQuAD has the same questions about the same paragraphs in several languages, translated by people,
so that a question in one is asked of the text in another. Word lists (`pipeline/text/glosses/`)
were written without a look at them. Columns: share with the gold sentence shown at these tokens;
verdicts answered and none. The naive sum is BM25 and the built-in embedder over chunks of about 80
tokens. Not for: questions that people wrote about pages in another language (kind `language` of
`bench/answers.py`).
"""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import anyio

from bench.answer_sets import read_set
from bench.answers import CACHE_BYTES, References, ask, filled, served, share
from bench.html_questions import DATA
from cache.store import open_stores
from models.onnx import OnnxEmbedder
from pipeline.cached_models import CachedEmbedder

PAIRS: Final = (("de", "en"), ("ru", "en"), ("zh", "en"), ("en", "de"), ("en", "ru"), ("en", "zh"))
BUDGETS: Final = (128, 256, 512)
GAIN: Final = 0.3
"""What a question must find more often than by the naive sum, at 256 tokens, in the mean of all
pairs."""


async def measure(asked: str, spoken: str, limit: int, cache: Path) -> float:
    """Print what is shown of texts in `spoken` for questions in `asked`; return the gain at 256
    tokens."""
    questions, of = read_set(f"xquad_{asked}", 0).asked, read_set(f"xquad_{spoken}", 0)
    golds = {question.id.split("-", 2)[2]: question for question in of.asked}
    pairs = [
        (one.text, golds[key]) for one in questions if (key := one.id.split("-", 2)[2]) in golds
    ]
    pairs = (
        [pairs[place * len(pairs) // limit] for place in range(limit)]
        if limit < len(pairs)
        else pairs
    )
    shown: dict[int, list[tuple[bool, bool]]] = {budget: [] for budget in BUDGETS}
    verdicts: list[str] = []
    stores = open_stores(cache, size_limit=CACHE_BYTES)
    try:
        async with served(of, cache) as (client, folder):
            references = References(of, folder, CachedEmbedder(OnnxEmbedder(), stores.embeddings))
            for text, gold in pairs:
                chunks, _ = await references.naive(replace(gold, text=text))
                for budget in BUDGETS:
                    given = await ask(client, "extract_relevant", text, folder / gold.page, budget)
                    naive = "\n".join(chunks[: filled(chunks, budget)])
                    shown[budget].append((of.hit(gold, given.quoted), of.hit(gold, naive)))
                verdicts.append(given.verdict)
    finally:
        stores.close()
    ours = [share(row[0] for row in shown[budget]) for budget in BUDGETS]
    naive_shares = [share(row[1] for row in shown[budget]) for budget in BUDGETS]
    told = "   ".join(
        f"{one:.3f} ({other:.3f})" for one, other in zip(ours, naive_shares, strict=True)
    )
    said = ", ".join(
        f"{word} {share(one == word for one in verdicts):.2f}" for word in ("answered", "none")
    )
    print(f"{asked} → {spoken}  n {len(pairs):4}   {told}   {said}", flush=True)
    return ours[1] - naive_shares[1]


async def run(limit: int) -> list[str]:
    """Print the table; return the bars missed."""
    print(f"shown at {', '.join(map(str, BUDGETS))} tokens (naive)")
    with tempfile.TemporaryDirectory() as cache:
        gains = [await measure(asked, spoken, limit, Path(cache)) for asked, spoken in PAIRS]
    gain = sum(gains) / len(gains)
    print(f"gain at 256 tokens {gain:+.3f}")
    return [f"questions in other languages gain {gain:+.3f} on the naive sum, bar {GAIN:+}"] * (
        gain < GAIN
    )


def main() -> int:
    """Read the options; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="24 questions a pair; exit code 1 where a bar falls short",
    )
    parser.add_argument(
        "--limit", type=int, default=100, help="questions of each pair, evenly spread"
    )
    wanted = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    missed = anyio.run(run, 24 if wanted.check else wanted.limit)
    for line in missed:
        print(f"BAR MISSED: {line}")
    return 1 if missed and wanted.check else 0


if __name__ == "__main__":
    sys.exit(main())
