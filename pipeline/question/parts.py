"""The parts of a request that must each be answered, by rules and the words of its
language.

Cut are sentences that ask, clauses that begin with a question word after "and", lists
of questions, and the sides of a comparison. A question in doubt stays whole: read as
two it may miss what only the whole of it says. Not for: parts that a model names
(`pipeline/search/parse.py`)."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from pipeline.text.words import (
    any_of,
    find_entities,
    index_terms,
    is_cjk,
    whole_words,
    words,
)

MOST_PARTS: Final = 4
"""Parts that are read apart; what follows is asked with the last."""
STORY_CHARACTERS: Final = 900
"""Characters from which a request is a story, whose sentences are not cut."""
_HEAD_WORDS: Final = 4
"""Number of first words in which the question word must be: "At what moments", "Do you
know who"."""
_QUESTION_WORDS: Final = 3
"""Words of a question; fewer hang on the one before ("And why?")."""
_OWN_WORDS: Final = 2
"""Words by which a part says what it is about; one with fewer leans on another ("and in
what year?"), and one without any ("and why?") is answered where that is."""
_QUESTION_MARKS: Final = "?？؟"
_QUESTION_BREAK: Final = re.compile(rf"(?<=[{_QUESTION_MARKS}])\s*(?=\S)")
_LISTED_QUESTION: Final = re.compile(
    r"(?:^|\n)\s*(?:\d{1,2}[.)]|[-*•])\s+([^\n]{8,200})"
)
_STOP_CHARACTERS: Final = " \t\n,;，、；،؛"
_BARE_SIDE_CHARACTERS: Final = 12
"""Maximum characters of a side that is not a name by its form: "北京和上海", "서울과 부산"."""
_THING: Final = "[^,;?]{1,60}?"
"""One of several that a question lists."""
_COMMA_END: Final = re.compile(r"[,،、，]\s*$")
"""After a side of a comparison that is followed by others."""


@dataclass(frozen=True, slots=True)
class _Rules:
    """The patterns of one language."""

    language: str
    word: re.Pattern[str]
    """A question word."""
    joint: re.Pattern[str]
    """Text between two questions of a sentence; the group is empty for a comma
    alone."""
    clause: re.Pattern[str] | None
    """Separator of questions in languages with question words anywhere in a clause
    (Chinese, Japanese, Korean, Turkish), else None."""
    polar: re.Pattern[str]
    back: re.Pattern[str]
    """A word for what was named before."""
    sides: re.Pattern[str]
    """Text between the sides of a comparison; the group is set if it alone marks a
    comparison."""
    bare: re.Pattern[str]
    """Two sides by their context, in scripts without capitals; the groups are the
    sides."""
    compared: re.Pattern[str]
    describing: re.Pattern[str]
    plural: re.Pattern[str]
    enumeration: re.Pattern[str]
    """Three or more things at the end, each after the same preposition."""


def cut_parts(request: str, language: str) -> tuple[str, ...]:
    """Return the questions of `request`, whose language is an ISO 639-1 code, that must
    each be answered, to be understood alone; none where it is one or has more than
    `STORY_CHARACTERS` characters.

    Those after the last of `MOST_PARTS` are joined to it."""
    request = request.strip()
    if len(request) > STORY_CHARACTERS:
        return ()
    rules = _rules(language)
    items = list(map(str.strip, _LISTED_QUESTION.findall(request)))
    if len(items) > 1 and all(_asks(item, rules) for item in items):
        return _bounded(items)
    pieces = [
        piece
        for sentence in _sentences(request, rules)
        for piece in _clauses(sentence, rules)
    ]
    if len(pieces) < 2:
        return _compared(request, rules) or _enumerated(request, rules)
    whole = next(
        (piece for piece in pieces if _own_words(piece, rules) >= _OWN_WORDS), request
    )
    return _bounded([_with_subject(piece, whole, rules) for piece in pieces])


def question_word(text: str, language: str) -> str:
    """Return the first question word of a text, empty where there is none."""
    found = _rules(language).word.search(text)
    return found[0] if found else ""


def describes(question: str, language: str) -> bool:
    """Whether a question describes something instead of naming it: "the film that was
    shot there", "whose"."""
    return bool(_rules(language).describing.search(question.partition(" ")[2]))


def _bounded(parts: list[str]) -> tuple[str, ...]:
    return (
        (*parts[: MOST_PARTS - 1], " ".join(parts[MOST_PARTS - 1 :]))
        if len(parts) > MOST_PARTS
        else tuple(parts)
    )


def _asks(text: str, rules: _Rules) -> bool:
    return text.endswith(tuple(_QUESTION_MARKS)) or bool(rules.word.search(text))


def _sentences(request: str, rules: _Rules) -> list[str]:
    """Return the sentences that ask, each with the statements around it; the request if
    it is one."""
    found: list[str] = []
    statement = ""
    for sentence in _QUESTION_BREAK.split(request):
        enough = (
            len(sentence) > _QUESTION_WORDS
            if is_cjk(sentence)
            else len(sentence.split()) >= _QUESTION_WORDS
        )
        if enough and _asks(sentence, rules):
            found.append(f"{statement} {sentence}".strip())
            statement = ""
        elif found:
            found[-1] += f" {sentence}"
        else:
            statement = f"{statement} {sentence}".strip()
    return found or [request]


def _clauses(sentence: str, rules: _Rules) -> list[str]:
    """Return the questions that a sentence joins, in order; the sentence where it is
    one."""
    if rules.clause:
        clauses = rules.clause.split(sentence)
        alone = len(clauses) > 1 and all(
            len(one) > _QUESTION_WORDS and rules.word.search(one) for one in clauses
        )
        return clauses if alone else [sentence]
    joints = list(rules.joint.finditer(sentence))
    while joints and not joints[-1][1]:
        joints.pop()
    pieces: list[str] = []
    start = 0
    for joint in joints:
        left = sentence[start : joint.start()].strip(_STOP_CHARACTERS)
        right = sentence[joint.end() :]
        apart = bool(joint[1]) and joint[0].startswith((",", ";"))
        if (
            _own_words(left, rules)
            and _own_words(right, rules)
            and _may_end(left, right, apart, rules)
        ):
            pieces.append(left)
            start = joint.end()
    return [*pieces, sentence[start:].strip(_STOP_CHARACTERS)]


def _may_end(left: str, right: str, apart: bool, rules: _Rules) -> bool:
    """Whether a question may end before `right`, which begins with a question word or
    as one that wants yes or no.

    `apart` if more than a word is between them.
    """
    own = rules.word.search(left)
    polar = rules.polar.match(left)
    if own is None or polar:
        at_head = bool(polar)
    else:
        above = left[: own.start()].rstrip()
        at_head = len(above.split()) < _HEAD_WORDS or above.endswith(
            (",", ";", ":", ".")
        )
    opening = rules.word.search(right)
    # "people who sail and who row": the same word inside the first question is not a
    # separate question without a comma
    inside = 0 if polar or own is None else own.end()
    again = opening is not None and opening[0].casefold() in (
        other[0].casefold() for other in rules.word.finditer(left, inside)
    )
    return at_head and (apart or not again)


def _with_subject(piece: str, whole: str, rules: _Rules) -> str:
    """Return a part with the question that it leans on, where it points back or says
    too little by itself."""
    own = _own_words(piece, rules)
    # A word that points back points, among twice as many, to something in the part itself.
    leans = is_cjk(piece) or own < (2 if rules.back.search(piece) else 1) * _OWN_WORDS
    return (
        f"{piece} ({whole.rstrip(f'{_QUESTION_MARKS} ')})"
        if leans and piece != whole
        else piece
    )


def _own_words(piece: str, rules: _Rules) -> int:
    """Return the number of words of a part without question word and stop words."""
    return len(index_terms(rules.word.sub(" ", piece), language=rules.language))


def _sides_before(left: str, *, either: bool) -> list[str]:
    """Return the sides that are named before `or` (`either`) or `and`."""
    sides = _listed(left)
    if (
        either
        and sides
        and not left.startswith(sides[0])
        and left[left.index(sides[0]) - 2] not in ",:"
    ):
        # "Which singer is American, Mark King or Nick Hexum?"
        return sides[-1:]
    return sides


def _compared(request: str, rules: _Rules) -> tuple[str, ...]:
    """Return a comparison once for each side, the others left out; nothing where none
    is."""
    for match in rules.sides.finditer(request):
        left, right = request[: match.start()], request[match.end() :]
        after = find_entities(right, language="")
        sides = _sides_before(left, either=bool(match[1]))
        if not sides or not after or not right.startswith(after[0]):
            continue
        head = left[: left.rindex(sides[0])]
        if match[1] or rules.compared.search(request) or rules.plural.search(head):
            return _bounded(
                [f"{head}{side}{right[len(after[0]) :]}" for side in (*sides, after[0])]
            )
    found = rules.bare.search(request) if rules.compared.search(request) else None
    if found is None:
        return ()
    return tuple(f"{side}{request[found.end() :]}" for side in found.groups())


def _enumerated(request: str, rules: _Rules) -> tuple[str, ...]:
    """Return a question once for each of three or more things at its end, each after
    the same preposition: "in Python, in R, and in the shell"; nothing where none is."""
    found = rules.enumeration.search(request)
    if not found:
        return ()
    again = re.compile(rf"\s*,\s*{re.escape(found['preposition'])}\s+", re.IGNORECASE)
    things = [found["first"], *again.split(found["others"])[1:], found["last"]]
    head = request[: found.start()]
    return _bounded(
        [
            f"{head}{found['preposition']} {thing}{request[found.end() :]}"
            for thing in things
        ]
    )


def _listed(left: str) -> list[str]:
    """Return the names that a text ends with, commas between them, in order; [] if it
    does not end with a name."""
    names = find_entities(left, language="")
    if not names or not left.endswith(names[-1]):
        return []
    above = left.removesuffix(names[-1])
    listed = _COMMA_END.search(above)
    return [*(_listed(above[: listed.start()]) if listed else []), names[-1]]


@cache
def _rules(language: str) -> _Rules:
    def of(section: str) -> str:
        return any_of(words(f"questions.{section}", language))

    flags = re.IGNORECASE
    asking = rf"(?:(?:{of('before')})\s+)?(?:{of('words')})(?!\w)"
    # "and in the second table, which …"
    placed = rf"(?:(?:{of('before')})\s[^,;?]{{3,60}},\s+)?"
    # Arabic writes its "and" with the word that follows.
    follows = rf"(?:\s+|(?<=\sو))(?=(?:{placed}{asking}|(?:{of('polar')})\b))"
    joint = rf"((?:[,;،؛]?\s+(?:{of('and')})|[;؛]){follows})|[,،]\s+(?={asking})"
    unparted = is_cjk(of("words"))
    joined = words("questions.joint", language)
    endings = "".join(
        rf"|(?<={ending})\s+" for ending in words("questions.ending", language)
    )
    also = whole_words(joined).pattern
    clause = rf"\s*(?:[，、；,;]\s*(?:{also})?|{also})\s*{endings}"
    sides = rf"({of('or')})|{of('and')}"
    return _Rules(
        language,
        word=re.compile(whole_words(words("questions.words", language)).pattern, flags),
        joint=re.compile(joint, flags),
        clause=re.compile(clause) if joined else None,
        polar=re.compile(rf"(?:{of('polar')})\b", flags),
        back=re.compile(rf"\b(?:{of('back')})\b", flags),
        sides=re.compile(
            rf"\s*(?:{sides})\s*"
            if unparted
            else rf",?\s+(?:{sides})\s+(?:(?:{of('article')})\s+)?",
            flags,
        ),
        bare=re.compile(
            rf"^(?:{of('compared')})?(.{{2,{_BARE_SIDE_CHARACTERS}}}?)\s*(?:{of('and')})\s*(.{{2,{_BARE_SIDE_CHARACTERS}}}?)(?={of('after')})"
        ),
        compared=re.compile(
            whole_words(words("questions.compared", language)).pattern, flags
        ),
        describing=re.compile(rf"\b(?:{of('describing')})\b", flags),
        plural=re.compile(
            rf"\b(?:{of('plural')})\s+(?:(?:{of('article')})\s+)?$", flags
        ),
        enumeration=re.compile(
            rf"\b(?P<preposition>{of('before')})\s+(?P<first>{_THING})"
            rf"(?P<others>(?:\s*,\s*(?P=preposition)\s+{_THING})+)"
            rf"\s*,?\s+(?:{of('and')})\s+(?P=preposition)\s+(?P<last>{_THING})(?=\s*[?.]?\s*$)",
            flags,
        ),
    )
