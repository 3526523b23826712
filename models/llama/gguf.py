"""The facts in a GGUF file's header, such as its sizes. Reads no weights.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Not for: loading
models (`models/llama/process.py`)."""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from errors import ModelError
from models.fingerprint import fingerprint

NUMBERS: Final = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
"""Kinds of numbers, as `struct` writes them; 8 is a text, 9 a list."""
MOST_ENTRIES: Final = 100_000
"""Entries of a header, where real ones have about forty: a damaged count would keep the
loop busy. Also the longest list that may hold a number for each layer."""


@dataclass(frozen=True, slots=True)
class Header:
    """What must be known of a model before it is loaded."""

    embedding_length: int
    context_length: int
    vocabulary: int
    digest: str
    """Fingerprint of the file's bytes (`models/fingerprint.py`)."""
    name: str = ""
    """`general.name`, as its publisher wrote it."""
    layers: int = 1
    """Transformer blocks."""
    token_bytes: int = 0
    """Bytes of keys and values that one token of context takes at 16 bits (an upper
    bound for hybrid models)."""
    file_bytes: int = 0
    classifies: bool = False
    """Whether it carries a classification head, which a reranker needs."""
    output_bytes: int = 0
    """Bytes of the layer that makes logits; of the token embedding where the two are
    one."""


def read_header(path: Path) -> Header:
    """Return the header's facts and the file's fingerprint; raises `ModelError` if it
    cannot be read, is incomplete or is not a GGUF model."""
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            reader = _Reader(data)
            values = reader.values()
            sizes = reader.sizes()
            file_bytes = len(data)
        architecture = str(values["general.architecture"])
        return Header(
            embedding_length=_whole(values[f"{architecture}.embedding_length"]),
            context_length=_whole(values.get(f"{architecture}.context_length", 512)),
            vocabulary=_whole(values.get("tokenizer.ggml.tokens", 0)),
            digest=fingerprint([path]),
            name=str(values.get("general.name", "")),
            layers=max(1, _whole(values.get(f"{architecture}.block_count", 1))),
            token_bytes=_token_bytes(values, architecture),
            file_bytes=file_bytes,
            classifies=any(name.startswith("cls.") for name in sizes),
            output_bytes=sizes.get("output.weight", sizes.get("token_embd.weight", 0)),
        )
    except OSError as error:
        raise ModelError(
            f"Cannot read the model {path}: {error.strerror}.", hint="Check the path."
        ) from error
    except (ValueError, KeyError, OverflowError, struct.error) as error:
        raise ModelError(
            f"{path} is not a GGUF model, or is incomplete: {error}.",
            hint="Download the file again.",
        ) from error


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{value!r} where an integer is expected")
    return value


def _token_bytes(values: Mapping[str, object], architecture: str) -> int:
    def number(name: str, default: int) -> int:
        return _whole(values.get(f"{architecture}.{name}", default))

    heads = max(1, number("attention.head_count", 1))
    sharing = number("attention.head_count_kv", heads)
    width = _whole(values[f"{architecture}.embedding_length"]) // heads
    both = number("attention.key_length", width) + number(
        "attention.value_length", width
    )
    return (
        number("block_count", 1)
        * min(sharing, heads)
        * both
        * np.dtype(np.float16).itemsize
    )


class _Reader:
    """Walks the header from its beginning."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0
        self._tensors = 0

    def values(self) -> dict[str, object]:
        """Return numbers and texts by key; of a list of numbers its largest, of another
        or a longer one its length.

        Raises `ValueError` for another format or version than GGUF 2 and 3, or too many
        entries.
        """
        if self._data[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        self._at = 4
        version, self._tensors, entries = self._take("<IQQ")
        if version not in (2, 3) or max(entries, self._tensors) > MOST_ENTRIES:
            raise ValueError(
                f"GGUF version {version} with {entries} metadata entries is not supported"
            )
        # The key is evaluated before the value, which begins with its kind.
        return {self._text(): self._value(self._take("<I")[0]) for _ in range(entries)}

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each tensor by its name: up to where the next one
        begins."""
        begins: dict[str, int] = {}
        for _ in range(self._tensors):
            name = self._text()
            (dimensions,) = self._take("<I")
            self._at += dimensions * 8 + 4  # lengths, kind of number
            (begins[name],) = self._take("<Q")
        order = sorted(begins, key=lambda name: begins[name])
        ends = [*(begins[name] for name in order[1:]), len(self._data) - self._at]
        return {
            name: max(0, end - begins[name])
            for name, end in zip(order, ends, strict=False)
        }

    def _value(self, kind: int) -> object:
        if kind == 8:
            return self._text()
        if kind != 9:
            return self._take("<" + self._code(kind))[0]
        inner, count = self._take("<IQ")
        if inner == 8:
            for _ in range(count):
                self._bytes()
        elif 0 < count <= MOST_ENTRIES:
            return max(self._take(f"<{count}{self._code(inner)}"))
        else:
            self._at += count * struct.calcsize("<" + self._code(inner))
        return count

    def _code(self, kind: int) -> str:
        if kind not in NUMBERS:
            raise ValueError(f"value of unknown kind {kind}")
        return NUMBERS[kind]

    def _text(self) -> str:
        return self._bytes().decode("utf-8", "replace")

    def _bytes(self) -> bytes:
        (length,) = self._take("<Q")
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise ValueError("a string goes beyond the end of the file")
        return self._data[start : self._at]

    def _take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values
