"""Cache servers, one `CACHE` a file (`cache/server.py`)."""
