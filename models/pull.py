"""Fetching a model's file from the hub, on request only: size and hash are asked first,
the bytes checked afterwards.

huggingface_hub (extra `models`) does the transfer and keeps one copy for all its users;
it compares sizes only, so every byte is hashed here. Not for: which files
(`models/catalogue.py`)."""

import hashlib
import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errors import ModelError, UsageError
from extra import importing


@dataclass(frozen=True, slots=True)
class Remote:
    """A file as the hub describes it."""

    repository: str
    file: str
    bytes: int
    hash: str
    """The file's etag on the hub: sha256, or the sha1 that git gives a small file."""
    revision: str


def describe(repository: str, file: str) -> Remote:
    """Return size, hash and revision of a file, as the hub says now.

    Raises `ModelError` where the hub is not reached, lacks the file, or does not report
    all of them; `UsageError` for an invalid name; `MissingExtra` without the package.
    """
    package = _package()
    with _our_errors(repository, file):
        address = package.hf_hub_url(repository, file)
        facts = package.get_hf_file_metadata(address)
    if not facts.etag or not facts.size or not facts.commit_hash:
        raise ModelError(
            f"The hub does not report size and hash of {repository}/{file}.",
            hint="Download it manually.",
        )
    return Remote(repository, file, facts.size, facts.etag, facts.commit_hash)


def pull(remote: Remote, *, quiet: bool = False) -> Path:
    """Fetch a file, and return its path once every byte is checked.

    Waits without limit while another process fetches the file. Raises `ModelError`: the
    transfer failed, or the bytes are not those that the hub named (they are thrown
    away)."""
    package = _package()
    if quiet:
        package.utils.disable_progress_bars()
    with _our_errors(remote.repository, remote.file):
        path = Path(
            package.hf_hub_download(
                remote.repository, remote.file, revision=remote.revision
            )
        )
    digest = file_hash(path, etag=remote.hash)
    if digest != remote.hash:
        remove(remote.repository, remote.file)
        raise ModelError(
            f"{remote.repository}/{remote.file} was damaged in transfer: "
            f"its hash is {digest}, the hub names {remote.hash}.",
            hint="It was deleted. Try again.",
        )
    return path


def kept_files(folder: Path | None = None) -> dict[str, Path]:
    """Return the GGUF files in the folder of downloads (None: huggingface_hub's) by OWNER/REPO/FILE, the newest
    revision of each."""
    oldest_first = sorted(_walk(folder), key=lambda item: item[1].lstat().st_mtime_ns)
    return dict(sorted(dict(oldest_first).items()))


def remove(repository: str, file: str) -> int:
    """Delete every copy of a file from the folder of downloads; return how many bytes
    that freed.

    Raises `UsageError` where there is none.
    """
    freed = 0
    copies = [path for name, path in _walk() if name == f"{repository}/{file}"]
    if not copies:
        raise UsageError(
            f"{repository}/{file} is not among the downloads.",
            hint="`winnow models list` shows them.",
        )
    for path in copies:
        blob = path.resolve()
        if blob.is_file():
            freed += blob.stat().st_size
            blob.unlink()
        path.unlink(missing_ok=True)
    return freed


def file_hash(path: Path, *, etag: str) -> str:
    """Return the hash of a file in the form of `etag`: sha256, or git's sha1 of a
    blob."""
    digest = hashlib.sha256()
    if len(etag) != 2 * digest.digest_size:
        header = f"blob {path.stat().st_size}\0".encode()
        digest = hashlib.sha1(header, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest()


def _walk(folder: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Yield OWNER/REPO/FILE and path of each whole GGUF file; a download that was cut
    has no such entry."""
    folder = folder or _folder()
    for path in folder.glob("models--*--*/snapshots/*/**/*.gguf"):
        if path.is_file():
            repository, _, _, *names = path.relative_to(folder).parts
            yield "/".join([*repository.split("--", 2)[1:], *names]), path


def _folder() -> Path:
    try:
        # The package's constants alone: a tenth of the time of the package.
        return Path(importlib.import_module("huggingface_hub.constants").HF_HUB_CACHE)
    except ModuleNotFoundError:
        return Path.home() / ".cache" / "huggingface" / "hub"


def _package() -> Any:
    # Imported here because it takes longer than the rest of a start, and only downloads need it.
    with importing("models", "downloads of models"):
        package = importlib.import_module("huggingface_hub")
    logging.getLogger("huggingface_hub").setLevel(
        logging.ERROR
    )  # its retries show in the error that ends them
    return package


@contextmanager
def _our_errors(repository: str, file: str) -> Iterator[None]:
    errors = importlib.import_module("huggingface_hub.errors")
    httpx = importlib.import_module("httpx2")
    try:
        yield
    except errors.HFValidationError as error:
        raise UsageError(
            f"{repository!r} is not a repository name: {error}",
            hint="Use OWNER/REPO/FILE.gguf.",
        ) from error
    except errors.GatedRepoError as error:
        raise ModelError(
            f"{repository} is available only after accepting its license.",
            hint="Accept it on the repository's page, then run `hf auth login`.",
        ) from error
    except (
        errors.EntryNotFoundError,
        errors.RepositoryNotFoundError,
        errors.RevisionNotFoundError,
    ) as error:
        raise ModelError(
            f"The hub has no {repository}/{file}.",
            hint="Check the name on the repository's page.",
        ) from error
    except (
        errors.HfHubHTTPError,
        httpx.HTTPError,
        OSError,
        RuntimeError,
        ValueError,
    ) as error:
        words = " ".join(str(error).split())[:300]
        raise ModelError(
            f"{repository}/{file} could not be fetched: {type(error).__name__} {words}",
            hint="Check the connection and the free disk space, then try again.",
        ) from error
