"""Streamable HTTP: authentication, limits for each caller, metrics."""
