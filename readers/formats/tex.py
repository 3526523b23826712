"""LaTeX, as it is written."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("text/x-tex",),
    to_html=later("readers.text.plain", "tex_to_html"),
    reads="text",
    endings=(".tex", ".latex"),
    also=("application/x-tex", "application/x-latex", "text/x-latex"),
)
