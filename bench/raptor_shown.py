"""What an answer of `raptor_query` shows, through an MCP client: the part of the gold
words that it quotes.

Beside it what the tree chose at equal words, with nothing around them, and fused flat
leaves shown the same way. Not for: ways of choosing (`bench/raptor_asked.py`), or
overviews (`bench/overviews.py`)."""

import re
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from mcp import Client
from mcp_types import TextContent

from bench.answers import quoted
from bench.longdoc import MEETINGS, Group, Question, answer_words, groups_of, reported
from bench.raptor_asked import Asked, answered
from cache.store import open_stores
from models.onnx import OnnxEmbedder, OnnxReader
from papers.raptor.build import build_tree
from papers.raptor.tree import NodeOptions
from pipeline.cached_models import CachedCrossEncoder, CachedEmbedder
from pipeline.fetch.files import read_file
from pipeline.reading.relevance import Blend, Reread
from pipeline.text.tokens import count_tokens
from readers.html.document import read_document
from server.app import build_server
from server.settings import read_settings
from tools.common.answer import data_of

BUDGETS: Final = (400, 2_000)
RUN: Final = 5
"""Words in a row that count as quoted where they are in an answer: gold need not be cut
where our units are."""
STORED: Final = 4_000_000_000


async def shown(
    name: str, cache: Path, *, most: int | None, limit: int
) -> dict[str, float]:
    """Print what is shown, chosen and shown flat for one set; return the figures by
    `set/way/budget`.

    Args:
        name: One of `bench.longdoc.SETS`.
        cache: Folder that keeps embeddings and readings between runs.
        most: Only the documents with most questions, this many; None takes all.
        limit: Questions with gold spans, evenly spread; questions about a whole meeting
    come on top."""
    groups = groups_of(name, most=most, answered=name == MEETINGS)
    spread = [
        (group, question)
        for group in groups
        for question in group.questions
        if question.gold
    ]
    kept = (
        {id(spread[place * len(spread) // limit][1]) for place in range(limit)}
        if limit < len(spread)
        else None
    )
    rows: dict[tuple[str, int], list[float]] = defaultdict(list)
    for group in groups:
        wanted = [
            q for q in group.questions if not q.gold or kept is None or id(q) in kept
        ]
        if wanted:
            await _ask(group, wanted, cache, rows)
    figures = {
        f"{name}/{way}/{budget}": float(np.mean(values))
        for (way, budget), values in rows.items()
    }
    print(
        f"\n{name}: {min(limit, len(spread))} questions through an MCP client, gold words quoted"
    )
    for (way, budget), values in rows.items():
        print(f"  {np.mean(values):.3f}  {way} at {budget} ({len(values)})")
    for budget in BUDGETS:
        for other in ("chosen", "flat"):
            line, _, _, high = reported(
                f"shown over {other} at {budget}",
                rows["shown", budget],
                rows[other, budget],
            )
            print(line, flush=True)
            figures[f"{name}/shown over {other} at most/{budget}"] = high
    return figures


async def _ask(
    group: Group,
    questions: Sequence[Question],
    cache: Path,
    rows: dict[tuple[str, int], list[float]],
) -> None:
    """Ask one tree all its questions, through the server and beside it."""
    stores = open_stores(cache, size_limit=STORED)
    embedder = CachedEmbedder(OnnxEmbedder(), stores.embeddings)
    reader = Reread(Blend(embedder), CachedCrossEncoder(OnnxReader(), stores.scores))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for document in group.documents:
            name = document.page.url.rsplit("/", 1)[-1]
            (root / f"{name}.txt").write_text(document.text, encoding="utf-8")
        documents = [
            read_document(read_file(file, roots=[root]))
            for file in sorted(root.iterdir())
        ]
        tree = await build_tree(
            documents, embedder=embedder, options=NodeOptions(), store=None
        )
        one = Asked(tree, documents, list(questions))
        settings = read_settings(
            {"folders": folder, "cache": str(cache), "seconds": "3600"}, {}
        )
        async with Client(build_server(settings), read_timeout_seconds=3600) as client:
            for question in questions:
                for budget in BUDGETS:
                    guided = await _quoted(
                        client, question.text, root, budget, "guided"
                    )
                    if not question.gold:
                        rows["whole", budget].append(
                            answer_words(question.answers, guided)
                        )
                        continue
                    gold = [
                        group.documents[place].text[start:end]
                        for place, start, end in question.gold
                    ]
                    words, _ = await answered(
                        one,
                        question.text,
                        "guided",
                        embedder,
                        count_tokens(guided),
                        reader=reader,
                    )
                    flat = await _quoted(client, question.text, root, budget, "flat")
                    for way, text in (
                        ("shown", guided),
                        ("chosen", words),
                        ("flat", flat),
                    ):
                        rows[way, budget].append(held(gold, text))
    stores.close()


async def _quoted(
    client: Client, question: str, folder: Path, budget: int, mode: str
) -> str:
    arguments = {
        "question": question,
        "sources": [str(folder)],
        "max_tokens": budget,
        "mode": mode,
    }
    result = await client.call_tool("raptor_query", arguments)
    text = "\n".join(
        part.text for part in result.content if isinstance(part, TextContent)
    )
    if (
        result.is_error
        or count_tokens(text) > budget
        or not data_of(result).get("tree")
    ):
        raise RuntimeError(f"{mode} at {budget}: {text[:500]}")
    return quoted(text)


def held(gold: Sequence[str], text: str) -> float:
    """Return the part of the words of `gold` that are in `text`, `RUN` in a row."""
    has = re.findall(r"\w+", text.casefold())
    hit = total = 0
    for part in gold:
        words = re.findall(r"\w+", part.casefold())
        run = min(RUN, len(words))
        runs = {tuple(has[i : i + run]) for i in range(len(has) - run + 1)}
        covered = np.zeros(len(words), dtype=bool)
        for i in range(len(words) - run + 1):
            if tuple(words[i : i + run]) in runs:
                covered[i : i + run] = True
        hit += int(covered.sum())
        total += len(words)
    return hit / total if total else 0.0
