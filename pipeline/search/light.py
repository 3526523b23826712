"""The words of a local file, as fast as Python can have them: enough to find the file, not to show it.

Works on bytes: markup is blanked by one regular expression, one translation table lowers ASCII letters and turns the
rest of ASCII into blanks, and only words with other characters are decoded. Nothing is parsed, which is some twenty
times faster than reading the document properly; only the few best files are then read so. Not for: text that anyone
sees (`pipeline/fetch/files.py`, `pipeline/html/read.py`).
"""

import html
import os
import re
from collections import Counter
from functools import lru_cache
from typing import Final

from pipeline.fetch.charset import decode
from pipeline.rank.words import bigrams, is_cjk, lower_runs

MAX_BYTES: Final = 4_000_000
"""Bytes of one file that are counted; what stands behind cannot be found by this search."""
# Every alternative also ends at the end of the data, so that an unclosed one costs one pass and not one for each.
_MARKUP: Final = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(script|style|template|svg)\b.*?(?:</\1\s*>|\Z)|</?[a-zA-Z!?][^>]*(?:>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_ENTITY: Final = re.compile(rb"&(?:#x?)?\w{2,31};")
_PLAIN_ENTITY: Final = re.compile(
    rb"&(?:nbsp|amp|lt|gt|quot|apos|#39|ndash|mdash|hellip|copy|middot|rsquo|ldquo|rdquo);"
)
_TITLE: Final = re.compile(rb"<title[^>]{0,200}>([^<]{1,500})", re.IGNORECASE)
_HEADING: Final = re.compile(rb"<h1[^>]{0,500}>(.{1,500}?)</h1", re.IGNORECASE | re.DOTALL)
_MARKDOWN_TITLE: Final = re.compile(rb"^(?:#[ \t]+|title:[ \t]*)(.{1,300})$", re.MULTILINE | re.IGNORECASE)
_BLANKS: Final = bytes(
    code
    if code >= 0x80 or (chr(code).isalnum() and not chr(code).isupper())
    else ord(chr(code).lower())
    if chr(code).isupper()
    else 0x20
    for code in range(256)
)
"""Upper case ASCII to lower, ASCII that is no letter or digit to blanks, bytes of other characters as they are."""
_REMEMBERED: Final = 60
"""Bytes up to which a word with other characters than ASCII is remembered; whole CJK sentences are not worth it."""


def as_utf8(data: bytes) -> bytes:
    """Return `data` as UTF-8; what is not is decoded as a reader of web pages would (`pipeline/fetch/charset.py`)."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return decode(data).text.encode("utf-8", "surrogatepass")
    return data


def light_text(data: bytes, *, is_html: bool) -> tuple[str, bytes]:
    """Return title (empty where none is given) and words, markup blanked, of a file in UTF-8."""
    data = data[:MAX_BYTES]
    if not is_html:
        heading = _MARKDOWN_TITLE.search(data[:4_000])
        return (heading[1].decode("utf-8", "replace").strip(" #\"'\r") if heading else ""), data
    named = _TITLE.search(data[:20_000]) or _HEADING.search(data)
    title = html.unescape(_MARKUP.sub(b" ", named[1]).decode("utf-8", "replace")) if named else ""
    text = _MARKUP.sub(b" ", data)
    if b"&" in text:
        text = _PLAIN_ENTITY.sub(b" ", text)
        if _ENTITY.search(text):
            text = html.unescape(text.decode("utf-8", "replace")).encode("utf-8", "surrogatepass")
    return " ".join(title.split()), text


def count_words(text: bytes) -> Counter[bytes]:
    """Return lowercase words and CJK pairs, in UTF-8, with their counts."""
    counts = Counter(text.translate(_BLANKS).split())
    if text.isascii():
        return counts
    for run in [run for run in counts if not run.isascii()]:
        n = counts.pop(run)
        for word in _words_in(run) if len(run) <= _REMEMBERED else _cut(run):
            counts[word] += n
    return counts


def name_of(path: str) -> str:
    """Return a file's name as words: without folder and suffix."""
    return os.path.splitext(os.path.basename(path))[0].replace("_", " ")


def _cut(run: bytes) -> tuple[bytes, ...]:
    """The words and CJK pairs of a stretch between ASCII blanks."""
    words: list[str] = []
    for part in lower_runs(run.decode("utf-8", "replace")):
        words.extend(bigrams(part) if is_cjk(part) else [part])
    return tuple(word.encode("utf-8", "surrogatepass") for word in words)


_words_in = lru_cache(maxsize=100_000)(_cut)
