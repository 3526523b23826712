"""Writes the table of the token counter (`pipeline/text/tokens.py`): the tokens of
cl100k_base by rank.

    python -m train.tokens

It needs the package bpe-openai, which holds them."""

import importlib
import lzma

from pipeline.text.tokens import PARTED, TOKENS_FILE

RANKED = 100_256
"""Tokens that merges lead to; they are followed by some special tokens, such as the end
of a text."""


def main() -> None:
    """Write the table."""
    model = importlib.import_module("bpe_openai").get_encoding("cl100k_base")
    parted = PARTED.encode(errors="surrogateescape")
    tokens = [model.decode_single_token_bytes(token) for token in range(RANKED)]
    tokens.remove(parted)
    TOKENS_FILE.write_bytes(
        lzma.compress(parted.join(tokens), preset=9 | lzma.PRESET_EXTREME)
    )
    print(f"{TOKENS_FILE.name}: {TOKENS_FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
