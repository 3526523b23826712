"""Everything that the server offers besides tools: resources (pages, trees, sessions,
status) and prompts.

Needed before the services are open; the content code is imported when a resource is
read (`server/reading.py`).
"""

from collections.abc import Callable
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import Field

from prompts import load
from server.process import Opening


def offer_resources(server: MCPServer[Opening], opening: Callable[[], Opening]) -> None:
    """Register `winnow://page/{id}`, `winnow://tree/{id}`, `winnow://session/{id}`,
    their forms and `winnow://status`.

    `opening` returns what the lifespan made: the SDK gives no context to a resource
    without parameters."""

    @server.resource("winnow://page/{page_id}", name="page", mime_type="text/html")
    async def page(page_id: str) -> str:
        """The whole cleaned page of a handle that a tool returned."""
        services = await opening().services()
        from server.reading import read_page  # noqa: PLC0415  loaded with the services, after the first answer

        return await read_page(f"winnow://page/{page_id}", services)

    @server.resource("winnow://tree/{tree_id}", name="tree", mime_type="text/plain")
    async def tree(tree_id: str) -> str:
        """The outline of a tree that raptor_query built."""
        services = await opening().services()
        from server.reading import read_tree  # noqa: PLC0415  as above

        return await read_tree(f"winnow://tree/{tree_id}", services)

    @server.resource(
        "winnow://session/{session_id}", name="session", mime_type="text/markdown"
    )
    async def session(session_id: str, ctx: Context[Any, Any]) -> str:
        """A session of research: its questions, what was found, every quote with its
        link, the sources."""
        return await written(session_id, "markdown", ctx)

    @server.resource(
        "winnow://session/{session_id}/{form}",
        name="session_export",
        mime_type="text/plain",
    )
    async def session_export(session_id: str, form: str, ctx: Context[Any, Any]) -> str:
        """A session of research as html or json, or its sources as bibtex or
        ris."""
        return await written(session_id, form, ctx)

    async def written(session_id: str, form: str, ctx: Context[Any, Any]) -> str:
        services = await opening().services()
        from server.reading import read_session  # noqa: PLC0415  as above
        from tools.common.context import owner_of  # noqa: PLC0415  as above

        return await read_session(
            f"winnow://session/{session_id}", form, services, owner=owner_of(ctx)
        )

    @server.resource("winnow://status", name="status", mime_type="text/plain")
    async def status() -> str:
        """The folders and their index, models, providers and cache of this server."""
        services = await opening().services()
        from server.reading import status_rows  # noqa: PLC0415  as above

        rows = await status_rows(services)
        return "\n".join(f"{name}: {text}" for name, text in rows.items())


def offer_prompts(server: MCPServer[Opening]) -> None:
    """Register the three prompts for users: research_report, compare_sources and
    fact_check. Their files are read when a client asks for one."""

    @server.prompt()
    def research_report(
        subject: Annotated[str, Field(description="What the report is about.")],
        length: Annotated[
            str, Field(description="Length in words, such as 600.")
        ] = "600",
    ) -> str:
        """Research a subject and write it up with citations."""
        return load("research_report").fill(subject=subject, length=length)

    @server.prompt()
    def compare_sources(
        question: Annotated[str, Field(description="What to compare them on.")],
        sources: Annotated[str, Field(description="URLs or files, one a line.")],
    ) -> str:
        """Compare what several sources say about one question."""
        return load("compare_sources").fill(question=question, sources=sources)

    @server.prompt()
    def fact_check(
        claim: Annotated[str, Field(description="The claim, as a sentence.")],
    ) -> str:
        """Check one claim against independent sources."""
        return load("fact_check").fill(claim=claim)
