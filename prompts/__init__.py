"""The text of every prompt."""
