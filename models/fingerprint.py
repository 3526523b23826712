"""Fingerprint of a model's files (12 hex digits): part of the model's name and cache
keys.

Files up to `WHOLE_BYTES` bytes are hashed whole; of larger ones the size, modification time
and samples, since a full hash takes seconds at each start. Not for: checking downloads
(`models/pull.py` hashes every byte).
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from errors import ModelError

SAMPLES: Final = 64
WHOLE_BYTES: Final = SAMPLES << 20
"""Bytes (64 MiB) up to which a file is hashed whole."""
SAMPLE: Final = WHOLE_BYTES >> 10
"""Number and bytes of samples of a larger file (4 MiB in all)."""
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
                if status.st_size <= WHOLE_BYTES:
                    hashlib.file_digest(file, lambda: digest)
                    continue
                digest.update(f"{status.st_size}:{status.st_mtime_ns}".encode())
                for number in range(SAMPLES):
                    file.seek((status.st_size - SAMPLE) * number // (SAMPLES - 1))
                    digest.update(file.read(SAMPLE))
        except OSError as error:
            raise ModelError(
                f"Cannot read the model file {path}: {error.strerror}.",
                hint="Check the path.",
            ) from error
    return digest.hexdigest()[:DIGITS]
