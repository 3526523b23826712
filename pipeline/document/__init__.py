"""Sentences of documents, and citations."""
