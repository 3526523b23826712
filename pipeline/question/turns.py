"""A question of a session, read with the one before it: `What is its default?` after
one about an option.

A question refers back by a pronoun that nothing in it explains, by an opening such as
"what about", or by asking for what is always of something ("the syntax"). The words for
that are in `pipeline/text/words`, sections `turns.*`. A question that is complete by
itself is left as it is. Not for: questions that one request joins
(`pipeline/question/parts.py`), or how sessions are kept
(`pipeline/session/session.py`)."""

import re
from collections.abc import Iterator
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
_HINTED: Final = 3
"""Words of its own, besides light ones, with which a question that opens with "and" is
still a part of one."""
_SHORT_QUESTION_WORDS: Final = 6
"""Words of a question that may ask for a part of something by nothing but its name
("What is the syntax?")."""
_FRAGMENT_WORDS: Final = 5
"""Words of a fragment such as "on Windows?"."""
_CLAUSE: Final = 2
"""Minimum words after "that" for it to begin a clause."""
_ANTECEDENT: Final = 3
"""Chinese, Japanese or Korean characters in front of a pronoun that name what it refers
to."""
_QUESTION_TOKEN: Final = re.compile(r"[^\s?!,;:()\"«»“”„？！，；：（）。、؟،]+")
_END_SIGNS: Final = " \t\n?？؟!！.。"
_OPENING_MARKS: Final = "¿¡ "
_QUESTION_MARKS: Final = "?？؟"
_OPTION_WORD: Final = re.compile(r"(?<!\S)--?[A-Za-z][\w-]*")
_NUMBERED_NAME: Final = re.compile(r"([^\W\d]+)\s+(v?\d[\w.]*)\Z", re.IGNORECASE)
"""A word with its number: `version 3`."""
_NUMBER_WORD: Final = re.compile(r"\d[\d.,]*\d|\d")
_WITH_TEXT: Final = re.compile(r"[:：]\s*\S+(?:\s+\S+){2}|\n")
"""Text that a question brings along, as a pasted message."""
_BRACKETED: Final = re.compile(r"\s*[(（]([^()（）]*)[)）]\s*\Z")


@dataclass(frozen=True, slots=True)
class _TurnRules:
    """The words of one language."""

    language: str
    refers: re.Pattern[str]
    never: re.Pattern[str]
    opening: re.Pattern[str]
    asking: re.Pattern[str]
    before: re.Pattern[str]
    """A preposition at the beginning."""
    pointing: frozenset[str]
    clauses: frozenset[str]
    persons: frozenset[str]
    article: re.Pattern[str]
    light: frozenset[str]
    of: re.Pattern[str]


def refers_back(asked: Question) -> bool:
    """Return whether a pronoun of a question refers to something outside of it, as in
    "What is its default?"; False over `FULL_QUESTION_CHARACTERS`, or where it brings a
    text of its own."""
    question = _alone(asked)
    return bool(question) and _refers(question, _rules(asked.spoken or "en"))


def completed(asked: Question, before: str) -> str:
    """Return a question with what it refers to in the question `before` it; empty where
    it is complete by itself. Empty as well without `before`, over
    `FULL_QUESTION_CHARACTERS`, or where it brings a text of its own."""
    question = _alone(asked)
    if not before.strip() or not question:
        return ""
    # A few words of their own may look like another language.
    guessed = (asked.spoken, guess_language(f"{before} {question}"))
    tried = guessed if len(question.split()) <= _SHORT_QUESTION_WORDS else guessed[:1]
    found = (
        _completed(question, before, _rules(code or "en"))
        for code in dict.fromkeys(tried)
    )
    return next(filter(None, found), "")


def _alone(asked: Question) -> str:
    """Return a question without what opens it; "" over `FULL_QUESTION_CHARACTERS`, or
    where it brings a text of its own."""
    question = asked.text.strip().lstrip(_OPENING_MARKS)
    full = len(question) > FULL_QUESTION_CHARACTERS or _WITH_TEXT.search(question)
    return "" if full else question


def _completed(question: str, before: str, rules: _TurnRules) -> str:
    """Return what `completed` does, by the words of one language."""
    opening = rules.opening.match(question)
    rest = question[opening.end() :].strip(_END_SIGNS) if opening else question
    if opening and rest and not rules.asking.search(rest) and not _refers(rest, rules):
        return _continued(before, rest, rules) if _is_part(rest, rules) else ""
    if _refers(rest, rules) or _asks_for_part(rest, rules, opened=opening is not None):
        return f"{question} ({subject(before)})"
    return (
        _continued(before, rest.strip(_END_SIGNS), rules)
        if _is_fragment(question, rules)
        else ""
    )


def subject(question: str) -> str:
    """Return what a question is about: its words from the first to the last that says
    something, few of them. All of them where none says something."""
    rules = _rules(guess_language(question) or "en")
    inner = _BRACKETED.search(question)
    about = [inner[1]] if inner else []
    own = question[: inner.start()] if inner else question
    own = (
        rules.asking.sub(" ", own, count=1).strip(_END_SIGNS)
        if not is_cjk(own)
        else own.strip(_END_SIGNS)
    )
    tokens = own.split()
    informative = [
        index
        for index, token in enumerate(tokens)
        if _says(token.strip(_END_SIGNS), rules)
    ]
    if informative:
        about.insert(0, " ".join(tokens[informative[0] : informative[-1] + 1]))
    elif not inner:
        about.insert(0, own)
    return _shortened(", ".join(about))


def _shortened(text: str) -> str:
    """Return a text of at most `MOST_WORDS` words as it is, of a longer one its first
    words and the names that they lack."""
    if len(text.split()) <= MOST_WORDS:
        return text
    names = [
        *_OPTION_WORD.findall(text),
        *find_entities(text, language=guess_language(text)),
    ]
    kept = " ".join(text.split()[:MOST_WORDS])
    return ", ".join(
        [kept, *(name for name in dict.fromkeys(names) if name not in kept)]
    )


def _says(token: str, rules: _TurnRules) -> bool:
    """Whether a word says what a question is about: no word of grammar, no light verb,
    no pronoun."""
    lowered = token.casefold().replace("’", "'")
    known = lowered in rules.light or lowered in words("stop", rules.language)
    return (
        bool(lowered)
        and not known
        and not rules.refers.fullmatch(lowered)
        and not rules.asking.fullmatch(lowered)
    )


def _telling(text: str, rules: _TurnRules) -> Iterator[str]:
    """Yield the words of a text that say what it is about."""
    if is_cjk(text):
        rest = rules.asking.sub(" ", rules.refers.sub(" ", text))
        for word in sorted(
            rules.light | words("stop", rules.language), key=len, reverse=True
        ):
            rest = rest.replace(word, " ")
        yield from (letter for letter in rest if letter.isalnum())
        return
    rest = rules.asking.sub(" ", text)
    yield from (
        token[0]
        for token in _QUESTION_TOKEN.finditer(rest)
        if _says(token[0].strip(_END_SIGNS), rules)
    )


def _refers(question: str, rules: _TurnRules) -> bool:
    """Whether a pronoun refers to something outside of the question."""
    text = rules.never.sub(lambda match: " " * len(match[0]), question)
    found = next(
        (one for one in rules.refers.finditer(text) if not _is_complete(one, rules)),
        None,
    )
    if found is None:
        return False
    head = text[: found.start()]
    prefix_words = list(_telling(head, rules))
    if _named(head, rules) or not prefix_words:
        return not prefix_words
    if is_cjk(text):
        return len(prefix_words) < _ANTECEDENT
    # A clause's object is never its subject: "Which rivers flow into it?"
    is_last = not text[found.end() :].strip(_END_SIGNS) and not rules.article.search(
        head
    )
    return (
        (is_last and len(prefix_words) < _ANTECEDENT)
        or _is_verb(prefix_words, head, rules)
        or _is_asked(head, rules)
    )


def _is_complete(pronoun: re.Match[str], rules: _TurnRules) -> bool:
    """Whether a pronoun needs nothing before it: "Who said that dogs bark", "those
    spiky purple plants by the pier"."""
    word = pronoun[0].casefold()
    if (
        word in rules.pointing
        and len(list(_telling(pronoun.string[pronoun.end() :], rules))) > _ANTECEDENT
    ):
        return True
    if word not in rules.clauses:
        return False
    above = pronoun.string[: pronoun.start()].split()
    behind_verb = bool(above) and above[-1].casefold() not in words(
        "stop", rules.language
    )
    return behind_verb and len(pronoun.string[pronoun.end() :].split()) > _CLAUSE


def _is_verb(prefix_words: list[str], head: str, rules: _TurnRules) -> bool:
    """Whether the one word that says something in front of a pronoun is a verb: "Can I
    book it"."""
    above = head[: head.rindex(prefix_words[-1])].split()
    return (
        len(prefix_words) == 1 and bool(above) and above[-1].casefold() in rules.persons
    )


def _is_asked(head: str, rules: _TurnRules) -> bool:
    """Return whether the text before a pronoun is what is asked for: "How slow is it",
    "Which format does it need"."""
    asking = rules.asking.search(head)
    middle = head[asking.end() :].casefold().split() if asking else []
    if not 1 < len(middle) <= _ANTECEDENT + 1:
        return False
    stop = words("stop", rules.language)
    is_verb = middle[-1] in stop and not rules.before.match(f"{middle[-1]} ")
    return is_verb and stop.isdisjoint(middle[:-1])


def _is_part(rest: str, rules: _TurnRules) -> bool:
    """Whether what follows an opening says too little to be a question."""
    most = 3 * _HINTED if is_cjk(rest) else _HINTED
    return len(list(_telling(rest, rules))) <= most


def _asks_for_part(question: str, rules: _TurnRules, *, opened: bool) -> bool:
    """Whether a question asks for nothing, or for what is always of something: "Why?",
    "What is the default?"."""
    if len(question.split()) > _SHORT_QUESTION_WORDS:
        return False
    question = rules.never.sub(" ", question)
    rest = rules.of.sub(" ", question)
    own = list(_telling(rest, rules))
    if own:
        return (
            opened
            and len(own) < 2
            and not is_cjk(question)
            and not _named(question, rules)
        )
    asked = rules.asking.search(question) is not None
    return asked or rest != question


def _named(text: str, rules: _TurnRules) -> bool:
    return bool(
        find_entities(text, language=rules.language) or _OPTION_WORD.search(text)
    )


def _is_fragment(question: str, rules: _TurnRules) -> bool:
    """Whether a question is a few words without a verb: "on Windows?", "2018?"."""
    if (
        not question.endswith(tuple(_QUESTION_MARKS))
        or rules.asking.search(question)
        or is_cjk(question)
    ):
        return False
    tokens = [token[0] for token in _QUESTION_TOKEN.finditer(question)]
    if rules.before.match(question):
        return len(tokens) <= _FRAGMENT_WORDS
    return len(tokens) <= 2 and all(
        _named(token, rules) or _NUMBER_WORD.search(token) for token in tokens[-1:]
    )


def _continued(before: str, rest: str, rules: _TurnRules) -> str:
    """Return the previous question with the part of the same form replaced by `rest`,
    else with `rest` appended."""
    whole = before.strip().rstrip(_QUESTION_MARKS).strip()
    preposition = rules.before.match(rest)
    name = rest[preposition.end() :].strip() if preposition else rest

    span = _numbered(whole, name) or _alike(whole, name)
    if span is None and preposition and _named(name, rules):
        span = _after_preposition(whole, preposition[0].strip(), rules)
    return (
        f"{whole[: span[0]]}{name}{whole[span[1] :]}?" if span else f"{whole}, {rest}?"
    )


def _numbered(whole: str, name: str) -> tuple[int, int] | None:
    """Return the span in `whole` of the word of `name` with another number (`version 2`
    for `version 3`), or None: `name` has no number, or `whole` no such word."""
    numbered = _NUMBERED_NAME.fullmatch(name)
    old = numbered and re.search(
        rf"\b{re.escape(numbered[1])}\s+v?\d[\w.]*", whole, re.IGNORECASE
    )
    return old.span() if old else None


def _alike(whole: str, name: str) -> tuple[int, int] | None:
    """Return the span in `whole` of its only number with as many digits as the number
    `name`, or of its only option if `name` is one. None if there is none, or more than
    one."""
    form = next(
        (form for form in (_NUMBER_WORD, _OPTION_WORD) if form.fullmatch(name)), None
    )
    if form is None:
        return None
    found = [
        old
        for old in form.finditer(whole)
        if form is _OPTION_WORD or len(old[0]) == len(name)
    ]
    return found[0].span() if len(found) == 1 else None


def _after_preposition(
    whole: str, preposition: str, rules: _TurnRules
) -> tuple[int, int] | None:
    """Return the span of the first name in `whole` that follows `preposition`, or None."""
    for old in find_entities(whole, language=rules.language):
        found = re.search(
            rf"\b{re.escape(preposition)}\s+({re.escape(old)})(?!\w)",
            whole,
            re.IGNORECASE,
        )
        if found:
            return found.span(1)
    return None


@cache
def _rules(language: str) -> _TurnRules:
    def of(section: str) -> frozenset[str]:
        return words(section, language)

    flags = re.IGNORECASE
    never = "|".join(
        r"\s+(?:\S+\s+){1,3}".join(any_of([part]) for part in entry.split(" … "))
        for entry in of("turns.never")
    )
    unparted = language in {"zh", "ja"}
    edge, end = ("", "") if unparted else (r"(?<!\w)", r"(?![\w-])")
    # Arabic writes its "and" with the word that follows.
    after = r"\s*" if unparted else r"(?:\s+|[,،]\s*|(?<=\Aو))"
    return _TurnRules(
        language,
        refers=re.compile(rf"{edge}(?:{any_of(of('turns.refers'))}){end}", flags),
        never=re.compile(rf"{edge}(?:{never or '(?!)'}){end}", flags),
        opening=re.compile(rf"\A(?:{any_of(of('turns.open'))}){after}", flags),
        asking=re.compile(whole_words(of("questions.words")).pattern, flags),
        before=re.compile(rf"\A(?:{any_of(of('questions.before'))})\s+", flags),
        pointing=of("turns.pointing"),
        clauses=of("turns.clauses"),
        persons=of("turns.persons"),
        article=re.compile(rf"{edge}(?:{any_of(of('questions.article'))}){end}", flags),
        light=of("turns.light"),
        of=re.compile(rf"{edge}(?:{any_of(of('turns.of'))}){end}", flags),
    )
