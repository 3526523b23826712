"""Summaries written when they are shown: a generator is slow, so an answer waits for those it needs and no others.

A tree is built with extracted summaries at once; what an answer shows of them is written then, within a time, and
kept by content (notes/raptor §2: all summaries of 450,000 tokens take two hours at ten tokens a second). Not for: whole
trees by a generator (`build.py` with a writer).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import anyio

from cache.store import Store
from errors import ModelError
from pipeline.messages import side_by_side
from pipeline.raptor.query import Passage
from pipeline.raptor.summarise import EXTRACTIVE, Writer, kept_summary
from pipeline.raptor.tree import Tree
from pipeline.text.tokens import count_tokens


async def write_shown(
    tree: Tree, passages: Sequence[Passage], writer: Writer, *, store: Store, seconds: float
) -> tuple[Passage, ...]:
    """Return `passages` with extracted summaries replaced by written ones, as many as `seconds` allow, in order.

    A written summary is no longer than the extracted one, so a budget holds. What the generator does not manage, or
    what its children do not bear out, stays extracted.
    """
    shown = list(passages)
    if not tree.built_with.summariser.startswith(EXTRACTIVE):
        return tuple(shown)
    nodes = {node.id: node for node in tree.nodes if node.is_summary}

    async def write(place: int) -> None:
        passage = passages[place]
        texts = [tree.nodes[child].text for child in nodes[passage.node].children]
        summary = await kept_summary(writer, texts, max_tokens=passage.tokens, store=store)
        if summary.text:
            shown[place] = replace(passage, text=summary.text, tokens=count_tokens(summary.text), written=True)

    extracted = [i for i, one in enumerate(passages) if one.is_summary and not (one.cut or one.written)]
    # A generator that is gone costs nothing but its words: what is extracted answers as well.
    with anyio.move_on_after(seconds), suppress(ModelError):
        await side_by_side([partial(write, place) for place in extracted])
    return tuple(shown)
