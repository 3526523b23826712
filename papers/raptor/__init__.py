"""RAPTOR: clusters and summaries over a tree of leaves, and queries of its nodes."""
