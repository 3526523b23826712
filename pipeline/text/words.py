"""The words of languages: as files list them, as terms that an index counts, as names,
and in another language.

Lists. The data of rules is in one text file per language,
`pipeline/text/words/LANG.txt`, named by its ISO 639-1 code, in sections:

    # a comment
    [stop]
    a, about, after
    the, their
    [freshness.day]
    today, right now

Entries are separated by commas or line ends and may be phrases; they are lower case if
the searched text is lowered. Values of an entry follow a colon (`lightest: weight
mass`). Every section is optional: a rule that asks for one that a file lacks finds no
words there.

To add a language, write its file; nothing is registered. `[stop]` (function words only,
never a noun) already gives it index terms, recognition by `guess_language` and names at
the beginning of sentences; then `[abbreviations]` (before a period that ends no
sentence) and `[freshness.*]` help most. `en.txt` shows nearly all sections.
Abbreviations, sentence starters, freshness and question words of all languages are used
together, because texts mix languages and may be too short to detect one: leave out what
is a common word in another language. To add a section, name it by its user
(`verdict.asking`), write it into the files, and ask for it here.

Terms. Latin, Cyrillic and Greek words are lowercased, stripped of accents and stemmed
by the Snowball stemmer of the language; Chinese, Japanese and Korean text becomes
character bigrams (and isolated single characters). A language is detected by script,
then by stop words and special letters; "" is better than a wrong result. Pages usually
declare theirs.

Names and unknown words of a request are kept whole (zero-index §3.1) and found by form
only: quotation marks, capitals inside a sentence, mixed case, digits inside words,
katakana runs, Latin words in CJK text, letter pairs that English does not have. No
dictionary, no model.

Glosses. The built-in models read English, and terms match by spelling. So a question in
German, French, Spanish, Russian or Chinese is translated word by word for an English
page, and vice versa. One word list a language serves both,
`pipeline/text/glosses/LANG.txt`: in each line `word: english` or `word: english, other
english`, the likeliest first; a word that English lacks, such as an article, has
nothing after the colon. Other forms of a word are found by its stem, German compounds
by their parts, Chinese words by longest match; names, numbers and unknown words stay as
they are. To add a language, write its file.

Not for: patterns of characters, which are code, sentence boundaries
(`pipeline/document/units.py`), budgets (`pipeline/text/tokens.py`), or translating text
that is shown."""

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import Stemmer

_WORDS_FOLDER: Final = Path(__file__).with_name("words")
_UNSPACED_RANGE: Final = re.compile("[\u3040-\ud7ff]")
"""Scripts that write words without blanks between them, or with endings that hang on
them."""


def words(section: str, language: str = "") -> frozenset[str]:
    """Return the entries of `section` for a language (ISO 639-1), or for all; empty
    where there are none."""
    if not language:
        return frozenset().union(*(words(section, code) for code in languages()))
    return (
        _sections(language).get(section, frozenset())
        if language in languages()
        else frozenset()
    )


@lru_cache(maxsize=64)
def meanings(section: str, language: str = "") -> dict[str, str]:
    """Return the entries of `section` with values after a colon: word to values; see
    `words`."""
    return dict(entry.split(": ") for entry in words(section, language))


@cache
def languages() -> tuple[str, ...]:
    """Return the codes of the languages that have a file, in order."""
    return tuple(sorted(path.stem for path in _WORDS_FOLDER.glob("*.txt")))


def any_of(entries: Iterable[str]) -> str:
    """Return a regular expression for any of `entries`, the longest first; one that
    never matches for none.

    A phrase's blanks match any white space.
    """
    ordered = sorted(entries, key=lambda entry: (-len(entry), entry))
    return (
        "|".join(re.escape(entry).replace(r"\ ", r"\s+") for entry in ordered)
        or r"(?!)"
    )


def whole_words(entries: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of `entries` as whole words; Chinese, Japanese
    and Korean ones anywhere."""
    entries = frozenset(entries)
    unparted = frozenset(filter(_UNSPACED_RANGE.match, entries))
    return re.compile(
        rf"(?<!\w)(?:{any_of(entries - unparted)})(?!\w)|{any_of(unparted)}"
    )


@cache
def _sections(language: str) -> dict[str, frozenset[str]]:
    sections: dict[str, set[str]] = {}
    entries: set[str] = set()
    for line in (
        (_WORDS_FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    ):
        if line.startswith("["):
            entries = sections.setdefault(line.strip("[] "), set())
        elif not line.startswith("#"):
            entries.update(entry.strip() for entry in line.split(",") if entry.strip())
    return {name: frozenset(entries) for name, entries in sections.items()}


_STEMMED_TEXT: Final = "ar da de el en es fi fr hu it nl no pt ro ru sv tr"
_STEMMED: Final = frozenset(_STEMMED_TEXT.split())
"""ISO 639-1 codes with a Snowball stemmer of their own; others are stemmed as English,
which leaves most alone."""
_CJK_RANGES: Final = "々-〇぀-ヿ㐀-䶿一-鿿가-힯\U00020000-\U0002fa1f"
_CJK: Final = re.compile(f"[{_CJK_RANGES}]")
_UNSPACED: Final = re.compile("[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff]+")
"""Runs of Thai, Lao, Burmese and Khmer, whose words have no blanks between them."""
_LETTER_WITH_MARKS: Final = re.compile(r".[^\w\s]*")
CJK_LETTERS: Final = 2.7
"""English letters per character of Chinese, Japanese or Korean."""
_COMBINING_MARKS: Final = "".join(
    re.escape(chr(point))
    for point in range(0x300, 0xE00)
    if unicodedata.category(chr(point)) in {"Mn", "Mc"}
)
"""Accents that are letters of their own, vowel signs of Indic scripts, points of Hebrew
and Arabic: they belong to the word around them. Not those of Thai and its neighbors,
which write no blanks."""
_REST: Final = rf"(?:[{_COMBINING_MARKS}]+[^\W_{_CJK_RANGES}]*)*(?:['’][^\W\d_]+)?"
_TERM: Final = re.compile(rf"[{_CJK_RANGES}]+|[^\W_{_CJK_RANGES}]+{_REST}")
_INFLECTED: Final = re.compile(rf"[^\W_]+{_REST}")
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_HALF_WIDTH: Final = re.compile(r"[ｦ-ﾟ]")
_ELIDED: Final = words("elided")
_CJK_STOPS: Final = words("stop", "zh") | words("stop", "ja")
_KEPT_MARK: Final = "\u0306"
"""The breve: й without it is another letter, and the Russian stemmer then misses its
endings."""
_WRITING_SYSTEMS: Final = (
    ("ja", re.compile(r"[぀-ヿ]")),
    ("ko", re.compile(r"[가-힯ᄀ-ᇿ]")),
    ("zh", re.compile(r"[㐀-䶿一-鿿\U00020000-\U0002fa1f]")),
    ("el", re.compile(r"[Ͱ-Ͽ]")),
    ("he", re.compile(r"[֐-׿]")),
    ("ar", re.compile(r"[؀-ۿ]")),
    ("hi", re.compile(r"[ऀ-ॿ]")),
    ("th", re.compile(r"[฀-๿]")),
    ("uk", re.compile(r"[іїєґІЇЄҐ]")),
    ("ru", re.compile(r"[Ѐ-ӿ]")),
)
OTHER_SCRIPTS: Final = frozenset(code for code, _ in _WRITING_SYSTEMS)
"""Detected languages that are not written in Latin letters."""
_LETTER: Final = re.compile(r"[^\W\d_]")
_APOSTROPHE: Final = re.compile(r"\b(\w+)['’]")
_LATIN_TEXT: Final = "en de fr es it pt nl sv da no fi pl tr ro vi cs hu"
_LATIN_LANGUAGES: Final = tuple(_LATIN_TEXT.split())
"""Of languages with as many points the first is taken."""
SURELY_OTHER: Final = 3.0
"""Times as many points as the language that a page says of itself: a template's
`lang="en"` around French text has nine times as many for French."""
REQUEST_CHARACTERS: Final = 4_000
"""Characters of a request that are looked at; a longer one brings text along, whose
words are not asked about."""
_SCRIPT_SHARE: Final = 0.2
"""A script needs this share of the letters: one Greek letter in an English formula is
not Greek."""
REMEMBERED: Final = 300_000
"""Words that a memory of them holds before it starts afresh: about 40 MB at most."""
LONGEST_WORD: Final = 40
"""Letters of a word that has other forms, or parts."""


class _Memory(dict[str, str]):
    """Word to index term, the empty string for a stop word; filled as words come."""

    def __init__(self, language: str, *, keep_stop_words: bool) -> None:
        super().__init__()
        self._stems = Stemmer.Stemmer(language if language in _STEMMED else "en", 0)
        self._stops = (
            frozenset()
            if keep_stop_words
            else words("stop", language) or words("stop", "en")
        )
        self._lock = threading.Lock()

    def __missing__(self, word: str) -> str:
        bare_word = bare(word)
        term = "" if bare_word in self._stops else fold(bare_word)
        if term:
            with self._lock:  # one stemmer must not be entered twice
                term = self._stems.stemWord(term)
        if len(self) >= REMEMBERED:
            self.clear()
        self[word] = term
        return term


def bare(word: str) -> str:
    """Return a word without what is attached by an apostrophe: `dog's` as `dog`,
    `l'eau` as `eau`."""
    head, apostrophe, tail = word.replace("’", "'").partition("'")
    return (
        tail
        if apostrophe and len(tail) > 2 and (len(head) <= 2 or head in _ELIDED)
        else head
    )


@lru_cache(maxsize=64)
def _memory(language: str, keep_stop_words: bool) -> _Memory:
    return _Memory(language, keep_stop_words=keep_stop_words)


def fold(word: str) -> str:
    """Return a lowercase word without accents, in its plain width (`ü` as `u`, `ß` as
    `ss`, `２` as `2`); й stays."""
    if word.isascii():
        return word
    marks = (
        c
        for c in unicodedata.normalize("NFKD", word.replace("ß", "ss"))
        if c == _KEPT_MARK or not unicodedata.combining(c)
    )
    return unicodedata.normalize("NFC", "".join(marks))


def is_cjk(text: str) -> bool:
    """Whether `text` holds any Chinese, Japanese or Korean character."""
    return not text.isascii() and _CJK.search(text) is not None


def is_unspaced(text: str) -> bool:
    """Whether `text` is in Thai, Lao, Burmese or Khmer: half of its characters, which
    have no blanks between words."""
    if text.isascii():
        return False
    return 2 * sum(map(len, _UNSPACED.findall(text))) >= len(text)


def raw_words(text: str) -> list[str]:
    """Return the original words of `text` in order: no folding, no stemming, CJK runs
    whole."""
    return _TERM.findall(text)


def lower_runs(text: str) -> list[str]:
    """Return the words of `text` in lower case and the CJK runs whole, in order."""
    lowered = full_width(text).lower()
    if lowered.isascii():
        return _ASCII_WORD.findall(lowered)
    return (_TERM if _CJK.search(lowered) else _INFLECTED).findall(lowered)


def full_width(text: str) -> str:
    """Return `text` with half-width katakana in their usual form; anything else as it
    is."""
    return (
        unicodedata.normalize("NFKC", text)
        if not text.isascii() and _HALF_WIDTH.search(text)
        else text
    )


def bigrams(run: str) -> list[str]:
    """Return the character pairs of a CJK run, or the run itself where it is one
    character."""
    return [run[i : i + 2] for i in range(len(run) - 1)] if len(run) > 1 else [run]


def index_terms(
    text: str, *, language: str = "en", keep_stop_words: bool = False
) -> list[str]:
    """Return the index terms of `text` in order, repeats kept; query and texts must
    agree in the arguments.

    `language` (ISO 639-1) picks the stemmer, English where unknown; stop words such as
    "the" go unless they are kept."""
    memory = _memory(
        language if language in _STEMMED or language in languages() else "en",
        keep_stop_words,
    )
    text = full_width(text)
    if not text.isascii() and _UNSPACED.search(text):
        return _unspaced_terms(text, language, keep_stop_words=keep_stop_words)
    runs = lower_runs(text)
    if not is_cjk(text):
        return list(filter(None, map(memory.__getitem__, runs)))
    stops = frozenset() if keep_stop_words else _CJK_STOPS
    terms: list[str] = []
    for run in runs:
        if _CJK.match(run):
            terms.extend(pair for pair in bigrams(run) if pair not in stops)
        elif term := memory[run]:
            terms.append(term)
    return terms


def _unspaced_terms(text: str, language: str, *, keep_stop_words: bool) -> list[str]:
    """Return the index terms of a text with Thai or the like: of each run of it three
    letters with their marks, from each letter on."""
    terms: list[str] = []
    offset = 0
    for run in _UNSPACED.finditer(text):
        terms += index_terms(
            text[offset : run.start()],
            language=language,
            keep_stop_words=keep_stop_words,
        )
        letters = _LETTER_WITH_MARKS.findall(run[0])
        terms += [
            "".join(letters[start : start + 3])
            for start in range(max(1, len(letters) - 2))
        ]
        offset = run.end()
    return terms + index_terms(
        text[offset:], language=language, keep_stop_words=keep_stop_words
    )


def count_letters(text: str) -> int:
    """Return the characters of a text, as many as English prose needs to say the
    same."""
    return len(text) + round((CJK_LETTERS - 1) * len(_CJK.findall(text)))


def guess_language(text: str) -> str:
    """Return an ISO 639-1 code for the language of `text`, or "" if unknown, by its
    first `REQUEST_CHARACTERS` characters."""
    text = text[:REQUEST_CHARACTERS]
    letters = len(_LETTER.findall(text))
    if not letters:
        return ""
    for code, script in _WRITING_SYSTEMS:
        letter_count = len(script.findall(text))
        # Kana among many Han characters are enough for Japanese, and Ukrainian letters are rare
        # among the Cyrillic ones
        if (
            letter_count
            >= (
                1
                if code == "uk"
                else 0.05 * letters
                if code == "ja"
                else _SCRIPT_SHARE * letters
            )
            and letter_count
        ):
            return code
    points = _latin_points(text)
    language = max(points, key=lambda code: points[code])
    return language if points[language] > 0 else ""


UNDETERMINED: Final = "und"
"""ISO 639-2 code for an undetermined language."""


def holds_letters(text: str) -> bool:
    """Whether `text` has a letter of any script."""
    return _LETTER.search(text) is not None


def language_of(text: str, declared: str) -> str:
    """Return the language of a page's `text`: what the page says of itself, unless its
    script is another, or another language has `SURELY_OTHER` times as many points; ""
    if unknown."""
    guessed = guess_language(text)
    if not declared or not guessed or guessed == declared:
        return declared or guessed
    if guessed in OTHER_SCRIPTS or declared in OTHER_SCRIPTS:
        return guessed if declared in (*_LATIN_LANGUAGES, *OTHER_SCRIPTS) else declared
    if declared not in _LATIN_LANGUAGES:
        return declared
    points = _latin_points(text[:REQUEST_CHARACTERS])
    return guessed if points[guessed] > SURELY_OTHER * points[declared] else declared


def _latin_points(text: str) -> dict[str, float]:
    """Return for each language in Latin letters how much in a text is of it."""
    # A capital inside a sentence is a name, and "Go" is not a Polish pronoun
    small = [
        word.lower()
        for i, word in enumerate(raw_words(text))
        if i == 0 or word.islower()
    ]
    lowered = text.lower()
    signs, elided = frozenset(lowered), frozenset(_APOSTROPHE.findall(lowered))
    points: dict[str, float] = {}
    for code in _LATIN_LANGUAGES:
        # A letter or an elision (`l'`) of its own counts as one and a half words
        has_own_signs = not (
            signs.isdisjoint(words("letters", code))
            and elided.isdisjoint(words("elided", code))
        )
        points[code] = (
            sum(map(words("stop", code).__contains__, small)) + 1.5 * has_own_signs
        )
    return points


# Names

MAX_ENTITIES: Final = 12
FIGURE: Final = re.compile(r"\d[\d.,:/-]*\d|\d")
"""A number as it is written, with the marks inside."""
_QUOTED: Final = re.compile(
    r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|„([^“”\n]{2,80})[“”]|«\s?([^»\n]{2,80}?)\s?»|「([^」\n]{1,40})」|"
    r"『([^』\n]{1,40})』|"
    r"《([^》\n]{1,40})》|(?<!\w)'([^'\n]{2,60})'(?!\w)|(?<!\w)‘([^’\n]{2,60})’(?!\w)|`([^`\n]{2,80})`"
)
_TOKEN: Final = re.compile(r"[^\W_][\w.+#&/@:'’-]*[\w+#]|[^\W_]")
_KATAKANA: Final = re.compile(r"[ァ-ヴー]{2,}(?:[・･][ァ-ヴー]+)*")
_TAIL: Final = r"[A-Za-z0-9À-ɏ.+#&/'_-]*"
_LATIN_IN_CJK: Final = re.compile(
    rf"[A-Za-zÀ-ɏ]{_TAIL}(?:[ ][A-Za-z0-9À-ɏ]{_TAIL})*|\d+[A-Za-z]{_TAIL}"
)
_SENTENCE_END: Final = re.compile(r"[.!?:;…。！？]['\")\]]?\s*$")
_JOINING: Final = words("names.joining")
_ROLE_WORDS: Final = words("names.roles")
NEVER_NAMES: Final = words("names.never")
_COUNTED: Final = re.compile(
    r"\d+(?:st|nd|rd|th|s|e|er|º|ª|km|m|cm|kg|g|h|min|%)", re.IGNORECASE
)
"""An ordinal, or a number with its unit."""
_SIGNS_IN_WORD: Final = re.compile(r"\w[.+#@/]\w|[+#]$")
_PAIRS_NO_WORD_HAS: Final = re.compile(
    r"(?:[bcdfghjklmnpqrstvwxz]{6,}|q(?![uaei'])|[jqvwxz]{2,}|[bcdfghjklmnpqrstvwxz]x(?=[a-z])|v[bcdfghjkmnpqstwxz]|"
    r"j[bcdfghklmnpqrstvwxz]|z[bcdfgjkmnpqrstvx](?=[a-z]))"
)


def find_entities(text: str, *, language: str) -> tuple[str, ...]:
    """Return names and unknown words of a request (its language ISO 639-1 or empty),
    verbatim, in order.

    At most `MAX_ENTITIES` of its first `REQUEST_CHARACTERS` characters; a name inside a longer
    one is left out, and so is a single letter."""
    text = text[:REQUEST_CHARACTERS]
    names: list[tuple[int, str]] = []
    covered: list[tuple[int, int]] = []
    for match in _QUOTED.finditer(text):
        quoted = next(group for group in match.groups() if group)
        names.append((match.start(), quoted.strip()))
        covered.append(match.span())
    if is_cjk(text):
        names += [
            (m.start(), m[0])
            for m in _KATAKANA.finditer(text)
            if not _inside(m.start(), covered)
        ]
        names += [
            (m.start(), m[0].rstrip(" .,'-/"))
            for m in _LATIN_IN_CJK.finditer(text)
            if not _inside(m.start(), covered)
        ]
    else:
        names += _named_runs(text, covered, language)
    entities = dict.fromkeys(name for _, name in sorted(names) if len(name) > 1)
    longest = [
        name
        for name in entities
        if not any(
            name != longer and f" {name} " in f" {longer} " for longer in entities
        )
    ]
    return tuple(longest[:MAX_ENTITIES])


def _inside(position: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)


def _named_runs(
    text: str, covered: list[tuple[int, int]], language: str
) -> list[tuple[int, str]]:
    """Runs of name-like tokens, joined over small words between two capitals ("Lord of
    the Rings")."""
    tokens = [(m.start(), m.end(), m[0]) for m in _TOKEN.finditer(text)]
    runs: list[tuple[int, str]] = []
    i = 0
    while i < len(tokens):
        start, end, word = tokens[i]
        if _inside(start, covered) or not _starts_name(text, start, word, language):
            i += 1
            continue
        last_token = _run_end(text, tokens, i)
        end = tokens[last_token][1]
        name = re.sub(r"['’]s?$", "", text[start:end])
        is_single_capital = last_token == i and word[0].isupper() and not _odd(word)
        # German writes every noun with a capital: one such word is not yet a name.
        if not (is_single_capital and language == "de"):
            runs.append((start, name))
        i = last_token + 1
    return runs


def _run_end(text: str, tokens: list[tuple[int, int, str]], first_token: int) -> int:
    """Return the number of the last token of the name that begins with `first_token`."""
    last_token = first_token
    for ahead in range(first_token + 1, len(tokens)):
        _, end, before = tokens[ahead - 1]
        start, _, word = tokens[ahead]
        if before.endswith(("'s", "’s")) or word in _ROLE_WORDS:
            break
        if text[end:start] not in (" ", ": ", " & "):
            break
        is_number = word.isdigit() and ahead == last_token + 1
        if word[0].isupper() or is_number or _odd(word):
            last_token = ahead
        elif word.lower() not in _JOINING or ahead - last_token > 2:
            break
    return last_token


def _starts_name(text: str, start: int, word: str, language: str) -> bool:
    bare = re.sub(r"['’]s?$", "", word)
    if bare in _ROLE_WORDS:
        return False
    if _odd(bare):
        return True
    if not bare[0].isupper() or bare.lower() in NEVER_NAMES:
        return False
    begins_sentence = (
        start == 0
        or bool(_SENTENCE_END.search(text[max(0, start - 6) : start]))
        or text[start - 1] == "\n"
    )
    return not (
        begins_sentence
        and bare.lower() in (words("stop", language) or words("stop", "en"))
    )


def _odd(word: str) -> bool:
    """Whether the form alone says "keep whole": digits among letters, capitals inside,
    symbols, no word's letters."""
    letters = sum(map(str.isalpha, word))
    if len(word) < 2 or not letters:
        return False
    if any(map(str.isdigit, word)) and not _COUNTED.fullmatch(word):
        return True
    if letters >= 2 and any(map(str.isupper, word[1:])):
        return True
    if _SIGNS_IN_WORD.search(word):
        return True
    is_plain = word.isascii() and word.islower() and len(word) >= 4
    return is_plain and _PAIRS_NO_WORD_HAS.search(word) is not None


# Words in another language

_GLOSSES: Final = Path(__file__).with_name("glosses")
_COMPOUND_PART_LETTERS: Final = 3
"""Least letters of a compound's part: shorter ones are found in any word."""
_JOINTS: Final = ("", "s", "es", "n", "en")
"""What German puts between the parts of a compound."""
_KNOWN: Final = 0.4
"""Share of a question's words that its list must know: in a real one all but
names are known, and few English questions reach it ("plus", "sans")."""
_SENSES: Final = 3
"""Most words of a language by which one English word is searched."""


def translated(question: str, question_language: str, language: str) -> str:
    """Return `question`, in the language `question_language`, as a page in `language` understands
    it; as it is where no list helps. Both are ISO 639-1 codes, empty where unknown."""
    source, target = _list(question_language), _list(language)
    if (
        question_language == language
        or not (source or question_language == "en")
        or not (target or language == "en")
    ):
        return question
    english = source.in_english(question) if source else question
    return target.from_english(english) if target else english


def translates(language: str) -> bool:
    """Whether a list has the words of `language` in English."""
    return language in _languages()


def _list(language: str) -> "_WordList | None":
    # A page may call its language anything.
    return _read(language) if language in _languages() else None


@cache
def _languages() -> frozenset[str]:
    return frozenset(path.stem for path in _GLOSSES.glob("*.txt"))


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
        for line in (
            (_GLOSSES / f"{language}.txt").read_text(encoding="utf-8").splitlines()
        ):
            word, _, english = line.partition(":")
            senses = [sense.strip() for sense in english.split(",")]
            self._words[word] = senses[0]
            self._stems.setdefault(self._stem(word), senses[0])
            for sense in filter(None, senses):
                self._back.setdefault(_stem(sense, "en"), []).append(word)
        for word, sense in [*self._words.items()]:
            self._words.setdefault(fold(word), sense)
        self._phrase = 1 + max(
            entry.count(" ") for entry in (*self._words, *self._back)
        )
        """Most words of an entry, in either language."""
        self._run = max(map(len, self._words))
        """Most characters of an entry."""

    def in_english(self, question: str) -> str:
        """Return `question` in English; as it is where so few words are known that it
        may be in another language."""
        words = raw_words(question)
        translations: list[str] = []
        index = known_words = 0
        while index < len(words):
            count, translation = self._longest(words[index : index + self._phrase])
            known_words += count if translation is not None else 0
            translations.append(words[index] if translation is None else translation)
            index += count
        sure = self._language in OTHER_SCRIPTS or known_words >= _KNOWN * len(words)
        return " ".join(filter(None, translations)) if sure else question

    def _longest(self, words: Sequence[str]) -> tuple[int, str | None]:
        """Return how many of the next words are a phrase, one at least, and its
        English; None where it is unknown."""
        if is_cjk(words[0]):
            return 1, " ".join(filter(None, self._cut(words[0])))
        for count in range(len(words), 0, -1):
            translation = self._known(
                " ".join(bare(word.lower()) for word in words[:count])
            )
            if translation is not None:
                return count, translation
        return 1, " ".join(self._parts(fold(words[0].lower()))) or None

    def from_english(self, question: str) -> str:
        """Return the words that mean those of an English question, several of some; its
        stop words have none. A word that the list lacks stays as it is."""
        words = raw_words(question)
        translations: list[str] = []
        index = 0
        while index < len(words):
            for count in range(min(self._phrase, len(words) - index), 0, -1):
                phrase = " ".join(words[index : index + count])
                if meant := self._back.get(_stem(phrase, "en")):
                    break
            else:
                count, phrase, meant = 1, words[index], [words[index]]
            translations += meant[:_SENSES] if index_terms(phrase) else []
            index += count
        return " ".join(translations)

    def _known(self, phrase: str) -> str | None:
        translation = self._words.get(phrase, self._words.get(fold(phrase)))
        return (
            self._stems.get(self._stem(phrase)) if translation is None else translation
        )

    def _stem(self, phrase: str) -> str:
        return _stem(phrase, self._language)

    def _parts(self, word: str, max_parts: int = 4) -> list[str]:
        """Return the English of the parts of a German compound, nothing where it is
        none of at most `max_parts`.

        Without a bound a word made for it has very many ways to be cut.
        """
        if self._language != "de" or len(word) > LONGEST_WORD or max_parts < 2:
            return []
        for cut in range(
            len(word) - _COMPOUND_PART_LETTERS, _COMPOUND_PART_LETTERS - 1, -1
        ):
            head = self._words.get(word[:cut])
            if not head:
                continue
            for joint in _JOINTS:
                remainder = word[cut + len(joint) :]
                is_part = len(remainder) >= _COMPOUND_PART_LETTERS
                if not is_part or not word.startswith(joint, cut):
                    continue
                if tail := self._known(remainder):
                    return [head, tail]
                if tails := self._parts(remainder, max_parts - 1):
                    return [head, *tails]
        return []

    def _cut(self, run: str) -> Iterator[str]:
        """Yield the English of the longest words that a run without blanks begins with,
        one after the other. Characters that no word begins with are left out."""
        offset = 0
        while offset < len(run):
            for end in range(min(len(run), offset + self._run), offset, -1):
                translation = self._words.get(fold(run[offset:end]))
                if translation is not None:
                    yield translation
                    break
            else:
                end = offset + 1
            offset = end


def _stem(phrase: str, language: str) -> str:
    return " ".join(index_terms(phrase, language=language, keep_stop_words=True))
