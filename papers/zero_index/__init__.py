"""Zero-indexing: PARSER and EXTRACTOR by a model, sentence tags, mixed ranking as printed."""
