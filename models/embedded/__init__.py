"""Weights of the default embedder, and the script that makes them (`build.py`, run by hand, not needed to embed)."""
