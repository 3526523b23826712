"""The MCP server: tools, resources, prompts and middleware.

Imports little: the client waits for it. Not for: making the services
(`server/wiring.py`), the wrapper around each call (`server/toolbox.py`), transports
(`stdio.py`, `extras/http`).
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.server import MCPServer
from mcp.server.apps import Apps
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    Icon,
    InputRequiredResult,
)
from mcp_types import Tool as ListedTool

from errors import WinnowError
from pipeline.work import in_thread
from server.calls import Admission, Observer, check_arguments, log_call
from server.offered import instructions, offered
from server.process import (
    Drain,
    Opening,
    leave,
    open_first,
    show_addresses,
    start_log,
    start_telemetry,
    watch_signals,
)
from server.resources import offer_prompts, offer_resources
from server.settings import Settings
from server.shared import Shared
from server.skills import Skills
from server.version import VERSION
from tools.common.tool import OURS
from tools.common.view import VIEW_URI, view_page

if TYPE_CHECKING:
    from cache.store import Stores

TOOL_NAMES: Final[tuple[str, ...]] = tuple(tool["name"] for tool in offered())


class Winnow(MCPServer[Opening]):
    """The SDK's server, with tools that are listed from a file and imported when the
    services are opened."""

    _listed: Sequence[ListedTool] = ()
    admission: Admission
    is_open: Callable[[], bool]
    """Whether a call finds the services open."""
    stores: "Callable[[], Stores | None]"
    """Returns the cache once it is open."""
    observers: list[Observer]
    """Called with each finished tool call."""

    async def list_tools(self) -> list[ListedTool]:
        """Return our tools and tools added to this server."""
        if not self._listed:
            # What the list says to our command line goes to no client.
            drawn = {"_meta": {"ui": {"resourceUri": VIEW_URI}}} if view_page() else {}
            self._listed = [
                ListedTool.model_validate(
                    {key: tool[key] for key in tool.keys() - {OURS}} | drawn
                )
                for tool in offered()
            ]
        return [*self._listed, *await super().list_tools()]

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        context: Context[Any, Any] | None = None,
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; raises what the SDK's `call_tool` raises."""
        if name not in TOOL_NAMES or context is None:
            return await super().call_tool(name, arguments, context)
        from server.toolbox import run_tool  # noqa: PLC0415  the pipeline, imported with the services

        return await run_tool(name, arguments, context, self.observers)

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """Return a filled prompt; a wrong name or missing argument is an invalid-params
        error."""
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error


def build_server(
    settings: Settings,
    *,
    own_signals: bool = False,
    failed: Callable[[WinnowError], None] | None = None,
    shared: Shared | None = None,
    drain: Drain | None = None,
    auth: AuthSettings | None = None,
    token_verifier: TokenVerifier | None = None,
) -> Winnow:
    """Return the server; its lifespan opens the services.

    With `own_signals` (for a process that only serves) the services open in the
    background after the first responses. SIGTERM (after awaiting `drain`) and SIGINT
    end the process cleanly; if the services cannot be opened, it exits with a message.
    With `failed` they open in the background too, and it is called with that error.
    With neither the lifespan raises it at its start. Several servers of one process may
    have models in `shared`. `auth` is the OAuth of the HTTP transport, whose tokens
    `token_verifier` checks.
    """

    start_log(settings)
    end_telemetry = start_telemetry(settings.otlp)
    current: list[Opening] = []

    @asynccontextmanager
    async def lifespan(_: MCPServer[Opening]) -> AsyncIterator[Opening]:
        opening = Opening(settings, shared)
        current[:] = [opening]
        if failed is not None:
            async with opening.in_background(failed):
                yield opening
        elif own_signals:
            async with opening.in_background(leave), anyio.create_task_group() as group:
                group.start_soon(watch_signals, opening.close_stores, drain)
                yield opening
                group.cancel_scope.cancel()
        else:
            async with opening.at_once():
                yield opening
        await in_thread(end_telemetry)

    apps = Apps()
    if desk_html := view_page():
        apps.add_html_resource(
            VIEW_URI,
            desk_html(),
            name="desk",
            title="Winnow's desk",
            prefers_border=False,
        )
    server = Winnow(
        "winnow",
        title="Winnow",
        description="The web and your own documents as small, cited evidence.",
        website_url="https://winnow-mcp.github.io/winnow/",
        icons=[
            Icon(
                src="https://raw.githubusercontent.com/winnow-mcp/winnow/main/deploy/icon.png",
                mime_type="image/png",
                sizes=["512x512"],
            )
        ],
        instructions=instructions(),
        version=VERSION,
        log_level=settings.log.level,
        lifespan=lifespan,
        cache_hints={
            "tools/list": CacheHint(
                ttl_ms=timedelta(days=1) // timedelta(milliseconds=1), scope="public"
            )
        },
        subscriptions=False,
        extensions=[apps, Skills()],
        auth=auth,
        token_verifier=token_verifier,
    )
    server.admission = Admission()
    server.observers = [log_call]
    server.is_open = lambda: bool(current) and current[0].settled.is_set()
    server.stores = lambda: current[0].stores if current else None
    server.middleware.extend(
        [partial(check_arguments, server.list_tools), show_addresses, open_first]
    )
    offer_resources(server, lambda: current[0])
    offer_prompts(server)
    return server
