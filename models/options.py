"""How models are run: arguments of `llama_cpp.Llama`, sampling, and thinking.

One text for all roles, the setting `model_options`: NAME=VALUE separated by blanks,
each value in JSON. Not for: which model it is (`models/choose.py`)."""

import json
from collections.abc import Mapping
from typing import Any, Final

ModelOptions = Mapping[str, Any]
"""Options by name; what is not named is left to llama.cpp or to the server."""

LOADING: Final = (
    *("n_ctx", "n_batch", "n_gpu_layers", "main_gpu", "split_mode", "tensor_split"),
    *("n_threads", "flash_attn", "use_mmap", "type_k", "type_v"),
)
"""Arguments of `llama_cpp.Llama`."""
SAMPLING: Final = ("temperature", "top_k", "top_p", "min_p", "seed")
"""How the next token is chosen; they go to a server as well, where they are set."""
THINKING: Final = "thinking"
"""Whether a model that can think aloud is let to; its thoughts are never part of an
answer."""
ANSWERING: Final = (*SAMPLING, THINKING, "n_ctx", "type_k", "type_v")
"""Options that change an answer."""
THOUGHTS: Final = 2_048
"""Tokens that a model gets beside its answer's where it thinks and no switch stops it;
at most half of its context."""


def read_options(text: str) -> ModelOptions:
    """Return the options that `text` names; raises `ValueError` with what would be
    right. Of an option given twice the last counts."""
    options: dict[str, Any] = {}
    names = (*LOADING, *SAMPLING, THINKING)
    for setting in text.split():
        name, _, value = setting.partition("=")
        if name not in names:
            raise ValueError(
                f"{setting!r} is not an option; use NAME=VALUE with {', '.join(names)}."
            )
        try:
            options[name] = json.loads(value)
        except ValueError as error:
            raise ValueError(
                f"{name} is {value!r}; use a number, true, false, or a list as [3,1]."
            ) from error
    return options


def loading(options: ModelOptions) -> dict[str, Any]:
    """Return the arguments of `llama_cpp.Llama` among the options."""
    return {name: value for name, value in options.items() if name in LOADING}


def sampling(options: ModelOptions) -> dict[str, Any]:
    """Return the options of sampling, with the temperature: 0, which takes the likeliest
    token each time, where it is not set."""
    set_values = {name: value for name, value in options.items() if name in SAMPLING}
    return {"temperature": 0.0, **set_values}


def answer_key(options: ModelOptions) -> str:
    """Return what of the options changes an answer, as part of a model's name; ""
    where nothing does."""
    return ",".join(f"{name}={options[name]}" for name in ANSWERING if name in options)
