"""Text that knows no document: words and terms, tokens, frames."""
