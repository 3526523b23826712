"""Our server with the fixtures that the official conformance suite calls by name, for `make
conformance` only.

Middleware, lifespan and transport are those of `build_server`; the fixtures only give the suite
something to call. Not for: features that Winnow does not offer (sampling, elicitation,
subscriptions), whose scenarios the baselines name.
"""

import argparse
import base64
import struct
import zlib
from typing import Final

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp_types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from server.app import build_server
from server.process import Opening
from server.settings import read_settings
from tests.support.waiting import moment


def png() -> bytes:
    """Return a picture of one red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
        + chunk(b"IEND", b"")
    )


PNG: Final = base64.b64encode(png()).decode()
WAV: Final = base64.b64encode(
    b"RIFF"
    + struct.pack("<I", 38)
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data\2\0\0\0\x80\x80"
).decode()
PICTURE: Final = ImageContent(type="image", data=PNG, mime_type="image/png")


def add_tools(server: MCPServer[Opening]) -> None:
    """Register the tools that the suite calls."""

    @server.tool()
    async def test_simple_text() -> TextContent:
        """Answer a text."""
        return TextContent(type="text", text="This is a simple text response for testing.")

    @server.tool()
    async def test_image_content() -> ImageContent:
        """Answer a picture."""
        return PICTURE

    @server.tool()
    async def test_audio_content() -> AudioContent:
        """Answer a sound."""
        return AudioContent(type="audio", data=WAV, mime_type="audio/wav")

    @server.tool()
    async def test_embedded_resource() -> EmbeddedResource:
        """Answer a resource."""
        return embedded(
            "test://embedded-resource", "text/plain", "This is an embedded resource content."
        )

    @server.tool()
    async def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        """Answer text, picture and resource."""
        return [
            TextContent(type="text", text="Multiple content types test:"),
            PICTURE,
            embedded(
                "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
            ),
        ]

    @server.tool()
    async def test_tool_with_progress(ctx: Context[Opening, object]) -> TextContent:
        """Report progress, then answer."""
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100, f"{done} of 100")
            await moment()  # the suite wants to see the reports apart
        return TextContent(type="text", text="done")

    @server.tool()
    async def test_error_handling() -> TextContent:
        """Fail on purpose."""
        raise ToolError("This tool intentionally returns an error for testing")


def add_resources(server: MCPServer[Opening]) -> None:
    """Register the resources that the suite reads."""

    @server.resource("test://static-text", mime_type="text/plain")
    async def static_text() -> str:
        """Text that never changes."""
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    async def static_binary() -> bytes:
        """Bytes that never change."""
        return png()

    @server.resource("test://template/{id}/data", mime_type="application/json")
    async def by_number(id: str) -> str:
        """Data by number."""
        return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'


def add_prompts(server: MCPServer[Opening]) -> None:
    """Register the prompts that the suite gets."""

    @server.prompt()
    async def test_simple_prompt() -> str:
        """A prompt without arguments."""
        return "This is a simple prompt for testing."

    @server.prompt()
    async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """A prompt with two arguments."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt()
    async def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
        """A prompt that carries a resource."""
        resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [UserMessage(resource), UserMessage("Please process the embedded resource above.")]

    @server.prompt()
    async def test_prompt_with_image() -> list[UserMessage]:
        """A prompt that carries a picture."""
        return [UserMessage(PICTURE), UserMessage("Please analyze the image above.")]


def embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    """Return a text resource inside a message."""
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=text)
    )


def main() -> None:
    """Serve the fixtures over HTTP until a signal ends the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    server = build_server(read_settings({}), own_signals=True)
    add_tools(server)
    add_resources(server)
    add_prompts(server)
    server.run("streamable-http", host="127.0.0.1", port=parser.parse_args().port)


if __name__ == "__main__":
    main()
