"""Text that knows no document: words and terms, sentences, tokens, names, frames."""
