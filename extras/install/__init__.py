"""Winnow in the configuration of MCP clients."""
