"""What of a person's folders is in their index, for people to read.

Not for: the index itself (`pipeline/search/folder.py`)."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pipeline.search.listing import Listing, left_out
from pipeline.text.frame import one_line

_SHOWN_FAULTS: Final = 20
"""Files that are named with what of them could not be read; the others are counted."""


class FolderStatus(NamedTuple):
    """How far the index of some folders is."""

    listing: Listing
    waiting: int
    """Files whose words are not in the index yet."""
    faults: Sequence[tuple[str, str, str]]
    """Path of each file that could not be read, or not wholly, with why not, and what
    not."""
    pages: int
    """Pages of PDFs whose words are in the index."""
    vectors: int
    """Files whose outline has a vector; without an embedder none has."""
    size: int
    """Bytes of the index on disk."""

    @property
    def failed(self) -> int:
        """Files that could not be read at all."""
        return sum(bool(failure) for _, failure, _ in self.faults)

    @property
    def read(self) -> int:
        """Files whose words are in the index."""
        return len(self.listing.files) - self.waiting - self.failed

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of a report, name and text."""
        listing = self.listing
        yield (
            "files",
            f"{self.read} read, {self.failed} could not be read, {self.waiting} to be read",
        )
        yield "pages", f"{self.pages} of PDFs"
        yield "vectors", f"{self.vectors} files"
        newest = max(listing.files, key=lambda stamp: stamp.mtime_ns, default=None)
        if newest is not None:
            when = datetime.fromtimestamp(newest.mtime_ns / 1e9, UTC).astimezone()
            yield "last change", f"{when:%Y-%m-%d %H:%M}, {one_line(newest.path)}"
        yield "index", f"{self.size / 1e6:.1f} MB"
        yield "left out", " ".join(left_out(listing)) or "none"
        if listing.ignored:
            yield "ignored", f"{listing.ignored} files and folders, by their names"
        for path, failure, unread in self.faults[:_SHOWN_FAULTS]:
            why = f"not read: {failure}" if failure else f"read in part: {unread}"
            yield one_line(path), one_line(why)
        if len(self.faults) > _SHOWN_FAULTS:
            yield "other such files", f"{len(self.faults) - _SHOWN_FAULTS}"
