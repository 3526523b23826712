"""Cutting running text into chunks by embedding similarity (IDMS without a generator)."""
