"""The text of every prompt: Markdown files with a header, read by `load` and filled
with `string.Template` variables.

A file begins with lines `key: value` (purpose, variables, source) up to `---`; the rest
is the prompt. Not for: deciding what goes into a prompt."""

import functools
import hashlib
from dataclasses import dataclass
from importlib import resources
from string import Template


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file."""

    text: str
    """The template, with `$variable` places."""
    version: str
    """Hash of the text; part of the cache keys of model answers."""

    def fill(self, **values: str) -> str:
        """Return the text with every variable filled.

        Raises `KeyError` if a variable is missing (a programming error).
        """
        return Template(self.text).substitute(values).strip()


@functools.cache
def load(name: str) -> Prompt:
    """Return the prompt `name` (`prompts/NAME.md`).

    Raises `FileNotFoundError` for an unknown prompt (a programming error).
    """
    raw = resources.files("prompts").joinpath(f"{name}.md").read_text(encoding="utf-8")
    _, text = raw.split("\n---\n", 1)
    return Prompt(
        text.strip() + "\n", hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    )
