"""What a tool takes from its MCP context, and checks of what it was given.

Not for: errors and deadlines, which the server puts around every tool
(`server/app.py`), and how answers end (`ending.py`)."""

import hashlib
from dataclasses import replace
from time import monotonic
from typing import Any, Final

from mcp.server.auth.middleware.bearer_auth import (
    AuthenticatedUser,
    authorization_context,
)
from mcp.server.mcpserver import Context
from pydantic import (
    Field,
)

from errors import UsageError
from pipeline.services import Services
from pipeline.sources.gather import Noticing
from pipeline.work import Report, time_left

FRESH: Final = Field(description="Skip the cache.")
PROGRESS_GAP: Final = 0.25
"""Seconds between two progress messages; otherwise a slow client would block the
tool."""
LARGEST_BUDGET: Final = 20_000
"""Largest allowed max_tokens."""
LEAST_TOKENS: Final = 100
"""Smallest useful max_tokens: below, the frame alone fills an answer."""
BUDGET: Final = Field(description="Default: as much as helps.", ge=0, le=LARGEST_BUDGET)
ToolContext = Context[Services, object]


def check_budget(max_tokens: int) -> None:
    """Raise `UsageError` for a budget that is too small for any text."""
    if 0 < max_tokens < LEAST_TOKENS:
        raise UsageError(
            f"max_tokens={max_tokens} is too small for a source and its text.",
            hint=f"Set max_tokens to {LEAST_TOKENS} or more, or leave it out.",
        )


def services_of(ctx: ToolContext) -> Services:
    """Return the services, with the time left of this call."""
    services = ctx.request_context.lifespan_context
    return replace(services, seconds=min(services.seconds, time_left()))


def noticed(services: Services, *, refresh: bool) -> tuple[Services, Noticing]:
    """Return services for one call, and the record of the age of what they read."""
    noticing = Noticing(services.fetcher, refresh=refresh)
    return replace(services, fetcher=noticing), noticing


def owner_of(ctx: Context[Any, Any]) -> str:
    """Return a hash of the token's user; "" without a token."""
    request = ctx.request_context.request
    user = request.scope.get("user") if request is not None else None
    if not isinstance(user, AuthenticatedUser):
        return ""
    return hashlib.blake2b(
        repr(authorization_context(user)).encode(), digest_size=16
    ).hexdigest()


def reporter(ctx: ToolContext) -> Report:
    """Return a progress function: it drops reports that do not rise, or that follow the
    last within `PROGRESS_GAP` (except the final one; what is said at 0 does not
    count)."""
    reported = 0.0
    highest = -1.0

    async def report(done: float, total: float | None, message: str) -> None:
        nonlocal reported, highest
        now = monotonic()
        if done <= highest or (now - reported < PROGRESS_GAP and done != total):
            return
        reported, highest = (now if done else reported), done
        await ctx.report_progress(done, total, message)

    return report
