"""The question: its words and names, breadth, and what a further one refers to."""
