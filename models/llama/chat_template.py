"""Chat messages in the template that a GGUF file carries, with the control tokens' spelling in them broken.

Templates come with the file and are programs: llama-cpp-python runs them in Jinja's sandbox, over values that they
cannot change. Imported only in a model's own process. Not for: tokens (`models/llama/native.py`).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import jinja2
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from errors import ModelError

FAILURES: Final = (
    jinja2.TemplateError,
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
)
"""What a template may raise."""


class ChatTemplate:
    """One model's template, or none: then the messages' texts are continued."""

    def __init__(self, template: str | None, *, begins: str, ends: str, control: Iterable[str]) -> None:
        """Compile `template`, Jinja source.

        `begins`, `ends` and `control` are the spellings of the tokens at a text's edges, and of all control tokens.
        """
        self.begins = begins
        texts = sorted({text for text in control if len(text) > 1}, key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, texts))) if texts else None
        self._source = template or ""
        try:
            self._formatter = Jinja2ChatFormatter(self._source, eos_token=ends, bos_token=begins)
        except jinja2.TemplateError as error:
            raise ModelError(f"The model's chat template is broken: {error}.", hint="Get the file anew.") from error

    def render(self, messages: Sequence[dict[str, str]]) -> str:
        """Return the text up to where the answer begins; a model that can think aloud is asked not to."""
        said = [{"role": message["role"], "content": self.defused(message["content"])} for message in messages]
        if not self._source:
            return "\n\n".join(message["content"] for message in said)
        try:
            # Typed for messages of every kind that OpenAI's API has.
            told: Any = self._told(said)
            return str(self._formatter(messages=told, enable_thinking=False).prompt)
        except FAILURES as error:
            raise ModelError(
                f"The model's chat template refuses the messages: {error}.", hint="Set another model."
            ) from error

    def defused(self, text: str) -> str:
        """Return `text` with each control token's spelling broken by a blank, so that a page cannot end its message."""
        return self._control.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text) if self._control else text

    def _told(self, messages: list[dict[str, str]]) -> list[dict[str, str]]:
        """Return the messages; where the template knows no system role, its text goes before the first user's."""
        known = "system" in self._source.lower().replace("system role not supported", "")
        if known or messages[0]["role"] != "system":
            return messages
        if len(messages) == 1 or messages[1]["role"] != "user":
            return [{"role": "user", "content": messages[0]["content"]}, *messages[1:]]
        joined = f"{messages[0]['content']}\n\n{messages[1]['content']}"
        return [{"role": "user", "content": joined}, *messages[2:]]
