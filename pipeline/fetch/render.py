"""From an answer to a page, by way of a browser where one is set and the page needs it.

Not for: how a browser is driven (`pipeline/fetch/browser.py`), nor how bytes are read (`pipeline/read/convert.py`).
"""

from dataclasses import dataclass, replace
from typing import Final

import httpx2

from errors import NeedsBrowser, SourceError, SourceUnreadable
from pipeline.documents import Page
from pipeline.fetch.browser import Browser
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.subresources import Given, Subresources
from pipeline.read.convert import Raw, to_page
from pipeline.read.shell import MAY_NEED_BROWSER
from pipeline.work import in_thread

RENDERED: Final = "the page was rendered by a browser, its scripts run"
UNSETTLED: Final = "the page was still at work when its time in the browser was up"


@dataclass(frozen=True, slots=True)
class Renderer:
    """What rendering takes: a browser, and connections for what pages ask for."""

    browser: Browser
    own: httpx2.AsyncClient
    """Reaches what the fetcher reaches; for a page's own origin."""
    open_web: httpx2.AsyncClient
    """Reaches public addresses only."""
    limits: FetchLimits
    """Those of `own`."""


async def page_of(raw: Raw, renderer: Renderer | None, *, seconds: float) -> Page:
    """Return `raw` as a page; a page that only a browser can fill is rendered where there is one.

    Args:
        raw: What was fetched.
        renderer: None where no browser is set.
        seconds: Time budget of the conversion.

    Raises:
        NeedsBrowser: The page is empty until its scripts run, and no browser is set or it failed.
        SourceUnreadable: It holds no text at all.
    """
    plain: Page | None = None
    empty: NeedsBrowser | None = None
    try:
        plain = await in_thread(to_page, raw, seconds=seconds)
    except NeedsBrowser as e:
        empty = e
    if plain is not None and MAY_NEED_BROWSER not in plain.notes:
        return plain
    failure: SourceError | None = None
    if renderer is not None:
        try:
            return await _rendered(raw, renderer, seconds)
        except SourceError as e:
            failure = e
    if plain is not None:
        return plain if failure is None else replace(plain, notes=(*plain.notes, f"rendering failed: {failure.what}"))
    if failure is not None:
        raise NeedsBrowser(
            f"{raw.url} is empty until its scripts run, and rendering it failed: {failure.what}",
            source=raw.url,
            hint=failure.hint,
        ) from failure
    raise empty or NeedsBrowser(f"{raw.url} needs a browser.", source=raw.url)


async def _rendered(raw: Raw, renderer: Renderer, seconds: float) -> Page:
    answers = Subresources(
        raw.final_url,
        open_web=renderer.open_web,
        own=renderer.own,
        limits=renderer.limits,
        caps=renderer.browser.caps,
    )
    first = Given(200, {"content-type": raw.content_type or "text/html"}, raw.body)
    made = await renderer.browser.render(first, raw.final_url, answers)
    notes = (RENDERED,) if made.settled else (RENDERED, UNSETTLED)
    shown = replace(
        raw,
        body=made.html.encode(),
        final_url=made.url,
        content_type="text/html; charset=utf-8",
        notes=(*raw.notes, *notes),
        rendered=True,
    )
    try:
        return await in_thread(to_page, shown, seconds=seconds)
    except SourceError as e:
        if not made.left_for:
            raise
        raise SourceUnreadable(
            f"{e.what} Its scripts lead to {made.left_for}.", source=raw.url, hint=f"Fetch {made.left_for} itself."
        ) from e
