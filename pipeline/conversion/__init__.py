"""Converting in processes of their own: what asks them, and what runs in them."""
