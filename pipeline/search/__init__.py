"""Request parsing, providers, the provider chain."""
