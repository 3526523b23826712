"""The attack set, group by group as `python -m bench.attack` tries it, and the files that another
set left (../shared/data/field2/attack)."""

import random
from pathlib import Path

import pytest

import readers
from bench.attack import BROWSED, GROUPS
from bench.attack_faults import FAULTS, tried
from readers.secrets import holds_secret, is_secret
from tests.support.extras import need

SEED = 65
FULL = [
    pytest.param(name, marks=[pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(3_600)])
    for name in GROUPS
    if name != "faults"
]


@pytest.mark.parametrize("name", FULL)
def test_nothing_of_a_group_comes_through(name: str) -> None:
    if name == BROWSED:
        need("browser")
    group = GROUPS[name]
    outcomes = list(group.attack(random.Random(f"{SEED} {name}"), group.least))
    assert [what for what in outcomes if what] == []
    assert len(outcomes) >= max(1, group.least)


BY_THE_BENCH = {"a page that is too long"}
"""Each try takes both processors for half a minute: `python -m bench.attack_faults` is for it."""


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.anyio
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", sorted({*FAULTS} - BY_THE_BENCH))
async def test_a_fault_costs_what_it_breaks_a_hundred_times(name: str) -> None:
    outcomes = await tried(name, random.Random(f"{SEED} {name}"), 100)
    assert [what for what in outcomes if what] == []
    assert len(outcomes) == 100


FEW = [
    *(
        "a source without leaves",
        "a file that changes",
        "a truncated body",
        "a malformed embedding",
    ),
    *("a malformed ranking", "malformed words of a model", "a search service that fails"),
    *("rows that are poisoned", "a disk that is full", "a call that is cancelled"),
]


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("name", FEW)
async def test_a_fault_costs_what_it_breaks(name: str) -> None:
    assert [what for what in await tried(name, random.Random(f"{SEED} {name}"), 4) if what] == []


SHOWN = ("1871", "7:45")
"""What is seen in the files that say anything; hidden are other words."""
WITHHELD = {
    *("pw-semicolon.csv", "pw.xlsx", "har.har", "keepass.xml", "set.bat"),
    *("rclone.conf", "unseal.txt"),
}
SAYING_NOTHING = {
    *("deep.jsonl", "empty.rss", "frameset.html", "short-dialogue.ass", "xml-surrogate.xml"),
}
LEFT_OUT = {
    *("css-aspect.html", "css-devicewidth.html", "css-ns.html", "css-resolution.html"),
    *("docx-field_never_separate.docx", "pptx-noFill.pptx", "pptx-sz100.pptx"),
}
"""Files with a form of the table of SECURITY.md; of the others nothing is claimed."""


def test_the_other_set_loses_no_visible_text_and_shows_no_claimed_form(
    shared: Path,
) -> None:
    files = {path.name: path for path in (shared / "data" / "field2" / "attack").iterdir()}
    assert {*files} >= WITHHELD | SAYING_NOTHING | LEFT_OUT
    for name, path in files.items():
        document = readers.read(path.read_bytes(), name=name)
        words = "\n".join(" ".join([block.text, *block.cells]) for block in document.blocks)
        is_key = is_secret(path.read_bytes()) or holds_secret(document.page.html)
        assert is_key == (name in WITHHELD), name
        if name not in WITHHELD | SAYING_NOTHING:
            assert any(text in words for text in SHOWN), name
        assert name not in LEFT_OUT or "PWNED" not in words, name
