"""The desk: one HTML page that draws answers, in a browser and inside MCP clients. `build.py` makes
it of one piece."""
