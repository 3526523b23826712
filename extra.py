"""Packages of extras: whether they are installed, and errors when importing them fails.

Every module imports optional packages through `importing`. Not for: required packages.
"""

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from errors import BrokenExtra, MissingExtra

PACKAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "models": {"huggingface_hub": "huggingface_hub"},
    "llama": {"llama_cpp": "llama-cpp-python", "jinja2": "jinja2"},
    "flag": {
        "FlagEmbedding": "FlagEmbedding",
        "torch": "torch",
        "huggingface_hub": "huggingface_hub",
    },
    "redis": {"redis": "redis"},
    "metrics": {"prometheus_client": "prometheus_client"},
    "otel": {
        "opentelemetry.sdk": "opentelemetry-sdk",
        "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
    },
    "ddgs": {"ddgs": "ddgs"},
    "papers": {"umap": "umap-learn", "sklearn": "scikit-learn"},
    "ocr": {"rapidocr": "rapidocr"},
    "office-legacy": {
        "doc2docx": "msdoc2docx",
        "ppt2pptx": "ppt2pptx",
        "python_calamine": "python-calamine",
        "olefile": "olefile",
    },
    "parquet": {"pyarrow": "pyarrow"},
    "browser": {"playwright": "playwright"},
    "train": {"torch": "torch", "transformers": "transformers", "peft": "peft"},
}
"""Per extra: import name to distribution name."""

IMPORT_FAILURES: Final = (
    ImportError,
    AttributeError,
    NameError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Exceptions of an import whose package is incomplete or has incompatible
dependencies."""


def lacking(extra: str) -> str:
    """Return the first package of an extra that is not installed, or "". Imports
    nothing. Raises `KeyError` for an unknown extra."""
    return next(
        (
            package
            for module, package in PACKAGES[extra].items()
            if not is_there(module)
        ),
        "",
    )


def require(extra: str, needed_for: str) -> None:
    """Raise `MissingExtra` if a package of an extra is not installed."""
    if package := lacking(extra):
        raise MissingExtra(package, extra=extra, needed_for=needed_for)


@contextmanager
def importing(extra: str, needed_for: str) -> Iterator[None]:
    """Import packages of an extra in the block, and nothing else.

    Raises:
        MissingExtra: One of them is not installed.
        BrokenExtra: They are installed but cannot be imported; the message says why.
    """
    try:
        yield
    except IMPORT_FAILURES as error:
        if package := _absent(error, extra):
            raise MissingExtra(package, extra=extra, needed_for=needed_for) from error
        packages = " ".join(PACKAGES[extra].values())
        raise BrokenExtra(
            error, extra=extra, packages=packages, needed_for=needed_for
        ) from error


def _absent(error: Exception, extra: str) -> str:
    """Return the package that an import error reports as missing; "" for a submodule of
    an installed one."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    prefix = f"{error.name}."
    return next(
        (
            package
            for module, package in PACKAGES[extra].items()
            if f"{module}.".startswith(prefix)
        ),
        "",
    )


def is_there(module: str) -> bool:
    """Return whether a module is installed; only its parent packages are imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False
