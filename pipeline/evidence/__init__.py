"""From scored sentences to cited passages within a budget, and their text."""
