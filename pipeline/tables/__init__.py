"""Tables as data: rows and columns of documents, questions of them, values computed over all
rows."""
