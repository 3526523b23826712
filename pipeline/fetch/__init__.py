"""The guarded HTTP client, robots.txt, decoding, and documents to HTML."""
