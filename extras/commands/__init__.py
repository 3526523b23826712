"""Subcommands beyond the core's, one `COMMAND` a file (`cli/subcommand.py`)."""
