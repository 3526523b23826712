"""Sites that are read through an API, one `PAGE_SOURCE` a file (`pipeline/fetch/page_source.py`)."""
