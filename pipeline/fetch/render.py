"""From an answer to a page, by way of a browser where one is set and the page needs it.

Not for: how a browser is driven, and what it may ask for (`extras/browser.py`),
nor how bytes are read (`readers/convert.py`)."""

import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import anyio
import httpx2

from errors import BrokenExtra, NeedsBrowser, SourceError, SourceUnreadable, UsageError
from extra import importing, require
from pipeline.fetch.limits import FetchLimits
from pipeline.work import in_thread
from readers.convert import Raw, to_page
from readers.html.scripts import MAY_NEED_BROWSER
from readers.page import Page
from seams import optional

Show = Callable[[Raw, "Renderer"], Awaitable[tuple[Raw, str]]]
"""Returns a page after its scripts have run, and where they lead, which is empty for a
page that stays; raises `SourceError`."""
RENDERED: Final = "the page was rendered by a browser with JavaScript"
UNSETTLED: Final = (
    "the page was still loading when the browser's time limit was reached"
)
_BROWSERS: Final = (
    *(
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "msedge",
    ),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)


@dataclass(frozen=True, slots=True)
class Browser:
    """A Chromium to start for each page, and what a page may cost in it."""

    executable: Path
    seconds: float = 8.0
    """From the start of the browser to the page's HTML. Starting takes about 1.2 s."""
    last_seconds: float = 1.0
    """Of these, kept for writing out what is there at the end."""
    quiet_seconds: float = 0.4
    """Without new text and without a request under way, after which a page is done; an
    empty page gets three times as many."""
    close_seconds: float = 3.0
    """For closing a window or the browser; what then still runs dies with Playwright's
    driver."""
    requests: int = 150
    """A news page asks for 40 to 120 scripts, styles and data; what comes after these
    is refused."""
    bytes: int = 20_000_000
    """Of all answers together, unpacked."""
    post: int = 100_000
    """Bytes that the page may send in one request."""
    html: int = 5_000_000
    """Characters of the final page."""
    at_once: int = 2
    """Browsers at a time; each takes 150 to 300 MB."""


def find_browser(setting: str) -> Path | None:
    """Return the Chromium that `setting` means: a path, `auto` to look for one, `none`
    or "" (None).

    Raises `UsageError` where there is none at the path or none is found, `MissingExtra`
    without the extra `browser`."""
    name = setting.strip()
    if name.lower() in {"", "none"}:
        return None
    require("browser", f"WINNOW_BROWSER={name}")
    if name.lower() != "auto":
        path = Path(name).expanduser()
        if not path.is_file():
            raise UsageError(
                f"WINNOW_BROWSER is {name!r}, but that file does not exist.",
                hint="Give the path of Chromium or Chrome, `auto` to look for one, or `none`.",
            )
        return path
    for program in _BROWSERS:
        if (path_found := shutil.which(program)) is not None:
            return Path(path_found)
    raise UsageError(
        "WINNOW_BROWSER is 'auto', but no Chromium was found.",
        hint=(
            "Install Chromium (apt-get install chromium) or Chrome, or set "
            "WINNOW_BROWSER to its path."
        ),
    )


@dataclass(frozen=True, slots=True)
class Renderer:
    """What rendering takes: a browser, and connections for what pages ask for."""

    browser: Browser
    pinned: Callable[[str], httpx2.AsyncClient]
    """Takes the address that a page came from; the client reaches the page's own site
    there and nowhere else."""
    open_web: httpx2.AsyncClient
    """Reaches public addresses only."""
    limits: FetchLimits
    places: anyio.Semaphore
    """As many as browsers may run."""

    async def page(self, raw: Raw) -> Page:
        """Return `raw` as it shows itself once its scripts have run.

        It waits for its turn without a limit of its own. Raises `SourceUnreadable` for
        a page that stays empty, and what `show` raises."""
        show = await in_thread(_driver, raw.url)
        async with self.places:
            rendered, left_for = await show(raw, self)
        try:
            return await in_thread(to_page, rendered)
        except SourceError as e:
            if not left_for:
                raise
            raise SourceUnreadable(
                f"{e.shown} Its scripts redirect to {left_for}.",
                source=raw.url,
                hint=f"Fetch {left_for} itself.",
            ) from e


def _driver(url: str) -> Show:
    """Return what `extras/browser.py` shows pages by, imported at its first use: an
    extra, and 0.25 s.

    Raises `SourceUnreadable` where it is not there or cannot be imported."""
    open_driver = optional("extras.browser", "driver")
    if open_driver is None:
        raise SourceUnreadable(
            (
                "WINNOW_BROWSER is set, but this installation lacks "
                "`extras/browser.py`, which drives the browser."
            ),
            source=url,
            hint=("Install all of Winnow, or set WINNOW_BROWSER=none."),
        )
    try:
        with importing("browser", "WINNOW_BROWSER"):
            show: Show = open_driver()
            return show
    except BrokenExtra as error:
        raise SourceUnreadable(error.what, source=url, hint=error.hint) from error


async def page_of(
    raw: Raw, renderer: Renderer | None, convert: Callable[[Raw], Awaitable[Page]]
) -> Page:
    """Return `raw` as a page; a page that only a browser can fill is rendered where one
    is set.

    Raises `NeedsBrowser` where none is set or it failed, `SourceUnreadable` if it has
    no text at all. A page that has some text without its scripts is returned where
    rendering fails, with a note."""
    if renderer is None:
        return await convert(raw)
    page: Page | None = None
    with suppress(NeedsBrowser):
        page = await convert(raw)
    if page is not None and MAY_NEED_BROWSER not in page.notes:
        return page
    try:
        return await renderer.page(raw)
    except SourceError as failure:
        if page is not None:
            return replace(
                page, notes=(*page.notes, f"rendering failed: {failure.shown}")
            )
        raise NeedsBrowser(
            f"{raw.url} is empty until its scripts run, and rendering it failed: {failure.shown}",
            source=raw.url,
            hint=failure.hint,
        ) from failure
