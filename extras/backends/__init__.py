"""Model backends beyond the core's, one `BACKEND` a file (`models/backend.py`)."""
