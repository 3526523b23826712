"""What every model behind a server does: learn what it is, send texts that fit, and read lists by their own index.

Not for: the calls of each role (`models/remote/openai.py`, `models/remote/rerank.py`).
"""

import math
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio

from models.remote.client import Endpoint, RefusedCall
from models.remote.facts import Facts, ask_facts
from models.text import printable

FRESH: Final = 60.0
"""Seconds that what a server told is believed: so long may a model that was swapped behind its name go unnoticed."""
AWAY: Final = 5.0
"""Seconds after which a server that told nothing is asked again."""
PATIENCE: Final = 3.0
"""Seconds that asking may take: it stands before the start of our server and before calls, which have limits too."""
TEXTS_A_REQUEST: Final = 32
"""Texts in one request: TEI refuses more than 32 unless told, and a cancelled call ends between requests."""
CHARACTERS: Final = 8_000
"""A text is cut here, about 2 000 tokens: no passage of ours is longer, and a whole page costs a server minutes."""
FEWEST: Final = 500
"""Characters below which a text that is still refused as too long is an error: 512 tokens hold them in any script."""


class RemoteModel:
    """What embedder, reranker and generator behind a server share: the endpoint and what it told."""

    def __init__(self, endpoint: Endpoint, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Keep the endpoint; nothing is asked of it before `prepare` or the first use."""
        self._endpoint = endpoint
        self._clock = clock
        self._facts = Facts(identity=uuid.uuid4().hex[:12], asked=False)
        self._asked_at = -math.inf
        self._cut = CHARACTERS

    @property
    def name(self) -> str:
        """Model, server and the identity that the server tells; before it was asked, a name that no cache knows."""
        endpoint, identity = self._endpoint, self._facts.identity
        return f"{endpoint.model}:openai:{endpoint.url}" + (f":{identity}" if identity else "")

    @property
    def server(self) -> str:
        """Kind of server, "" where it is not known."""
        return self._facts.server

    async def prepare(self) -> None:
        """Ask what stands behind the name now; an answer holds for `FRESH` seconds. Raises nothing."""
        if self._clock() - self._asked_at < (FRESH if self._facts.asked else AWAY):
            return
        with anyio.move_on_after(PATIENCE):
            facts = await ask_facts(self._endpoint)
            # A server that is away for a moment keeps the name it had.
            self._facts = facts if facts.asked else self._facts
        self._asked_at = self._clock()

    def texts_a_request(self) -> int:
        """Return how many texts the server takes at once, as far as it told."""
        return min(self._facts.batch or TEXTS_A_REQUEST, TEXTS_A_REQUEST)

    async def fitting(self, ask: Callable[[int], Awaitable[object]]) -> object:
        """Return the answer of `ask(characters)`, texts cut to half as often as the server calls them too long.

        Servers say neither their window for a text nor how many tokens a text has; TEI and Ollama cut by themselves,
        llama-server and vLLM refuse.

        Raises:
            ModelError: Another refusal, or texts of `FEWEST` characters are still too long.
        """
        while True:
            try:
                return await ask(self._cut)
            except RefusedCall as error:
                if not error.too_long or self._cut <= FEWEST:
                    raise
                self._cut = max(FEWEST, self._cut // 2)


def shortened(texts: Sequence[str], characters: int) -> list[str]:
    """Return texts as a server takes them: cut, in UTF-8, and none of them empty."""
    # Servers refuse an empty string; a blank gives the same vector as far as tokenisers go.
    return [printable(text[:characters]) or " " for text in texts]


def by_index(items: object, value: str, count: int) -> list[object]:
    """Return `value` of each item, in the order of the items' own `index`.

    Raises:
        KeyError, TypeError, ValueError: The items are not one for each of `count` texts.
    """
    if not isinstance(items, list) or len(items) != count:
        raise ValueError(f"not a list of {count}")
    found = {int(item["index"]): item[value] for item in items}
    return [found[place] for place in range(count)]
