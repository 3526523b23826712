"""Tokens as answers count them, for tests that count an answer again."""

from pipeline.text.tokens import count_tokens, cut_to_tokens

__all__ = ["count_tokens", "cut_to_tokens"]
