"""Skills of the server (SEP-2640): short instructions for agents, as resources
`skill://NAME/SKILL.md` that `skills/list` and `skills/get` describe.

`server/skills.json` is made from `skills/`. Not for: plug-ins of clients, which carry
copies (`plugin/skills`)."""

import json
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

_DAY_MS: Final = timedelta(days=1) // timedelta(milliseconds=1)
_SHARED: Final = {
    "resultType": "complete",
    "ttlMs": _DAY_MS,
    "cacheScope": "public",
}


class Skills(Extension):
    """The skills of `server/skills.json`, read when the server is built."""

    identifier = "io.modelcontextprotocol/skills"

    def __init__(self) -> None:
        path = Path(__file__).with_name("skills.json")
        data = json.loads(path.read_text(encoding="utf-8"))
        self._skills: dict[str, Any] = {skill["uri"]: skill for skill in data["skills"]}
        self._texts: dict[str, str] = data["texts"]

    def resources(self) -> Sequence[ResourceBinding]:
        """Return each skill's file."""
        return [
            ResourceBinding(
                TextResource(
                    uri=uri,
                    mime_type="text/markdown",
                    text=text,
                    **self._skills[uri]["frontmatter"],
                )
            )
            for uri, text in self._texts.items()
        ]

    def methods(self) -> Sequence[MethodBinding]:
        """Return `skills/list` and `skills/get`."""
        return [
            MethodBinding("skills/list", PaginatedRequestParams, self._list),
            MethodBinding("skills/get", ReadResourceRequestParams, self._get),
        ]

    async def _list(self, _: object, params: object) -> dict[str, Any]:
        return {"skills": [*self._skills.values()], **_SHARED}

    async def _get(
        self, _: object, params: ReadResourceRequestParams
    ) -> dict[str, Any]:
        if params.uri not in self._skills:
            raise MCPError(INVALID_PARAMS, f"There is no skill {params.uri}.")
        return {"skill": self._skills[params.uri], **_SHARED}
