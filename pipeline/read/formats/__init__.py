"""The formats of sources, one file each; see `pipeline/read/format.py`."""
