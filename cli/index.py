"""`winnow index` and `winnow status`: the index of a person's folders, built and shown.

What is done is kept file by file, and page by page of a PDF: who stops it goes on there
next time. Not for: the index (`pipeline/search/folder.py`)."""

import argparse
import sys
import time
from typing import Final

import anyio

from cli.daemon import daemon_rows
from cli.output import OK, drawn_progress, show
from errors import UsageError
from pipeline.search.folder import FolderProvider
from server.reading import status_rows
from server.settings import Settings
from server.wiring import open_services

_DRAWN_SECONDS: Final = 0.2
"""Seconds between two looks at the progress, at a terminal."""
_PRINTED_SECONDS: Final = 5.0
"""Seconds between two lines of progress elsewhere."""


_WATCH_SECONDS: Final = 10.0
"""Seconds between two looks for changes, each a walk over the folders' names."""


async def build_index(settings: Settings, args: argparse.Namespace) -> int:
    """Read all that is new in the folders, and print what is in the index then; return
    the exit code. With `--watch` it goes on with what changes until it is stopped.

    Raises `UsageError` where no folder is searched, `ModelError` where the embedder
    fails, by when the words are kept."""
    async with open_services(settings) as services:
        if services.folder is None:
            raise UsageError(
                "No folder is searched.",
                hint="Write `winnow index DIR`, or `winnow folders add DIR` before.",
            )
        before, began = await services.folder.status(), time.monotonic()
        async with anyio.create_task_group() as group:
            if not args.quiet:
                group.start_soon(_draw, services.folder, before.waiting, began)
            await services.folder.finish()
            while args.watch:
                await anyio.sleep(_WATCH_SECONDS)
                await services.folder.finish()
            group.cancel_scope.cancel()
        after, seconds = await services.folder.status(), time.monotonic() - began
    count = before.waiting - after.waiting
    report = {"indexed": f"{count} files in {seconds:.1f} s", **dict(after.rows())}
    show(report, as_json=args.json)
    return OK


async def _draw(folder: FolderProvider, waiting: int, began: float) -> None:
    """Show how far `folder` is, until it is cancelled."""
    with drawn_progress(quiet=False) as draw:
        while True:
            await anyio.sleep(_DRAWN_SECONDS if draw else _PRINTED_SECONDS)
            status = await folder.status(look=False)
            total = len(status.listing.files)
            rate = (waiting - status.waiting) / (time.monotonic() - began)
            message = (
                f"{status.read} of {total} files, {rate:.3g} a second; "
                f"{status.failed} could not be read; {status.vectors} vectors"
            )
            if draw:
                await draw(status.read + status.vectors, 2 * total, message)
            else:
                print(message, file=sys.stderr, flush=True)


async def show_status(settings: Settings, args: argparse.Namespace) -> int:
    """Print folders, index, models, providers, cache and daemons; return the exit
    code."""
    async with open_services(settings) as services:
        show(await status_rows(services) | daemon_rows(), as_json=args.json)
    return OK
