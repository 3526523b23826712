"""A client of others against our server: what it lists, and what its model would read
of each answer.

`bench/clients.py` runs this file by the Python of an environment of its own, which has
the clients and nothing of ours: a job as JSON on the standard input, what was seen to
the file that it names. Each client is asked through its own conversion from a result to
what it shows a model. Packages are imported by name, since an environment has only some
of them. Not for: judging what was seen."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

Json = dict[str, Any]
GIVEN_UP: Final = 0.3
"""Seconds after which a caller cancels the long call."""


class Foreign(NamedTuple):
    """A client that is connected."""

    tools: Callable[[], Awaitable[list[str]]]
    call: Callable[[str, Json], Awaitable[str]]
    """Returns what a model reads, errors included."""
    progress: list[str] | None = None
    """Messages so far; None for a client that has no way to receive them."""
    cancels: bool = True


Connect = Callable[[Json], AbstractAsyncContextManager[Foreign]]


def main() -> None:
    """Do the job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="do nothing: `bench.clients` checks what is seen here",
    )
    if not parser.parse_args().check:
        asyncio.run(_see(json.load(sys.stdin)))


async def _see(job: Json) -> None:
    async with CLIENTS[job["client"]](job["server"]) as client:
        seen: Json = {"tools": sorted(await client.tools())}
        seen["read"] = {
            tool: await client.call(tool, given) for tool, given in job["calls"].items()
        }
        seen["progress"] = None if client.progress is None else len(client.progress)
        seen["error"] = await client.call(*job["wrong"])
        seen["cancelled"] = None
        if client.cancels:
            try:
                async with asyncio.timeout(GIVEN_UP):
                    await client.call(*job["long"])
                seen["cancelled"] = False
            except TimeoutError:
                seen["cancelled"] = True
        seen["after"] = await client.call(*job["after"])
        # Before it disconnects: some fail there, when an answer comes that they do not want any
        # more.
        Path(job["out"]).write_text(json.dumps(seen), encoding="utf-8")


@asynccontextmanager
async def _pydantic_ai(server: Json) -> AsyncIterator[Foreign]:
    """An agent whose model calls the tool once; what it is shown then is what any model
    would be."""
    mcp, transports = (
        import_module("pydantic_ai.mcp"),
        import_module("fastmcp.client.transports"),
    )
    agents, messages = (
        import_module("pydantic_ai"),
        import_module("pydantic_ai.messages"),
    )
    function = import_module("pydantic_ai.models.function")
    progress: list[str] = []

    async def note_progress(
        _done: float, _total: float | None, message: str | None
    ) -> None:
        progress.append(message or "")

    toolset = mcp.MCPToolset(
        transports.StdioTransport(**server), progress_handler=note_progress
    )

    async def tools() -> list[str]:
        return [tool.name for tool in await toolset.list_tools()]

    async def call(tool: str, arguments: Json) -> str:
        async def model(said: Any, _info: Any) -> Any:
            parts = [
                part
                for one in said
                for part in one.parts
                if part.part_kind in {"tool-return", "retry-prompt"}
            ]
            if not parts:
                return messages.ModelResponse(
                    parts=[messages.ToolCallPart(tool, arguments)]
                )
            shown = parts[-1]
            read = (
                shown.model_response_str()
                if shown.part_kind == "tool-return"
                else shown.model_response()
            )
            return messages.ModelResponse(parts=[messages.TextPart(read)])

        agent = agents.Agent(function.FunctionModel(model), toolsets=[toolset])
        return str((await agent.run("Go on.")).output)

    async with toolset:
        yield Foreign(tools, call, progress)


def _openai_agents(*, structured: bool) -> Connect:
    @asynccontextmanager
    async def connect(server: Json) -> AsyncIterator[Foreign]:
        mcp, util = import_module("agents.mcp"), import_module("agents.mcp.util")
        context, items = (
            import_module("agents.tool_context"),
            import_module("agents.items"),
        )
        responses = import_module("openai.types.responses")
        stdio = mcp.MCPServerStdio(
            params=server,
            client_session_timeout_seconds=60,
            use_structured_content=structured,
        )

        async def tools() -> list[str]:
            return [tool.name for tool in await stdio.list_tools()]

        async def call(tool: str, arguments: Json) -> str:
            listed = next(one for one in await stdio.list_tools() if one.name == tool)
            given = json.dumps(arguments)
            asked = responses.ResponseFunctionToolCall(
                arguments=given, call_id="1", name=tool, type="function_call"
            )
            around = context.ToolContext(
                context=None, tool_name=tool, tool_call_id="1", tool_arguments=given
            )
            output = await util.MCPUtil.to_function_tool(
                listed, stdio, False
            ).on_invoke_tool(around, given)
            shown = items.ItemHelpers.tool_call_output_item(asked, output)["output"]
            if isinstance(shown, str):
                return shown
            return "\n".join(part.get("text") or json.dumps(part) for part in shown)

        async with stdio:
            yield Foreign(tools, call)

    return connect


@asynccontextmanager
async def _langchain(server: Json) -> AsyncIterator[Foreign]:
    clients, callbacks = (
        import_module("langchain_mcp_adapters.client"),
        import_module("langchain_mcp_adapters.callbacks"),
    )
    loading = import_module("langchain_mcp_adapters.tools")
    progress: list[str] = []

    async def note_progress(
        _done: float, _total: float | None, message: str | None, _context: Any
    ) -> None:
        progress.append(message or "")

    translated = callbacks.Callbacks(on_progress=note_progress)
    client = clients.MultiServerMCPClient(
        {"winnow": {"transport": "stdio", **server}}, callbacks=translated
    )
    async with client.session("winnow") as session:
        listed = await loading.load_mcp_tools(session, callbacks=translated)
        by_name = {tool.name: tool for tool in listed}

        async def tools() -> list[str]:
            return list(by_name)

        async def call(tool: str, arguments: Json) -> str:
            asked = {"type": "tool_call", "id": "1", "name": tool, "args": arguments}
            try:
                message = await by_name[tool].ainvoke(asked)
            except import_module("langchain_core.tools").ToolException as error:
                return str(error)
            return _of_blocks(message.content)

        yield Foreign(tools, call, progress)


@asynccontextmanager
async def _mcp_use(server: Json) -> AsyncIterator[Foreign]:
    adapters, use = (
        import_module("mcp_use.agents.adapters.langchain_adapter"),
        import_module("mcp_use.client"),
    )
    client = use.MCPClient.from_dict({"mcpServers": {"winnow": server}})
    await client.create_all_sessions()
    try:
        by_name = {
            tool.name: tool
            for tool in await adapters.LangChainAdapter().create_tools(client)
        }

        async def tools() -> list[str]:
            return list(by_name)

        async def call(tool: str, arguments: Json) -> str:
            return _of_blocks(await by_name[tool].ainvoke(arguments))

        yield Foreign(tools, call)
    finally:
        await client.close_all_sessions()


@asynccontextmanager
async def _fastmcp(server: Json) -> AsyncIterator[Foreign]:
    """No model is after it: what its users take are the texts, or `data` where a result
    has a schema."""
    fastmcp, transports = (
        import_module("fastmcp"),
        import_module("fastmcp.client.transports"),
    )
    progress: list[str] = []

    async def note_progress(
        _done: float, _total: float | None, message: str | None
    ) -> None:
        progress.append(message or "")

    async with fastmcp.Client(
        transports.StdioTransport(**server), progress_handler=note_progress
    ) as client:

        async def tools() -> list[str]:
            return [tool.name for tool in await client.list_tools()]

        async def call(tool: str, arguments: Json) -> str:
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            data = getattr(result, "structured_content", None)
            return (
                json.dumps(data, ensure_ascii=False)
                if data
                else "\n".join(part.text for part in result.content)
            )

        yield Foreign(tools, call, progress)


def _smolagents(*, structured: bool) -> Connect:
    @asynccontextmanager
    async def connect(server: Json) -> AsyncIterator[Foreign]:
        """Its tools block; an agent shows its model `str` of what one returns, and of
        what one raises."""
        smolagents, mcp = import_module("smolagents"), import_module("mcp")
        client = await asyncio.to_thread(
            smolagents.MCPClient,
            mcp.StdioServerParameters(**server),
            structured_output=structured,
        )
        try:
            by_name = {tool.name: tool for tool in client.get_tools()}

            async def tools() -> list[str]:
                return list(by_name)

            async def call(tool: str, arguments: Json) -> str:
                try:
                    return str(await asyncio.to_thread(by_name[tool], **arguments))
                except Exception as error:  # noqa: BLE001  what an agent of smolagents does with it
                    return str(error)

            yield Foreign(tools, call, cancels=False)
        finally:
            await asyncio.to_thread(client.disconnect)

    return connect


def _of_blocks(content: Any) -> str:
    """Return the content of a message of LangChain as its model reads it."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else json.dumps(content)
    return "\n".join(
        part["text"] if part.get("type") == "text" else json.dumps(part)
        for part in content
    )


CLIENTS: Final[Mapping[str, Connect]] = {
    "pydantic-ai": _pydantic_ai,
    "openai-agents": _openai_agents(structured=False),
    "openai-agents, structured": _openai_agents(structured=True),
    "langchain-mcp-adapters": _langchain,
    "mcp-use": _mcp_use,
    "fastmcp": _fastmcp,
    "smolagents": _smolagents(structured=False),
    "smolagents, structured": _smolagents(structured=True),
}


if __name__ == "__main__":
    main()
