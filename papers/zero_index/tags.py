"""Sentences as a prompt shows them: one numbered line each (4 % more tokens), or the
paper's `<TAG-i>` pairs (31 %; zero-index §4.1). Neither can be forged by a page."""

import re
from collections.abc import Iterable
from typing import Final

from pipeline.text.frame import one_line
from readers.page import Sentence

_TAG_OPENING: Final = re.compile(
    r"[<＜﹤‹〈](?=\s*[/／]?\s*T\s*A\s*G\b)", re.IGNORECASE
)
_DEFUSED: Final = "("


def numbered(sentences: Iterable[Sentence]) -> str:
    """Return one line a sentence, its number first: `12 The bridge opened in 1932.`

    A page cannot forge a line, since no sentence holds a line break of any kind.
    """
    return "\n".join(
        f"{sentence.number} {one_line(sentence.text)}" for sentence in sentences
    )


def paper_tags(sentences: Iterable[Sentence]) -> str:
    """Return `<TAG-i>…</TAG-i>` a sentence, the paper's form; anything like such a tag
    in the text is defused."""
    return "\n".join(
        f"<TAG-{sentence.number}>{defused(sentence.text)}</TAG-{sentence.number}>"
        for sentence in sentences
    )


def defused(text: str) -> str:
    """Return `text` on one line with the bracket of anything like one of our tags
    replaced."""
    return _TAG_OPENING.sub(_DEFUSED, one_line(text))
