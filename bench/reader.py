"""Measures what the reader brings: order of sentences, None, trust in the confidence,
and its cost.

    python -m bench.reader            all tables
    python -m bench.reader --check    a part of each set against the bars; exit code 1 naming each that falls short

Each case is judged by the naive way (BM25 and the embedder over chunks of 80 tokens),
by the core without the reader and with it; differences are paired, with 95 % of 2,000
resamples. Data: ../shared/data/evidence, the development part of ../shared/data/train,
and the development sites of the reader's own questions; none of it was trained on,
weights of the verdict were fitted on half of the first and on the last. Not for:
answers of tools (`bench/answers.py`)."""

import argparse
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import anyio
import numpy as np

from bench.answers import auc
from bench.evidence import DATA, read_cases
from bench.remembering import Remembering
from models.onnx import OnnxEmbedder, OnnxReader
from models.protocols import CrossEncoder, Embedder, Window, WindowReading
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats, PageUnits, standardise
from pipeline.reading.relevance import Blend, Relevance, Reread, score_texts
from pipeline.reading.verdict import judge
from pipeline.text.tokens import count_each
from train.reader.data import Corpus, load_own, load_public

SETS: Final = ("hotpot", "xquad_en", "chunkeval", "public", "own")
BUDGETS: Final = (128, 256)
CHUNK: Final = 80
"""Tokens of the naive way's chunks."""
RESAMPLES: Final = 2_000
BINS: Final = (0.0, 0.12, 0.3, 0.5, 0.65, 0.8, 1.0)
"""Of the reliability table."""
SMALL: Final = 50
"""Cases of each set in the quick form."""
BARS: Final = {
    "R@128 over the core without it": 0.02,
    "AUC of own questions over twins": 0.7,
    "AUC of own questions over twins above the best cosine": 0.1,
}
WINDOW_BAR: Final = 12
"""Processor milliseconds of a window, said beside the measured ones: a busy machine
takes more."""
Kind = Literal["answers", "twin", "away"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question on a page."""

    question: str
    page: PageUnits
    gold: frozenset[int]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Judged:
    """What the three ways make of one case."""

    kind: Kind
    naive: list[float]
    core: list[float]
    reader: list[float]
    """Share of the gold within each of `BUDGETS`, and F1 of the best two."""
    cosine: float
    confidence: float


def main() -> int:
    """Print the tables or check the bars; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="a part of each set, exit code 1 on a miss"
    )
    parser.add_argument(
        "--limit", type=int, default=250, help="cases of each set that answer"
    )
    wanted = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    measured = anyio.run(_measure, SMALL if wanted.check else wanted.limit)
    missed = [
        f"{bar}: {measured[bar]:.3f} < {floor}"
        for bar, floor in BARS.items()
        if measured[bar] < floor
    ]
    for line in missed if wanted.check else []:
        print(f"SHORT {line}")
    return 1 if wanted.check and missed else 0


async def _measure(limit: int) -> dict[str, float]:
    embedder, encoder = Remembering(OnnxEmbedder()), _Timed(OnnxReader())
    blend = Blend(embedder)
    judged: dict[str, list[Judged]] = {}
    for name in SETS:
        judged[name] = []
        for case in read_asked(name, limit):
            first = await blend.read(Question(case.question), [case.page])
            second = await Reread(_Known(first), encoder).read(
                Question(case.question), [case.page]
            )
            judged[name].append(await _judged(case, first, second, embedder))
    gain = _print_order(judged)
    _print_trust([one for name in ("own", "public") for one in judged[name]])
    twins = _print_none(judged)
    count = sum(map(len, judged.values()))
    each, cost = (
        encoder.tokens / encoder.windows,
        1000 * encoder.spent / encoder.windows,
    )
    print(
        f"\n{encoder.windows / count:.1f} windows of {each:.0f} tokens are read for each of "
        f"{count} questions,"
    )
    print(f"{cost:.1f} ms of processor time a window (bar {WINDOW_BAR})")
    return gain | twins


class _Timed:
    """A cross-encoder that counts what it costs, its tokens by our counter."""

    def __init__(self, encoder: CrossEncoder) -> None:
        self._encoder = encoder
        self.name = encoder.name
        self.windows, self.tokens, self.spent = 0, 0, 0.0

    def reads(self, text: str) -> bool:
        return self._encoder.reads(text)

    async def read(
        self, question: str, windows: Sequence[Window]
    ) -> list[WindowReading]:
        self.windows += len(windows)
        self.tokens += sum(
            count_each(
                [f"{question} {one.above} {' '.join(one.sentences)}" for one in windows]
            )
        )
        began = time.process_time()
        found = await self._encoder.read(question, windows)
        self.spent += time.process_time() - began
        return found


class _Known:
    """A reader that has its answer."""

    def __init__(self, relevance: Relevance) -> None:
        self._relevance = relevance

    async def read(
        self,
        question: Question,
        pages: Sequence[PageUnits],
        *,
        share: float = 1.0,
        of_long: int = 0,
    ) -> Relevance:
        return self._relevance


async def _judged(
    case: Asked, first: Relevance, second: Relevance, embedder: Embedder
) -> Judged:
    tokens = count_each([text.strip() for text in case.page.texts])
    naive = await _naive(case, tokens, embedder)
    by_naive, by_core, by_reader = (
        _shares(one, tokens, case.gold) for one in (naive, first.values, second.values)
    )
    cosines = second.cosines if second.cosines is not None else np.zeros(1)
    return Judged(
        case.kind,
        by_naive,
        by_core,
        by_reader,
        float(np.nanmax(cosines)),
        judge(Question(case.question), second).confidence,
    )


async def _naive(case: Asked, tokens: Sequence[int], embedder: Embedder) -> Floats:
    """Return the score of each unit's chunk: BM25 and cosine of chunks, both
    standardised."""
    owner = (np.cumsum(tokens) - np.asarray(tokens)) // CHUNK
    numbers = np.unique(owner, return_inverse=True)[1]
    chunks = [
        " ".join(np.asarray(case.page.texts, dtype=object)[numbers == n])
        for n in range(numbers.max() + 1)
    ]
    scores = standardise(
        await score_texts(chunks, Question(case.question), embedder=embedder)
    )
    return np.asarray(scores[numbers], dtype=np.float32)


def _shares(values: Floats, tokens: Sequence[int], gold: frozenset[int]) -> list[float]:
    """Return the share of the gold within each of `BUDGETS` tokens, best first, and F1
    of the best two."""
    if not gold:
        return []
    order = np.argsort(-values, kind="stable").tolist()
    used = np.cumsum([tokens[row] for row in order])
    found = [
        len(gold.intersection(order[: int((used <= most).sum())])) / len(gold)
        for most in BUDGETS
    ]
    return [*found, 2 * len(gold.intersection(order[:2])) / (len(gold) + 2)]


def read_asked(name: str, limit: int) -> list[Asked]:
    """Return `limit` answerable cases of a set, and its almost-answered and foreign
    ones beside them."""
    if name not in ("public", "own"):
        cases = read_cases(name, limit)
        others = [*cases[len(cases) // 2 :], *cases[: len(cases) // 2]]
        found = [Asked(case.request, case.page, case.gold, "answers") for case in cases]
        found += [
            Asked(case.request, case.without, frozenset(), "twin") for case in cases
        ]
        return found + [
            Asked(case.request, other.page, frozenset(), "away")
            for case, other in zip(cases, others, strict=True)
        ]
    corpus = load_public("dev") if name == "public" else load_own("dev")
    return _from_corpus(corpus, limit)


def _from_corpus(corpus: Corpus, limit: int) -> list[Asked]:
    drawn = random.Random(0).sample(corpus.questions, len(corpus.questions))
    pages = {
        name: PageUnits(text.sentences, text.above, "en")
        for name, text in corpus.texts.items()
        if any(text.sentences)
    }
    found: dict[Kind, list[Asked]] = defaultdict(list)
    for one in drawn:
        kind: Kind = "answers" if one.gold else "twin"
        if one.text in pages and len(found[kind]) < limit:
            found[kind].append(Asked(one.question, pages[one.text], one.gold, kind))
    answering = found["answers"]
    for case, other in pairwise([*answering, *answering[:1]]):
        if case.page is not other.page:
            found["away"].append(Asked(case.question, other.page, frozenset(), "away"))
    return [one for kind in found.values() for one in kind]


def _print_order(judged: dict[str, list[Judged]]) -> dict[str, float]:
    print(
        f"{'order':12}{'n':>5}   R@128 / R@256 / F1 of two: naive, core, core and reader"
    )
    pooled: list[list[float]] = []
    for name, cases in judged.items():
        answering = [one for one in cases if one.kind == "answers"]
        ways = [
            np.mean([getattr(one, way) for one in answering], axis=0)
            for way in ("naive", "core", "reader")
        ]
        print(
            f"{name:12}{len(answering):>5}   "
            + "   ".join(" / ".join(f"{v:.3f}" for v in way) for way in ways)
        )
        pooled += [np.subtract(one.reader, one.core).tolist() for one in answering]
    gains = np.array(pooled)
    draw = np.random.default_rng(0).integers(0, len(gains), (RESAMPLES, len(gains)))
    low, high = np.percentile(gains[draw].mean(axis=1), (2.5, 97.5), axis=0)
    for place, what in enumerate(("R@128", "R@256", "F1 of two")):
        print(
            f"all, reader over core: {what} {gains[:, place].mean():+.3f} [{low[place]:+.3f}, "
            f"{high[place]:+.3f}]"
        )
    return {"R@128 over the core without it": float(gains[:, 0].mean())}


def _print_none(judged: dict[str, list[Judged]]) -> dict[str, float]:
    print(
        f"\n{'None, AUC':12}{'n':>12}   over almost-answered (best cosine)   over other pages "
        f"(best cosine)"
    )
    measured: dict[str, float] = {}
    for name, cases in judged.items():
        of = {
            kind: [one for one in cases if one.kind == kind]
            for kind in ("answers", "twin", "away")
        }
        found = {
            (kind, score): auc(
                [getattr(o, score) for o in of["answers"]],
                [getattr(o, score) for o in of[kind]],
            )
            for kind in ("twin", "away")
            for score in ("confidence", "cosine")
        }
        shown = [
            f"{found[k, 'confidence']:.3f} ({found[k, 'cosine']:.3f})"
            for k in ("twin", "away")
        ]
        counts = "/".join(str(len(group)) for group in of.values())
        print(f"{name:12}{counts:>12}   {shown[0]:>25}   {shown[1]:>30}")
        if name == "own":
            twins = found["twin", "confidence"]
            measured["AUC of own questions over twins"] = twins
            measured["AUC of own questions over twins above the best cosine"] = (
                twins - found["twin", "cosine"]
            )
    return measured


def _print_trust(cases: Sequence[Judged]) -> None:
    """Print how often a confidence is right, over questions and their twins."""
    known = [one for one in cases if one.kind != "away"]
    print(f"\n{'confidence':14}{'n':>5}{'mean':>8}{'right':>8}")
    for low, high in pairwise(BINS):
        inside = [
            one
            for one in known
            if low <= one.confidence < high or one.confidence == high == 1
        ]
        if inside:
            right = np.mean([one.kind == "answers" for one in inside])
            mean = np.mean([one.confidence for one in inside])
            print(f"{low:.2f} to {high:.2f}  {len(inside):>5}{mean:>8.2f}{right:>8.2f}")


if __name__ == "__main__":
    sys.exit(main())
