"""The command `winnow`: every tool as a subcommand, and maintenance commands."""
