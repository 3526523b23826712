"""One file a search provider, behind one protocol."""
