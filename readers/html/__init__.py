"""HTML to a document: cleaned, cut into blocks, without hidden text."""
