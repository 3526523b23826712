"""The check of a reply against the JSON schema that was asked for."""

import json

from errors import ModelError


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
