"""What of some pages fits a budget, as HTML, Markdown or text (HtmlRAG)."""
