"""The guarded HTTP client, robots.txt, decoding, and documents to HTML."""

from typing import Final

AGENT: Final = "Winnow"
"""What rules of a robots.txt name us."""
USER_AGENT: Final = f"{AGENT} (+https://github.com/winnow-mcp/winnow)"
"""What we go by: Wikimedia's policy asks for a name and a way to reach its maker."""
