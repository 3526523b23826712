"""What the server offers beside tools: resources (pages, trees, status) and prompts (design §3).

Not for: tools, or what stands in the resources (`server/reading.py`).
"""

from collections.abc import Callable
from typing import Annotated

from mcp.server import MCPServer
from pydantic import Field

from prompts import load
from server.opening import Opening


def offer_resources(server: MCPServer[Opening], opening: Callable[[], Opening]) -> None:
    """Register `winnow://page/{id}`, `winnow://tree/{id}` and `winnow://status`.

    `opening` returns what the lifespan made: the SDK gives no context to a resource without parameters.
    """

    @server.resource("winnow://page/{page_id}", name="page", mime_type="text/html")
    async def page(page_id: str) -> str:
        """The whole cleaned page behind a handle that a tool returned."""
        services = await opening().services()
        from server.reading import read_page  # noqa: PLC0415  loaded with the services, after the first answer

        return await read_page(f"winnow://page/{page_id}", services)

    @server.resource("winnow://tree/{tree_id}", name="tree", mime_type="text/plain")
    async def tree(tree_id: str) -> str:
        """The outline of a tree that raptor_query built."""
        services = await opening().services()
        from server.reading import read_tree  # noqa: PLC0415  as above

        return await read_tree(f"winnow://tree/{tree_id}", services)

    @server.resource("winnow://status", name="status", mime_type="text/plain")
    async def status() -> str:
        """Models, providers and cache of this server."""
        services = await opening().services()
        from server.reading import read_status  # noqa: PLC0415  as above

        return await read_status(services)


def offer_prompts(server: MCPServer[Opening]) -> None:
    """Register the prompts of `prompts/` that a person can pick."""

    @server.prompt()
    def research_report(
        subject: Annotated[str, Field(description="What the report is about.")],
        length: Annotated[str, Field(description="Words, such as 600.")] = "600",
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
    def fact_check(claim: Annotated[str, Field(description="The claim, as a sentence.")]) -> str:
        """Check one claim against independent sources."""
        return load("fact_check").fill(claim=claim)
