"""Benchmarks: each prints its tables, and `--check` holds the bars."""
