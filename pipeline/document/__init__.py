"""Pages, documents, units and tables: plain data that every step reads."""
