"""Scholarly catalogues, one `PROVIDER` a file (`pipeline/search/provider.py`)."""
