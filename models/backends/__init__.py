"""The backends of models, one file each; see `models/backend.py`."""
