"""Shared code of the tools: the type `Tool`, context helpers, result models."""
