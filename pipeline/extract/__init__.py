"""Sentence tagger and extractor."""
