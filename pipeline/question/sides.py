"""The sides of a comparison that says that it is one: "difference between A and B", "A vs B".

Each side is asked as what it is, with what follows both of them: "`--merge` in git reset", since a
reader that is asked for a difference finds passages about differences, and seldom the two
definitions. Not for: comparisons whose sides are names inside a longer question (`parse.py`).
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from pipeline.text.words import any_of, index_terms, words

_SIDE_WORDS: Final = 6
"""Words of a side; a longer one is a clause, and the question is left whole."""
_SHORT_SIDE: Final = 2
"""Words of a side around a bare "vs": what more there is may hold for both."""
_BESIDES: Final = 1
"""Words that say something in front of the comparison; with more it is a question about something
else."""
_SIDE_CHARACTERS: Final = 60
"""Characters of the first side."""
_END: Final = " \t\n?!.？。！"
_COMMA: Final = re.compile(r"\s*[,،、，]\s*")


@dataclass(frozen=True, slots=True)
class _Forms:
    compared: re.Pattern[str]
    """What says that sides follow; its groups are the first side, or several, and the rest."""
    versus: re.Pattern[str]
    """A whole request of two sides; its groups are the same."""
    tail: re.Pattern[str]
    """Where a side ends and what holds for both begins."""


def sides_of(request: str, language: str) -> tuple[str, ...]:
    """Return a request once for each side that it compares; nothing where it does not say so, or is
    in doubt."""
    forms = _forms(language)
    most = _SIDE_WORDS
    found = forms.compared.search(request)
    if not found:
        found, most = forms.versus.fullmatch(request.strip(_END)), _SHORT_SIDE
    if (
        not found
        or len(index_terms(request[: found.start()], language=language)) > _BESIDES
    ):
        return ()
    left, rest = found[1], found[2].strip(_END)
    end = forms.tail.search(rest)
    right, tail = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    sides = [*_COMMA.split(left.strip(" ,")), right]
    if forms.tail.search(f" {left}") or any(
        not 0 < len(side.split()) <= most for side in sides
    ):
        return ()
    return tuple(f"{side}{tail}" for side in sides)


@cache
def _forms(language: str) -> _Forms:
    def of(section: str) -> str:
        return any_of(words(f"questions.{section}", language))

    article = rf"(?:(?:{of('article')})\s+)?"
    first, joint = (
        rf"{article}(\S.{{0,{_SIDE_CHARACTERS}}}?)",
        rf",?\s+(?:{of('and')}|{of('against')})\s+{article}",
    )
    versus = any_of(words("questions.versus"))
    return _Forms(
        re.compile(
            rf"\b(?:{of('difference')})\s+{first}{joint}(\S.*)",
            re.IGNORECASE | re.DOTALL,
        ),
        re.compile(rf"{first}\s+(?:{versus})\s+{article}(\S.*)", re.IGNORECASE),
        re.compile(rf"\s(?:{of('before')})\s", re.IGNORECASE),
    )
