"""The words that embedding models were trained to see before a query or a passage. Not for: generators' prompts.

Known by the model's name in its GGUF header or file name; the sources are the models' own pages. A model that is not in
the table gets its texts as they are.
"""

import re
from dataclasses import dataclass
from typing import Final

TASK: Final = "Given a web search query, retrieve relevant passages that answer the query"
"""The task that instruction-following embedders name in their own examples for search."""
SEARCHING: Final = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class Instructions:
    """Words before each kind of text."""

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
"""Pattern on the lower-case name, and the words."""


def instructions_for(*names: str) -> Instructions:
    """Return the words of the first name that the table knows (header's name first, then the file's)."""
    for name in names:
        for pattern, words in TABLE:
            if re.search(pattern, name.lower()):
                return words
    return Instructions()
