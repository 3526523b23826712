"""Questions in another language than the page's, through an MCP client, beside a naive
sum of the same run.

    python -m bench.languages            six pairs of languages, 100 questions each, by `extract_relevant`
    python -m bench.languages --check    24 of each; exit code 1, naming each bar that falls short
    python -m bench.languages --twelve   pages in twelve languages, each asked in the eleven others,
                                         200 tokens, 40 questions a language

XQuAD has the same questions about the same paragraphs in several languages, translated
by people, so that a question in one is asked of the text in another. Word lists
(`pipeline/text/glosses/`) were written without a look at them. Columns: share with the
gold sentence shown at these tokens; verdicts answered and none. The naive sum is BM25
and the built-in embedder over chunks of about 80 tokens. Not for: questions that people
wrote about pages in another language (kind `language` of `bench/answers.py`). The
twelve are from `../shared/data/xquad`, no half of which is tuned on. There a page is an
article of five paragraphs, and the naive way is the cosine of the multilingual embedder
alone."""

import argparse
import gzip
import html
import json
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Final

import anyio
import numpy as np

from bench.answer_sets import Asked, QuestionSet, read_set
from bench.answers import (
    CACHE_BYTES,
    CHUNK,
    References,
    ask,
    chunks,
    filled,
    served,
    share,
)
from bench.html_questions import DATA
from cache.store import open_stores
from models.onnx import MULTILINGUAL, OnnxEmbedder
from pipeline.cached_models import CachedEmbedder
from pipeline.text.tokens import count_tokens, cut_to_tokens

PAIRS: Final = (
    ("de", "en"),
    ("ru", "en"),
    ("zh", "en"),
    ("en", "de"),
    ("en", "ru"),
    ("en", "zh"),
)
BUDGETS: Final = (128, 256, 512)
GAIN: Final = 0.3
"""What a question must find more often than by the naive sum, at 256 tokens, in the
mean of all pairs."""

TWELVE: Final = ("en", "de", "es", "ru", "ar", "hi", "el", "ro", "th", "tr", "vi", "zh")
TWELVE_BUDGET, TWELVE_LIMIT = 200, 40


async def measure(asked: str, spoken: str, limit: int, cache: Path) -> float:
    """Print what is shown of texts in `spoken` for questions in `asked`; return the
    gain at 256 tokens."""
    questions, of = read_set(f"xquad_{asked}", 0).asked, read_set(f"xquad_{spoken}", 0)
    golds = {question.id.split("-", 2)[2]: question for question in of.asked}
    pairs = [
        (one.text, golds[key])
        for one in questions
        if (key := one.id.split("-", 2)[2]) in golds
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
            references = References(
                of, folder, CachedEmbedder(OnnxEmbedder(), stores.embeddings)
            )
            for text, gold in pairs:
                chunks, _ = await references.naive(replace(gold, text=text))
                for budget in BUDGETS:
                    given = await ask(
                        client, "extract_relevant", text, folder / gold.page, budget
                    )
                    naive = "\n".join(chunks[: filled(chunks, budget)])
                    shown[budget].append(
                        (of.hit(gold, given.quoted), of.hit(gold, naive))
                    )
                verdicts.append(given.verdict)
    finally:
        stores.close()
    ours = [share(row[0] for row in shown[budget]) for budget in BUDGETS]
    naive_shares = [share(row[1] for row in shown[budget]) for budget in BUDGETS]
    reported = "   ".join(
        f"{one:.3f} ({other:.3f})"
        for one, other in zip(ours, naive_shares, strict=True)
    )
    said = ", ".join(
        f"{word} {share(one == word for one in verdicts):.2f}"
        for word in ("answered", "none")
    )
    print(f"{asked} → {spoken}  n {len(pairs):4}   {reported}   {said}", flush=True)
    return ours[1] - naive_shares[1]


async def run(limit: int) -> list[str]:
    """Print the table; return the bars missed."""
    print(f"shown at {', '.join(map(str, BUDGETS))} tokens (naive)")
    with tempfile.TemporaryDirectory() as cache:
        gains = [
            await measure(asked, spoken, limit, Path(cache)) for asked, spoken in PAIRS
        ]
    gain = sum(gains) / len(gains)
    print(f"gain at 256 tokens {gain:+.3f}")
    return [
        f"questions in other languages gain {gain:+.3f} on the naive sum, bar {GAIN:+}"
    ] * (gain < GAIN)


def read_twelve(language: str) -> QuestionSet:
    """Return the questions and pages of a language; a question's `kind` is empty."""
    packed = (DATA / "xquad" / f"{language}.jsonl.gz").read_bytes()
    rows = [json.loads(line) for line in gzip.decompress(packed).decode().splitlines()]
    articles: dict[str, list[str]] = defaultdict(list)
    asked: list[Asked] = []
    for row in sorted(rows, key=lambda row: (row["article"], row["paragraph"])):
        page = f"{row['article']}.html"
        articles[page].append(row["text"].lstrip("\ufeff"))
        asked += [
            Asked(one["id"], "", one["question"], ((one["answer"],),), page)
            for one in row["questions"]
        ]
    files = {}
    for page, texts in articles.items():
        body = "".join(f"<p>{html.escape(text)}</p>" for text in texts)
        files[page] = (
            f'<html lang="{language}"><meta charset="utf-8">{body}</html>'.encode()
        )
    return QuestionSet(language, asked, files, _holds)


def _holds(gold: str, text: str) -> bool:
    """Whether letters, digits and accents of a gold are in a text."""
    wanted, found = (
        "".join(sign for sign in one.casefold() if sign.isalnum() or sign >= "\u0300")
        for one in (gold, text)
    )
    return wanted in found


def _pieces(text: str) -> list[str]:
    """Return chunks of about 80 tokens; a sentence that is longer is cut."""
    found: list[str] = []
    for chunk in chunks(text):
        rest = chunk
        while count_tokens(rest) > 2 * CHUNK:
            head = cut_to_tokens(rest, CHUNK)
            found.append(head)
            rest = rest[len(head) :].strip()
        found.append(rest)
    return found


async def twelve(limit: int) -> None:
    """Print what is shown of pages in each of twelve languages for questions in the
    others."""
    sets = {language: read_twelve(language) for language in TWELVE}
    texts = {name: {one.id: one.text for one in of.asked} for name, of in sets.items()}
    shown: dict[str, list[tuple[bool, bool]]] = {}
    with tempfile.TemporaryDirectory() as cache:
        stores = open_stores(Path(cache) / "naive", size_limit=CACHE_BYTES)
        embedder = CachedEmbedder(OnnxEmbedder(MULTILINGUAL), stores.embeddings)
        for place, (language, of) in enumerate(sets.items()):
            said: Counter[str] = Counter()
            rows = shown.setdefault(language, [])
            async with served(of, Path(cache)) as (client, folder):
                references = References(of, folder, embedder)
                for number in range(limit):
                    gold = of.asked[number * len(of.asked) // limit]
                    other = TWELVE[
                        (place + 1 + number % (len(TWELVE) - 1)) % len(TWELVE)
                    ]
                    text = texts[other][gold.id]
                    page = folder / gold.page
                    given = await ask(
                        client, "extract_relevant", text, page, TWELVE_BUDGET
                    )
                    (document,) = references.documents(gold)
                    parts = _pieces(document.text)
                    asked = (await embedder.embed([text], kind="query"))[0]
                    cosines = (await embedder.embed(parts, kind="passage")) @ asked
                    best = [
                        parts[row]
                        for row in np.argsort(-cosines, kind="stable").tolist()
                    ]
                    naive = "\n".join(best[: filled(best, TWELVE_BUDGET)])
                    rows.append((of.hit(gold, given.quoted), of.hit(gold, naive)))
                    said[given.verdict] += 1
            _print_twelve(language, rows, f"none {said['none']}")
        stores.close()
    _print_twelve("mean", [row for rows in shown.values() for row in rows], "")


def _print_twelve(name: str, rows: list[tuple[bool, bool]], more: str) -> None:
    ours, naive = (share(row[column] for row in rows) for column in (0, 1))
    print(f"{name:5} n {len(rows):4}   {ours:.3f} ({naive:.3f})   {more}", flush=True)


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
    parser.add_argument(
        "--twelve", action="store_true", help="twelve languages, 200 tokens"
    )
    wanted = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    if wanted.twelve:
        anyio.run(twelve, min(wanted.limit, TWELVE_LIMIT))
        return 0
    missed = anyio.run(run, 24 if wanted.check else wanted.limit)
    for line in missed:
        print(f"BAR MISSED: {line}")
    return 1 if missed and wanted.check else 0


if __name__ == "__main__":
    sys.exit(main())
