"""Records of data files to HTML."""
