"""Rows 75 to 81: IDMS. See `papers/__main__.py`."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np

from bench.paper_measures import answering, bleu, f1, rouge_l, weights
from bench.paper_row import Bench, Outcome, as_printed, cannot, differs, row
from bench.paper_row import ours as no_section
from bench.segments import agreement, strung_documents
from models.protocols import (
    CONTEXT_TOKENS,
    Embedder,
    PathScores,
    Prompt,
    TreeScorer,
)
from papers.idms.density import DensityModels, densities, enrich
from papers.idms.idms import (
    TOGETHER,
    YES_NO,
    Idms,
    IdmsOptions,
    Judge,
    stretch_prompts,
)
from papers.idms.partition import SEGMENT_ITEMS, Rule, cut_by_margins
from pipeline.raptor.leaves import main_sentences, make_leaves
from pipeline.text.tokens import count_tokens
from pipeline.text.words import MAX_ENTITIES, find_entities
from readers.page import Sentence
from tests.support.pages import document
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
    # A long sentence, and a chunk that a context does not hold
    wide = Wide()
    long = f"The heron {'waits ' * 200}"
    await Judge(wide, store=None, seconds=30).chunks([TEXTS[0], long, TEXTS[1]])
    cut = long[:TOGETHER]
    assert cut in wide.prefixes[1] and long[: TOGETHER + 1] not in wide.prefixes[1]
    rising = Rising()
    await Judge(rising, store=None, seconds=30).chunks(LINES * 12)
    most = rising.context_tokens // 2
    opened = [prefix.partition("so far:\n")[2] for prefix in rising.prefixes]
    assert 0.9 * most < max(map(count_tokens, opened)) <= most
    assert opened[-1].splitlines()[-1] == LINES[-2]
    return differs(
        f"each of {asked} gaps is asked once with the open chunk alone, as printed; the chances are those of the two "
        f"answers alone, and at most {TOGETHER} characters of a sentence and half a context of a chunk are shown"
    )


class Wide(Reader):
    """Has the default context."""

    context_tokens = CONTEXT_TOKENS


class Rising(Reader):
    """Is surer of each further gap."""

    def _margin(self, asked: str) -> float:
        return 0.1 + len(self.prefixes) / 1_000


class Weighing(Reader):
    """Has a row of margins, and gives one a gap."""

    def __init__(self, row: Sequence[float]) -> None:
        super().__init__()
        self.row = row

    def _margin(self, asked: str) -> float:
        return self.row[len(self.prefixes) - 1]


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


@row(76, "ID θ is 0, then the mean of the margins", "papers/idms/idms.py")
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
        model = Weighing(margins.tolist())
        texts = [f"Sentence {number} is here." for number in range(41)]
        asked = await Judge(model, store=None, seconds=30).chunks(texts)
        assert asked == found
    # Margins that rise have no boundary; cosines in place of a model have the bound of a chunk
    rising = cut_by_margins(
        np.linspace(0.1, 1, 149), [1] * 150, rule="running", minimum=0, maximum=10**9
    )
    assert max(end - start for start, end in rising) == SEGMENT_ITEMS
    longest = await Judge(Rising(), store=None, seconds=30).chunks(LINES * 12)
    assert longest == [(0, 12 * len(LINES))]
    printed, ours = (
        await error(bench.embedder, "running"),
        await error(bench.embedder, "partition"),
    )
    assert ours < printed
    return as_printed(
        "with idms=running 100 of 100 rows of 40 margins, which a model gives in order, are cut as by a literal loop; "
        f"Pk by cosines in place of a model: of this rule {printed:.3f}, of our partition {ours:.3f}"
    )


@row(77, "ID – the lean to an option is taken off", "papers/idms/idms.py")
async def _(_: Bench) -> Outcome:
    margins = await Judge(Reader(), store=None, seconds=30).margins(TEXTS)
    assert np.allclose(np.abs(margins), 0.4)
    running = Reader()
    await Judge(running, store=None, seconds=30).chunks(TEXTS)
    assert len(running.prefixes) < 2 * (len(TEXTS) - 1)  # no second order is asked
    return no_section(
        "by the default rule a stub's lean of .3 to the answer offered first is gone: its margins are ±.4"
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


PEOPLE: Final = (
    "Anna Bert",
    "Carl Dorn",
    "Emil Falk",
    "Gerd Holm",
    "Inge Jahn",
    "Kurt Lang",
    "Mona Nils",
    "Olaf Pohl",
    "Rosa Sahl",
    "Tove Uhde",
    "Vera Wolf",
    "Yara Zorn",
    "Bodo Crux",
    "Dana Eder",
)
"""More than the entities of a chunk that count."""


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
    chunks = [
        *CHUNKS,
        ["Bo Ek sat.", "He ate."],
        [f"{', then '.join(PEOPLE)} went home.", "It was late."],
        ["Anna Berg sells fish.", "Prime numbers never end."],
    ]
    assert count_tokens(" ".join(chunks[-3])) < 10
    listed = find_entities(" ".join(chunks[-2]), language="en")
    assert len(listed) == MAX_ENTITIES < len(PEOPLE)
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
    unrated = DensityModels(bench.embedder, printed=True)
    ratings = [Rater.rating(text) for text in texts]
    assert np.allclose(found, ratings * await densities(chunks, unrated, language="en"))
    return differs(
        f"with idms=running+density Eq. 2 as of a literal loop over {len(chunks)} chunks, but that L is 10 at least, "
        f"entities, found by rule, are {MAX_ENTITIES} at most, and S is 1 where no model rates; α is of the nearest "
        "other chunk"
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
    page = document(f"<p>{' '.join(CHUNKS[2])}</p>")
    parts = main_sentences(page)
    (leaf,) = make_leaves(page, parts, [(0, len(parts))], number=0, before=Counter())
    leaf = leaf._replace(form=forms[2].text)
    assert leaf.embedded == forms[2].text
    assert leaf.shown == " ".join(CHUNKS[2])
    return differs(
        "low and high are a document's outer quartiles (no threshold is printed); a form is for the index and the "
        "chunk is shown, where the paper replaces it; an unfaithful form is refused"
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
    assert questions[1][0].startswith(questions[0][0])
    assert second.evaluated_tokens < first.evaluated_tokens / 2
    return differs(
        f"how is not printed; here SmolLM2 evaluates {first.evaluated_tokens} tokens of a question after seven "
        f"sentences, then {second.evaluated_tokens} of the next, whose prompt goes on from that one"
    )


@row(81, "ID F1, Hits@4 and @10, BERTScore on its sets", "bench/paper_measures.py")
async def _(_: Bench) -> Outcome:
    assert f1("the blue Danube", "Danube") == 2 / 3 and f1("a river", "Danube") == 0
    assert rouge_l("a b", "a b") == 1 and bleu("a b c d e", "a b c d e") > 0.99
    return cannot(
        "no hub that holds its sets and models could be reached from where this was written; of its measures F1, "
        "ROUGE-L and BLEU are in bench/paper_measures.py"
    )
