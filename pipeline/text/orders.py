"""Whether words of a page speak to a model that reads them, so that an answer can say so beside them.

They are quoted as they stand: leaving them out would hide from a reader what a page tries, and be wrong of pages that
write about it. A sentence speaks to a model where it names one and tells it to drop or conceal something, where it
drops instructions, or where it imitates the control marks of chat templates, tool results or our frames. The words are
data, `[orders.*]` of `pipeline/text/words`. It is a sign for readers and no defence: the frame and the ranking are
that, and whoever knows the words says it in others. Not for: hidden text, which is left out (`pipeline/html`).
"""

import re
from typing import Final

from pipeline.text.lexicon import whole_words, words
from pipeline.text.words import is_cjk

_SIGNS: Final = re.compile(
    r"<\|\w{2,20}\|>|\[/?INST\]|<</?SYS>>|</?(?:tool|function)_(?:call|result|response)s?\b|</?system[-_ ]\w+>"
    r"|#{2,}\s*\(?system[ _](?:message|prompt)|«\s*[/∕]?\d{12}\s*»",
    re.IGNORECASE,
)
_MODEL, _DROPPED, _GIVEN, _CALLED = (
    whole_words(words(f"orders.{name}")) for name in ("model", "drop", "given", "call")
)
_WORD: Final = re.compile(r"\w+")
_KEYS: Final = frozenset(
    max(_WORD.findall(entry), key=len) for name in ("drop", "call") for entry in words(f"orders.{name}")
)
"""The longest word of each phrase that an order needs: most units hold none, and no pattern need look at them."""
_END: Final = re.compile(r"(?<=[.!?])\s+|[。！？\n]")


def speaks_to_models(text: str) -> bool:
    """Return whether a sentence of `text` gives orders to a model, or imitates what only its host writes."""
    if any(sign in text for sign in "<[#«") and _SIGNS.search(text):
        return True
    folded = text.casefold().replace(",", " ")
    if _KEYS.isdisjoint(_WORD.findall(folded)) and not is_cjk(text):
        return False
    return any(map(_is_order, _END.split(folded)))


def _is_order(sentence: str) -> bool:
    if _CALLED.search(sentence):
        return True
    return bool(_DROPPED.search(sentence) and (_MODEL.search(sentence) or _GIVEN.search(sentence)))
