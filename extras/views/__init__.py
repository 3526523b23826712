"""Views of answers, one `VIEW` a file (`tools/common/view.py`)."""
