"""Scores of many continuations of one prompt by a llama-server, which lists the
likeliest next tokens.

`/apply-template`, `/tokenize`, and `/completion` with `n_probs`. The paths become a tree
of the server's own tokens; one request scores the children of a node (HtmlRAG, arXiv
2411.02959, §3.4.2). The order is depth-first, so that the server's cache of the last
prompt has most tokens. A token that is not listed gets the most that it can have: no more
than the last one listed, nor than the list leaves over. Not for: models in this process,
which are exact (`models/llama/process.py`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from errors import ModelError
from models.llama.token_tree import TokenNode, grow
from models.protocols import PathScores
from models.remote.chat import LISTED_LONG
from models.remote.server import Endpoint

_ALL_TOKENS: Final = 8_192
"""Tokens that are listed where one that is tokens was not among the first ones."""
Shares = Mapping[int, float]
"""Log-probabilities by token."""


async def score_paths(
    endpoint: Endpoint,
    prefix: str | Sequence[Mapping[str, str]],
    paths: Sequence[str],
    *,
    among_siblings: bool,
) -> PathScores:
    """Return log P(path | prefix) of each path; see `TreeScorer.score_tree`.

    Raises `ModelError` for a path without a token, and where the server fails or lists
    nothing; and what reading JSON of a strange form raises."""
    server = _Llama(endpoint)
    prefix_tokens = await server.prompt(prefix)
    line = await server.tokens("\n")
    continuations = [await server.continuation(path, line) for path in paths]
    if not all(continuations):
        raise ModelError(
            "An empty text cannot be scored.", hint="Leave empty texts out."
        )
    tree = grow(continuations)
    evaluated = len(prefix_tokens)
    for node in tree.inner():
        if node.weighs(among_siblings=among_siblings):
            shares = await server.shares(
                [*prefix_tokens, *node.line()], set(node.children)
            )
            _weigh(node, shares, among_siblings=among_siblings)
            evaluated += 1
        for child in node.children.values():
            child.score += node.score
    scores = np.array([node.score for node in tree.ends], dtype=np.float64)
    apart = len(prefix_tokens) * len(paths) + tree.apart
    return PathScores(scores, evaluated, len(prefix_tokens), tree.size, apart)


class _Llama:
    """llama-server's own calls; one prompt a request, so that each finds the last one's
    cache."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def prompt(self, prefix: str | Sequence[Mapping[str, str]]) -> list[int]:
        """Return the tokens of a text, or of messages in the model's chat template."""
        text = prefix
        if not isinstance(prefix, str):
            quiet = {"enable_thinking": False, "thinking": False}
            body = {"messages": list(prefix), "chat_template_kwargs": quiet}
            text = (await self._post("/apply-template", body))["prompt"]
        return await self.tokens(str(text), special=True)

    async def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of `text`; with `special`, those at a prompt's beginning
        too."""
        body = {"content": text, "add_special": special, "parse_special": special}
        answer = await self._post("/tokenize", body)
        return [int(token) for token in answer["tokens"]]

    async def continuation(self, path: str, line: Sequence[int]) -> list[int]:
        """Return the tokens of a path as it goes on after other text; `line` are those
        of a line's end, which is put in front."""
        tokens = await self.tokens(f"\n{path}")
        if tokens[: len(line)] == line:
            return tokens[len(line) :]
        return await self.tokens(path)

    async def shares(self, prompt: Sequence[int], tokens: set[int]) -> Shares:
        """Return what is listed after a prompt; nearly all tokens where one of `tokens`
        is not among the first."""
        listed = await self._listed(prompt, LISTED_LONG)
        return (
            listed if tokens <= set(listed) else await self._listed(prompt, _ALL_TOKENS)
        )

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
        return {int(row["id"]): _finite(row["logprob"]) for row in listed}

    async def _post(self, path: str, body: Mapping[str, object]) -> Any:
        return await self._endpoint.ask("POST", self._endpoint.root + path, body)


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
            hint=("Use a newer llama-server, or a GGUF model (llama:FILE.gguf)."),
        )
    leftover = max(1.0 - sum(map(math.exp, shares.values())), 1e-12)
    unlisted = min(math.log(leftover), *shares.values())
    logs = {token: shares.get(token, unlisted) for token in node.children}
    highest = max(logs.values())
    total = highest + math.log(
        sum(math.exp(value - highest) for value in logs.values())
    )
    for token, child in node.children.items():
        child.score = logs[token] - (total if among_siblings else 0.0)


def _finite(value: object) -> float:
    number = float(str(value))
    return min(number, 0.0) if math.isfinite(number) else -1e4
