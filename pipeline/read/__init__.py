"""From the bytes of a source (PDF, office files, books, mail, subtitles, feeds, text, data in
scripts) to HTML."""
