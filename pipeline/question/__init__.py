"""The question: its parts, sides, breadth, and what a further one refers to."""
