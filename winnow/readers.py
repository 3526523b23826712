"""The readers of an installed wheel: `python -m winnow.readers FILE` prints a file as
Markdown, and `from winnow.readers import read` is `readers.read`."""

import sys

from winnow import find_folders

find_folders()

from readers import read as read  # noqa: E402, PLC0414  the path must be set first; what others import
from readers.__main__ import main  # noqa: E402  as above

if __name__ == "__main__":
    sys.exit(main())
