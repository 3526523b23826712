"""The MCP application: settings, wiring, transports, tools with what stands around a call,
resources, prompts."""
