"""Transports beside stdio, one `TRANSPORT` a file (`server/transport.py`)."""
