"""Models behind servers that speak OpenAI's protocol."""
