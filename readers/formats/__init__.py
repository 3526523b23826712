"""The formats of sources, one file each; see `readers/format.py`."""
