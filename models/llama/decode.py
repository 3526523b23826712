"""Answers, choices and path scores through llama.cpp: calls side by side over one
context with a shared cache.

Runs in a model's own process. Answers that are written at the same time share batches.
A prefix is evaluated once, and the tree of the paths after it goes through the model as
one batch of many sequences over the prefix's cells. Whole sequences are forgotten,
never parts: models with a state cannot do that. Not for: embeddings
(`models/llama/encode.py`), trees as such (`models/llama/token_tree.py`)."""

import json
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

import numpy as np
from numpy.typing import NDArray

from errors import ContextExceeded, ModelError
from models.llama.native import Code, Grammar, Native, TokenRow, schema_grammar
from models.llama.token_tree import TokenBatch, TokenTree, grow, parts, read
from models.pipe import Fields, Frame, refusal
from models.protocols import ANSWERS_AT_ONCE
from models.tuning import Tuning

GUESSED_AFTER: Final = 3
"""Tokens of the n-gram that prompt lookup searches for (Saxena 2023)."""
UNLIKELY: Final = np.float32(-1e30)
"""Logit of a token that sampling excludes; a grammar may still force it."""
SHARED_PREFIX_TOKENS: Final = 32
"""Minimum length of a shared prefix worth caching; chat templates share about 20
tokens."""


class _Kept:
    """Tokens in a sequence of their own."""

    def __init__(self, native: Native, number: int) -> None:
        """Keep them in sequence `number`, which nothing else uses."""
        self._native = native
        self._number = number
        self.let_go()

    @property
    def cells(self) -> int:
        return len(self._tokens)

    def let_go(self) -> None:
        self._native.forget([self._number])
        self._tokens: list[int] = []


class SharedOpening(_Kept):
    """Prefix cache for answers: instructions that prompts share are evaluated once.

    When a prompt shares a prefix with the one before, that prefix is kept; later
    prompts continue from it. Whole sequences only, so models with a state can do it
    too.
    """

    _last: Sequence[int] = ()
    _ready = False
    _maker = -1

    def begin(self, prompt: Sequence[int], slot: int) -> int:
        """Return how many tokens of `prompt` sequence `slot` holds now; it evaluates
        the rest.

        If `prompt` shares a new prefix with the last one, the prefix is kept for later
        prompts after `slot` evaluated it.
        """
        last, self._last = self._last, list(prompt)
        if (
            self._ready
            and len(prompt) > len(self._tokens)
            and list(prompt[: len(self._tokens)]) == self._tokens
        ):
            self._native.copy(self._number, [slot])
            return len(self._tokens)
        if self._maker >= 0:
            return 0
        same = shared_tokens(last, prompt[:-1])
        if same >= SHARED_PREFIX_TOKENS:
            self.let_go()
            self._tokens, self._maker = list(prompt[:same]), slot
        return 0

    def stop(self, slot: int, position: int, count: int) -> int:
        """Return how many of `count` tokens of `slot` may be evaluated at once: the one
        that makes it stops at its end, for no model that keeps a state can go back
        there."""
        left = len(self._tokens) - position
        return min(count, left) if slot == self._maker and left > 0 else count

    def reached(self, slot: int, position: int) -> None:
        """Take note that `slot` has evaluated all tokens before `position`; the
        beginning's are kept when whole."""
        if slot == self._maker and position >= len(self._tokens):
            self._native.copy(slot, [self._number])
            self._ready, self._maker = True, -1

    def left(self, slot: int) -> None:
        """Take note that `slot` is given up; a beginning that it was making goes with
        it."""
        if slot == self._maker:
            self.let_go()

    def let_go(self) -> None:
        """Clear it."""
        super().let_go()
        self._ready, self._maker = False, -1


class Prefix(_Kept):
    """Prefix cache for scores: the last prompt and path.

    A prompt that extends another often differs in its last token (many vocabularies
    have a token for period plus newline). So tokens from the first difference on are
    removed; models with a recurrent state cannot do that, and keep the prefix whole or
    not at all.
    """

    logits: NDArray[np.float32] | None = None
    """Those after the prompt [vocabulary], None before `read`."""
    _read_at = 0

    def begin(self, prompt: Sequence[int]) -> int:
        """Return how many tokens of `prompt` are there now, all of them only where
        `logits` are theirs too.

        If the rest of the last prompt cannot be removed alone, all of it is dropped: 0.
        """
        same = shared_tokens(self._tokens, prompt)
        known = self.logits is not None and same == self._read_at == len(prompt)
        keep = same if known else min(same, len(prompt) - 1)
        if keep < len(self._tokens) and not (
            keep and self._native.cut(self._number, keep)
        ):
            self.let_go()
            return 0
        del self._tokens[keep:]
        if not known:
            self.logits = None
        return keep

    def reach(self, tokens: Sequence[int]) -> None:
        """Take note that the sequence goes on with `tokens`."""
        self._tokens.extend(tokens)

    def read(self, logits: NDArray[np.float32]) -> None:
        """Keep the logits [vocabulary] after all that is there: the prompt is whole."""
        self._read_at, self.logits = len(self._tokens), logits.copy()

    def follow(self, sequence: int, tokens: Sequence[int]) -> None:
        """Keep the path `tokens` of `sequence` too, which began as a copy of this one:
        the next prompt may go that way.

        Not with a model that keeps a state: it could not go back to the prompt.
        """
        if not self._native.keeps_state:
            self._native.copy(sequence, [self._number])
            self._tokens.extend(tokens)

    def settle(self) -> None:
        """Remove tokens that an aborted batch may have added after the known ones."""
        if not (self._tokens and self._native.cut(self._number, len(self._tokens))):
            self.let_go()

    def let_go(self) -> None:
        """Clear it."""
        super().let_go()
        self._read_at = 0
        self.logits = None


def shared_tokens(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two lists have in common from their beginning on."""
    return sum(
        1
        for _ in takewhile(
            lambda pair: pair[0] == pair[1], zip(one, other, strict=False)
        )
    )


SLOTS: Final = ANSWERS_AT_ONCE
"""Sequences of answers come first, then the prefix's, the opening's, and those of the
paths."""
PREFIX_SLOT: Final = SLOTS
OPENING_SLOT: Final = SLOTS + 1
FIRST_PATH: Final = SLOTS + 2
MOST_LOGITS: Final = 64_000_000
"""Logits of one batch (256 MB): 420 rows of a vocabulary of 152 000."""
BATCH_SECONDS: Final = 0.15
"""Seconds that a batch of several calls should take, so that a cancelled one of them is
left soon."""
FEWEST_BATCH_TOKENS: Final = 16
"""Tokens of a batch, however slow the model."""


@dataclass(slots=True)
class _Writing:
    """An answer that is being written."""

    call: int
    tokens: list[int]
    """Tokens of the prompt that are not yet evaluated, then the last one written."""
    left: int
    """Most tokens to write."""
    cells: int
    grammar: Grammar | None
    slot: int = -1
    position: int = 0
    text: bytearray = field(default_factory=bytearray)
    written: int = 0
    drawn: np.random.Generator | None = None
    """Where the sampling's chance comes from; None where the likeliest token is
    taken."""
    guesses: "Lookup | None" = None


@dataclass(slots=True)
class _Scoring:
    """Paths that are being scored."""

    call: int
    prefix: list[int]
    tree: TokenTree
    among_siblings: bool
    normalised: bool
    """Whether the scores become probabilities of a choice among the paths."""
    rows: int
    cells: int
    evaluated: int = 0


class Lookup:
    """Guesses what a text goes on with by what followed its last tokens before."""

    def __init__(self, tokens: Sequence[int], most: int) -> None:
        """Begin with the `tokens` of a prompt; guess at most `most` at a time."""
        self._all: list[int] = []
        self._ends: dict[tuple[int, ...], int] = {}
        self._most = most
        for token in tokens:
            self.add(token)

    def add(self, token: int) -> None:
        """Take note of the next token."""
        if len(self._all) >= GUESSED_AFTER:
            self._ends[tuple(self._all[-GUESSED_AFTER:])] = len(self._all)
        self._all.append(token)

    def guess(self) -> list[int]:
        """Return the tokens that followed an earlier occurrence of the last n-gram, or
        []."""
        at = self._ends.get(tuple(self._all[-GUESSED_AFTER:]))
        return self._all[at : at + self._most] if at is not None else []


class Decoder:
    """An `Engine` for generators."""

    def __init__(self, native: Native) -> None:
        """Take a loaded model."""
        self._native = native
        self.facts: Fields = native.facts
        self.counters = native.counters
        self._queue: deque[_Writing | _Scoring] = deque()
        self._writing: list[_Writing] = []
        self._scoring: _Scoring | None = None
        self._work: Iterator[None] | None = None
        self._prefix = Prefix(native, PREFIX_SLOT)
        self._opening = SharedOpening(native, OPENING_SLOT)
        self._ready: list[tuple[int, Frame]] = []
        self._pace = 0.0
        """Tokens a second of the last batch."""
        self._most_logits = max(
            1, min(native.plan.batch, MOST_LOGITS // native.n_vocabulary)
        )

    @property
    def busy(self) -> bool:
        """Whether a call waits for `step`."""
        return bool(self._queue or self._writing or self._scoring or self._ready)

    def accept(self, call: int, frame: Frame) -> None:
        """Take in `generate`, `choose` or `score_tree`.

        Raises `ContextExceeded` for a prompt or path that is too long, `ModelError` for
        another request that it refuses: equal options, an empty path, a bad grammar.
        """
        doing = frame.fields["do"]
        request = json.loads(frame.blob)
        tokens = self._prompt(request["prompt"])
        if doing == "generate":
            self._queue.append(self._written(call, tokens, request))
        else:
            self._queue.append(
                self._scored(call, tokens, request, choosing=doing == "choose")
            )

    def drop(self, call: int) -> None:
        """Forget a call and empty its sequences."""
        self._queue = deque(waiting for waiting in self._queue if waiting.call != call)
        for writing in [found for found in self._writing if found.call == call]:
            self._end(writing)
        if self._scoring is not None and self._scoring.call == call:
            self._leave_scoring(broken=True)

    def step(self) -> list[tuple[int, Frame]]:
        """Compute one batch of the answers and one of the scores; return what is
        done."""
        self._admit()
        if self._writing:
            self._write()
        if self._scoring is not None:
            self._score()
        done, self._ready = self._ready, []
        return done

    # --- taking in ---

    def _prompt(self, prompt: str | list[dict[str, str]]) -> list[int]:
        tokens = (
            self._native.text(prompt)
            if isinstance(prompt, str)
            else self._native.prompt(prompt)
        )
        if not tokens:
            tokens = [max(self._native.edges[0], 0)]
        if len(tokens) >= self._native.n_context:
            raise ContextExceeded(
                f"{self._native.path} cannot take this prompt of {len(tokens)} tokens.",
                hint=f"Its context is {self._native.n_context} tokens: shorten the input.",
            )
        return tokens

    def _written(self, call: int, tokens: list[int], request: Fields) -> _Writing:
        schema, text = request["schema"], request["grammar"]
        if schema is not None:
            text = schema_grammar(json.dumps(schema))
        left = min(
            int(str(request["max_tokens"])), self._native.n_context - len(tokens)
        )
        if left < 1:
            raise ModelError(
                "An answer of 0 tokens was requested.", hint="Allow at least one."
            )
        grammar = Grammar(self._native, str(text)) if text is not None else None
        tuning = self._native.plan.tuning
        ahead = 0 if self._native.keeps_state else tuning.speculate
        return _Writing(
            call,
            tokens,
            left,
            len(tokens) + left + ahead,
            grammar,
            drawn=np.random.default_rng(tuning.seed) if tuning.temperature else None,
            guesses=Lookup(tokens, ahead) if ahead else None,
        )

    def _scored(
        self, call: int, prefix: list[int], request: Fields, *, choosing: bool
    ) -> _Scoring:
        texts: list[str] = request["texts"]  # type: ignore[assignment]  # JSON that our own side wrote
        paths = [self._native.continuation(text) for text in texts]
        if not all(paths):
            raise ModelError(
                "An empty text cannot be scored.",
                hint="Leave empty texts out.",
            )
        if choosing:
            paths = self._disjoint(paths)
        tree = grow(paths)
        among_siblings = bool(request.get("among_siblings"))
        weighed = tree.forks if among_siblings else tree.size
        rows = (
            self._native.plan.batch
            if weighed < self._most_logits
            else self._most_logits
        )
        inner = max(len(path) for path in paths) - 1
        if inner > rows or len(prefix) + inner > self._native.n_context:
            raise ContextExceeded(
                (
                    f"A text of {inner + 1} tokens after a prompt of "
                    f"{len(prefix)} tokens is longer than {self._native.path} "
                    "allows."
                ),
                hint=(
                    f"Its context is {self._native.n_context} tokens; a text may "
                    f"have at most {rows}."
                ),
            )
        most = tree.apart if self._native.keeps_state else tree.size
        cells = min(self._native.n_context, len(prefix) + min(rows, most))
        return _Scoring(call, prefix, tree, among_siblings, choosing, rows, cells)

    def _disjoint(self, options: list[list[int]]) -> list[list[int]]:
        """Return the options so that none is the beginning of another: such a one gets
        the end of the answer.

        Raises `ModelError` for two equal options. Without an end token they stay as
        they are.
        """
        known = [tuple(option) for option in options]
        if len(set(known)) < len(known):
            raise ModelError(
                "Two options are the same tokens to the model.",
                hint="Use different texts.",
            )
        beginnings = {
            option[:length] for option in known for length in range(1, len(option))
        }
        end = self._native.end_of_turn
        return [
            [*option, end] if tuple(option) in beginnings and end >= 0 else option
            for option in options
        ]

    def _admit(self) -> None:
        """Start waiting calls in their order, as long as sequences and cells are left.

        The first call that does not fit holds up those after it.
        """
        while self._queue:
            job = self._queue[0]
            taken = sum(writing.cells for writing in self._writing)
            taken += self._scoring.cells if self._scoring is not None else 0
            if taken + job.cells > self._native.n_context:
                return
            if isinstance(job, _Scoring):
                if self._scoring is not None:
                    return
                # Free the last prompt's surplus cells on admission: until the first batch the
                # context would look full.
                begin = self._prefix.begin(job.prefix)
                self._scoring, self._work = job, self._evaluate(job, begin)
            else:
                free = set(range(SLOTS)) - {writing.slot for writing in self._writing}
                if not free:
                    return
                job.slot = min(free)
                job.position = self._opening.begin(job.tokens, job.slot)
                del job.tokens[: job.position]
                self._writing.append(job)
            self._queue.popleft()
            idle = self._prefix.cells if self._scoring is None else 0
            if taken + job.cells + idle + self._opening.cells > self._native.n_context:
                self._prefix.let_go()
                self._opening.let_go()

    # --- answers ---

    def _batch(self) -> tuple[list[TokenRow], list[tuple[_Writing, int]]]:
        """Return the rows of one batch, and for each answer that has some the row after
        which it goes on, -1 where its prompt does not end in this batch."""
        rows: list[TokenRow] = []
        ends: list[tuple[_Writing, int]] = []
        most = self._chunk()
        for writing in sorted(self._writing, key=lambda found: len(found.tokens)):
            fitting = writing.tokens[
                : self._opening.stop(
                    writing.slot, writing.position, max(0, most - len(rows))
                )
            ]
            if not fitting:
                continue
            if writing.written:
                # guesses beyond the batch size are dropped
                writing.tokens = list(fitting)
            whole = len(fitting) == len(writing.tokens)
            for offset, token in enumerate(fitting):
                # guessed tokens follow the first one; each is verified
                wanted = whole and (offset == len(fitting) - 1 or writing.written > 0)
                rows.append(
                    TokenRow(
                        token, writing.position + offset, (writing.slot,), wanted=wanted
                    )
                )
            guessed = len(fitting) - 1 if writing.written else 0
            ends.append((writing, len(rows) - 1 - guessed if whole else -1))
            writing.position += len(fitting)
            del writing.tokens[: -guessed if whole and guessed else len(fitting)]
        return rows, ends

    def _write(self) -> None:
        """Evaluate one batch: the last token of each answer, and as much of new prompts
        as fits; then take tokens.

        After a `ModelError` every call of the batch ends with that error.
        """
        rows, ends = self._batch()
        calls = {writing.call for writing, _ in ends}
        try:
            if not self._compute(rows, calls):
                # Aborted: all of its calls are cancelled.
                for writing, _ in ends:
                    self._end(writing)
                return
            for writing, row in ends:
                self._opening.reached(writing.slot, writing.position)
                if row >= 0:
                    self._take(writing, row)
        except ModelError as error:
            for call in calls:
                self.drop(call)
                self._ready.append((call, refusal(error)))

    def _take(self, writing: _Writing, row: int) -> None:
        """Choose the next token of an answer, and those after it as far as the guesses
        were right; finish it at its end."""
        guesses, writing.tokens = writing.tokens, []
        for number in range(len(guesses) + 1):
            chosen = self._chosen(writing, self._native.logits(row + number))
            if chosen is None or self._native.is_end(chosen):
                self._finish(writing, "stop")
                return
            token = chosen
            writing.text += self._native.piece(token)
            writing.written += 1
            if writing.guesses is not None:
                writing.guesses.add(token)
            if writing.written == writing.left:
                self._finish(writing, "length")
                return
            if number == len(guesses) or token != guesses[number]:
                break
            self.counters.guessed += 1
        wrong = len(guesses) - number
        if wrong:
            writing.position -= wrong
            self._native.cut(writing.slot, writing.position)
        room = writing.left - writing.written
        ahead = writing.guesses.guess()[:room] if writing.guesses is not None else []
        writing.tokens = [token, *ahead]

    def _chosen(self, writing: _Writing, logits: NDArray[np.float32]) -> int | None:
        """Return the next token: the likeliest, or one drawn; None where a grammar
        allows none."""
        tuning = self._native.plan.tuning
        if writing.drawn is not None:
            logits = drawn(logits, tuning, writing.drawn)
        return (
            writing.grammar.best(logits)
            if writing.grammar is not None
            else int(logits.argmax())
        )

    def _finish(self, writing: _Writing, ended: str) -> None:
        fields = {"ended": ended, "tokens": writing.written}
        self._end(writing)
        self._ready.append((writing.call, Frame(fields, bytes(writing.text))))

    def _end(self, writing: _Writing) -> None:
        self._writing = [found for found in self._writing if found is not writing]
        self._native.forget([writing.slot])
        self._opening.left(writing.slot)
        if writing.grammar is not None:
            writing.grammar.free()

    # --- scores ---

    def _score(self) -> None:
        job, work = self._scoring, self._work
        if job is None or work is None:
            return
        try:
            next(work)
        except StopIteration:
            self._leave_scoring(broken=False)
            self._ready.append((job.call, _answer(job)))
        except ModelError as error:
            self._leave_scoring(broken=True)
            self._ready.append((job.call, refusal(error)))

    def _evaluate(self, job: _Scoring, begin: int) -> Iterator[None]:
        while begin < len(job.prefix):
            chunk = job.prefix[begin : begin + self._chunk()]
            last = begin + len(chunk) == len(job.prefix)
            self._evaluate_rows(
                job,
                [
                    TokenRow(
                        token,
                        begin + offset,
                        (PREFIX_SLOT,),
                        wanted=last and offset == len(chunk) - 1,
                    )
                    for offset, token in enumerate(chunk)
                ],
            )
            self._prefix.reach(chunk)
            begin += len(chunk)
            if last:
                self._prefix.read(self._native.logits(len(chunk) - 1))
            yield
        read(job.tree.root, self._prefix.logits, among_siblings=job.among_siblings)
        room = min(job.rows, self._native.n_context - len(job.prefix))
        lines = self._native.plan.sequences - FIRST_PATH
        shared = not self._native.keeps_state
        whole = list(parts(job.tree, sequences=lines, rows=room, shared=shared))
        for number, part in enumerate(whole, start=1):
            used = range(FIRST_PATH, FIRST_PATH + part.count)
            self._native.copy(PREFIX_SLOT, used)
            self._evaluate_rows(job, _rows(job, part))
            for row, node in enumerate(part.nodes):
                asked = node.weighs(among_siblings=job.among_siblings)
                read(
                    node,
                    self._native.logits(row) if asked else None,
                    among_siblings=job.among_siblings,
                )
            if number == len(whole):
                self._prefix.follow(used[-1], part.line(part.count - 1))
            self._native.forget(used)
            yield

    def _evaluate_rows(self, job: _Scoring, rows: list[TokenRow]) -> None:
        if not self._compute(rows, {job.call}):
            raise ModelError("The call was cancelled.", hint="Ask again.")
        job.evaluated += len(rows)

    def _leave_scoring(self, *, broken: bool) -> None:
        """End the scoring; one that was `broken` off may have left parts of a batch."""
        self._scoring, self._work = None, None
        if broken:
            self._native.forget(range(FIRST_PATH, self._native.plan.sequences))
            self._prefix.settle()

    # --- both ---

    def _chunk(self) -> int:
        """Return how many tokens the next batch may have: all that fit for one call,
        fewer for several."""
        together = len(self._writing) + (self._scoring is not None)
        if together < 2 or not self._pace:
            return self._native.plan.batch
        return min(
            self._native.plan.batch,
            max(FEWEST_BATCH_TOKENS, int(self._pace * BATCH_SECONDS)),
        )

    def _compute(self, rows: list[TokenRow], calls: set[int]) -> bool:
        """Run a batch; False when it was aborted because all of its calls are
        cancelled.

        Raises `ModelError` when the context is full.
        """
        began = time.perf_counter()
        code = self._native.compute(rows, calls)
        if len(rows) >= FEWEST_BATCH_TOKENS:
            self._pace = len(rows) / max(time.perf_counter() - began, 1e-6)
        if code == Code.DONE:
            return True
        if self._native.are_cancelled(calls):
            return False
        raise ModelError(
            f"The context of {self._native.path} is full.",
            hint="Shorten the input, or send fewer calls at once.",
        )


def drawn(
    logits: NDArray[np.float32], tuning: Tuning, chance: np.random.Generator
) -> NDArray[np.float32]:
    """Return numbers whose greatest is a draw from the softmax of `logits` at the
    temperature, which must not be 0.

    Gumbel noise on logits makes the argmax a draw (Gumbel 1954), also among those that
    a grammar allows. What `top_k`, `min_p` and `top_p` leave out comes last.
    """
    scaled = logits.astype(np.float64) / tuning.temperature
    order = np.argsort(scaled)[::-1]
    shares = np.exp(scaled[order] - scaled[order[0]])
    kept = shares >= tuning.min_p
    kept[tuning.top_k or len(order) :] = False
    before = np.cumsum(shares) - shares
    kept &= before < tuning.top_p * shares.sum()
    kept[0] = True
    noisy = scaled + chance.gumbel(size=len(scaled))
    noisy[order[~kept]] = UNLIKELY
    return noisy.astype(np.float32)


def _rows(job: _Scoring, part: TokenBatch) -> list[TokenRow]:
    return [
        TokenRow(
            node.token,
            len(job.prefix) + node.depth,
            tuple(FIRST_PATH + number for number in numbers),
            wanted=node.weighs(among_siblings=job.among_siblings),
        )
        for node, numbers in zip(part.nodes, part.sequences, strict=True)
    ]


def _answer(job: _Scoring) -> Frame:
    scores = np.array([node.score for node in job.tree.ends], dtype=np.float64)
    if job.normalised:
        likely = np.exp(scores - scores.max())
        scores = likely / likely.sum()
    counted = {
        "evaluated": job.evaluated,
        "prefix": len(job.prefix),
        "tree": job.tree.size,
        "apart": job.tree.apart,
    }
    return Frame(counted, scores.tobytes())
