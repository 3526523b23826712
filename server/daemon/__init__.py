"""One process for all clients of a person: `proxy.py` is what a client starts, `serve.py`
what it is connected to, `place.py` where the two meet."""
