"""The algorithms, as steps with plain data in and out; knows no MCP."""
