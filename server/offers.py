"""What the server offers beside tools: resources (pages, trees, status) and prompts (design §3).

Not for: tools.
"""

from collections.abc import Callable
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from pydantic import Field

from pipeline.fetch.handles import find_page
from pipeline.frame import visible
from pipeline.raptor.outline import outline
from pipeline.raptor.tree import find_tree
from pipeline.services import Services
from pipeline.tokens import count_tokens, cut_to_tokens
from pipeline.work import in_thread
from prompts import load
from server.status import status_text

PAGE_TOKENS = 20_000
"""Most tokens of one resource answer; hosts cut larger ones (notes/mcp §2.6)."""
OUTLINE_TOKENS = 4_000


def offer_resources(server: MCPServer[Services], services_now: Callable[[], Services]) -> None:
    """Register `winnow://page/{id}`, `winnow://tree/{id}` and `winnow://status`.

    `services_now` returns what the lifespan made: the SDK gives no context to a resource without parameters.
    """

    @server.resource("winnow://page/{page_id}", name="page", mime_type="text/html")
    async def page(page_id: str, ctx: Context[Services, object]) -> str:
        """The whole cleaned page behind a handle that a tool returned."""
        services = ctx.request_context.lifespan_context
        handle = f"winnow://page/{page_id}"
        found = await in_thread(find_page, services.stores.pages, handle)
        if found is None:
            raise ResourceNotFoundError(f"{handle} is unknown or has expired; fetch the page again.")
        document = await services.reader.read(found)
        html = visible(document.html)
        if count_tokens(html) <= PAGE_TOKENS:
            return html
        kept = cut_to_tokens(html, PAGE_TOKENS - 60)
        return f"{kept}\n<!-- cut; read the rest part by part with fetch_and_prune_html, urls=['{handle}'] -->"

    @server.resource("winnow://tree/{tree_id}", name="tree", mime_type="text/plain")
    async def tree(tree_id: str, ctx: Context[Services, object]) -> str:
        """The outline of a tree that raptor_query built."""
        services = ctx.request_context.lifespan_context
        handle = f"winnow://tree/{tree_id}"
        found = await in_thread(find_tree, services.stores.trees, handle)
        if found is None:
            raise ResourceNotFoundError(
                f"{handle} is unknown or has expired; call raptor_query with the sources again."
            )
        return await in_thread(outline, found, max_tokens=OUTLINE_TOKENS)

    @server.resource("winnow://status", name="status", mime_type="text/plain")
    async def status() -> str:
        """Models, providers and cache of this server."""
        return await in_thread(status_text, services_now())


def offer_prompts(server: MCPServer[Services]) -> None:
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
