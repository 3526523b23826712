"""Margins by a generator: P(yes) - P(no) that a sentence goes on with the text before it (IDMS Eq. 1).

The text so far is the prefix of one growing prompt, so that each sentence enters the model once as text and once as
question. A model leans to the option that it reads first; asking some gaps in both orders measures that, and it is
taken off. Not for: boundaries (`margins.py`).
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import anyio
import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from errors import ModelError
from models.protocols import Chooser, Generator, TreeScorer, chooser, tree_scorer
from pipeline.frame import one_line
from pipeline.messages import KEPT_SECONDS, Said, over_context
from pipeline.tokens import count_tokens
from pipeline.work import in_thread
from prompts import load

PROMPT: Final = "segment"
YES_FIRST: Final = ("Yes", "No")
CALIBRATED: Final = 8
"""Gaps a document that are asked in both orders; the lean is the mean of what the order changes."""
LONGEST: Final = 400
"""Characters of a sentence that the model is shown."""
WINDOW_SHARE: Final = 0.5
"""Part of the model's context that the text so far may fill before it is begun anew."""
BEGIN_WITH: Final = 3
"""Sentences that a new window begins with."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Margins of a document and what they cost."""

    margins: NDArray[np.float64]
    """How much sentences i and i+1 belong together, [n - 1], less the lean."""
    lean: float
    """What putting "Yes" first adds to a margin."""
    evaluated_tokens: int
    """Tokens that went through the model; 0 where it does not tell, or nothing was asked anew."""
    whole_tokens: int = 0
    """What a whole prompt for each gap, order and answer would have taken; 0 likewise."""


class Judge:
    """Asks a generator about gaps between sentences."""

    def __init__(self, generator: Generator, *, store: Store | None, seconds: float) -> None:
        """Ask `generator`, keep margins in `store`, and spend at most `seconds` from the first call on.

        Raises:
            ModelError: The generator can neither score paths nor weigh options.
        """
        self._scorer: TreeScorer | None = tree_scorer(generator)
        self._chooser: Chooser | None = chooser(generator)
        if self._scorer is None and self._chooser is None:
            raise ModelError(
                f"{generator.name} lists no probabilities, so it cannot judge boundaries.",
                hint="Set a GGUF generator (llama:FILE.gguf), or a server that lists log-probabilities.",
            )
        self.name = generator.name
        self._window = int(generator.context_tokens * WINDOW_SHARE)
        # A character a token at worst, two sentences and the prompt in half of the context.
        self._longest = min(LONGEST, generator.context_tokens // 4)
        self._store = store
        self._seconds = seconds
        self._until: float | None = None
        self._whole = 0
        self.trouble = ""
        """Why it did not find all boundaries; empty while it has."""

    @property
    def version(self) -> str:
        """Model and prompt: what the margins hang on besides the sentences."""
        return f"{self.name}:{load(PROMPT).version}"

    async def margins(self, texts: Sequence[str]) -> Judged:
        """Return the margins between the sentences `texts`, in reading order.

        Raises:
            ModelError: The model failed, or was not done in time.
        """
        if len(texts) < 2:
            return Judged(np.zeros(0), 0.0, 0)
        key = self._key(texts)
        kept = await in_thread(self._store.get_bytes, key) if self._store is not None else None
        if kept is not None and len(kept) == 8 * len(texts):
            values = np.frombuffer(kept, dtype=np.float64)
            return Judged(values[:-1].copy(), float(values[-1]), 0)
        judged: Judged | None = None
        self._until = self._until or anyio.current_time() + self._seconds
        with anyio.CancelScope(deadline=self._until):
            judged = await self._ask_all([one_line(text)[: self._longest] for text in texts])
        if judged is None:
            raise ModelError(
                f"{self.name} did not judge {len(texts) - 1} gaps in {self._seconds:.0f} s.",
                hint="Raise WINNOW_SECONDS, set a smaller generator, or use chunking sentences.",
            )
        if self._store is not None:
            raw = np.append(judged.margins, judged.lean).tobytes()
            await in_thread(self._store.set_bytes, key, raw, expire=KEPT_SECONDS)
        return judged

    async def _ask_all(self, texts: Sequence[str]) -> Judged:
        gaps = len(texts) - 1
        both = {int(gap) for gap in np.linspace(0, gaps - 1, min(CALIBRATED, gaps))}
        found = np.zeros(gaps)
        changed: list[float] = []
        evaluated, self._whole = 0, 0
        start, size = 0, 0
        for gap in range(gaps):
            size += count_tokens(texts[gap]) + 1
            if size > self._window and gap > start:
                start = max(start + 1, gap + 1 - BEGIN_WITH)
                size = sum(count_tokens(text) + 1 for text in texts[start : gap + 1])
            try:
                found[gap], cost = await self._ask("\n".join(texts[start : gap + 1]), texts[gap + 1], YES_FIRST)
            except ModelError as error:
                if not over_context(error) or start == gap:
                    raise
                # The model's tokenizer splits finer than ours: a smaller window, begun with the last sentence.
                self._window, start = size // 2, gap
                size = count_tokens(texts[gap]) + 1
                found[gap], cost = await self._ask(texts[gap], texts[gap + 1], YES_FIRST)
            so_far = "\n".join(texts[start : gap + 1])
            evaluated += cost
            if gap in both:
                other, cost = await self._ask(so_far, texts[gap + 1], YES_FIRST[::-1])
                changed.append((found[gap] - other) / 2)
                evaluated += cost
        lean = float(np.mean(changed))
        return Judged(found - lean, lean, evaluated, self._whole)

    async def _ask(self, so_far: str, following: str, order: tuple[str, str]) -> tuple[float, int]:
        """Return P(yes) - P(no), and the tokens evaluated for it."""
        prefix, question = split_prompt(so_far, following, order)
        if self._scorer is not None:
            paths = [f"{question} {option}" for option in YES_FIRST]
            scored = await self._scorer.score_tree(prefix, paths)
            yes, no = scored.log_probabilities
            # Both paths differ in their last token alone.
            self._whole += len(paths) * (scored.prefix_tokens + scored.tree_tokens - 1)
            return float(np.tanh((yes - no) / 2)), scored.evaluated_tokens
        if self._chooser is None:
            raise ModelError(f"{self.name} lists no probabilities any more.", hint="Ask again.")
        chances = await self._chooser.choose([Said("user", prefix + question)], list(YES_FIRST))
        return float(chances[0] - chances[1]), 0

    def _key(self, texts: Sequence[str]) -> str:
        raw = json.dumps([self.version, *texts]).encode()
        return f"margins:{hashlib.blake2b(raw, digest_size=20).hexdigest()}"


def split_prompt(so_far: str, following: str, order: tuple[str, str]) -> tuple[str, str]:
    """Return the prompt up to the end of the text so far, which the next gap's prompt goes on from, and the rest."""
    text = load(PROMPT).fill(text="\0", next=following, options=f"{order[0]} or {order[1]}")
    before, after = text.split("\0", 1)
    return before + so_far, after


def judge_of(generator: Generator | None, *, store: Store | None, seconds: float) -> Judge | None:
    """Return a judge where `generator` can be one, else None: the embeddings decide then."""
    if generator is None or (tree_scorer(generator) is None and chooser(generator) is None):
        return None
    return Judge(generator, store=store, seconds=seconds)
