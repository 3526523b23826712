"""What backends do to texts before a model sees them (cut, clean, instruct), and to a
reply: thoughts and JSON.

Not for: tokens of ONNX models (`models/tokenizer.py`), cleaning pages, generators'
prompts, or counting tokens (`pipeline/text/tokens.py`).
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from errors import ModelError, said
from models.protocols import TextKind

MANY_SCRIPTS: Final = 100_000
"""A vocabulary of this size marks a multilingual model (English BERT has 30 522
entries, XLM-RoBERTa 250 002)."""
CHARACTERS_A_TOKEN: Final = 64
"""A text is cut to this many characters for each token that fits, before it is
tokenised: a page of 30 MB costs no more than a paragraph. Only text whose tokens are
longer than this on average (base64) loses tokens that had fitted."""
TEXTS_AT_ONCE: Final = 256
"""Texts that go to a tokeniser or a process at once; between two lots a cancelled call
ends."""
TEXTS_A_REQUEST: Final = TEXTS_AT_ONCE // 8
"""Texts of one request to a server or one call into torch: TEI refuses more than 32 by
default."""

TASK: Final = (
    "Given a web search query, retrieve relevant passages that answer the query"
)
"""The task that instruction-following embedders name in their own examples for
search."""
SEARCHING: Final = "Represent this sentence for searching relevant passages: "


def reads_latin(text: str) -> bool:
    """Return whether six in ten letters of the text's beginning are Latin; True where
    there are no letters."""
    sample = text[:4_000]  # enough to detect a page's script, and cheap for long ones
    if sample.isascii():
        return True
    letters = [letter for letter in sample if letter.isalpha()]
    latin = [
        letter
        for letter in letters
        if letter.isascii() or "LATIN" in unicodedata.name(letter, "")
    ]
    return len(latin) >= 0.6 * len(letters)


def printable(text: str) -> str:
    """Return `text` as UTF-8 can carry it: a lone surrogate, left by a page's broken
    escape, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


INSTRUCTIONS_BY_NAME: Final = (
    # The first match wins: special cases come before their family.
    (r"nomic[-_ ]?embed", "search_query: ", "search_document: "),
    (
        r"embedding[-_ ]?gemma",
        "task: search result | query: ",
        "title: none | text: ",
    ),
    (r"qwen3[-_ .].*embed", f"Instruct: {TASK}\nQuery:", ""),
    (r"gte[-_ ]?qwen2", f"Instruct: {TASK}\nQuery: ", ""),
    (r"\be5[-_ ].*instruct|e5[-_ ]?mistral", f"Instruct: {TASK}\nQuery: ", ""),
    (r"\be5[-_ ](?:small|base|large)|multilingual[-_ ]e5", "query: ", "passage: "),
    (r"bge[-_ ]?m3", "", ""),
    (
        r"bge[-_ ](?:small|base|large)[-_ ]zh",
        "为这个句子生成表示以用于检索相关文章：",
        "",
    ),
    (r"bge[-_ ](?:small|base|large)", SEARCHING, ""),
    (r"arctic[-_ ]embed[-_ ].*v2", "query: ", ""),
    (r"arctic[-_ ]embed|mxbai[-_ ]embed", SEARCHING, ""),
)
"""Pattern on a model's lower-case name, and what it was trained to see before a query
and before a passage, as the models' own pages have them."""


def instructed(texts: Sequence[str], kind: TextKind, *names: str) -> list[str]:
    """Return `texts` with what a model was trained to see before their kind in front, by
    the first of its names that `INSTRUCTIONS_BY_NAME` has; else as they are."""
    before = next(
        (
            query if kind == "query" else passage
            for name in names
            for pattern, query, passage in INSTRUCTIONS_BY_NAME
            if re.search(pattern, name.lower())
        ),
        "",
    )
    return [before + text for text in texts]


_THINKING_START: Final = re.compile(
    r"\s*(?:<\|channel\|>analysis<\|message\|>|<(?:think|thinking|thought|reasoning|seed:think)>|"
    r"\[THINK\])",
    re.IGNORECASE,
)
"""How thoughts begin: Qwen, DeepSeek and SmolLM3; Seed; gpt-oss in its raw form;
Magistral."""
_THINKING_END: Final = re.compile(
    r"(?:<\|end\|>\s*)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>|"
    r"</(?:think|thinking|thought|reasoning|seed:think)>|\[/THINK\]",
    re.IGNORECASE,
)

_ALONE: Final = re.compile(
    r"^\s*</(?:think|thinking)>[ \t]*$", re.IGNORECASE | re.MULTILINE
)


def without_thoughts(text: str) -> tuple[str, str]:
    """Return the answer in `text` and the thoughts before it, each "" where there is
    none.

    Some chat templates open the thoughts in the prompt, so that only their end is in
    the text: it then counts on a line of its own, for an answer may quote it. Thoughts
    that are opened and never closed leave no answer."""
    opened = _THINKING_START.match(text)
    closed = _THINKING_END.search(text, opened.end()) if opened else _ALONE.search(text)
    if closed:
        thoughts = text[opened.end() if opened else 0 : closed.start()]
        return text[closed.end() :].lstrip(), thoughts.strip()
    return ("", text[opened.end() :].strip()) if opened else (text, "")


def checked_json(text: str, schema: dict[str, object], *, model: str, cut: bool) -> str:
    """Return `text` without blanks around it, once it is JSON and valid under `schema`;
    else raise `ModelError`.

    `cut` says that the answer ended because its tokens ran out, which is then named as
    the likely cause."""
    # A server without a generator never gets here, and starts 0.07 s sooner.
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415  published without types; see above

    cause = (
        "the answer was cut at max_tokens"
        if cut
        else "the model did not keep to the schema"
    )
    try:
        jsonschema.validate(json.loads(text), schema)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{model} did not return JSON ({cause}): {said(text.strip())}",
            hint="Try again, or allow more tokens.",
        ) from error
    except jsonschema.ValidationError as error:
        path = "/".join(str(step) for step in error.absolute_path) or "the answer"
        raise ModelError(
            f"{model} returned JSON that is invalid at {path}: {said(error.message)}; "
            f"it wrote "
            f"{said(text.strip())}",
            hint="Try again, or set a larger model.",
        ) from error
    return text.strip()
