"""Values that tables answer: the question as words, and what they choose."""
