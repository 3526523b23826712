"""Skills of the server (SEP-2640): short instructions for agents, as resources
`skill://NAME/SKILL.md` that `skills/list` and `skills/get` describe.

Not for: plug-ins of clients, which carry copies (`plugin/skills`)."""

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from mcp.server.extension import Extension, MethodBinding, ResourceBinding
from mcp.server.mcpserver.resources import TextResource
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)

SKILLS: Final = Path(__file__).parents[1] / "skills"
_DAY_MS: Final = timedelta(days=1) // timedelta(milliseconds=1)
_SHARED: Final = {"resultType": "complete", "ttlMs": _DAY_MS, "cacheScope": "public"}


class Skills(Extension):
    """The files `skills/NAME/SKILL.md`, read when the server is built."""

    identifier = "io.modelcontextprotocol/skills"

    def __init__(self) -> None:
        self._files = {
            f"skill://{path.parent.name}/SKILL.md": path.read_bytes()
            for path in sorted(SKILLS.glob("*/SKILL.md"))
        }

    def resources(self) -> Sequence[ResourceBinding]:
        """Return each skill's file."""
        return [
            ResourceBinding(
                TextResource(
                    uri=uri,
                    mime_type="text/markdown",
                    text=raw.decode(),
                    **_header(raw),
                )
            )
            for uri, raw in self._files.items()
        ]

    def methods(self) -> Sequence[MethodBinding]:
        """Return `skills/list` and `skills/get`."""
        return [
            MethodBinding("skills/list", PaginatedRequestParams, self._list),
            MethodBinding("skills/get", ReadResourceRequestParams, self._get),
        ]

    async def _list(self, _: object, params: object) -> dict[str, Any]:
        return {"skills": [*map(self._entry, self._files)], **_SHARED}

    async def _get(
        self, _: object, params: ReadResourceRequestParams
    ) -> dict[str, Any]:
        if params.uri not in self._files:
            raise MCPError(INVALID_PARAMS, f"There is no skill {params.uri}.")
        return {"skill": self._entry(params.uri), **_SHARED}

    def _entry(self, uri: str) -> dict[str, Any]:
        raw = self._files[uri]
        digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
        files = [{"uri": uri, "digest": digest, "size": len(raw)}]
        return {"uri": uri, "frontmatter": _header(raw), "resources": files}


def _header(raw: bytes) -> dict[str, Any]:
    """Return name and description, lines `key: value` between `---`."""
    lines = raw.decode().split("---\n", 2)[1].splitlines()
    return dict(line.split(": ", 1) for line in lines)
