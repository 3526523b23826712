"""The MCP application: settings, wiring, transports, resources, command line."""
