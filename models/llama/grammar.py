"""Grammars of JSON schemas, in a form that llama.cpp parses without deep recursion.

Not for: parsing or applying a grammar (`models/llama/native.py`), nor schemas as such (`models/schema.py`).
"""

import re
from typing import Final

from llama_cpp.llama_grammar import json_schema_to_gbnf

from errors import ModelError

_NESTED: Final = re.compile(r"((?:\(char )*\(char)((?:\)\?)+)")


def flat_lengths(grammar: str) -> str:
    """Return `grammar` with the converter's form of a text's length, a bracket for each character, as one repetition.

    A text of 300 characters would else be 300 brackets deep, which `Grammar` refuses.
    """

    def flat(found: re.Match[str]) -> str:
        count = found[1].count("(")
        closed = len(found[2]) // 2
        return f"char{{0,{count}}}{')?' * (closed - count)}" if closed >= count else found[0]

    return _NESTED.sub(flat, grammar)


def schema_grammar(schema_json: str) -> str:
    """Return the grammar of a JSON schema.

    Raises:
        ModelError: It has a part that llama.cpp's converter does not know.
    """
    try:
        return flat_lengths(str(json_schema_to_gbnf(schema_json)))
    except (AssertionError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(
            f"The JSON schema has a part that llama.cpp's converter does not know: {error!r}.",
            hint="Use object, array, string, integer, number, boolean, enum, anyOf and lengths only.",
        ) from error
