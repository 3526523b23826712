"""PDF files to HTML, page by page: text in reading order, tables, hidden text, forms."""
