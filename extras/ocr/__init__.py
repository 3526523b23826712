"""Print in images, recognised (extra `ocr`)."""
