"""Twelve digits that tell one model's files from another's: part of each model's name, and so of
every cache key.

A file up to `WHOLE` bytes counts with all its bytes; of a larger one, whose hash takes seconds at
each start, its size, its time of change and samples all over it. Not for: checking downloads
(`models/pull.py` hashes every byte).
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from errors import ModelError

SAMPLES: Final = 64
WHOLE: Final = SAMPLES << 20
"""Bytes (64 MiB) up to which a file is hashed whole."""
SAMPLE: Final = WHOLE >> 10
"""64 samples of 64 KiB: 4 MiB, some milliseconds, from a file of any size."""
DIGITS: Final = 12


def fingerprint(files: Iterable[Path], *settings: object) -> str:
    """Return twelve hexadecimal digits over files, in the order given, and settings that change a
    model's answers."""
    digest = hashlib.sha256(repr(settings).encode())
    for path in files:
        try:
            status = path.stat()
            with path.open("rb") as file:
                if status.st_size <= WHOLE:
                    hashlib.file_digest(file, lambda: digest)
                    continue
                digest.update(f"{status.st_size}:{status.st_mtime_ns}".encode())
                for number in range(SAMPLES):
                    file.seek((status.st_size - SAMPLE) * number // (SAMPLES - 1))
                    digest.update(file.read(SAMPLE))
        except OSError as error:
            raise ModelError(
                f"Cannot read the model's file {path}: {error.strerror}.",
                hint="Check the path.",
            ) from error
    return digest.hexdigest()[:DIGITS]
