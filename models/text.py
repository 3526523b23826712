"""What backends do to texts before a model sees them (cut, clean, prepend an instruction), and to a reply in JSON.

Not for: cleaning pages, nor generators' prompts.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from errors import ModelError

LATIN_SHARE: Final = 0.6
"""Least share of Latin letters in a text that an English model is asked about."""
MANY_SCRIPTS: Final = 100_000
"""A vocabulary of this size marks a multilingual model (English BERT has 30 522 entries, XLM-RoBERTa 250 002)."""
CHARACTERS_A_TOKEN: Final = 64
"""A text is cut to this many characters for each token that fits, before it is tokenised: a page of 30 MB costs no more
than a paragraph. Only text whose tokens are longer than this on average (base64) loses tokens that had fitted."""
TEXTS_AT_ONCE: Final = 256
"""Texts that go to a tokeniser or a process at once; between two lots a cancelled call ends."""
TEXTS_A_REQUEST: Final = TEXTS_AT_ONCE // 8
"""Texts of one request to a server or one call into torch: TEI refuses more than 32 unless told."""

TASK: Final = "Given a web search query, retrieve relevant passages that answer the query"
"""The task that instruction-following embedders name in their own examples for search."""
SEARCHING: Final = "Represent this sentence for searching relevant passages: "

_LETTER: Final = re.compile(r"[^\W\d_]")
_LATIN: Final = re.compile(
    "[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1d00-\u1d25\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff"
    "\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a]"
)


def reads_latin(text: str) -> bool:
    """Return whether six in ten letters of the text's beginning are Latin; True where there are no letters."""
    sample = text[:4_000]  # enough to tell a page's script, and cheap on a long one
    if sample.isascii():
        return True
    letters = len(_LETTER.findall(sample))
    return letters == 0 or len(_LATIN.findall(sample)) / letters >= LATIN_SHARE


def printable(text: str) -> str:
    """Return `text` as UTF-8 can carry it: a lone surrogate, left by a page's broken escape, becomes a question
    mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Instructions:
    """The words that an embedding model was trained to see before each kind of text."""

    query: str = ""
    passage: str = ""

    def prepend(self, text: str, *, kind: str) -> str:
        """Return `text` with the words of its kind in front."""
        return (self.query if kind == "query" else self.passage) + text


TABLE: Final = (
    # The first pattern that is found counts: the special cases of a family stand before the family.
    (r"nomic[-_ ]?embed", Instructions("search_query: ", "search_document: ")),
    (r"embedding[-_ ]?gemma", Instructions("task: search result | query: ", "title: none | text: ")),
    (r"qwen3[-_ .].*embed", Instructions(f"Instruct: {TASK}\nQuery:")),
    (r"gte[-_ ]?qwen2", Instructions(f"Instruct: {TASK}\nQuery: ")),
    (r"\be5[-_ ].*instruct|e5[-_ ]?mistral", Instructions(f"Instruct: {TASK}\nQuery: ")),
    (r"\be5[-_ ](?:small|base|large)|multilingual[-_ ]e5", Instructions("query: ", "passage: ")),
    (r"bge[-_ ]?m3", Instructions()),
    (r"bge[-_ ](?:small|base|large)[-_ ]zh", Instructions("为这个句子生成表示以用于检索相关文章：")),
    (r"bge[-_ ](?:small|base|large)", Instructions(SEARCHING)),
    (r"arctic[-_ ]embed[-_ ].*v2", Instructions("query: ")),
    (r"arctic[-_ ]embed|mxbai[-_ ]embed", Instructions(SEARCHING)),
)
"""Pattern on a model's lower-case name, and its words, as the models' own pages have them."""


def instructions_for(*names: str) -> Instructions:
    """Return the words of the first of a model's names that the table knows; none where it knows none."""
    for name in names:
        for pattern, words in TABLE:
            if re.search(pattern, name.lower()):
                return words
    return Instructions()


def checked_json(text: str, schema: dict[str, object], *, model: str, cut: bool) -> str:
    """Return `text` without blanks around it, once it is JSON and valid under `schema`; else raise `ModelError`.

    `cut` says that the answer ended because its tokens ran out, which is then named as the likely cause.
    """
    # A server without a generator never gets here, and starts 0.07 s sooner.
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415  published without types; see above

    cause = "the answer was cut at max_tokens" if cut else "the model did not keep to the schema"
    try:
        jsonschema.validate(json.loads(text), schema)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{model} answered no JSON ({cause}): {text.strip()[:200]!r}", hint="Try again, or allow more tokens."
        ) from error
    except jsonschema.ValidationError as error:
        path = "/".join(str(part) for part in error.absolute_path) or "the answer"
        raise ModelError(
            f"{model} answered JSON that is not valid at {path}: {error.message[:200]}",
            hint="Try again, or set a larger model.",
        ) from error
    return text.strip()
