"""What backends do to texts before a model sees them, and how one knows a script. Not for: cleaning pages."""

import re
from typing import Final

SAMPLE: Final = 4_000
"""Characters whose script is looked at: enough to tell a page's, and cheap on a long one."""
LATIN_SHARE: Final = 0.6
"""Least share of Latin letters in a text that an English model is asked about."""
MANY_SCRIPTS: Final = 100_000
"""A vocabulary of this size marks a multilingual model (English BERT has 30 522 entries, XLM-RoBERTa 250 002)."""
CHARACTERS_A_TOKEN: Final = 64
"""A text is cut to this many characters for each token that fits, before it is tokenised: a page of 30 MB costs no more
than a paragraph. Only text whose tokens are longer than this on average (base64) loses tokens that had fitted."""

_LETTER: Final = re.compile(r"[^\W\d_]")
_LATIN: Final = re.compile(
    "[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1d00-\u1d25\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff"
    "\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a]"
)


def reads_latin(text: str) -> bool:
    """Return whether six in ten letters of the text's beginning are Latin; True where there are no letters."""
    sample = text[:SAMPLE]
    if sample.isascii():
        return True
    letters = len(_LETTER.findall(sample))
    return letters == 0 or len(_LATIN.findall(sample)) / letters >= LATIN_SHARE


def printable(text: str) -> str:
    """Return `text` as UTF-8 can carry it: a lone surrogate, left by a page's broken escape, becomes a question
    mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
