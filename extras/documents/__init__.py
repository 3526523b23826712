"""Converters of `extras/formats/`: a file's bytes to HTML."""
