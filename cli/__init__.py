"""The command `winnow`: every tool as a sub-command, and looking after an installation."""
