"""The desk: one HTML page that draws answers, in a browser and inside MCP clients.
`page.py` builds it as one file."""
