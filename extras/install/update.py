"""The newest release of Winnow. Not for: installing it."""

from typing import Final

import anyio
import httpx2

from cli.output import OK
from errors import SourceError
from server.clients import service_client
from server.version import VERSION

RELEASES: Final = "https://api.github.com/repos/winnow-mcp/winnow/releases/latest"


def update(args: object, overrides: object, releases: str = RELEASES) -> int:
    """Print the newest release, and how it is installed if this is another; return 0.

    Raises `SourceError` where `releases` does not name it."""
    newest = anyio.run(_newest, releases)
    here = f"This is the newest release, {VERSION}."
    other = (
        f"The newest release is {newest}, this is {VERSION}. Update it as you installed "
        "it: pipx upgrade winnow-mcp, uv tool upgrade winnow-mcp, uvx winnow-mcp@latest "
        "or pip install --upgrade winnow-mcp."
    )
    print(here if newest == VERSION else other)
    return OK


async def _newest(address: str) -> str:
    async with service_client() as http:
        try:
            response = (await http.get(address)).raise_for_status()
            return str(response.json()["tag_name"]).removeprefix("v")
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            what = f"{address} names no release: it cannot be reached, or there is none yet."
            raise SourceError(what, source=address) from error
