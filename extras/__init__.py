"""What the papers' system does not need: formats, providers,
backends, subcommands, transports, cache servers and views that the seams find here.

The core never imports it (import-linter); `seams.py` looks into its folders.
"""
