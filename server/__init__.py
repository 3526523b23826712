"""The MCP application: settings, wiring, transports, the wrapper around each tool call,
resources, prompts."""
