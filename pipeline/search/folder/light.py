"""The words of a local file, as fast as Python can have them: enough to find the file, not to show it.

Works on bytes: markup is blanked by one regular expression, and only words with other characters than ASCII are
decoded. Nothing is parsed, which is some twenty times faster than reading the document properly; only the few best
files are then read so. Not for: counting (`pipeline/search/folder/spellings.py`), nor text that anyone sees
(`pipeline/fetch/files.py`, `pipeline/html/document.py`).
"""

import html
import os
import re
from functools import lru_cache
from typing import Final

from pipeline.read.charset import decode
from pipeline.search.folder.spellings import LONGEST_WORD
from pipeline.text.words import bigrams, fold, is_cjk, lower_runs

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
REMEMBERED: Final = 60
"""Bytes up to which a word with other characters than ASCII is remembered; whole CJK sentences are not worth it."""


def as_utf8(data: bytes) -> bytes:
    """Return `data` as UTF-8; what is not is decoded as a reader of web pages would (`pipeline/read/charset.py`)."""
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


def words_in(spelling: bytes) -> tuple[str, ...]:
    """Return the words and CJK pairs of a stretch between ASCII blanks (`count_spellings`), folded."""
    return _cut(spelling) if len(spelling) > REMEMBERED else _remembered(spelling)


def name_of(path: str) -> str:
    """Return a file's name as words: without folder and suffix."""
    return os.path.splitext(os.path.basename(path))[0].replace("_", " ")


def _cut(spelling: bytes) -> tuple[str, ...]:
    words: list[str] = []
    for run in lower_runs(spelling.decode("utf-8", "replace")):
        words.extend(bigrams(run) if is_cjk(run) else [run])
    return tuple(fold(word.partition("'")[0].partition("’")[0])[:LONGEST_WORD] for word in words)


_remembered = lru_cache(maxsize=100_000)(_cut)
"""Spellings with other characters than ASCII, about 20 MB at most."""
