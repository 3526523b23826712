"""Scores of many continuations of one prompt by a server that lists the likeliest next
tokens.

llama-server (`/apply-template`, `/tokenize`, `/completion` with `n_probs`) and vLLM
(`/tokenize`, `/completions` with `logprobs`). The paths become a tree of the server's
own tokens; one request scores the children of a node (HtmlRAG, arXiv 2411.02959,
§3.4.2). The order is depth-first, so that the server's cache of the last prompt has
most tokens. A token that is not listed gets the most that it can have: no more than the
last one listed, nor than the list leaves over. Not for: models in this process, which
are exact (`models/llama/process.py`).
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import anyio
import numpy as np

from errors import ModelError
from models.llama.token_tree import TokenNode, grow
from models.protocols import PathScores
from models.remote.chat import LISTED_LONG, LISTED_TOKENS
from models.remote.server import Endpoint

SCORES_PATHS: Final = frozenset({"llama-server", "vLLM"})
"""Servers that tokenise for others and continue a list of tokens."""
_AT_ONCE: Final = 8
"""Texts that a server tokenises side by side."""
_BATCH_PROMPTS: Final = 32
"""Prompts of one request to vLLM, which computes them together."""
_ALL_TOKENS: Final = 8_192
"""Tokens that llama-server lists where one that is wanted was not among the first
ones."""
Shares = Mapping[int, float]
"""Log-probabilities by token."""


async def score_paths(
    endpoint: Endpoint,
    server: str,
    prefix: str | Sequence[Mapping[str, str]],
    paths: Sequence[str],
    *,
    among_siblings: bool,
) -> PathScores:
    """Return log P(path | prefix) of each path; see `TreeScorer.score_tree`.

    Raises `ModelError` where the server fails or lists nothing, and what reading JSON
    of a strange form raises."""
    asking = _Llama(endpoint) if server == "llama-server" else _Vllm(endpoint)
    begun = await asking.prompt(prefix)
    tree = grow(await _continuations(asking, paths))
    evaluated = len(begun)
    weighed = [
        node for node in tree.inner() if node.weighs(among_siblings=among_siblings)
    ]
    for start in range(0, len(weighed), asking.at_once):
        part = weighed[start : start + asking.at_once]
        prompts = [[*begun, *node.line()] for node in part]
        wanted = [frozenset(node.children) for node in part]
        for node, shares in zip(
            part, await asking.shares(prompts, wanted), strict=True
        ):
            _weigh(node, shares, among_siblings=among_siblings)
        evaluated += len(part)
    for node in tree.inner():
        for child in node.children.values():
            child.score += node.score
    scores = np.array([node.score for node in tree.ends], dtype=np.float64)
    whole = len(begun) * len(paths) + tree.apart
    return PathScores(scores, evaluated, len(begun), tree.size, whole)


class _Llama:
    """llama-server's own calls; one prompt a request, so that each finds the last one's
    cache."""

    at_once = 1

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def prompt(self, prefix: str | Sequence[Mapping[str, str]]) -> list[int]:
        """Return the tokens of a text, or of messages in the model's chat template."""
        text = prefix
        if not isinstance(prefix, str):
            quiet = {"enable_thinking": False, "thinking": False}
            asked = {"messages": list(prefix), "chat_template_kwargs": quiet}
            text = (await self._post("/apply-template", asked))["prompt"]
        return await self.tokens(str(text), special=True)

    async def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of `text`; with `special`, those at a prompt's beginning
        too."""
        asked = {"content": text, "add_special": special, "parse_special": special}
        return [
            int(token) for token in (await self._post("/tokenize", asked))["tokens"]
        ]

    async def shares(
        self, prompts: Sequence[Sequence[int]], wanted: Sequence[frozenset[int]]
    ) -> list[Shares]:
        """Return what is listed after each prompt; once more with nearly all where one
        of `wanted` is missing."""
        found = []
        for prompt, tokens in zip(prompts, wanted, strict=True):
            listed = await self._listed(prompt, LISTED_LONG)
            missing = bool(tokens - set(listed))
            found.append(await self._listed(prompt, _ALL_TOKENS) if missing else listed)
        return found

    async def _listed(self, prompt: Sequence[int], count: int) -> Shares:
        body = {
            "prompt": list(prompt),
            "n_predict": 1,
            "n_probs": count,
            "temperature": 0,
        }
        answer = await self._post("/completion", {**body, "cache_prompt": True})
        listed = (answer.get("completion_probabilities") or [{}])[0].get(
            "top_logprobs"
        ) or ()
        return {int(one["id"]): _finite(one["logprob"]) for one in listed}

    async def _post(self, path: str, body: Mapping[str, object]) -> Any:
        return await self._endpoint.ask("POST", self._endpoint.root + path, body)


class _Vllm:
    """vLLM's calls; prompts of one request are computed together, over one cached
    prefix."""

    at_once = _BATCH_PROMPTS

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def prompt(self, prefix: str | Sequence[Mapping[str, str]]) -> list[int]:
        """Return the tokens of a text, or of messages in the model's chat template."""
        if isinstance(prefix, str):
            return await self.tokens(prefix, special=True)
        quiet = {"enable_thinking": False, "thinking": False}
        asked = {"messages": list(prefix), "add_generation_prompt": True}
        return await self._tokenized({**asked, "chat_template_kwargs": quiet})

    async def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of `text`; with `special`, those at a prompt's beginning
        too."""
        return await self._tokenized({"prompt": text, "add_special_tokens": special})

    async def shares(
        self, prompts: Sequence[Sequence[int]], wanted: Sequence[frozenset[int]]
    ) -> list[Shares]:
        """Return what is listed after each prompt: 20 tokens, the most that vLLM
        allows.

        A token of `wanted` may be missing there. Raises `ValueError` for a wrong count
        of answers.
        """
        body = {
            "prompt": [list(prompt) for prompt in prompts],
            "max_tokens": 1,
            "logprobs": LISTED_TOKENS,
            "temperature": 0,
            "return_tokens_as_token_ids": True,
        }
        answer = await self._endpoint.post("/completions", body)
        choices = sorted(answer["choices"], key=lambda choice: int(choice["index"]))
        rows = [choice["logprobs"]["top_logprobs"][0] for choice in choices]
        if len(rows) != len(wanted):
            raise ValueError(f"{len(rows)} answers to {len(wanted)} prompts")
        return [
            {int(name.partition(":")[2]): _finite(value) for name, value in row.items()}
            for row in rows
        ]

    async def _tokenized(self, body: Mapping[str, object]) -> list[int]:
        named = {"model": self._endpoint.model, **body}
        answer = await self._endpoint.ask(
            "POST", f"{self._endpoint.root}/tokenize", named
        )
        return [int(token) for token in answer["tokens"]]


async def _continuations(
    asking: "_Llama | _Vllm", paths: Sequence[str]
) -> list[list[int]]:
    """Return the tokens of each path as it goes on after other text.

    Raises `ModelError` for a path without a token, and where the server fails.
    """
    anchor = await asking.tokens("\n")
    found: dict[int, list[int]] = {}
    limiter = anyio.CapacityLimiter(_AT_ONCE)
    failures: list[ModelError] = []

    async def tokenize(number: int, path: str) -> None:
        async with limiter:
            try:
                both = await asking.tokens(f"\n{path}")
                same = both[: len(anchor)] == anchor
                found[number] = (
                    both[len(anchor) :] if same else await asking.tokens(path)
                )
            except ModelError as error:
                failures.append(error)
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for number, path in enumerate(paths):
            group.start_soon(partial(tokenize, number, path))
    if failures:
        raise failures[0]
    lists = [found[number] for number in range(len(paths))]
    if not all(lists):
        raise ModelError(
            "An empty text cannot be scored.", hint="Leave empty texts out."
        )
    return lists


def _weigh(node: TokenNode, shares: Shares, *, among_siblings: bool) -> None:
    """Set the scores of a node's children from what was listed after it.

    A token that is not listed gets the most that it can have. Raises `ModelError` where
    nothing is listed.
    """
    if not shares:
        raise ModelError(
            (
                "The server returns no log-probabilities (logprobs), so texts "
                "cannot be scored."
            ),
            hint=(
                "Use a llama-server or vLLM that returns them, or a GGUF model "
                "(llama:FILE.gguf)."
            ),
        )
    left = max(1.0 - sum(map(math.exp, shares.values())), 1e-12)
    most = min(math.log(left), *shares.values())
    found = {token: shares.get(token, most) for token in node.children}
    highest = max(found.values())
    total = highest + math.log(
        sum(math.exp(value - highest) for value in found.values())
    )
    for token, child in node.children.items():
        child.score = found[token] - (total if among_siblings else 0.0)


def _finite(value: object) -> float:
    number = float(str(value))
    return min(number, 0.0) if math.isfinite(number) else -1e4
