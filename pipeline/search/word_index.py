"""Index of local files by words and by the meaning of their headings: one SQLite
database.

FTS5 counts the words of passages of about 200 words, folded and not stemmed; a query
stems the part of the vocabulary that it can meet, so one index serves queries in any
language. A file scores as its best passage. Markup is blanked by one regular
expression, about twenty times faster than parsing; so nothing of this is shown: the
passages that a reader sees come from the document. No number of a file is given twice,
and words of replaced files are passed over. Not for: finding and reading files
(`pipeline/search/folder.py`)."""

import html
import json
import os
import re
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pipeline.fetch.files import CONVERTED, ending_of
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats
from pipeline.text.words import bigrams, fold, index_terms, is_cjk, lower_runs
from readers.converted import PLACE
from readers.format import endings_of, formats, version

INDEX_VERSION: Final = f"15-{version().hex()}"
"""Part of the database's name; raise it when counting changes. What was not read
without an extra is read again with it."""
PASSAGE_CHARACTERS: Final = 1_200
"""Characters of a passage, about 200 words."""
OUTLINE: Final = 500
"""Letters of a file's outline, about 100 tokens."""
_HEADED_CHARACTERS: Final = 100_000
"""Characters of a file that are looked at for headings."""
_PAGE_BEGINS: Final = f'<section {PLACE}="page='
"""What each page of a converted PDF begins with."""
_STEM_CHARACTERS: Final = 3
"""Characters that a word and its stem share in every Snowball language but Arabic."""
_BEST_PASSAGES: Final = 2_000
"""Passages that a question looks at, of all that have a word of it."""
_WINDOW_BITS: Final = 20
"""A passage's number is its file's, shifted by these bits, plus its position."""
_MOST_DEAD: Final = 1_000
"""Numbers of edited and deleted files from which the index is recreated."""
# Linear on any input: an unclosed piece of markup ends at the end of the data, so that no piece is
# tried again. No group is repeated by `*+`, which Python before 3.11.5 matches wrongly.
_MARKED_UP: Final = re.compile(
    r"<(?:!--.*?(?:-->|\Z)"
    r"|(script|style|template|svg)\b.*?(?:</\1\s*>|\Z)"
    r"|/?[a-z!?][^>]*+(?:>|\Z))",
    re.DOTALL | re.IGNORECASE,
)
_TAGGED_HEADING: Final = re.compile(
    r"<(title|h[1-4])\b[^>]{0,200}>(?P<text>.{1,400}?)</\1", re.IGNORECASE | re.DOTALL
)
_PLAIN_HEADING: Final = re.compile(
    r"^(?:#{1,4}[ \t]+|title:[ \t]*)(?P<text>.{1,300})$", re.MULTILINE | re.IGNORECASE
)
_JSON_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
_MARKUP_ENDINGS: Final = (
    CONVERTED
    | {".html", ".htm", ".xhtml"}
    | endings_of(form for form in formats() if form.indexed == "markup")
)
"""Endings of files that are markup, or come as such from their readers."""
_JSON: Final = endings_of(form for form in formats() if form.indexed == "json")
_SCHEMA: Final = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS files(
    id INTEGER PRIMARY KEY AUTOINCREMENT, path BLOB NOT NULL UNIQUE, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
    title TEXT NOT NULL, outline TEXT NOT NULL, failure TEXT NOT NULL, unread TEXT NOT NULL,
    pages INTEGER NOT NULL, read_pages INTEGER NOT NULL, model TEXT, vector BLOB
);
CREATE VIRTUAL TABLE IF NOT EXISTS passages USING fts5(
    title, text, content='', tokenize='unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab('main', 'passages', 'row');
"""


class FileStamp(NamedTuple):
    """A file as it was when listed; the same stamp means the same content."""

    path: str
    mtime_ns: int
    size: int


def title_text_outline(data: str, suffix: str) -> tuple[str, str, str]:
    """Return what a file with this ending is called, says and is about.

    The title is its first heading, empty for none; in the text markup is blanked; the
    outline is the headings, or the first words where there are few."""
    is_markup = suffix in _MARKUP_ENDINGS
    text = data
    if is_markup:
        text = html.unescape(_MARKED_UP.sub(" ", data))
    elif suffix in _JSON:
        text = _JSON_ESCAPE.sub(lambda code: chr(int(code[1] or "20", 16)), data)
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    pattern = _TAGGED_HEADING if is_markup else _PLAIN_HEADING
    headings = [
        _heading(match["text"]) for match in pattern.finditer(data[:_HEADED_CHARACTERS])
    ]
    outline = ". ".join(dict.fromkeys(filter(None, headings)))
    if len(outline) < OUTLINE // 4:
        outline = f"{outline}. {text[:OUTLINE]}"
    title = next(filter(None, headings), "")
    return title, text, outline[:OUTLINE]


def _heading(marked_up: str) -> str:
    unmarked = html.unescape(_MARKED_UP.sub(" ", marked_up)).encode("utf-8", "replace")
    return " ".join(unmarked.decode().split()).strip(" #\"'")


def _passages(text: str) -> Iterator[str]:
    """Yield a text in passages that end at a blank; at least one."""
    start = 0
    while not start or start < len(text):
        stop = text.find(" ", start + PASSAGE_CHARACTERS)
        stop = len(text) + 1 if stop < 0 else stop
        yield _searchable(text[start:stop])
        start = stop


def _searchable(text: str) -> str:
    """Return `text` with what is not ASCII as a query has it."""
    if text.isascii():
        return text
    words = text.split()
    return " ".join(word if word.isascii() else _folded(word) for word in words)


@lru_cache(maxsize=30_000)
def _folded(stretch: str) -> str:
    """Return the words and CJK pairs, folded, of a stretch between blanks."""
    runs = lower_runs(stretch.replace("’", " "))
    return " ".join(
        fold(word) for run in runs for word in (bigrams(run) if is_cjk(run) else [run])
    )


class WordIndex:
    """The words of many files; for any number of threads and processes.

    Methods raise `sqlite3.Error` where the database cannot be read or written."""

    def __init__(self, path: Path | None) -> None:
        """Open or make the database at `path`, for its owner's eyes alone; None keeps
        it in memory.

        Raises `OSError` or `sqlite3.Error` where it cannot be opened."""
        if path is not None:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        # Two slices of another process; who does not get its turn by then comes again.
        self._database = sqlite3.connect(
            path or ":memory:",
            timeout=0.2,
            isolation_level=None,
            check_same_thread=False,
        )
        self._lock = threading.RLock()
        self._database.executescript(_SCHEMA)

    def _rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        with self._lock:
            return self._database.execute(query, values).fetchall()

    @property
    def is_worn(self) -> bool:
        """Whether most words are of files that are gone."""
        return bool(
            self._rows(
                "SELECT 1 FROM sqlite_sequence WHERE seq > ? + 2 * (SELECT count(*) FROM files)",
                _MOST_DEAD,
            )
        )

    @property
    def version(self) -> object:
        """A value that changes when another process has written."""
        return self._rows("PRAGMA data_version")

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._database.close()

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """Hold the sole right to add files; False while another process has it.

        What is added is kept when the context ends, with an error too. Nothing of it is
        kept on `sqlite3.Error`, or where the process is killed before."""
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                yield False
                return
            try:
                yield True
            except sqlite3.Error:
                self._database.rollback()
                raise
            finally:
                self._database.commit()

    def stamps(self) -> dict[FileStamp, int]:
        """Return all files as they were when they were read, with how many of their
        pages are here; 0 for all."""
        query = "SELECT path, mtime_ns, size, pages FROM files"
        with self._lock:
            return {
                FileStamp(os.fsdecode(path), mtime_ns, size): pages
                for path, mtime_ns, size, pages in self._database.execute(query)
            }

    def pages(self, stamp: FileStamp) -> int | None:
        """Return how many pages of a file are here, 0 for all, just as `stamp` says;
        None for a file that is not."""
        query = "SELECT pages FROM files WHERE (path, mtime_ns, size) = (?, ?, ?)"
        with self._lock:
            values = (os.fsencode(stamp.path), *stamp[1:])
            row: tuple[int] | None = self._database.execute(query, values).fetchone()
        return row[0] if row else None

    def forget(self, stamps: Iterable[FileStamp]) -> None:
        """Drop files as they were; while another process is writing they stay."""
        with self.writing() as is_mine:
            if is_mine:
                self._database.executemany(
                    "DELETE FROM files WHERE (path, mtime_ns, size) = (?, ?, ?)",
                    ((os.fsencode(stamp.path), *stamp[1:]) for stamp in stamps),
                )

    def add(
        self,
        stamp: FileStamp,
        data: str = "",
        *,
        failure: str = "",
        unread: str = "",
        pages: int = 0,
    ) -> None:
        """Take in a file, while `writing`: what it says, or why it could not be read,
        and what was not; of a long document perhaps the first `pages` alone."""
        suffix = ending_of(stamp.path)
        name = os.path.basename(stamp.path)
        name = name[: len(name) - len(suffix)].encode("utf-8", "replace").decode()
        title, text, outline = title_text_outline(data, suffix)
        outline = outline if title else f"{name}. {outline}"
        notes = (text.encode("utf-8", "replace").decode() for text in (failure, unread))
        file = self._database.execute(
            "INSERT OR REPLACE INTO files VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
            (
                os.fsencode(stamp.path),
                *stamp[1:],
                title,
                outline,
                *notes,
                pages,
                data.count(_PAGE_BEGINS) if suffix in CONVERTED else 0,
            ),
        ).lastrowid
        number = (file or 0) << _WINDOW_BITS
        naming = _searchable(f"{title} {name}")
        self._database.executemany(
            "INSERT INTO passages(rowid, title, text) VALUES (?, ?, ?)",
            (
                (number + index, naming, passage)
                for index, passage in enumerate(_passages(text))
            ),
        )

    def unread(self) -> list[tuple[str, str, str]]:
        """Return the path of each file that could not be read, or not wholly, with why
        not, and what not. It is not tried again until it changes."""
        query = "SELECT path, failure, unread FROM files WHERE failure != '' OR unread != ''"
        with self._lock:
            return [
                (os.fsdecode(path), failure, unread)
                for path, failure, unread in self._database.execute(query)
            ]

    def titles(self, numbers: Sequence[int]) -> list[tuple[str, str, int]]:
        """Return path, title and `pages` of files, in the order of their numbers."""
        query = "SELECT id, path, title, pages FROM files WHERE id IN (SELECT value FROM json_each(?))"
        with self._lock:
            rows = {
                number: (os.fsdecode(path), title, pages)
                for number, path, title, pages in self._database.execute(
                    query, (json.dumps(numbers),)
                )
            }
        return [rows[number] for number in numbers if number in rows]

    def word_scores(self, question: Question, *, language: str) -> dict[int, float]:
        """Return the BM25 score of each file's best passage, by number, best first;
        files without a term of `question`, or of its English, are not in it."""
        terms = dict.fromkeys(
            (term, code)
            for form, code in {
                question.translated_to("en"): "en",
                question: language,
            }.items()
            for term in form.terms(code) or form.terms(code, keep_stop_words=True)
        )
        scores: dict[int, float] = {}
        with self._lock:
            words = {word for term, code in terms for word in self._forms(term, code)}
            rows = self._database.execute(
                "SELECT files.id, passages.rank FROM passages JOIN files ON files.id = passages.rowid >> ? "
                "WHERE passages MATCH ? AND passages.rank MATCH 'bm25(3.0, 1.0)' ORDER BY passages.rank LIMIT ?",
                (_WINDOW_BITS, " OR ".join(map(_quoted, words)), _BEST_PASSAGES),
            )
            for number, rank in rows if words else ():
                scores.setdefault(number, -rank)
        return scores

    def _forms(self, term: str, language: str) -> set[str]:
        """Return the words of the vocabulary that a term means, and itself."""
        prefix = term[:_STEM_CHARACTERS]
        candidates = self._database.execute(
            "SELECT term FROM temp.vocabulary WHERE term >= ? AND term < ?",
            (prefix, f"{prefix}\U0010ffff"),
        )
        return {term} | {
            word
            for (word,) in candidates
            if word.isalpha()
            and index_terms(word, language=language, keep_stop_words=True) == [term]
        }

    def without_vector(
        self, model: str, numbers: Collection[int], count: int
    ) -> list[tuple[int, str]]:
        """Return number and outline of at most `count` files that were read and have no
        vector of `model` yet, those of `numbers` before the others."""
        query = (
            "SELECT id, outline FROM files WHERE failure = '' AND model IS NOT ? "
            "ORDER BY id NOT IN (SELECT value FROM json_each(?)), id LIMIT ?"
        )
        with self._lock:
            values = (model, json.dumps([*numbers]), count)
            return list(self._database.execute(query, values))

    def keep_vectors(self, model: str, vectors: Mapping[int, Floats]) -> None:
        """Keep the unit vectors of outlines; not while another process is writing."""
        with self.writing() as is_mine:
            if is_mine:
                self._database.executemany(
                    "UPDATE files SET model = ?, vector = ? WHERE id = ?",
                    (
                        (model, vector.astype(np.float16).tobytes(), number)
                        for number, vector in vectors.items()
                    ),
                )

    def sums(self, model: str) -> tuple[int, int, int]:
        """Return how many pages of PDFs are here, how many files have a vector of
        `model`, and the database's bytes."""
        query = (
            "SELECT (SELECT coalesce(sum(read_pages), 0) FROM files), (SELECT count(*) FROM files WHERE model = ?), "
            "page_count * page_size FROM pragma_page_count, pragma_page_size"
        )
        with self._lock:
            sums: tuple[int, int, int] = self._database.execute(
                query, (model,)
            ).fetchone()
        return sums

    def likeness(self, model: str, queries: Floats) -> dict[int, float]:
        """Return the best cosine of the unit vectors [k, d] with each file's outline, by
        number."""
        with self._lock:
            packed: dict[int, bytes] = dict(
                self._database.execute(
                    "SELECT id, vector FROM files WHERE model = ?", (model,)
                )
            )
        rows = np.frombuffer(b"".join(packed.values()), dtype=np.float16)
        vectors = rows.astype(np.float32).reshape(len(packed), queries.shape[1])
        cosines = (vectors @ queries.T).max(axis=1)
        return dict(zip(packed, cosines.tolist(), strict=True))


def _quoted(word: str) -> str:
    """Return a word as FTS5's query language has it."""
    return '"' + word.replace('"', '""') + '"'


def remove(path: Path) -> None:
    """Remove a database; its own file first, for SQLite passes over the log of one that
    is gone."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
