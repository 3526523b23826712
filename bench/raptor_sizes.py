"""What a tree costs as the text grows: processor seconds, memory, a question's time,
and how soon a cancel takes hold.

Every size is built in a process of its own, so that its peak is its own. The
reference's figures were measured on another machine and are printed for their order of
size alone. Not for: recall (`bench/raptor.py`)."""

import argparse
import json
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Final

import anyio
import numpy as np

from bench.longdoc import document_of, long_text
from bench.raptor_asked import Asked, answered
from bench.remembering import Remembering
from cache.store import open_stores
from models.onnx import OnnxEmbedder
from models.protocols import Embedder
from papers.raptor.build import build_tree
from papers.raptor.cluster import Layer, cluster
from papers.raptor.tree import NodeOptions, NodeTree
from pipeline.cached_models import CachedEmbedder
from pipeline.text.tokens import count_tokens

LENGTHS: Final = (5_000, 20_000, 50_000, 100_000, 250_000, 500_000, 963_000)
"""Tokens; the last is all text of `longdoc` but some 20,000, so that nothing is there
twice."""
REFERENCE_BUILD: Final = {
    5_000: 5.3,
    20_000: 17.8,
    80_000: 44.5,
    200_000: 164.0,
    500_000: 161.0,
}
"""Processor seconds of the paper's own code by tokens, without its embedding; above, it
was not run."""
REFERENCE_LAYER: Final = {250: 9.7, 1_000: 42.8, 4_000: 133.0, 8_000: 222.0}
"""Processor seconds of its clustering of one layer by leaves (UMAP, mixtures,
matching)."""
REFERENCE_PEAK: Final = {
    5_000: 903,
    20_000: 904,
    80_000: 924,
    200_000: 972,
    500_000: 1_374,
}
"""Its peak in MB."""
STORED: Final = 2 * 10**9
"""Most bytes of a cache folder."""
QUESTION: Final = "How is the infection passed on from animals to people?"
BUDGET: Final = 2_000
PIPELINE: Final = str(Path(__file__).resolve().parents[1] / "pipeline")
STOPS: Final = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.95)
"""Parts of a build's time after which it is cancelled."""


@dataclass(frozen=True, slots=True)
class Size:
    """What one build cost."""

    tokens: int
    leaves: int
    nodes: int
    embedding: float
    """Processor seconds in the embedder."""
    leaves_cut: float
    """Processor seconds until the last document was cut into leaves."""
    whole: float
    """Processor seconds of all of it."""
    peak: int
    """Peak of the process in MB, interpreter and embedder included."""
    query_ms: float
    """Processor milliseconds of a guided question, embedding left out; the least of
    five."""
    layers: dict[str, float]
    """Processor seconds to cluster the first n leaves once more, by n; the least of
    three."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What building and asking costs over all sizes."""

    exponent: float
    """Of the processor seconds by the tokens."""
    last: Size


def sizes(lengths: Sequence[int], *, words: bool, keep: Path | None = None) -> Cost:
    """Build each length in a process of its own and print a table.

    Args:
        lengths: Tokens.
        words: Leave the embedder out.
        keep: A cache folder that gets the vectors of the last length, so that recall
    need not embed the sets again."""
    print(
        f"\nbuild with {'words only' if words else 'the embedded MiniLM'}: processor seconds, MB "
        f"of the process"
    )
    print(
        "   tokens  leaves   nodes  embedding   cutting    tree   whole    MB  ms a query"
    )
    found: list[Size] = []
    for length in lengths:
        command = [
            sys.executable,
            "-m",
            "bench.raptor_sizes",
            str(length),
            *(["--words"] if words else []),
        ]
        if keep and length == lengths[-1]:
            command += ["--keep", str(keep)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  our own module
        size = Size(**json.loads(done.stdout))
        found.append(size)
        tree = size.whole - size.embedding - size.leaves_cut
        print(
            f"{size.tokens:9} {size.leaves:7} {size.nodes:7} {size.embedding:10.2f} "
            f"{size.leaves_cut:9.2f} {tree:7.2f} "
            f"{size.whole:7.2f} {size.peak:5} {size.query_ms:11.1f}",
            flush=True,
        )
    logs = np.log([[size.tokens, size.whole] for size in found])
    exponent = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    print(f"exponent {exponent:.2f}")
    return Cost(exponent, found[-1])


def show_reference(last: Size) -> None:
    """Print the reference's figures, and ours for clustering the same number of
    leaves."""
    print(
        "\nthe reference (other machine, without its embedding): tokens, seconds, peak MB"
    )
    print(
        "  "
        + "; ".join(
            f"{n:,} {REFERENCE_BUILD[n]} s {REFERENCE_PEAK[n]} MB"
            for n in REFERENCE_BUILD
        )
    )
    print(
        "clustering one layer, processor seconds: leaves, ours here, the reference's there, how "
        "many times as much"
    )
    for leaves, ours in last.layers.items():
        theirs = REFERENCE_LAYER[int(leaves)]
        print(f"  {int(leaves):6} {ours:8.3f} {theirs:8.1f} {theirs / ours:8.0f}")


async def slowest_stop(length: int) -> float:
    """Cancel a build of `length` tokens in one document at several moments; seconds
    until its thread has stopped."""
    text = "\n\n".join(document.text for document in long_text(length))
    documents = [document_of(text, "https://example.org/all")]
    options = NodeOptions()
    began = time.monotonic()
    await build_tree(documents, embedder=None, options=options, store=None)
    whole = time.monotonic() - began
    waits: list[float] = []
    for part in STOPS:
        with anyio.move_on_after(part * whole):
            await build_tree(documents, embedder=None, options=options, store=None)
        stopped = time.monotonic()
        while _at_work():
            await anyio.sleep(0.005)
        waits.append(time.monotonic() - stopped)
    reported = ", ".join(f"{wait:.2f}" for wait in waits)
    print(
        f"\na build of {length:,} tokens in one document ({whole:.0f} s), cancelled at {STOPS} of "
        f"its time:"
    )
    print(f"  its thread stopped after {reported} s")
    return max(waits)


def _at_work() -> bool:
    """Whether another thread is inside the pipeline's code."""
    for thread, top in sys._current_frames().items():
        frame: FrameType | None = top
        while frame is not None and thread != threading.get_ident():
            if frame.f_code.co_filename.startswith(PIPELINE):
                return True
            frame = frame.f_back
    return False


async def measured(length: int, embedder: Embedder | None, keep: str) -> Size:
    """Build `length` tokens of text once and return what it cost; `keep` as in `sizes`,
    "" for nowhere."""
    documents = long_text(length)
    tokens = sum(count_tokens(document.text) for document in documents)
    timed = Remembering(embedder, keeps=bool(keep)) if embedder else None
    cut = time.process_time()

    async def note(done: float, total: float | None, message: str) -> None:
        nonlocal cut
        if message.startswith("cut"):
            cut = time.process_time()

    start = time.process_time()
    tree = await build_tree(
        documents, embedder=timed, options=NodeOptions(), store=None, report=note
    )
    whole = time.process_time() - start
    peak = _peak()
    if timed and keep:
        await _kept(tree, timed, Path(keep))
    return Size(
        tokens=tokens,
        leaves=len(tree.leaves),
        nodes=len(tree.nodes),
        embedding=timed.seconds if timed else 0.0,
        leaves_cut=cut - start,
        whole=whole,
        peak=peak,
        query_ms=await _query_milliseconds(Asked(tree, documents, []), timed),
        layers={
            str(n): _layer_seconds(tree, n)
            for n in REFERENCE_LAYER
            if n <= len(tree.leaves)
        },
    )


async def _kept(tree: NodeTree, embedder: Embedder, folder: Path) -> None:
    stores = open_stores(folder, size_limit=STORED, clock=time.time)
    texts = [
        *(leaf.embedded for leaf in tree.leaves),
        *(node.text for node in tree.nodes if node.is_summary),
    ]
    await CachedEmbedder(embedder, stores.embeddings).embed(texts, kind="passage")
    stores.close()


def _layer_seconds(tree: NodeTree, leaves: int) -> float:
    tokens = [leaf.tokens for leaf in tree.leaves[:leaves]]
    layer = Layer(
        tree.vectors[:leaves].astype(np.float32), tokens, NodeOptions().window_tokens
    )
    spent: list[float] = []
    for _ in range(3):
        start = time.process_time()
        cluster(layer, "kmeans")
        spent.append(time.process_time() - start)
    return min(spent)


async def _query_milliseconds(one: Asked, embedder: Embedder | None) -> float:
    await answered(one, QUESTION, "guided", embedder, BUDGET)
    spent: list[float] = []
    for _ in range(5):
        start = time.process_time()
        await answered(one, QUESTION, "guided", embedder, BUDGET)
        spent.append(time.process_time() - start)
    return 1000 * min(spent)


def _peak() -> int:
    """MB at the peak; not `ru_maxrss` where that can be helped: a child starts with its
    parent's."""
    status = Path("/proc/self/status")
    if status.is_file() and (found := re.search(r"VmHWM:\s+(\d+)", status.read_text())):
        return int(found[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One size, as JSON.")
    parser.add_argument("length", type=int)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--keep", default="")
    asked = parser.parse_args()
    size = anyio.run(
        measured, asked.length, None if asked.words else OnnxEmbedder(), asked.keep
    )
    print(json.dumps(asdict(size)))
