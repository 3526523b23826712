"""Fingerprint of a model's files (12 hex digits): part of the model's name and cache
keys.

Files up to `WHOLE_BYTES` bytes are hashed whole; of larger ones the size, modification time
and as many first bytes, since a full hash takes seconds at each start. Not for: checking
downloads (`models/pull.py` hashes every byte).
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from errors import ModelError

WHOLE_BYTES: Final = 64 << 20
"""Bytes of a file that are hashed."""
DIGITS: Final = 12


def fingerprint(files: Iterable[Path], *settings: object) -> str:
    """Return 12 hex digits over files, in order, and settings that change a model's
    output.

    Raises `ModelError` for a file that cannot be read.
    """
    digest = hashlib.sha256(repr(settings).encode())
    for path in files:
        try:
            status = path.stat()
            with path.open("rb") as file:
                digest.update(file.read(WHOLE_BYTES))
        except OSError as error:
            raise ModelError(
                f"Cannot read the model file {path}: {error.strerror}.",
                hint="Check the path.",
            ) from error
        if status.st_size > WHOLE_BYTES:
            digest.update(f"{status.st_size}:{status.st_mtime_ns}".encode())
    return digest.hexdigest()[:DIGITS]
