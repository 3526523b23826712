"""Office files and books to HTML: DOCX, XLSX, PPTX, OpenDocument, RTF, EPUB, notebooks."""
