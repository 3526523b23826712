"""Full-text and vector index of local files: one SQLite database, searched by BM25 and
cosine.

Counting serves to find a file, not to show it. Markup is blanked by one regular
expression, and words are split at spaces: about twenty times faster than parsing the
document. FTS5 stores the positions of words, folded and not stemmed; a query stems the
part of the vocabulary that it can meet, so one index serves queries in any language.
The formula is `okapi`, since FTS5's own gives words of more than half of the files no
weight. No number of a file is given twice: by it other processes see what is new, and
words of what was replaced are passed over. Not for: finding and reading files
(`pipeline/search/folder.py`).
"""

import hashlib
import html
import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cache.folder import LOCK_WAIT
from pipeline.document.converted import can_recognise
from pipeline.fetch.files import CONVERTED, ending_of
from pipeline.question.question import Question
from pipeline.read.format import endings_of, formats
from pipeline.reading.bm25 import Floats, okapi
from pipeline.text.words import (
    LONGEST_WORD,
    REMEMBERED,
    bigrams,
    fold,
    index_terms,
    is_cjk,
    lower_runs,
)

TITLE_WEIGHT: Final = 3
"""How often a word of title or file name counts more than one of the text."""
INDEX_VERSION: Final = "10"
"""Part of the database's name; raise it when counting changes."""
SPLIT_CHARACTERS: Final = 4_000_000
"""Characters of a text that are split into words at once: 35 MB of memory."""
OUTLINED_BYTES: Final = 4_000_000
"""Bytes of a file whose headings are looked at for its outline."""
OUTLINE: Final = 500
"""Letters of a file's outline, about 100 tokens: 200 tokens of headings, or first
paragraphs, find no more."""
_STEM_CHARACTERS: Final = 3
"""Characters that a word and its stem share in every Snowball language but Arabic."""
_FOLDED_BYTES: Final = bytes(
    code if code >= 0x80 else ord(chr(code).lower()) if chr(code).isalnum() else 0x20
    for code in range(256)
)
"""Upper case ASCII to lower, ASCII that is no letter or digit to blanks, bytes of other
characters as they are."""
_STRETCH: Final = re.compile(r"(?<![!-~])[!-~]*+[^\x00-\x7f]\S*")
# Linear on any input: an unclosed piece of markup ends at the end of the data, so that no piece is
# tried again. No group is repeated by `*+`, which Python before 3.11.5 matches wrongly.
_UNINDEXED_MARKUP: Final = re.compile(
    rb"<(?:!--.*?(?:-->|\Z)"
    rb"|(script|style|template|svg)\b.*?(?:</\1\s*>|\Z)"
    rb"|/?[a-z!?][^>]*+(?:>|\Z))",
    re.DOTALL | re.IGNORECASE,
)
_TITLE_BYTES: Final = re.compile(rb"<title[^>]{0,200}>([^<]{1,500})", re.IGNORECASE)
_HEADING_BYTES: Final = re.compile(
    rb"<h[1-4]\b[^>]{0,500}>(.{1,400}?)</h[1-4]", re.IGNORECASE | re.DOTALL
)
_MARKDOWN_HEADINGS: Final = re.compile(rb"^#{1,4}[ \t]+(.{1,300})$", re.MULTILINE)
_MARKDOWN_TITLE: Final = re.compile(
    rb"^(?:#[ \t]+|title:[ \t]*)(.{1,300})$", re.MULTILINE | re.IGNORECASE
)
_JSON_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)")
_MARKUP_ENDINGS: Final = (
    CONVERTED
    | {".html", ".htm", ".xhtml"}
    | endings_of(one for one in formats() if one.indexed == "markup")
)
"""Endings of files that are markup, or come as such from their readers."""
_JSON: Final = endings_of(one for one in formats() if one.indexed == "json")


_SCHEMA: Final = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS files(
    id INTEGER PRIMARY KEY AUTOINCREMENT, path BLOB NOT NULL UNIQUE, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
    length INTEGER NOT NULL, about INTEGER NOT NULL, title TEXT NOT NULL, failure TEXT NOT NULL, unread TEXT NOT NULL,
    mark BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS outlines(about INTEGER PRIMARY KEY, text TEXT NOT NULL, model TEXT, vector BLOB);
CREATE TABLE IF NOT EXISTS words(word TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(words, content='', columnsize=0, tokenize='ascii');
CREATE VIRTUAL TABLE IF NOT EXISTS temp.places USING fts5vocab('main', 'texts', 'instance');
"""
_UNSIGHTED, _SIGHTED = 1, 2
"""How a database says whether who filled it recognised words in images."""
_MOST_DEAD: Final = 1_000
"""Texts of edited and deleted files that are skipped before the index is rebuilt."""


def title_text_outline(data: bytes, suffix: str) -> tuple[str, bytes, str]:
    """Return what a file in UTF-8 with this ending is called, says and is about.

    The title is empty where none is given; in the text markup is blanked; the outline
    is title and headings, or the first words where there are none."""
    title, text = _title_and_text(data, suffix)
    headings = (
        _HEADING_BYTES if suffix in _MARKUP_ENDINGS else _MARKDOWN_HEADINGS
    ).findall(data[:OUTLINED_BYTES])
    parts = dict.fromkeys([title, *map(_line, headings)])
    outline = ". ".join(filter(None, parts))
    if len(outline) < OUTLINE // 4:
        outline = f"{outline}. {' '.join(text[: 4 * OUTLINE].decode('utf-8', 'replace').split())}"
    return title, text, outline[:OUTLINE]


def _title_and_text(data: bytes, suffix: str) -> tuple[str, bytes]:
    if suffix in _JSON:
        return "", _JSON_ESCAPE.sub(
            lambda at: (
                chr(int(at[1], 16)).encode("utf-8", "replace") if at[1] else b" "
            ),
            data,
        )
    if suffix not in _MARKUP_ENDINGS:
        heading = _MARKDOWN_TITLE.search(data[:4_000])
        return (
            heading[1].decode("utf-8", "replace").strip(" #\"'\r") if heading else ""
        ), data
    named = _TITLE_BYTES.search(data[:20_000]) or _HEADING_BYTES.search(data)
    text = _UNINDEXED_MARKUP.sub(b" ", data)
    if b"&" in text:
        text = html.unescape(text.decode("utf-8", "replace")).encode(
            "utf-8", "surrogatepass"
        )
    return _line(named[1]) if named else "", text


def _parts_at_spaces(text: str) -> Iterator[str]:
    """Yield a text in parts of about `SPLIT_CHARACTERS` characters that end at a space."""
    begin = 0
    while begin < len(text):
        end = text.find(" ", begin + SPLIT_CHARACTERS)
        end = len(text) if end < 0 else end
        yield text[begin:end]
        begin = end


def _line(marked_up: bytes) -> str:
    return " ".join(
        html.unescape(
            _UNINDEXED_MARKUP.sub(b" ", marked_up).decode("utf-8", "replace")
        ).split()
    )


class FileStamp(NamedTuple):
    """A file as it was when listed; the same stamp means the same content."""

    path: str
    mtime_ns: int
    size: int


class IndexedFile(NamedTuple):
    """What is known of one file without opening it: `length` in words, `about` as the
    hash of its outline."""

    id: int
    stamp: FileStamp
    length: int
    about: int
    title: str
    failure: str
    """Why it could not be read; such a file has no words and is not tried again until
    it changes."""
    unread: str
    """What of it was not read, and is not counted."""


class IndexedFiles(NamedTuple):
    """All files at one time, and what every question asks of each: of 100,000 made in
    .05 processor seconds."""

    files: list[IndexedFile]
    places: NDArray[np.int64]
    """Position in `files` by file number; -1 for deleted files."""
    lengths: NDArray[np.float64]
    abouts: NDArray[np.int64]
    """Hashes of outlines [n]."""
    partly: list[IndexedFile]
    """Those that could not be read, or not wholly."""


class WordIndex:
    """The words of many files; for any number of threads and processes.

    Methods raise `sqlite3.Error` where the database cannot be read or written.
    """

    def __init__(self, path: Path | None, *, sighted: bool | None = None) -> None:
        """Open or make the database at `path`, for its owner's eyes alone; None keeps
        it in memory.

        What was not read, in whole or in part, by who recognised no words in images is
        forgotten for who does: `sighted`, by default where the extra `ocr` is
        installed. Raises `OSError` or `sqlite3.Error` where it cannot be opened."""
        if path is not None:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._database = sqlite3.connect(
            path or ":memory:",
            timeout=LOCK_WAIT,
            isolation_level=None,
            check_same_thread=False,
        )
        self._lock = threading.RLock()
        self._files: dict[str, IndexedFile] = {}
        self._listed: IndexedFiles | None = None
        self.newest = 0
        """The number of the file taken in last."""
        self._spelled: set[str] = set()
        self._vectors: dict[str, list[tuple[NDArray[np.int64], Floats]]] = {}
        """By model: hashes of outlines, and their vectors."""
        self._rows: dict[str, tuple[IndexedFiles, int, NDArray[np.int64]]] = {}
        """By model: the row of each file's outline among so many lots of vectors, -1
        for none."""
        self._database.executescript(_SCHEMA)
        # Two slices of another process; who does not get its turn by then comes again.
        self._database.execute("PRAGMA busy_timeout = 200")
        self._see(can_recognise() if sighted is None else sighted)
        self.refresh()
        [(given,)] = self._database.execute(
            "SELECT coalesce(max(seq), 0) FROM sqlite_sequence"
        )
        self.is_worn = given > 2 * len(self._files) + _MOST_DEAD
        """Whether most words were of files that are gone."""

    def _see(self, sighted: bool) -> None:
        """Drop outdated rows, and register this reader."""
        [(before,)] = self._database.execute("PRAGMA user_version")
        if sighted and before != _SIGHTED:
            self._database.execute(
                "DELETE FROM files WHERE unread != '' OR failure != ''"
            )
        if before != (noted := _SIGHTED if sighted else _UNSIGHTED):
            self._database.execute(f"PRAGMA user_version = {noted}")

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._database.close()

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """Hold the sole right to add files, and know those that other processes added;
        False while another has it.

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
                self.refresh()
                yield True
                self.refresh()
            except sqlite3.Error:
                self._database.rollback()
                raise
            finally:
                self._database.commit()

    def refresh(self) -> None:
        """Take in what was added, by other processes as well."""
        with self._lock:
            for number, path, mtime_ns, size, *rest in self._database.execute(
                "SELECT id, path, mtime_ns, size, length, about, title, failure, unread FROM files "
                "WHERE id > ? ORDER BY id",
                (self.newest,),
            ):
                stamp = FileStamp(os.fsdecode(path), mtime_ns, size)
                self._files[stamp.path] = IndexedFile(number, stamp, *rest)
                self.newest, self._listed = number, None

    def indexed(self) -> IndexedFiles:
        """Return all files; the same object as before says that none has changed."""
        with self._lock:
            if self._listed is None:
                files = list(self._files.values())
                places = np.full(self.newest + 1, -1, dtype=np.int64)
                places[[file.id for file in files]] = np.arange(len(files))
                lengths = np.asarray([file.length for file in files], dtype=np.float64)
                abouts = np.asarray([file.about for file in files], dtype=np.int64)
                partly = [file for file in files if file.failure or file.unread]
                self._listed = IndexedFiles(files, places, lengths, abouts, partly)
            return self._listed

    def known(self, stamp: FileStamp) -> bool:
        """Whether the file is here just as `stamp` says."""
        return stamp.path in self._files and self._files[stamp.path].stamp == stamp

    def keep_only(self, paths: Iterable[str], *, forget: bool) -> None:
        """Leave out the files that are not in `paths`, and with `forget` drop them from
        the database.

        While another process is writing they stay in it."""
        with self._lock:
            gone = [
                (self._files.pop(path).id,) for path in self._files.keys() - set(paths)
            ]
            self._listed = None if gone else self._listed
            if gone and forget:
                with self.writing() as mine:
                    if mine:
                        self._database.executemany(
                            "DELETE FROM files WHERE id = ?", gone
                        )

    def add(
        self,
        stamp: FileStamp,
        data: bytes = b"",
        *,
        failure: str = "",
        unread: str = "",
    ) -> None:
        """Take in a file, while `writing`: what it says, in UTF-8, or why it could not
        be read, and what was not.

        A file that was only touched keeps its words under the new stamp. One that could
        not be read is not read again until it changes."""
        write, mark = (
            self._database.execute,
            hashlib.blake2b(data, digest_size=16).digest(),
        )
        old = self._files.get(stamp.path)
        same = (
            "UPDATE files SET mtime_ns = ? WHERE id = ? AND mark = ? AND failure = ''"
        )
        if (
            old is not None
            and not failure
            and write(same, (stamp.mtime_ns, old.id, mark)).rowcount
        ):
            self._files[stamp.path], self._listed = old._replace(stamp=stamp), None
            return
        # 1. Its words
        suffix = ending_of(stamp.path)
        name = os.path.basename(stamp.path)
        name = name[: name.lower().rfind(suffix) if suffix else None].replace("_", " ")
        title, text, outline = title_text_outline(data, suffix)
        outline = _plain(outline if title else f"{name}. {outline}")
        text += b" " + TITLE_WEIGHT * f"{title} {name} ".encode(
            "utf-8", "surrogatepass"
        )
        spaced = text.translate(_FOLDED_BYTES).decode("utf-8", "replace")
        spaced = (
            spaced
            if spaced.isascii()
            else _STRETCH.sub(lambda found: _cut(found[0]), spaced)
        )
        length, words = 0, set[str]()
        for part in _parts_at_spaces(spaced):
            found = part.split()
            length += len(found)
            words.update(found)
        # 2. Its row, and the words under the same number
        about = int.from_bytes(
            hashlib.blake2b(outline.encode(), digest_size=8).digest(),
            "little",
            signed=True,
        )
        row = (*map(_plain, (title, failure, unread)), mark)
        write(
            "INSERT OR IGNORE INTO outlines VALUES (?, ?, NULL, NULL)", (about, outline)
        )
        number = write(
            "INSERT OR REPLACE INTO files VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                os.fsencode(stamp.path),
                stamp.mtime_ns,
                stamp.size,
                length,
                about,
                *row,
            ),
        ).lastrowid
        write("INSERT INTO texts(rowid, words) VALUES (?, ?)", (number, spaced))
        # 3. The vocabulary
        new = words - self._spelled
        if len(self._spelled) > REMEMBERED:
            self._spelled.clear()
        self._spelled |= new
        self._database.executemany(
            "INSERT OR IGNORE INTO words VALUES (?)",
            ((w,) for w in new if _has_forms(w)),
        )

    def scores(
        self, question: Question, *, language: str
    ) -> tuple[IndexedFiles, Floats]:
        """Return all files, and the BM25 score of each [n], 0 without a term of
        `question`, or of its English."""
        terms = dict.fromkeys(
            (term, code)
            for one, code in {
                question.translated_to("en"): "en",
                question: language,
            }.items()
            for term in one.terms(code) or one.terms(code, keep_stop_words=True)
        )
        with self._lock:
            indexed = self.indexed()
            ids = [self._ids(term, code) for term, code in terms]
        places, count = indexed.places, len(indexed.files)
        at = [places[own[own < len(places)]] for own in ids]
        found = [np.bincount(own[own >= 0], minlength=count) for own in at]
        if not found or not count:
            return indexed, np.zeros(count, dtype=np.float32)
        return indexed, okapi(np.stack(found), indexed.lengths)

    def _ids(self, term: str, language: str) -> NDArray[np.int64]:
        """File ids, repeated for each occurrence of a term in any of its forms."""
        prefix = term[:_STEM_CHARACTERS]
        near = self._database.execute(
            "SELECT word FROM words WHERE word >= ? AND word < ?",
            (prefix, f"{prefix}\U0010ffff"),
        )
        forms = {
            word
            for (word,) in near
            if index_terms(word, language=language, keep_stop_words=True) == [term]
        }
        # As one text: 112,000 places come in .01 processor seconds, row by row in .03.
        [(places,)] = self._database.execute(
            "SELECT coalesce(group_concat(doc), '') FROM places WHERE term IN (SELECT value FROM "
            "json_each(?))",
            (json.dumps([*forms | {term}]),),
        )
        return np.fromstring(places, dtype=np.int64, sep=",")

    def without_vector(
        self, model: str, abouts: NDArray[np.int64], most: int
    ) -> list[tuple[int, str]]:
        """Return hash and outline of the first `most` of the hashes `abouts` that have
        no vector of `model` yet."""
        with self._lock:
            if model not in self._vectors:
                kept = "SELECT about, vector FROM outlines WHERE model = ?"
                packed = dict(self._database.execute(kept, (model,)))
                rows = np.frombuffer(
                    b"".join(packed.values()), dtype=np.float16
                ).astype(np.float32)
                self._vectors[model] = []
                if packed:
                    own = np.asarray(list(packed), dtype=np.int64)
                    self._vectors[model].append((own, rows.reshape(len(packed), -1)))
            known = [own for own, _ in self._vectors[model]]
            new = dict.fromkeys(
                abouts[~np.isin(abouts, np.concatenate(known))].tolist()
                if known
                else abouts.tolist()
            )
            query = "SELECT about, text FROM outlines WHERE about IN (SELECT value FROM json_each(?))"
            return list(
                self._database.execute(query, (json.dumps(list(islice(new, most))),))
            )

    def keep_vectors(self, model: str, abouts: list[int], vectors: Floats) -> None:
        """Keep the unit vectors [n, width] of outlines with these hashes.

        While another process is writing they are kept in this one only."""
        with self._lock, self.writing() as mine:
            self._vectors.setdefault(model, []).append(
                (np.asarray(abouts, dtype=np.int64), vectors)
            )
            if mine:
                rows = zip(vectors.astype(np.float16), abouts, strict=True)
                self._database.executemany(
                    "UPDATE outlines SET model = ?, vector = ? WHERE about = ?",
                    ((model, vector.tobytes(), about) for vector, about in rows),
                )

    def likeness(self, model: str, indexed: IndexedFiles, asked: Floats) -> Floats:
        """Return the best cosine of the unit vectors [k, d] with each file's outline
        [n]; unknown ones the lowest, all 0 where there are no vectors."""
        with self._lock:
            lots = list(self._vectors.get(model, ()))
            if not lots:
                return np.zeros(len(indexed.files), dtype=np.float32)
            match self._rows.get(model):
                case (of, count, rows) if of is indexed and count == len(lots):
                    pass
                case _:
                    row_of = {
                        about: row
                        for row, about in enumerate(
                            np.concatenate([own for own, _ in lots]).tolist()
                        )
                    }
                    rows = np.asarray(
                        [row_of.get(about, -1) for about in indexed.abouts.tolist()],
                        dtype=np.int64,
                    )
                    self._rows[model] = indexed, len(lots), rows
        found = np.concatenate([(vectors @ asked.T).max(axis=1) for _, vectors in lots])
        likeness: Floats = np.where(rows >= 0, found[rows], found.min())
        return likeness


def remove(path: Path) -> None:
    """Remove a database; its own file first, for SQLite passes over the log of one that
    is gone."""
    for part in ("", "-wal", "-shm"):
        Path(f"{path}{part}").unlink(missing_ok=True)


def _plain(text: str) -> str:
    """`text` with what has no form in UTF-8 replaced."""
    return text.encode("utf-8", "replace").decode()


def _has_forms(word: str) -> bool:
    """Whether a query can mean a word by another form of it."""
    return len(word) <= LONGEST_WORD and word.isalpha() and not is_cjk(word)


@lru_cache(maxsize=30_000)
def _cut(stretch: str) -> str:
    """Return the words and CJK pairs, folded, of a stretch between ASCII blanks that
    holds other characters."""
    runs = lower_runs(stretch.replace("’", " "))
    return " ".join(
        fold(word) for run in runs for word in (bigrams(run) if is_cjk(run) else [run])
    )
