"""Reading documents for a question: terms, relevance, verdict, and rows and lists that answer it."""
