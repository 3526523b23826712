"""MCP tools: one file and one public function each, with arguments and result model."""
