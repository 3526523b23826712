"""Search over local documents, nothing indexed beforehand."""
