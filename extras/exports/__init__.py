"""Forms in which a session is handed on, one `EXPORT` a file (`pipeline/session/export.py`)."""
