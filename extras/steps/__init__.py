"""Steps that the core can do without, one `STEP` a file (`pipeline/steps.py`)."""
