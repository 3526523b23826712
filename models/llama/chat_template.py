"""Chat messages in the template that a GGUF file carries, with the control tokens' spelling in them broken.

Templates come with the file and are programs: they run in Jinja's sandbox, over values that they cannot change.
Imported only in a model's own process. Not for: tokens (`models/llama/native.py`).
"""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NoReturn

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

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
        """Compile `template`.

        Args:
            template: Jinja source, as `tokenizer.chat_template` has it.
            begins: Spelling of the token at a text's beginning.
            ends: Spelling of the one at its end.
            control: Spellings of all control tokens.
        """
        self.begins = begins
        self._ends = ends
        texts = sorted({text for text in control if len(text) > 1}, key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, texts))) if texts else None
        self._source = template or ""
        self._template: jinja2.Template | None = None
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTags, "jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _as_json
        if template:
            try:
                self._template = environment.from_string(template)
            except jinja2.TemplateError as error:
                raise ModelError(f"The model's chat template is broken: {error}.", hint="Get the file anew.") from error

    def render(self, messages: Sequence[dict[str, str]]) -> str:
        """Return the text up to where the answer begins; a model that can think aloud is asked not to."""
        said = [{"role": message["role"], "content": self.defused(message["content"])} for message in messages]
        if self._template is None:
            return "\n\n".join(message["content"] for message in said)
        try:
            return self._template.render(
                messages=self._told(said),
                add_generation_prompt=True,
                bos_token=self.begins,
                eos_token=self._ends,
                enable_thinking=False,
                raise_exception=_refuse,
                strftime_now=_now,
            )
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


class _GenerationTags(jinja2.ext.Extension):
    """Passes over `{% generation %}`, which marks training text."""

    tags = {"generation"}  # noqa: RUF012  as Jinja declares it

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node | list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _refuse(message: str) -> NoReturn:
    raise ValueError(message)


def _now(form: str) -> str:
    return datetime.now().astimezone().strftime(form)


def _as_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
