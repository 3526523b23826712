"""HtmlRAG: the block tree, pruning by embedding, pruning by a generator's paths."""
