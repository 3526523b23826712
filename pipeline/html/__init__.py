"""Clean, cut into a block tree, prune, render."""
