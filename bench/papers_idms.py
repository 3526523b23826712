"""Rows 75 to 81: IDMS. See `papers/__main__.py`."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np

from bench.paper_measures import answering, bleu, f1, rouge_l, weights
from bench.paper_row import Bench, Outcome, as_printed, cannot, differs, row
from bench.paper_row import ours as no_section
from bench.segments import agreement, strung_documents
from models.protocols import Embedder, PathScores, Prompt, TreeScorer
from papers.idms.density import DensityModels, densities, enrich
from papers.idms.idms import YES_NO, Idms, IdmsOptions, Judge, stretch_prompts
from papers.idms.partition import SEGMENT_ITEMS, Rule, cut_by_margins
from pipeline.text.tokens import count_tokens
from pipeline.text.words import MAX_ENTITIES, find_entities
from readers.page import Sentence
from tests.test_papers_idms_judge import TEXTS, Reader

LINES: Final = [f"In year {n} the ferry carried {n}00 people." for n in range(1, 10)]


def sentences(texts: list[str]) -> list[Sentence]:
    """Return texts as the sentences of a document."""
    return [
        Sentence(i + 1, text, i * 1000, i * 1000 + len(text), 0)
        for i, text in enumerate(texts)
    ]


@row(75, "ID Eq. 1 margins with the open chunk", "papers/idms/idms.py")
async def _(_: Bench) -> Outcome:
    reader = Reader()
    judge = Judge(reader, store=None, seconds=30)
    found = await judge.chunks(TEXTS)
    for gap, prefix in enumerate(reader.prefixes):
        start = max(start for start, _ in found if start <= gap)
        assert sum(text in prefix for text in TEXTS) == gap + 1 - start
    asked = len(reader.prefixes)
    assert asked == len(TEXTS) - 1
    # Of two sentences that go on alike, and two that do not: P(yes) - P(no), with the reader's lean
    alike, apart = TEXTS[:2], TEXTS[2:4]
    for texts, margin in ((alike, 0.4), (apart, -0.4)):
        prefix, questions = stretch_prompts(texts, 0, [(0, YES_NO)])
        said = await judge._answers(prefix, questions)
        assert np.allclose(said, margin + Reader.lean)
    return as_printed(
        f"with WINNOW_PAPERS=idms=running {asked} of {len(TEXTS) - 1} gaps are asked with the open chunk alone (of one "
        "over the window with its last sentences, of a sentence with 400 characters); the chances are those of the two "
        "answers alone, in own words, none of which is printed; by the default rule with all the text so far"
    )


async def error(embedder: Embedder, rule: Rule) -> float:
    """Return the mean Pk of a rule on documents of ten foreign paragraphs, by
    embeddings."""
    found = []
    for paragraphs in strung_documents()[:6]:
        texts = [text for paragraph in paragraphs for text in paragraph]
        edges = np.cumsum([0, *map(len, paragraphs)]).tolist()
        ranges = await Idms(IdmsOptions(rule)).ranges(
            sentences(texts), embedder=embedder, minimum=50, maximum=400
        )
        found.append(agreement(ranges, list(pairwise(edges))).pk)
    return float(np.mean(found))


class Rising(Reader):
    """Is surer of each further gap."""

    def _margin(self, asked: str) -> float:
        return 0.1 + len(self.prefixes) / 1_000


@row(76, "ID θ is 0, then the mean of the margins", "papers/idms/partition.py")
async def _(bench: Bench) -> Outcome:
    chance = np.random.default_rng(0)
    for _ in range(100):
        margins = chance.uniform(-1, 1, 40)
        edges, seen = [0], [0.0]
        for gap, margin in enumerate(margins.tolist()):
            edges += [gap + 1] if margin <= np.mean(seen[1:] or seen) else []
            seen.append(margin)
        found = cut_by_margins(
            margins, [1] * 41, rule="running", minimum=0, maximum=10**9
        )
        assert [start for start, _ in found] == edges
    # Margins that rise have no boundary; cosines in place of a model have the bound of a chunk
    rising = cut_by_margins(
        np.linspace(0.1, 1, 149), [1] * 150, rule="running", minimum=0, maximum=10**9
    )
    assert max(end - start for start, end in rising) == SEGMENT_ITEMS
    reader = Reader()
    found = await Judge(reader, store=None, seconds=30).chunks(TEXTS)
    edges, seen = [0], [0.0]
    for gap, prefix in enumerate(reader.prefixes):
        asked = f"{prefix}\n\nNext sentence: {TEXTS[gap + 1]}\nAnswer Yes or No"
        margin = reader._margin(asked)
        edges += [gap + 1] if margin <= np.mean(seen[1:] or seen) else []
        seen.append(margin)
    assert [start for start, _ in found] == edges
    longest = await Judge(Rising(), store=None, seconds=30).chunks(LINES * 12)
    assert longest == [(0, 12 * len(LINES))]
    printed, ours = (
        await error(bench.embedder, "running"),
        await error(bench.embedder, "partition"),
    )
    assert ours < printed
    return as_printed(
        "100 of 100 rows of 40 margins as a literal loop, and so, without bounds, where a model is asked in order; "
        f"where cosines take its place no chunk is over {SEGMENT_ITEMS} sentences; ours: Pk of it by "
        f"cosines in place of a model {printed:.3f}, of our partition {ours:.3f}"
    )


@row(77, "ID – the lean to an option is taken off", "papers/idms/idms.py")
async def _(_: Bench) -> Outcome:
    margins = await Judge(Reader(), store=None, seconds=30).margins(TEXTS)
    assert np.allclose(np.abs(margins), 0.4)
    running = Reader()
    await Judge(running, store=None, seconds=30).chunks(TEXTS)
    assert len(running.prefixes) < 2 * (len(TEXTS) - 1)  # no second order is asked
    return no_section("of the default rule: a lean of .3 leaves margins of ±.4")


CHUNKS = [
    ["It is so and it was so.", "That may be or may not be."],
    [
        "Niels Bohr met Ernest Solvay in Brussels.",
        "Marie Curie and Max Planck came from Paris.",
    ],
    ["The rain fell on the hills.", "It fell all day long."],
    ["Water ran down to the valley.", "The river rose by a metre."],
]


class Rater(Reader):
    """Rates a chunk by its length."""

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return the chances of Yes and No."""
        text = prefix if isinstance(prefix, str) else prefix[-1].content
        chance = self.rating(text)
        return PathScores(np.log([chance, 1 - chance]), 1, 1, 1, 1)

    @staticmethod
    def rating(text: str) -> float:
        """Return the chance of Yes."""
        return 0.9 if "Solvay" in text else 0.6


@row(78, "ID Eq. 2 to 8, density", "papers/idms/density.py")
async def _(bench: Bench) -> Outcome:
    chunks = [*CHUNKS, ["Anna Berg sells fish.", "Prime numbers never end."]]
    found = await densities(
        chunks, DensityModels(bench.embedder, Rater(), printed=True), language="en"
    )
    texts = [" ".join(chunk) for chunk in chunks]
    whole = await bench.embedder.embed(texts, kind="passage")
    for place, (chunk, text) in enumerate(zip(chunks, texts, strict=True)):
        names = find_entities(text, language="en")
        own = await bench.embedder.embed([*chunk, *names], kind="passage")
        parts, entities = own[: len(chunk)], own[len(chunk) :]
        pairs = [
            float(a @ b)
            for i, a in enumerate(parts)
            for j, b in enumerate(parts)
            if i != j
        ]
        cohesion = sum(pairs) / (len(parts) * (len(parts) - 1))
        others = [
            float(other @ whole[place]) for i, other in enumerate(whole) if i != place
        ]
        total = 0.0
        for entity in entities:
            total += (
                float(entity @ whole[place])
                * len(names)
                * cohesion
                * Rater.rating(text)
                * max(others)
            )
        assert np.isclose(found[place], total / max(10, count_tokens(text)), rtol=1e-4)
    assert found[1] > 0 == found[0] and found[-1] < 0  # its cohesion is under 0
    return differs(
        f"with idms=running+density equal to a literal loop (highest {found.max():.4f}), but for what is not "
        "printed: α is of "
        "the nearest other chunk, an entity's context is its chunk, "
        f"at most {MAX_ENTITIES} entities, by capitals, count, and L is 10 at least; "
        "without a model "
        "that lists chances S is left out"
    )


class Enricher(Rater):
    """Writes what keeps everything, or nothing."""

    def __init__(self, *, faithful: bool) -> None:
        super().__init__()
        self.faithful = faithful
        self.asked: list[str] = []

    async def generate(
        self, messages: Any, *, max_tokens: int, schema: object = None
    ) -> str:
        """Return a form of the chunk that it is shown."""
        prompt = str(messages[-1].content)
        own = next((text for text in map(" ".join, CHUNKS) if text in prompt), "")
        self.asked.append(own)
        if not self.faithful:
            return "Ottoline Farrow said so."
        added = " Ernest Solvay was there." if "Ernest Solvay" in prompt else ""
        return own.split(". ")[0] + "." if "rain" in own else own + added


@row(79, "ID low density condensed, high supplemented", "papers/idms/density.py")
async def _(bench: Bench) -> Outcome:
    models = DensityModels(bench.embedder)
    found = np.array([2.0, 3.0, 1.0, 4.0])
    writer = Enricher(faithful=True)
    forms = await enrich(CHUNKS, found, writer, models, language="en")
    ways = [form.way for form in forms]
    assert ways == ["kept", "kept", "condensed", "supplemented"], ways
    assert forms[2].text == "The rain fell on the hills."
    assert forms[3].text == " ".join(CHUNKS[3]) + " Ernest Solvay was there."
    bad = await enrich(CHUNKS, found, Enricher(faithful=False), models, language="en")
    assert [form.way for form in bad] == ["kept", "kept", "refused", "refused"]
    return differs(
        "low and high are a document's outer quartiles, since no threshold is printed; a form is read "
        "beside its chunk by words and in its place by the embedder, and is never shown, where the paper "
        "replaces the chunk; one that loses a figure or over a fifth of the names, or invents either, is refused"
    )


@row(80, "ID the KV cache is kept over a long text", "papers/idms/idms.py")
async def _(_: Bench) -> Outcome:
    reader = Reader()
    await Judge(reader, store=None, seconds=30).margins(TEXTS * 9)
    pairs = list(pairwise(reader.prefixes))
    on = sum(after.startswith(before) for before, after in pairs)
    assert on >= 0.8 * len(pairs) and len(pairs) >= 3
    running = Reader()
    chunks = await Judge(running, store=None, seconds=30).chunks(TEXTS * 3)
    cut = len(chunks) - 1
    further = [b.startswith(a) for a, b in pairwise(running.prefixes)]
    assert sum(further) >= len(further) - cut and len(further) >= 8
    async with answering(str(weights())) as model:
        questions = [
            stretch_prompts(LINES[:count], 0, [(count - 2, YES_NO)]) for count in (8, 9)
        ]
        first, second = [
            await cast(TreeScorer, model).score_tree(
                f"{prefix}{asked}", ["Yes", "No"], among_siblings=True
            )
            for prefix, (asked,) in questions
        ]
    assert second.evaluated_tokens < first.evaluated_tokens / 2
    return differs(
        "the paper names a cache and not how it is kept; here a prompt goes on from the one before: "
        f"{on} of {len(pairs)} of the default rule, {sum(further)} of {len(further)} of the printed one, where a "
        "new chunk "
        f"begins a new prompt; SmolLM2 evaluates {first.evaluated_tokens} tokens of a question after seven sentences, "
        f"then {second.evaluated_tokens} of the next"
    )


@row(81, "ID F1, Hits@4 and @10, BERTScore on its sets", "bench/paper_measures.py")
async def _(_: Bench) -> Outcome:
    assert f1("the blue Danube", "Danube") == 2 / 3 and f1("a river", "Danube") == 0
    assert rouge_l("a b", "a b") == 1 and bleu("a b c d e", "a b c d e") > 0.99
    return cannot(
        "its sets and models (from Pythia-0.16B on) are public, and no hub that holds them can be reached from where "
        "this was written. F1, ROUGE-L "
        "and BLEU are in bench/paper_measures.py; Hits of retrieved chunks and BERTScore, which needs a model of its "
        "own, are nowhere"
    )
