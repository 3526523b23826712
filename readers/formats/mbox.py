"""Mailboxes."""

import re
from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/mbox",),
    to_html=later("readers.mail.mail", "mbox_to_html"),
    endings=(".mbox", ".mbx"),
    begins=re.compile(rb"From [^\n]{1,200}\n[A-Za-z][\w-]*:\s"),
    heavy=True,
)
