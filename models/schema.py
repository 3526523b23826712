"""JSON schemas as grammars can hold them, and the check of a reply against the one that was asked for.

Not for: making grammars.
"""

import json
from collections.abc import Mapping
from typing import Final

from errors import ModelError

WIDEST_RANGE: Final = 256
"""Whole numbers of a bounded integer that are listed one by one; llama.cpp's converter passes over the bounds
themselves."""


def checked_json(text: str, schema: dict[str, object], *, model: str, cut: bool) -> str:
    """Return `text` without blanks around it, once it is JSON and valid under `schema`.

    `cut` says that the answer ended because its tokens ran out, which is then named as the likely cause.

    Raises:
        ModelError: It is not JSON, or not valid; the message names the path.
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


def bounded(schema: Mapping[str, object]) -> dict[str, object]:
    """Return `schema` with each integer of a small range as the list of its values, which a grammar can hold it to.

    Wider ranges stay as they are; the check of the reply sees to them.
    """
    return {key: value if key in ("enum", "const") else _bounded(value) for key, value in _listed(schema).items()}


def _bounded(value: object) -> object:
    if isinstance(value, Mapping):
        return bounded(value)
    return [_bounded(item) for item in value] if isinstance(value, list) else value


def _listed(schema: Mapping[str, object]) -> dict[str, object]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if schema.get("type") != "integer" or not isinstance(low, int) or not isinstance(high, int) or "enum" in schema:
        return dict(schema)
    step = schema.get("multipleOf", 1)
    if not 0 <= high - low < WIDEST_RANGE or not isinstance(step, int) or step < 1:
        return dict(schema)
    kept = {key: value for key, value in schema.items() if key not in ("type", "minimum", "maximum", "multipleOf")}
    return {**kept, "enum": [number for number in range(low, high + 1) if number % step == 0]}
