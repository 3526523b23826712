"""A draft checked against its sources."""
