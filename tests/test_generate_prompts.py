"""Prompts: every one a file with a header that shows the truth, and a version that keeps answers
apart."""

from collections.abc import Sequence
from pathlib import Path
from string import Template

import pytest

from cache.store import Store
from models.protocols import Said
from pipeline.messages import AskOptions, ask
from prompts import load
from tests.support import ROOT

FILES = sorted((ROOT / "prompts").glob("*.md"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_header_states_purpose_variables_and_source_as_they_are(file: Path) -> None:
    header, text = file.read_text(encoding="utf-8").split("\n---\n", 1)
    fields = dict(line.split(": ", 1) for line in header.splitlines())
    assert set(fields) == {"purpose", "variables", "source"}
    assert all(fields.values())
    variables = Template(text).get_identifiers()
    assert {name.strip() for name in fields["variables"].split(",")} == set(variables)
    filled = load(file.stem).fill(**{name: f"<{name}>" for name in variables})
    assert "$" not in filled
    assert all(f"<{name}>" in filled for name in variables)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_strangers_wrote_follows_a_word_that_says_so(file: Path) -> None:
    text = load(file.stem).text
    variables = set(Template(text).get_identifiers())
    foreign = {
        "text",
        "evidence",
        "candidates",
        "sentences",
        "context",
        "html",
        "request",
    } & variables
    if foreign and file.stem not in ("prune_html", "segment", "enriched"):
        # Trained or margin prompts are fixed by their paper; `enriched` and the extractor's carry
        # the frame's notice.
        assert "data" in text or "notice" in variables


def test_no_two_prompts_share_a_version() -> None:
    assert len({load(file.stem).version for file in FILES}) == len(FILES)


class Counting:
    """Counts its calls."""

    name = "counting"
    context_tokens = 1_000
    calls = 0

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the number of the call."""
        self.calls += 1
        return str(self.calls)


@pytest.mark.anyio
async def test_an_answer_to_another_version_of_a_prompt_is_not_taken_for_this_ones(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "store", size_limit=1_000_000, clock=lambda: 1_800_000_000.0)
    model, said = Counting(), [Said("user", "x")]
    reported = [
        await ask(model, said, AskOptions(9, 5.0, version), store=store)
        for version in ("a", "a", "b", "a")
    ]
    store.close()
    assert reported == ["1", "1", "2", "1"]
