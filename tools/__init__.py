"""One file, one public function for each MCP tool: arguments, result model, the call."""
