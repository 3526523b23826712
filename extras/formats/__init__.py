"""Source formats beyond the core's, one `FORMAT` a file (`pipeline/read/format.py`)."""
