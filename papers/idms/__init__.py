"""Segments of a text, each about one subject: by embeddings, or by a generator's margins and
densities (IDMS)."""
