"""Single messages."""

import re
from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("message/rfc822",),
    to_html=later("readers.mail.mail", "eml_to_html"),
    endings=(".eml",),
    # Fields of a head, one of which only mail has.
    begins=re.compile(
        rb"(?ims)(?=.{0,1000}?^(?:message-id|mime-version|received):)[a-z][\w-]*:[^\n]*\n[a-z \t]"
    ),
    heavy=True,
)
