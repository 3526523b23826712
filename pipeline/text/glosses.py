"""A question word for word in the language of a page: what a page in another language can be asked.

The built-in models read English, and words are found by their letters. So an English page hears a question in German,
French, Spanish, Russian or Chinese as its words in English, in the question's own order, and a page in one of these an
English question as its words there. One word list a language serves both, `pipeline/text/glosses/LANG.txt`: in each
line `word: english` or `word: english, other english`, the likeliest first; a word that English lacks, such as an
article, has nothing behind the colon. Other forms of a word are found by its stem, German compounds by their parts,
Chinese words by longest match; names, numbers and unknown words stay as they are. To add a language, write its file.
Not for: translating text that is shown.
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from pipeline.text.words import LONGEST_WORD, OTHER_SCRIPTS, bare, fold, guess_language, index_terms, is_cjk, raw_words

_FOLDER: Final = Path(__file__).with_name("glosses")
_PART: Final = 3
"""Least letters of a compound's part: shorter ones are found in any word."""
_JOINTS: Final = ("", "s", "es", "n", "en")
"""What German puts between the parts of a compound."""
_KNOWN: Final = 0.4
"""Share of a question's words that its list must know. Of 10,710 English questions 30 with a name or a word such as
"plus" or "sans" are guessed to be in another language; in a real one all but names are known."""
_SENSES: Final = 3
"""Words of a language that an English one is looked for by."""


@lru_cache(maxsize=256)
def heard(question: str, language: str) -> str:
    """Return `question` as a page in `language` (ISO 639-1) understands it; as it is where no list helps."""
    spoken = guess_language(question)
    own, other = _list(spoken), _list(language)
    if spoken == language or not (own or spoken == "en") or not (other or language == "en"):
        return question
    english = own.in_english(question) if own else question
    return other.from_english(english) if other else english


def also_in_english(question: str, language: str) -> dict[str, str]:
    """Return what texts in unknown languages are asked, by language: `question`, and its English if that is another."""
    return {heard(question, "en"): "en", question: language}


def _list(language: str) -> "_WordList | None":
    # A page may call its language anything.
    return _read(language) if language in _languages() else None


@cache
def _languages() -> frozenset[str]:
    return frozenset(path.stem for path in _FOLDER.glob("*.txt"))


@cache
def _read(language: str) -> "_WordList":
    return _WordList(language)


class _WordList:
    """The words of a language, each with its likeliest English."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._words: dict[str, str] = {}
        self._stems: dict[str, str] = {}
        self._back: dict[str, list[str]] = {}
        for line in (_FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines():
            word, _, english = line.partition(":")
            senses = [sense.strip() for sense in english.split(",")]
            self._words[word] = senses[0]
            self._stems.setdefault(self._stem(word), senses[0])
            for sense in filter(None, senses):
                self._back.setdefault(_stem(sense, "en"), []).append(word)
        for word, sense in [*self._words.items()]:
            self._words.setdefault(fold(word), sense)
        self._phrase = 1 + max(entry.count(" ") for entry in (*self._words, *self._back))
        """Most words of an entry, in either language."""
        self._run = max(map(len, self._words))
        """Most characters of an entry."""

    def in_english(self, question: str) -> str:
        """Return `question` in English; as it is where so few words are known that it may be in another language."""
        words = raw_words(question)
        found: list[str] = []
        place = known = 0
        while place < len(words):
            count, said = self._longest(words[place : place + self._phrase])
            known += count if said is not None else 0
            found.append(words[place] if said is None else said)
            place += count
        sure = self._language in OTHER_SCRIPTS or known >= _KNOWN * len(words)
        return " ".join(filter(None, found)) if sure else question

    def _longest(self, words: Sequence[str]) -> tuple[int, str | None]:
        """Return how many of the next words are a phrase, one at least, and its English; None where it is unknown."""
        if is_cjk(words[0]):
            return 1, " ".join(filter(None, self._cut(words[0])))
        for count in range(len(words), 0, -1):
            found = self._known(" ".join(bare(word.lower()) for word in words[:count]))
            if found is not None:
                return count, found
        return 1, " ".join(self._parts(fold(words[0].lower()))) or None

    def from_english(self, question: str) -> str:
        """Return the words that mean those of an English question, several of some; its stop words have none."""
        words = raw_words(question)
        found: list[str] = []
        place = 0
        while place < len(words):
            for count in range(min(self._phrase, len(words) - place), 0, -1):
                phrase = " ".join(words[place : place + count])
                if meant := self._back.get(_stem(phrase, "en")):
                    break
            else:
                count, phrase, meant = 1, words[place], [words[place]]
            found += meant[:_SENSES] if index_terms(phrase) else []
            place += count
        return " ".join(found)

    def _known(self, phrase: str) -> str | None:
        found = self._words.get(phrase, self._words.get(fold(phrase)))
        return self._stems.get(self._stem(phrase)) if found is None else found

    def _stem(self, phrase: str) -> str:
        return _stem(phrase, self._language)

    def _parts(self, word: str, most: int = 4) -> list[str]:
        """Return the English of the parts of a German compound, nothing where it is none of at most `most`.

        Without a bound a word made for it has very many ways to be cut.
        """
        if self._language != "de" or len(word) > LONGEST_WORD or most < 2:
            return []
        for end in range(len(word) - _PART, _PART - 1, -1):
            first = self._words.get(word[:end])
            if not first:
                continue
            for joint in _JOINTS:
                rest = word[end:].removeprefix(joint) if word[end:].startswith(joint) else ""
                if len(rest) >= _PART and (last := self._known(rest)):
                    return [first, last]
                if len(rest) >= _PART and (more := self._parts(rest, most - 1)):
                    return [first, *more]
        return []

    def _cut(self, run: str) -> Iterator[str]:
        """Yield the English of the longest words that a run without blanks begins with, one after the other."""
        place = 0
        while place < len(run):
            for end in range(min(len(run), place + self._run), place, -1):
                found = self._words.get(fold(run[place:end]))
                if found is not None:
                    yield found
                    break
            else:
                end = place + 1
            place = end


def _stem(phrase: str, language: str) -> str:
    return " ".join(index_terms(phrase, language=language, keep_stop_words=True))
