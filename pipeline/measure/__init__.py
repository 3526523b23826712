"""Measuring a generator beside the rules: what `winnow eval` runs."""
