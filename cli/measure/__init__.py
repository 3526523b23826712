"""What `winnow eval` measures: the models that are set, beside the rules, on the same questions."""
