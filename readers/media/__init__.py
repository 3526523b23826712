"""Images and subtitles to HTML; print in images is recognised by the extra `ocr`."""
