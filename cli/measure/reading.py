"""The steps that read pages, by rules and with a generator: pruning by block paths, extracting by lines, tags or votes.

Not for: steps that write (`asking.py`) or cut (`chunks.py`).
"""

from collections.abc import Sequence
from typing import Final

from cli.measure.library import Asked, Row, Setup, mean
from cli.measure.watched import Watched
from models.protocols import tree_scorer
from pipeline.documents import Document, Reading
from pipeline.extract.ask import WAYS, can_ask
from pipeline.extract.extract import Asking, extract
from pipeline.prune.generate import path_scorer
from pipeline.prune.prune import PruneOptions, best_first, prune
from pipeline.text.tokens import count_tokens

BUDGET: Final = 256
"""Tokens of an answer: few, so that choosing well shows."""


async def prune_by_paths(setup: Setup) -> list[Row]:
    """Return whether pages pruned to `BUDGET` tokens keep the answer, without and with a generator's path scores.

    One row for the default pruning, one for the paper's: its first step alone against both steps (HtmlRAG §3.4).
    """
    rows = []
    asked = setup.answerable
    for method, what in (
        ("winnow", f"answers kept at {BUDGET} tokens"),
        ("paper", "the same by the paper's own steps"),
    ):
        watched = Watched(setup.generator)
        kept: dict[bool, list[float]] = {False: [], True: []}
        if tree_scorer(watched) is None:
            note = f"{watched.name} scores no paths: set a GGUF file"
            rows.append(Row("prune", what, len(asked), None, None, note=note))
            continue
        for number, one in enumerate(asked):
            documents = setup.library.nearest(one.question, first=one.pages, count=1)
            options = PruneOptions(BUDGET, "html", method="paper" if method == "paper" else "winnow")
            for scored in (False, True):
                scorer = path_scorer(watched, documents, seconds=setup.seconds) if scored else None
                found = await prune(
                    documents,
                    one.question,
                    options=options,
                    reader=setup.reader,
                    embedder=setup.embedder,
                    finer=scorer,
                )
                kept[scored].append(float(one.is_in("\n".join(page.text for page in found.pages))))
            await setup.report(number + 1, len(asked), f"prune: {method}")
        spent = await watched.spent()
        rows.append(Row("prune", what, len(asked), mean(kept[False]), mean(kept[True])).spending(spent))
    return rows


async def extract_sentences(setup: Setup) -> list[Row]:
    """Return recall and None by rules, and by the rules with a generator, for each way to ask it."""
    answerable, unanswerable = setup.answerable, setup.unanswerable
    plain = [await _extracted(setup, one, None) for one in (*answerable, *unanswerable)]
    rows: list[Row] = []
    for way in WAYS:
        watched = Watched(setup.generator)
        if not can_ask(watched, way):
            rows.append(
                Row("extract", f"{way}: answers held", len(answerable), None, None, note="it cannot be asked so")
            )
            continue
        told = []
        for number, one in enumerate((*answerable, *unanswerable)):
            told.append(await _extracted(setup, one, Asking(watched, way, setup.seconds)))
            await setup.report(number + 1, len(plain), f"extract: {way}")
        spent = await watched.spent()
        cut = len(answerable)
        recall = [[float(one.is_in(_best(found))) for one, found in zip(answerable, part, strict=False)]
                  for part in (plain, told)]  # fmt: skip
        rows.append(
            Row(
                "extract", f"{way}: answers in the best {BUDGET} tokens", cut, mean(recall[0]), mean(recall[1])
            ).spending(spent)
        )
        for what, part in (("None where nothing answers", slice(cut, None)), ("None where pages answer", slice(cut))):
            shares = [mean([float(found.verdict == "none") for found in run[part]]) for run in (plain, told)]
            rows.append(Row("extract", f"{way}: {what}", len(plain[part]), shares[0], shares[1]))
    return rows


async def _extracted(setup: Setup, one: Asked, asking: Asking | None) -> Reading:
    documents: Sequence[Document] = setup.library.nearest(one.question, first=one.pages)
    return await extract(one.question, documents, reader=setup.reader, asking=asking)


def _best(found: Reading) -> str:
    """Return the best sentences of `BUDGET` tokens."""
    if found.verdict == "none":
        return ""
    kept: list[str] = []
    used = 0
    places = found.places
    for row in best_first(found.values):
        text = places[row][1].text
        used += count_tokens(text) + 1
        if used > BUDGET:
            break
        kept.append(text)
    return "\n".join(kept)
