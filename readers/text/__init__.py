"""Plain text, programs, Markdown, CSV and XML to HTML."""
