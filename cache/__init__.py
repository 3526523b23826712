"""The disk cache: code only, its data lies in the user's cache directory."""
