"""The data of a table.

Not for: reading a table element (`pipeline/html/table.py`), finding a document's tables
(`pipeline/tables/table.py`).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pipeline.text.cells import Value, values_of

GROUP_COLUMN: Final = "group"
"""Name of the column that holds the rows across a table which head the rows below
them."""
FEWEST_CHOSEN_FROM: Final = 3
"""Rows of a table in which something can be chosen, and this many with the same extreme
are not a choice."""
KNOWN: Final = 0.9
"""Minimum share of numbers in a column's filled cells to treat it as numeric; others are `n/a` or `–`."""
EMPTY: Final = frozenset(
    {"", "-", "–", "—", "−", "n/a", "na", "none", "null", "?", "…", "..", "tbd"}
)
"""Cells that say that nothing is known, in lower case."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of equally many cells below named columns."""

    number: int
    """1-based on its page; 0 for a list that we made."""
    title: str
    """Its caption, or the heading above it."""
    columns: tuple[str, ...]
    """Empty names are `column 3`."""
    rows: tuple[tuple[str, ...], ...]
    blocks: tuple[int, ...] = ()
    """Index into `Document.blocks` of each row; empty for a list that we made."""
    about: str = ""
    """Headings above it."""
    named: bool = True
    """Whether the page names its columns."""
    carried: tuple[tuple[int, ...], ...] = ()
    """Columns of each row whose cell is that of the row above, which covers both; empty
    where no cell covers rows."""

    def cells(self, column: int) -> list[str]:
        """Return the cells of a column, from the top."""
        return [row[column] for row in self.rows]

    def values(self, column: int) -> list[Value | None]:
        """Return the numbers of a column; None for other cells."""
        return list(_values(tuple(self.cells(column))))

    def is_numeric(self, column: int) -> bool:
        """Whether nearly all that a column holds are numbers, False if it is empty."""
        filled = [
            index
            for index, cell in enumerate(self.cells(column))
            if cell.lower() not in EMPTY
        ]
        values = self.values(column)
        return bool(filled) and sum(
            values[index] is not None for index in filled
        ) >= KNOWN * len(filled)


@lru_cache(maxsize=256)
def _values(cells: tuple[str, ...]) -> tuple[Value | None, ...]:
    return tuple(values_of(cells))
