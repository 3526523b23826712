"""Tables as data: rows and columns of documents, queries of one."""
