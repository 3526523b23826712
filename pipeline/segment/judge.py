"""Margins by a generator: P(yes) - P(no) that a sentence goes on with the text before it (IDMS Eq. 1).

The text so far is the prefix of one growing prompt, so that each sentence enters the model once as text and once as
question. No gap's question hangs on another's answer, so those of many gaps are one token tree along the text, which
fills the model's batches. A model leans to the option that it reads first; asking some gaps in both orders measures
that, and it is taken off. Not for: boundaries (`margins.py`).
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import anyio
import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from errors import ContextExceeded, ModelError
from models.protocols import Chooser, Generator, TreeScorer, chooser, tree_scorer
from pipeline.messages import KEPT_SECONDS, Said
from pipeline.text.frame import one_line
from pipeline.text.tokens import count_tokens
from pipeline.work import in_thread
from prompts import load

PROMPT: Final = "segment"
OPTIONS: Final = ("Yes", "No")
ORDERS: Final = (OPTIONS, OPTIONS[::-1])
Question: TypeAlias = tuple[int, tuple[str, str]]
"""A gap, and the order in which the options are offered."""
CALIBRATED: Final = 8
"""Gaps a document that are asked in both orders; the lean is the mean of what the order changes."""
LONGEST: Final = 400
"""Characters of a sentence that the model is shown."""
WINDOW_SHARE: Final = 0.5
"""Part of the model's context that the text so far may fill before it is begun anew."""
BEGIN_WITH: Final = 3
"""Sentences that a new window begins with."""
TOGETHER: Final = 400
"""Tokens of the questions that are asked at once, with the text between them, so that a batch of 512 holds them: 117
gaps take 38 batches of SmolLM2 (234 gap by gap) and as many tokens; from 500 on batches are split, tokens repeated."""
QUESTION: Final = 26
"""Tokens of a question beside its sentence; the other order shares all but its end."""


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


@dataclass(slots=True)
class _Found:
    """What was answered so far."""

    margins: NDArray[np.float64]
    """With "Yes" first, [n - 1]."""
    changed: list[float] = field(default_factory=list)
    """Half of what the other order took off a margin, of each gap that was asked in both."""
    evaluated: int = 0
    whole: int = 0


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
        self._together = TOGETHER if self._scorer is not None else 0
        self._store = store
        self._seconds = seconds
        self._until: float | None = None
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
        judged: Judged | None = None
        self._until = self._until or anyio.current_time() + self._seconds
        with anyio.CancelScope(deadline=self._until):
            judged = await self._ask_all([one_line(text)[: self._longest] for text in texts])
        if judged is None:
            raise ModelError(
                f"{self.name.partition(':')[0]} judged only part of {len(texts) - 1} gaps in {self._seconds:.0f} s.",
                hint="Ask again: what it judged is kept." if self._store is not None else "Raise WINNOW_SECONDS.",
            )
        return judged

    async def _ask_all(self, texts: Sequence[str]) -> Judged:
        gaps = len(texts) - 1
        both = {int(gap) for gap in np.linspace(0, gaps - 1, min(CALIBRATED, gaps))}
        sizes = [count_tokens(text) + 1 for text in texts]
        found = _Found(np.zeros(gaps))
        start = gap = 0
        while gap < gaps:
            if sum(sizes[start : gap + 1]) > self._window and gap > start:
                start = max(start + 1, gap + 1 - BEGIN_WITH)
            end = self._end_of_stretch(sizes, start, gap)
            asked = [(at, order) for at in range(gap, end) for order in ORDERS[: 1 + (at in both)]]
            try:
                await self._ask(stretch_prompts(texts, start, asked), asked, found)
            except ContextExceeded:
                # The model's tokenizer splits finer than ours: fewer gaps at once, then a smaller window.
                if end - gap > 1:
                    self._together //= 2
                elif gap > start:
                    self._window //= 2
                else:
                    raise
            else:
                gap = end
        lean = float(np.mean(found.changed))
        return Judged(found.margins - lean, lean, found.evaluated, found.whole)

    def _end_of_stretch(self, sizes: Sequence[int], start: int, gap: int) -> int:
        """Return the end of the gaps from `gap` on that are asked at once, with the text from `start` on."""
        shown, asked = sum(sizes[start : gap + 1]), sizes[gap + 1] + QUESTION
        for end in range(gap + 1, len(sizes) - 1):
            shown += sizes[end]
            asked += sizes[end] + sizes[end + 1] + QUESTION
            if asked > self._together or shown > self._window:
                return end
        return len(sizes) - 1

    async def _ask(self, prompts: tuple[str, list[str]], asked: Sequence[Question], found: _Found) -> None:
        """Put down P(yes) - P(no) of the questions `asked`, and the tokens evaluated for it."""
        prefix, questions = prompts
        key = self._key(prefix, questions)
        kept = await in_thread(self._store.get_bytes, key) if self._store is not None else None
        if kept is not None and len(kept) == 8 * len(questions):
            answers = np.frombuffer(kept, dtype=np.float64)
        else:
            answers = await self._answers(prefix, questions, found)
            if self._store is not None:
                # At once, so that a call that is cut short leaves to the next what it found.
                await in_thread(self._store.set_bytes, key, answers.tobytes(), expire=KEPT_SECONDS)
        for (gap, order), answer in zip(asked, answers.tolist(), strict=True):
            if order == OPTIONS:
                found.margins[gap] = answer
            else:
                found.changed.append((found.margins[gap] - answer) / 2)

    async def _answers(self, prefix: str, questions: Sequence[str], found: _Found) -> NDArray[np.float64]:
        """Return P(yes) - P(no) of each question [n].

        Probabilities are those of the two answers alone, where they part: a vocabulary may spell them in pieces.
        """
        if self._scorer is not None:
            paths = [f"{question} {option}" for question in questions for option in OPTIONS]
            scored = await self._scorer.score_tree(prefix, paths, among_siblings=True)
            yes, no = scored.log_probabilities.reshape(-1, 2).T
            found.evaluated += scored.evaluated_tokens
            found.whole += scored.whole_tokens
            answers: NDArray[np.float64] = np.tanh((yes - no) / 2)
            return answers
        if self._chooser is None:
            raise ModelError(f"{self.name} lists no probabilities any more.", hint="Ask again.")
        chosen = [
            await self._chooser.choose([Said("user", prefix + question)], list(OPTIONS)) for question in questions
        ]
        return np.array([chances[0] - chances[1] for chances in chosen], dtype=np.float64)

    def _key(self, prefix: str, questions: Sequence[str]) -> str:
        raw = json.dumps([self.version, prefix, *questions]).encode()
        return f"margins:{hashlib.blake2b(raw, digest_size=20).hexdigest()}"


def stretch_prompts(texts: Sequence[str], start: int, asked: Sequence[Question]) -> tuple[str, list[str]]:
    """Return the prompt from sentence `start` up to the first gap asked about, and how it goes on to each question."""
    first = asked[0][0]
    before, _ = split_prompt("\n".join(texts[start : first + 1]), "", OPTIONS)
    questions = []
    for gap, order in asked:
        _, question = split_prompt("", texts[gap + 1], order)
        questions.append("".join(f"\n{text}" for text in texts[first + 1 : gap + 1]) + question)
    return before, questions


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
