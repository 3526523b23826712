"""A build that is killed goes on where it was: nothing is summarised or embedded twice."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from models.protocols import ANSWERS_AT_ONCE
from tests.support import ROOT

pytestmark = pytest.mark.slow

BUILD = """
import re, sys
from pathlib import Path
import anyio
from cache.store import open_stores
from models.onnx import OnnxEmbedder
from pipeline.cached_models import CachedEmbedder
from papers.raptor.build import build_tree
from papers.raptor.summarise import Writer
from papers.raptor.tree import NodeOptions
from tests.support.raptor_pages import Author, Counting, chapters

folder, stuck_at = Path(sys.argv[1]), int(sys.argv[2])

class Slow(Author):
    async def generate(self, messages, *, max_tokens, schema=None):
        with open(folder / "asked", "a", encoding="utf-8") as log:
            log.write(repr(messages[-1].content) + "\\n")
        if len(self.asked) == stuck_at:
            print("stuck", flush=True)
            await anyio.sleep_forever()
        await super().generate(messages, max_tokens=max_tokens, schema=schema)
        # A sentence of the passages, which the check of statements keeps.
        return re.search("The [^.]* as record [a-z]+ [0-9]+ says[.]", messages[-1].content)[0]

async def main():
    stores = open_stores(folder / "cache", size_limit=10**8)
    counting = Counting(OnnxEmbedder())
    tree = await build_tree(
        [chapters(28, "a"), chapters(25, "b")], embedder=CachedEmbedder(counting, stores.embeddings),
        options=NodeOptions(), store=stores.trees, writer=Writer(Slow("The record talks."), patience=2.0),
    )
    print(tree.id, sum(node.is_summary for node in tree.nodes), len(tree.leaves), len(counting.texts))
    stores.close()

anyio.run(main)
"""


def started(folder: Path, stuck_at: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILD, str(folder), str(stuck_at)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("stuck_at", [1, 7])
def test_a_build_that_was_killed_is_resumed_and_summarises_nothing_twice(
    tmp_path: Path, stuck_at: int
) -> None:
    first = started(tmp_path, stuck_at)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "stuck\n", "the first build ended early"
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    before = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    # Before the signal comes, each of those that ask at once may have met the same end.
    assert stuck_at < len(before) <= stuck_at + ANSWERS_AT_ONCE
    second = started(tmp_path, -1)
    out, _ = second.communicate(timeout=100)
    assert second.returncode == 0
    _, summaries, leaves, embedded = out.split()
    asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    # Only the summaries that were under way when the process died are asked for again.
    assert int(summaries) < len(asked) <= int(summaries) + ANSWERS_AT_ONCE
    assert asked.count(before[-1]) == 2
    assert len(set(asked)) == int(summaries)
    # All leaves had their vectors: the second process embedded summaries alone.
    assert int(embedded) < int(leaves)
    third = started(tmp_path, -1)
    again, _ = third.communicate(timeout=100)
    assert again.split()[:3] == out.split()[:3]
    assert again.split()[3] == "0"
    assert len((tmp_path / "asked").read_text(encoding="utf-8").splitlines()) == len(asked)


def test_two_processes_that_build_one_tree_write_each_summary_once(tmp_path: Path) -> None:
    both = [started(tmp_path, -1) for _ in range(2)]
    reported = [one.communicate(timeout=200)[0].split() for one in both]
    assert reported[0][:3] == reported[1][:3]
    summaries = int(reported[0][1])
    asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert len(asked) == len(set(asked)) == summaries
