"""The conversions behind `extras/formats/`: a file's bytes to HTML."""
