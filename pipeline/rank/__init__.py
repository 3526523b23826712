"""BM25, fusion of scores, mixed ranking of pages."""
