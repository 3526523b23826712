"""From the bytes of a source (PDF, DOCX, feeds, text, data in scripts) to HTML."""
