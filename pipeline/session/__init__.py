"""Sessions: what a line of research has asked and found, and how it is exported."""
