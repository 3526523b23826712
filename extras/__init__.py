"""What the papers' system does not need: formats, providers and backends that the seams find here.

The core never imports it (import-linter); `seams.py` looks into its folders.
"""
