"""Protocols Embedder, Reranker, Generator and their backends."""
