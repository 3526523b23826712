"""What four papers print: zero-index retrieval, HtmlRAG, RAPTOR and IDMS, a folder each.

It imports the core, which finds it by name (`pipeline/printed.py`) and imports none of
it."""
