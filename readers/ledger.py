"""What a file holds against what its HTML has, counted by kind: the difference was not
read, and each answer says so.

Each reader counts the file by itself, by a pass over its elements that is independent
of the conversion, with `hold`, and what it writes with `give`. What is left out on
purpose (hidden or deleted text) is given, too: a note of the conversion names it. Not
for: what follows a cap or a cut, which `Converted.unread` says.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

Kind = Literal[
    "page", "sheet", "word", "cell", "formula", "chart", "diagram", "form field",
    "equation", "comment", "footnote", "attachment", "embedded object", "image",
]  # fmt: skip
"""Kinds that are counted, in the order of messages. Formula: without a computed value.
Sheet: macro or dialog sheet. Image: without text or description. Page: unreadable."""

_OF_TABLES: Final[frozenset[Kind]] = frozenset({"word", "cell", "formula", "page"})
"""Kinds that may be cells of a table: where one is missing, nothing is computed."""


@dataclass(slots=True)
class Ledger:
    """Counts of one conversion."""

    held: Counter[Kind] = field(default_factory=Counter)
    given: Counter[Kind] = field(default_factory=Counter)

    def hold(self, kind: Kind, number: int = 1) -> None:
        """Count what the file holds."""
        self.held[kind] += number

    def give(self, kind: Kind) -> None:
        """Count what the HTML has, or what was left out on purpose."""
        self.given[kind] += 1

    def add(self, file_ledger: "Ledger") -> None:
        """Take in the counts of a file inside this one, such as an attachment."""
        self.held.update(file_ledger.held)
        self.given.update(file_ledger.given)

    @property
    def missing(self) -> dict[Kind, int]:
        """What the file holds and the HTML lacks; kinds of which nothing is missing are
        left out."""
        lacking = self.held - self.given
        return {kind: lacking[kind] for kind in get_args(Kind) if lacking[kind]}

    @property
    def unread(self) -> str:
        """What was not read, such as `2 charts, 1 comment`; empty where all was."""
        return ", ".join(
            _counted(kind, number) for kind, number in self.missing.items()
        )

    @property
    def leaves_tables_whole(self) -> bool:
        """Whether nothing is missing that may be a table's cell."""
        return _OF_TABLES.isdisjoint(self.missing)


def _counted(kind: Kind, number: int) -> str:
    noun = kind if number == 1 else f"{kind}s"
    return f"{number:,} {noun}{' without a value' if kind == 'formula' else ''}"
