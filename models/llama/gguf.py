"""The facts in a GGUF file's header: architecture, sizes, whether a chat template is there. Reads no weights.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Not for: loading models (`models/llama/process.py`).
"""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from errors import ModelError
from models.fingerprint import fingerprint

MAGIC: Final = b"GGUF"
STRING: Final = 8
ARRAY: Final = 9
NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
WHOLE: Final = frozenset({0, 1, 2, 3, 4, 5, 10, 11})
"""Kinds of whole numbers among them."""
MOST_ENTRIES: Final = 100_000
"""Entries of a header; real ones have about forty, a damaged count would keep the loop busy."""
MOST_LAYERS: Final = 1_024
"""Longest list that may hold one number a layer."""
MOST_DIMENSIONS: Final = 8
BYTES_A_NUMBER: Final = 2
"""Keys and values are kept as 16-bit floats."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a step must know of a model before it is loaded."""

    architecture: str
    embedding_length: int
    context_length: int
    vocabulary: int
    chat_template: bool
    digest: str
    """Fingerprint of the file's bytes (`models/fingerprint.py`)."""
    name: str = ""
    """`general.name`, as its publisher wrote it."""
    layers: int = 1
    """Blocks."""
    token_bytes: int = 0
    """Bytes of keys and values that one token of context takes at 16 bits (an upper bound for hybrid models)."""
    file_bytes: int = 0
    classifies: bool = False
    """Whether it carries a classification head, which a reranker needs."""
    output_bytes: int = 0
    """Bytes of the layer that makes logits; of the token embedding where the two are one."""


def read_header(path: Path) -> Header:
    """Return the header's facts and the file's fingerprint.

    Raises:
        ModelError: The file cannot be read or is no GGUF file.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            reader = _Reader(data)
            values = reader.values()
            tensors = reader.tensors()
            sizes = _sizes(tensors, end=reader.remaining())
            file_bytes = len(data)
        architecture = str(values["general.architecture"])
        return Header(
            architecture=architecture,
            embedding_length=_whole(values[f"{architecture}.embedding_length"]),
            context_length=_whole(values.get(f"{architecture}.context_length", 512)),
            vocabulary=_whole(values.get("tokenizer.ggml.tokens", 0)),
            chat_template=bool(values.get("tokenizer.chat_template")),
            digest=fingerprint([path]),
            name=str(values.get("general.name", "")),
            layers=max(1, _whole(values.get(f"{architecture}.block_count", 1))),
            token_bytes=_token_bytes(values, architecture),
            file_bytes=file_bytes,
            classifies=any(name.startswith("cls.") for name in tensors),
            output_bytes=sizes.get("output.weight", sizes.get("token_embd.weight", 0)),
        )
    except OSError as error:
        raise ModelError(f"Cannot read the model {path}: {error.strerror}.", hint="Check the path.") from error
    except (ValueError, KeyError, struct.error) as error:
        raise ModelError(
            f"{path} is no GGUF model, or a part of one: {error}.", hint="Download the file again."
        ) from error


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{value!r} where a whole number belongs")
    return value


def _token_bytes(values: Mapping[str, object], architecture: str) -> int:
    heads = max(1, _whole(values.get(f"{architecture}.attention.head_count", 1)))
    sharing = _whole(values.get(f"{architecture}.attention.head_count_kv", heads))
    width = _whole(values[f"{architecture}.embedding_length"]) // heads
    key = _whole(values.get(f"{architecture}.attention.key_length", width))
    value = _whole(values.get(f"{architecture}.attention.value_length", width))
    layers = _whole(values.get(f"{architecture}.block_count", 1))
    return layers * min(sharing, heads) * (key + value) * BYTES_A_NUMBER


def _sizes(places: Mapping[str, int], *, end: int) -> dict[str, int]:
    """Return each tensor's bytes: up to where the next one begins."""
    order = sorted(places, key=lambda name: places[name])
    ends = [places[name] for name in order[1:]] + [end]
    return {name: max(0, after - places[name]) for name, after in zip(order, ends, strict=False)}


class _Reader:
    """Walks the key-value part from its beginning."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0
        self._tensors = 0

    def values(self) -> dict[str, object]:
        """Return numbers and strings by key; of a list a number a layer its largest, of a longer one its length."""
        if self._data[:4] != MAGIC:
            raise ValueError("it does not begin with GGUF")
        self._at = 4
        version, self._tensors, entries = self._take("<IQQ")
        if version not in (2, 3) or max(entries, self._tensors) > MOST_ENTRIES:
            raise ValueError(f"version {version} with {entries} entries")
        found: dict[str, object] = {}
        for _ in range(entries):
            key = self._string().decode("utf-8", "replace")
            found[key] = self._value(self._take("<I")[0])
        return found

    def tensors(self) -> dict[str, int]:
        """Return the tensors' names, which stand after the values, and where the data of each begins."""
        places = {}
        for _ in range(self._tensors):
            name = self._string().decode("utf-8", "replace")
            (dimensions,) = self._take("<I")
            if dimensions > MOST_DIMENSIONS:
                raise ValueError(f"a tensor of {dimensions} dimensions")
            self._at += dimensions * 8 + 4  # lengths, kind of number
            (places[name],) = self._take("<Q")
        return places

    def remaining(self) -> int:
        """Return the bytes after what was read."""
        return len(self._data) - self._at

    def _value(self, kind: int) -> object:
        if kind == STRING:
            return self._string().decode("utf-8", "replace")
        if kind == ARRAY:
            inner, count = self._take("<IQ")
            if inner in WHOLE and 0 < count <= MOST_LAYERS:
                return max(self._take(f"<{count}{self._code(inner)}"))
            self._skip(inner, count)
            return count
        return self._take("<" + self._code(kind))[0]

    def _skip(self, kind: int, count: int) -> None:
        if kind == STRING:
            for _ in range(count):
                self._string()
        else:
            self._at += count * struct.calcsize("<" + self._code(kind))

    def _code(self, kind: int) -> str:
        if kind not in NUMBERS:
            raise ValueError(f"value of unknown kind {kind}")
        return NUMBERS[kind]

    def _string(self) -> bytes:
        (length,) = self._take("<Q")
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise ValueError("a string goes past the end")
        return self._data[start : self._at]

    def _take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values
