"""Fetching a model's file from the hub, on request only: size and hash are asked first,
the bytes checked afterwards.

huggingface_hub (extra `models`) does the transfer and keeps one copy for all its users;
it compares sizes only, so every byte is hashed here. Not for: which files
(`models/catalogue.py`)."""

import hashlib
import importlib
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errors import ModelError, UsageError
from extra import importing


@dataclass(frozen=True, slots=True)
class Hub:
    """Where files come from and where they are kept; None: huggingface_hub's own
    address and folder."""

    address: str | None = None
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Remote:
    """A file as the hub describes it."""

    repository: str
    file: str
    bytes: int
    hash: str
    """The file's etag on the hub: sha256, or the sha1 that git gives a small file."""
    revision: str


def describe(hub: Hub, repository: str, file: str) -> Remote:
    """Return size, hash and revision of a file, as the hub says now.

    Raises `ModelError` where the hub is not reached, lacks the file, or does not report
    all of them; `UsageError` for an invalid name; `MissingExtra` without the package.
    """
    package = _package()
    with _our_errors(repository, file):
        address = package.hf_hub_url(repository, file, endpoint=hub.address)
        found = package.get_hf_file_metadata(address, endpoint=hub.address)
    if not found.etag or not found.size or not found.commit_hash:
        raise ModelError(
            f"The hub does not report size and hash of {repository}/{file}.",
            hint="Download it manually.",
        )
    return Remote(
        repository, file, int(found.size), str(found.etag), str(found.commit_hash)
    )


def pull(hub: Hub, remote: Remote, *, quiet: bool = False) -> Path:
    """Fetch a file, go on where an earlier try stopped, and return its path once every
    byte is checked.

    Waits without limit while another process fetches the file. Raises `ModelError`: no
    room on the disk, the transfer failed (what came is kept and the next call goes on),
    or the bytes are not those that the hub named (they are thrown away).
    """
    package = _package()
    folder = _folder(hub)
    kept = folder / f"models--{remote.repository.replace('/', '--')}"
    blob, part = kept / "blobs" / remote.hash, kept / "blobs" / f"{remote.hash}.part"
    with _our_errors(remote.repository, remote.file):
        blob.parent.mkdir(parents=True, exist_ok=True)
        with package.utils.WeakFileLock(kept / f"{remote.hash}.lock"):
            if not blob.is_file():
                _transfer(hub, remote, part, quiet=quiet)
                if (found := file_hash(part, like=remote.hash)) != remote.hash:
                    part.unlink()
                    raise ModelError(
                        f"{remote.repository}/{remote.file} was damaged in transfer: "
                        f"its hash is {found}, "
                        f"the hub names "
                        f"{remote.hash}.",
                        hint="It was deleted. Try again.",
                    )
                part.replace(blob)
        # The bytes are there: this only gives them their name among the package's own downloads.
        options = {
            "revision": remote.revision,
            "cache_dir": folder,
            "endpoint": hub.address,
        }
        return Path(package.hf_hub_download(remote.repository, remote.file, **options))


def _transfer(hub: Hub, remote: Remote, part: Path, *, quiet: bool) -> None:
    """Fetch what `part` does not have yet. `hf_hub_download` would restart after each
    interruption (huggingface_hub 2.4).

    A `part` that is too long is fetched again. Raises `ModelError` where less than half
    a gigabyte of the disk would stay free.
    """
    files = importlib.import_module("huggingface_hub.file_download")
    if quiet:
        _package().utils.disable_progress_bars()
    came = part.stat().st_size if part.exists() else 0
    if came > remote.bytes:
        part.unlink()
        came = 0
    free = shutil.disk_usage(part.parent).free
    if free < remote.bytes - came + (
        512 << 20
    ):  # half a gigabyte stays free for others
        raise ModelError(
            f"{remote.file} needs {remote.bytes / 1e9:.2f} GB, but the disk of {_folder(hub)} has only "
            f"{free / 1e9:.2f} GB free.",
            hint="Free disk space, or set another folder (HF_HUB_CACHE).",
        )
    with part.open("ab") as file:
        files.http_get(
            files.hf_hub_url(
                remote.repository,
                remote.file,
                revision=remote.revision,
                endpoint=hub.address,
            ),
            file,
            resume_size=came,
            headers=importlib.import_module("huggingface_hub.utils").build_hf_headers(),
            expected_size=remote.bytes,
            displayed_filename=remote.file,
            # The package's own bar is drawn on terminals only; and this one cannot be silenced.
            tqdm_class=None if quiet else importlib.import_module("tqdm").tqdm,
        )


def kept_files(hub: Hub) -> dict[str, Path]:
    """Return the GGUF files in the folder of downloads by OWNER/REPO/FILE, the newest
    revision of each."""
    oldest_first = sorted(_walk(hub), key=lambda found: found[1].lstat().st_mtime_ns)
    return dict(sorted(dict(oldest_first).items()))


def remove(hub: Hub, repository: str, file: str) -> int:
    """Delete every copy of a file from the folder of downloads; return how many bytes
    that freed.

    Raises `UsageError` where there is none.
    """
    freed = 0
    copies = [path for name, path in _walk(hub) if name == f"{repository}/{file}"]
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


def file_hash(path: Path, *, like: str) -> str:
    """Return the hash of a file in the form of `like`: sha256, or git's sha1 of a
    blob."""
    digest = hashlib.sha256()
    if len(like) != 2 * digest.digest_size:
        digest = hashlib.sha1(
            f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False
        )
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest()


def _walk(hub: Hub) -> Iterator[tuple[str, Path]]:
    """Yield OWNER/REPO/FILE and path of each whole GGUF file; a download that was cut
    has no such entry."""
    folder = _folder(hub)
    for path in folder.glob("models--*--*/snapshots/*/**/*.gguf"):
        if path.is_file():
            parts = path.relative_to(folder).parts
            yield "/".join([*parts[0].split("--", 2)[1:], *parts[3:]]), path


def _folder(hub: Hub) -> Path:
    """Return the folder of downloads: without one of ours, huggingface_hub's."""
    if hub.folder:
        return hub.folder
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
            hint="Try again: the download continues where it stopped.",
        ) from error
