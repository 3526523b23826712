"""Two embedders as one: an English one, and a multilingual one for other languages.

Vectors of two models cannot be compared, so a step that compares a question with texts
asks for the model that `fitting` names, and keeps to it. Any other step gets the first,
which costs half as much. The second is loaded when it is first asked. Not for: choosing
models (`choose.py`)."""

from collections.abc import Sequence
from typing import Final

from models.protocols import Embedder, HeldModel, TextKind, Vectors

ENGLISH: Final = "en"


class PairedEmbedder(HeldModel):
    """An `Embedder`: the first of two, with the other beside it."""

    def __init__(self, english: Embedder, multilingual: Embedder) -> None:
        self.first = english
        self.other = multilingual

    @property
    def name(self) -> str:
        """Name of the first."""
        return self.first.name

    @property
    def dimension(self) -> int:
        """Length of the first's vectors."""
        return self.first.dimension

    def reads(self, text: str) -> bool:
        """Whether the first knows the script of `text`."""
        return self.first.reads(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return the first's vectors; see `Embedder.embed`."""
        return await self.first.embed(texts, kind=kind)

    async def aclose(self) -> None:
        """Let both go."""
        for embedder in (self.first, self.other):
            if isinstance(embedder, HeldModel):
                await embedder.aclose()


def fitting(
    embedder: Embedder | None, languages: Sequence[str], texts: Sequence[str]
) -> Embedder | None:
    """Return the embedder for texts that are compared: the second of a pair, where some
    language is not English or the first does not read a text.

    `languages` are those of question and pages, empty where one is unknown. Any other
    model is returned unchanged, also None (no embedder)."""
    if not isinstance(embedder, PairedEmbedder):
        return embedder
    english = all(language in (ENGLISH, "") for language in languages)
    return (
        embedder.first
        if english and all(map(embedder.first.reads, texts))
        else embedder.other
    )
