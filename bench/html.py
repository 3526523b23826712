"""Cleaning and pruning of HTML, measured against peers in one run.

    PYTHONPATH=. python -m bench.html            the tables: speed, visible words, answers kept at a budget
    PYTHONPATH=. python -m bench.html --check    a fixed subset against pinned floors, below a minute; exits 1

Data: ../shared/data/pages and ../shared/data/html_qa, all of them development data. The pages whose name's MD5 ends in
6..9 (last decimal digit) are held aside: nothing was tuned on their questions, and the tables show them apart. Peers
(BeautifulSoup, htmlrag) are measured where they are installed. `recall` is the share of questions whose answer stands
in what is kept, `usable` the share where its row label and column header stand there too (tables).
"""

import argparse
import asyncio
import gzip
import hashlib
import importlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from models.onnx import OnnxEmbedder
from models.protocols import Embedder, TextKind, Vectors
from pipeline.documents import Document, Page
from pipeline.html.clean import clean
from pipeline.html.prune import Method, PruneOptions, prune
from pipeline.html.read import read_document
from pipeline.html.render import Form
from pipeline.html.tree import text_of
from pipeline.rank.bm25 import BM25
from pipeline.tokens import count_tokens, cut_to_tokens

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"
BUDGETS: Final = (256, 512, 1024, 2048)
CHUNK: Final = 400
"""Characters of the plain chunks, the strongest simple baseline of notes/htmlrag."""
RESAMPLES: Final = 1000
_WORD: Final = re.compile(r"\w+")
_SIGN: Final = re.compile(r"\w+|[^\w\s]")

# Floors of `--check`, on its fixed subset: a few points below what was measured there, so that only a real loss fails.
FLOORS: Final = {
    "visible words kept": 0.99,
    "recall at 256": 0.75,
    "recall at 512": 0.86,
    "usable tables at 512": 0.74,
    "speed against the bare parse": 0.10,
}


@dataclass(frozen=True, slots=True)
class Question:
    """One question on one page."""

    id: str
    set: str
    page: str
    text: str
    answers: tuple[str, ...]
    context: tuple[str, ...]

    @property
    def held(self) -> bool:
        """Whether its page was held aside from tuning."""
        return int(hashlib.md5(self.page.encode(), usedforsecurity=False).hexdigest(), 16) % 10 >= 6


Prune = Callable[[Question, int], str]


def main() -> int:
    """Print the tables, or check the floors; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="check the pinned floors on a fixed subset")
    parser.add_argument("--every", type=int, default=4, help="take every n-th page for speed and words")
    given = parser.parse_args()
    if not DATA.is_dir():
        print("not measured: ../shared/data is not beside this checkout")
        return 0
    if given.check:
        return check()
    print_cleaning(pages(given.every))
    print_answers(questions())
    return 0


def pages(every: int) -> dict[str, str]:
    """Return every n-th page's name and HTML."""
    return {path.name.removesuffix(".html.gz"): _html(path) for path in sorted((DATA / "pages").glob("*.gz"))[::every]}


def _html(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


def questions() -> list[Question]:
    """Return all questions."""
    rows = map(json.loads, (DATA / "html_qa" / "questions.jsonl").read_text("utf-8").splitlines())
    return [
        Question(r["id"], r["set"], r["page"], r["question"], tuple(r["answers"]), tuple(r["context"])) for r in rows
    ]


@lru_cache(maxsize=400)
def document(page: str) -> Document:
    """Return a page, read."""
    html = _html(DATA / "pages" / f"{page}.html.gz")
    return read_document(Page(f"https://{page}/", f"https://{page}/", "", html, "text/html"))


# Cleaning


def _soup() -> Callable[[str], object]:
    parse = importlib.import_module("bs4").BeautifulSoup
    return lambda html: parse(html, "lxml").get_text(" ")


def _htmlrag() -> Callable[[str], object]:
    work: Callable[[str], object] = importlib.import_module("htmlrag").clean_html
    return work


PEERS: Final = {"BeautifulSoup get_text (lxml)": _soup, "htmlrag.clean_html": _htmlrag}


def cleaners() -> dict[str, Callable[[str], object]]:
    """Return what is timed: the bare parse, ours, and the peers that are installed."""
    found: dict[str, Callable[[str], object]] = {
        "Lexbor, bare parse": LexborHTMLParser,
        "ours: clean": clean,
        "ours: read_document": lambda html: read_document(Page("u", "u", "", html, "text/html")),
    }
    for name, make in PEERS.items():
        try:
            found[name] = make()
        except ImportError as error:
            print(f"  {name:32} not installed ({error.name})")
    return found


def speed(work: Callable[[str], object], sources: Iterable[str]) -> float:
    """Return megabytes of UTF-8 a second of processor time."""
    size, begin = 0, time.process_time()
    for html in sources:
        size += len(html.encode("utf-8", "replace"))
        work(html)
    return size / 1e6 / (time.process_time() - begin)


def print_cleaning(sources: dict[str, str]) -> None:
    """Print speed and visible words."""
    print(f"Cleaning, {len(sources)} pages, {sum(map(len, sources.values())) / 1e6:.1f} M characters")
    found = cleaners()
    for name, work in found.items():
        print(f"  {name:32} {speed(work, sources.values()):7.1f} MB/s")
    shares = sorted(visible_share(html) for html in sources.values())
    print(f"  visible words kept: mean {np.mean(shares):.4f}, 5th percentile {shares[len(shares) // 20]:.3f}")


def visible_share(html: str) -> float:
    """Return the share of words a browser would show (by our list of hiding attributes) that cleaning keeps."""
    parser = LexborHTMLParser(html, scripting=True)
    parser.strip_tags(
        ["script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "video", "audio", "head"],
        recursive=True,
    )
    hiding = '[hidden],[aria-hidden="true"],[style*="display:none"],[style*="display: none"],dialog:not([open])'
    for node in parser.css(hiding):
        if node.tag not in {"html", "body"}:
            node.decompose()
    shown = Counter(_WORD.findall(parser.root.text(separator=" ").lower())) if parser.root else Counter()
    kept = Counter(_WORD.findall(text_of(clean(html)).lower()))
    return 1 - (shown - kept).total() / max(1, shown.total())


# Answers


def judged(question: Question, text: str) -> tuple[bool, bool]:
    """Return whether the answer stands in `text`, and whether what makes it usable stands there too."""
    line = _folded(text.replace("\\|", "|"))
    found = any(re.search(rf"(?<!\w){re.escape(_folded(answer))}(?!\w)", line) for answer in question.answers)
    return found, found and all(_folded(part) in line for part in question.context)


def _folded(text: str) -> str:
    return " ".join(_SIGN.findall(text.lower()))


def truncated(question: Question, budget: int) -> str:
    """Return the beginning of the cleaned HTML."""
    return cut_to_tokens(document(question.page).html, budget)


def chunks(question: Question, budget: int) -> str:
    """Return plain chunks of `CHUNK` characters, best by stemmed BM25, as many as fit, in the order of the page."""
    one = document(question.page)
    cut = _chunks(one.text)
    scores = BM25(cut, language=one.page.language or "en").scores(question.text)
    kept: list[int] = []
    for number in np.argsort(-scores, kind="stable"):
        if count_tokens("\n".join(cut[i] for i in sorted([*kept, int(number)]))) > budget:
            break
        kept.append(int(number))
    return "\n".join(cut[number] for number in sorted(kept))


def _chunks(text: str) -> list[str]:
    found: list[str] = []
    words: list[str] = []
    length = 0
    for word in text.split():
        if words and length + len(word) > CHUNK:
            found.append(" ".join(words))
            words, length = [], 0
        words.append(word)
        length += len(word) + 1
    return [*found, " ".join(words)] if words else found


def pruned(*, method: Method = "winnow", form: Form = "markdown", embedder: Embedder | None = None) -> Prune:
    """Return a pruner of ours."""

    def work(question: Question, budget: int) -> str:
        options = PruneOptions(max_tokens=budget, method=method, format=form)
        result = asyncio.run(prune([document(question.page)], question.text, options=options, embedder=embedder))
        assert result.tokens <= budget, f"{question.id}: {result.tokens} tokens in a budget of {budget}"
        return "\n".join(page.text for page in result.pages)

    return work


class Remembering:
    """An embedder that keeps its vectors in memory, since each question is asked at each budget and in each form."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[tuple[str, str], Vectors] = {}
        self.name = embedder.name
        self.dimension = embedder.dimension

    def reads(self, text: str) -> bool:
        """Whether the embedder behind knows the script of `text`."""
        return self._embedder.reads(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]; only new texts reach the model."""
        new = [text for text in dict.fromkeys(texts) if (kind, text) not in self._known]
        if new:
            vectors = await self._embedder.embed(new, kind=kind)
            self._known.update({(kind, text): vector for text, vector in zip(new, vectors, strict=True)})
        return np.stack([self._known[kind, text] for text in texts])


def print_answers(asked: Sequence[Question]) -> None:
    """Print recall (usable for tables) at each budget, on the pages tuned on and on those held aside."""
    embedder = Remembering(OnnxEmbedder())
    methods: dict[str, Prune] = {
        "truncated cleaned HTML": truncated,
        "plain chunks, BM25": chunks,
        "paper (Algorithm 2), BM25": pruned(method="paper"),
        "ours, BM25, html": pruned(form="html"),
        "ours, BM25, markdown": pruned(),
        "ours, with embedder, html": pruned(form="html", embedder=embedder),
        "ours, with embedder, markdown": pruned(embedder=embedder),
    }
    for held in (False, True):
        part = [question for question in asked if question.held == held]
        sizes = Counter(question.set for question in part)
        print(f"\n{'Held aside' if held else 'Tuned on'}: {len(part)} questions, {dict(sizes)}")
        print(f"  {'recall % ± half the 95 % interval':32} " + " ".join(f"{budget:>11}" for budget in BUDGETS))
        for name, work in methods.items():
            rows = [
                [(question.set, *judged(question, work(question, budget))) for question in part] for budget in BUDGETS
            ]
            print(f"  {name:32} " + " ".join(f"{_interval([found for _, found, _ in row]):>11}" for row in rows))
            for kind in sizes:
                cells = [_cell([(f, u) for k, f, u in row if k == kind], usable=kind == "table") for row in rows]
                print(f"    {kind:30} " + " ".join(f"{cell:>11}" for cell in cells), flush=True)


def _interval(found: Sequence[bool]) -> str:
    values = np.asarray(found, dtype=np.float64)
    drawn = np.random.default_rng(0).choice(values, (RESAMPLES, len(values))).mean(axis=1)
    half = (np.percentile(drawn, 97.5) - np.percentile(drawn, 2.5)) / 2
    return f"{100 * values.mean():.1f} ±{100 * half:.1f}"


def _cell(found: Sequence[tuple[bool, bool]], *, usable: bool) -> str:
    recall = 100 * np.mean([f for f, _ in found])
    return f"{recall:.1f} ({100 * np.mean([u for _, u in found]):.1f})" if usable else f"{recall:.1f}"


# The gate


def check() -> int:
    """Measure the fixed subset (every tenth page, every fourth question) and name each floor that falls short."""
    sources = pages(10)
    bare = speed(LexborHTMLParser, sources.values())
    asked = questions()[::4]
    work = pruned()
    at = {budget: [judged(question, work(question, budget)) for question in asked] for budget in (256, 512)}
    usable = [useful for question, (_, useful) in zip(asked, at[512], strict=True) if question.set == "table"]
    measured = {
        "visible words kept": float(np.median([visible_share(html) for html in sources.values()])),
        "recall at 256": float(np.mean([found for found, _ in at[256]])),
        "recall at 512": float(np.mean([found for found, _ in at[512]])),
        "usable tables at 512": float(np.mean(usable)),
        "speed against the bare parse": speed(clean, sources.values()) / bare,
    }
    short = 0
    for name, floor in FLOORS.items():
        holds = measured[name] >= floor
        short += not holds
        print(f"{'ok   ' if holds else 'SHORT'} {name}: {measured[name]:.3f} (floor {floor})")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
