"""Models on servers with OpenAI's API."""
