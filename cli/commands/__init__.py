"""Subcommands of `winnow`, one `COMMAND` a file (`cli/subcommand.py`)."""
