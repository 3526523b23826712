"""Leaves, clusters, summaries, tree, query."""
