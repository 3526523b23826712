"""The date of a page that its own metadata does not tell: trafilatura's reader, asked for what is still missing.

On 73 development pages our reader (`pipeline/html/metadata.py`) names 18 of 35 known dates; where it names none
trafilatura adds 10 right and 3 wrong ones. For titles and authors it adds nothing (0 right; 1 right, 3 wrong), so it is
not asked for those. Not for: the text of the page.
"""

import logging
import re
from typing import Final

LARGEST: Final = 1_000_000
"""Characters; trafilatura reads about 8 MB a second, so a longer page would cost more than a date is worth."""
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_log: Final = logging.getLogger("winnow.html")


def find_date(html: str, url: str) -> str:
    """Return the ISO date of publication that trafilatura finds, empty when it finds none."""
    # Half a second of imports that pages with a date never need.
    from trafilatura.metadata import extract_metadata  # noqa: PLC0415

    try:
        found = extract_metadata(html[:LARGEST], default_url=url, extensive=False)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        _log.info("trafilatura could not read the metadata of %s: %r", url, error)
        return ""
    day = str(found.date or "") if found is not None else ""
    return day if _DAY.match(day) else ""
