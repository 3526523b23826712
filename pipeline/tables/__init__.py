"""Tables as data: all rows of the tables of documents, typed columns, SQL over them."""
