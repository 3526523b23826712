"""A question of a session, read with the one before it: `What is its default?` after
one about an option.

A question refers back by a pronoun that nothing in it explains, by an opening such as
"what about", or by saying nothing of its own ("Why?", "the syntax"). What the question
before was about is then appended in brackets. The words for that are in
`pipeline/text/words`, sections `turns.*`. A question that is complete by itself is left
as it is. Not for: how sessions are kept (`pipeline/session/session.py`)."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from pipeline.question.question import Question
from pipeline.text.words import (
    any_of,
    find_entities,
    guess_language,
    is_cjk,
    whole_words,
    words,
)

FULL_QUESTION_CHARACTERS: Final = 160
"""Characters beyond which a question is taken to say itself what it is about."""
MOST_WORDS: Final = 16
"""Words of what an earlier question was about; names are kept beyond that."""
_FEW_WORDS: Final = 3
"""Informative words before a pronoun from which it refers to one of these; Chinese, Japanese
and Korean text is counted in characters."""
_SHORT_QUESTION_WORDS: Final = 6
"""Words of a question that may say nothing of its own ("What is the syntax?")."""
_END_SIGNS: Final = " \t\n?？؟!！.。¿¡"
_QUESTION_TOKEN: Final = re.compile(r"[^\s?!,;:()\"«»“”„？！，；：（）。、؟،]+")
_COMPLETION: Final = re.compile(r"[?？]\s*\(")
_WITH_TEXT: Final = re.compile(r"[:：]\s*\S+(?:\s+\S+){2}|\n")
"""Text that a question brings along, as a pasted message."""


@dataclass(frozen=True, slots=True)
class _TurnRules:
    """The words of one language."""

    language: str
    pronouns: re.Pattern[str]
    fixed: re.Pattern[str]
    """Phrases in which a pronoun refers to nothing: "is it possible"."""
    introducing: frozenset[str]
    """Pronouns that refer to nothing before where words follow: "says that it rains",
    "those purple plants"."""
    opening: re.Pattern[str]
    asking: re.Pattern[str]
    belonging: frozenset[str]
    """Words for what is always of something: `default`, `syntax`."""
    idle: frozenset[str]
    """Words that say nothing of what a question is about."""


def refers_back(question: Question) -> bool:
    """Return whether a pronoun of a question refers to something outside of it, as in
    "What is its default?"; False over `FULL_QUESTION_CHARACTERS`, or where it brings a
    text of its own."""
    text = _bare(question)
    return bool(text) and _has_open_pronoun(text, _rules(question.language))


def completed(question: Question, before: str) -> str:
    """Return a question with what it refers to in the question `before` it; empty where
    it is complete by itself. Empty as well without `before`, over
    `FULL_QUESTION_CHARACTERS`, or where it brings a text of its own."""
    text = _bare(question)
    if not before.strip() or not text:
        return ""
    # A few words of their own may look like another language
    is_short = len(text.split()) <= _SHORT_QUESTION_WORDS
    guessed = [question.language, guess_language(f"{before} {text}") or "en"]
    for language in dict.fromkeys(guessed if is_short else guessed[:1]):
        if _is_incomplete(text, _rules(language)):
            return f"{text} ({subject(before)})"
    return ""


def subject(question: str) -> str:
    """Return what a question is about: its words from the first to the last that says
    something, at most `MOST_WORDS` of them and the names among the rest."""
    rules = _rules(guess_language(question) or "en")
    # The one before may have been completed itself
    text = _COMPLETION.sub(", ", question).strip(f"{_END_SIGNS}()")
    if is_cjk(text):
        return text
    tokens = text.split()
    telling = [i for i, token in enumerate(tokens) if _is_informative(token, rules)]
    tokens = tokens[telling[0] : telling[-1] + 1] if telling else tokens
    names = find_entities(" ".join(tokens[MOST_WORDS:]), language=rules.language)
    return ", ".join((" ".join(tokens[:MOST_WORDS]), *names))


def _bare(question: Question) -> str:
    """Return a question without opening marks; "" where it is too long to leave anything
    out."""
    text = question.text.strip("¿¡ ")
    is_full = len(text) > FULL_QUESTION_CHARACTERS or _WITH_TEXT.search(text)
    return "" if is_full else text


def _is_incomplete(question: str, rules: _TurnRules) -> bool:
    """Whether a question cannot be understood without the one before it."""
    opening = rules.opening.match(question)
    text = question[opening.end() :] if opening else question
    count = _count_informative(text, rules)
    bound = 3 * _FEW_WORDS if is_cjk(text) else _FEW_WORDS
    if opening and count <= bound and not rules.asking.search(text):
        return True
    is_short = len(question.split()) <= _SHORT_QUESTION_WORDS
    return (is_short and not count) or _has_open_pronoun(text, rules)


def _has_open_pronoun(question: str, rules: _TurnRules) -> bool:
    """Whether nothing in front of a question's first pronoun says what it refers to."""
    text = rules.fixed.sub(" ", question)
    pronoun = rules.pronouns.search(text)
    if pronoun is None:
        return False
    after = text[pronoun.end() :].split()
    if pronoun[0].casefold() in rules.introducing and len(after) > 1:
        return False
    head = text[: pronoun.start()]
    has_name = bool(find_entities(head, language=rules.language))
    return not has_name and _count_informative(head, rules) < _FEW_WORDS - 1


def _count_informative(text: str, rules: _TurnRules) -> int:
    """Return how many words of a text say what it is about; of Chinese, Japanese or
    Korean text how many characters."""
    text = rules.asking.sub(" ", text)
    if not is_cjk(text):
        tokens = _QUESTION_TOKEN.findall(text)
        return sum(
            _is_informative(token, rules) and token.casefold() not in rules.belonging
            for token in tokens
        )
    text = rules.pronouns.sub(" ", text)
    for word in sorted(rules.idle | rules.belonging, key=len, reverse=True):
        text = text.replace(word, " ")
    return sum(map(str.isalnum, text))


def _is_informative(token: str, rules: _TurnRules) -> bool:
    word = token.strip(_END_SIGNS).casefold().replace("’", "'")
    is_idle = not word or word in rules.idle
    return not (
        is_idle or rules.pronouns.fullmatch(word) or rules.asking.fullmatch(word)
    )


@cache
def _rules(language: str) -> _TurnRules:
    def of(section: str) -> frozenset[str]:
        return words(section, language)

    fixed = "|".join(
        r"\s+(?:\S+\s+){1,3}".join(map(re.escape, entry.split(" … ")))
        for entry in of("turns.never")
    )
    has_blanks = language not in {"zh", "ja"}
    edge, end = (r"(?<!\w)", r"(?![\w-])") if has_blanks else ("", "")
    # Arabic writes its "and" with the word that follows
    after = r"(?:\s+|[,،]\s*|(?<=\Aو))" if has_blanks else r"\s*"
    flags = re.IGNORECASE
    return _TurnRules(
        language,
        pronouns=re.compile(rf"{edge}(?:{any_of(of('turns.refers'))}){end}", flags),
        fixed=re.compile(rf"{edge}(?:{fixed or '(?!)'}){end}", flags),
        introducing=of("turns.clauses") | of("turns.pointing"),
        opening=re.compile(rf"\A(?:{any_of(of('turns.open'))}){after}", flags),
        asking=re.compile(whole_words(of("questions.words")).pattern, flags),
        belonging=of("turns.of"),
        idle=of("turns.light") | of("stop"),
    )
