"""What the tools share: what a tool is, what it takes from a call, and how answers end."""
