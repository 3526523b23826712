"""Rows 75 to 81: IDMS. See `papers/__main__.py`."""

from itertools import pairwise

import numpy as np

from bench.paper_measures import f1, hit
from bench.paper_row import Bench, Outcome, as_printed, cannot, differs, row
from bench.segments import agreement, strung_documents
from models.protocols import Embedder
from papers.idms.density import DensityModels, densities, enrich
from papers.idms.idms import Idms, IdmsOptions, Judge
from papers.idms.partition import Rule, cut_by_margins
from pipeline.document.page import Sentence
from tests.test_papers_idms_judge import TEXTS, Reader


def sentences(texts: list[str]) -> list[Sentence]:
    """Return texts as the sentences of a document."""
    return [
        Sentence(i + 1, text, i * 1000, i * 1000 + len(text), 0)
        for i, text in enumerate(texts)
    ]


@row(75, "ID Eq. 1, margins with the open chunk", "papers/idms/idms.py")
async def _(_: Bench) -> Outcome:
    reader = Reader()
    found = await Judge(reader, store=None, seconds=30).chunks(TEXTS)
    for gap, prefix in enumerate(reader.prefixes):
        start = max(start for start, _ in found if start <= gap)
        assert sum(text in prefix for text in TEXTS) == gap + 1 - start
    return as_printed(
        f"{len(reader.prefixes)} of {len(TEXTS) - 1} gaps are asked with the open chunk alone"
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
    printed, ours = (
        await error(bench.embedder, "running"),
        await error(bench.embedder, "partition"),
    )
    assert ours < printed
    return as_printed(
        f"100 of 100 as a literal loop, no bounds; Pk by cosines {printed:.3f}, of our partition {ours:.3f}"
    )


@row(77, "ID the lean to an option is taken off", "papers/idms/idms.py")
async def _(_: Bench) -> Outcome:
    margins = await Judge(Reader(), store=None, seconds=30).margins(TEXTS)
    assert np.allclose(np.abs(margins), 0.4)
    return differs(
        "a lean of .3 leaves margins of ±.4 (our addition, of the default rule)"
    )


CHUNKS = [
    ["It is so and it was so.", "That may be or may not be."],
    [
        "Niels Bohr met Ernest Solvay in Brussels.",
        "Marie Curie and Max Planck came from Paris.",
    ],
    ["The rain fell on the hills.", "It fell all day long."],
    ["Water ran down to the valley.", "The river rose by a metre."],
]


@row(78, "ID Eq. 2, density", "papers/idms/density.py")
async def _(bench: Bench) -> Outcome:
    printed = await densities(
        CHUNKS, DensityModels(bench.embedder, printed=True), language="en"
    )
    ours = await densities(CHUNKS, DensityModels(bench.embedder), language="en")
    assert printed[1] > printed[0] and ours[1] > ours[0]
    return as_printed(
        f"as printed with WINNOW_PAPERS=idms=running+density: {printed.max():.3f}; {ours.max():.3f} by ours"
    )


@row(79, "ID low density condensed, high supplemented", "papers/idms/density.py")
async def _(bench: Bench) -> Outcome:
    class Writer(Reader):
        """Writes what it is shown."""

        async def generate(
            self, messages: object, *, max_tokens: int, schema: object = None
        ) -> str:
            """Return a sentence that keeps nothing."""
            return "It is said."

    found = await densities(CHUNKS, DensityModels(bench.embedder), language="en")
    forms = await enrich(
        CHUNKS, found, Writer(), DensityModels(bench.embedder), language="en"
    )
    ways = {form.way for form in forms}
    assert "kept" in ways and "refused" in ways
    return differs(
        "by quartiles, since no threshold is printed; a form that loses names is refused"
    )


@row(80, "ID the KV cache is kept over a long text", "papers/idms/idms.py")
async def _(_: Bench) -> Outcome:
    reader = Reader()
    await Judge(reader, store=None, seconds=30).margins(TEXTS * 9)
    pairs = list(pairwise(reader.prefixes))
    on = sum(after.startswith(before) for before, after in pairs)
    assert on >= 0.8 * len(pairs)
    running = Reader()
    chunks = await Judge(running, store=None, seconds=30).chunks(TEXTS * 3)
    cut = len(chunks) - 1
    further = [b.startswith(a) for a, b in pairwise(running.prefixes)]
    assert sum(further) >= len(further) - cut
    return as_printed(
        f"{on} of {len(pairs)} prompts of the default rule go on from the one before, {sum(further)} of "
        f"{len(further)} of the printed one: a new chunk begins a new prompt"
    )


@row(81, "ID F1, Hits and BERTScore on its sets", "bench/paper_measures.py")
async def _(_: Bench) -> Outcome:
    assert f1("the blue Danube", "Danube") > 0.6 and hit(["the Danube"], ["Danube"])
    return cannot(
        "F1 and Hits are in bench/paper_measures.py; its sets and Qwen2.5 7B are not here"
    )
