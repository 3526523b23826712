"""The schemas that `tools/list` carries, at the fewest tokens: every client pays them in every conversation.

What goes: titles that pydantic adds, bounds and forms of texts (still checked when a tool is called), empty defaults,
and in output schemas all but the names and types of the fields. What stays: plain keywords that every vendor's client
accepts. Not for: checking values, which the types of each tool do.
"""

from typing import Final

Schema = dict[str, object]

_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
_ASIDE: Final = frozenset({"parsed_by", "scored_by", "freshness", "left_out", "mode", "layers", "leaves", "summaries"})
"""Fields that tell how an answer came about; no program needs their types to use it."""
_UNSAID: Final = frozenset({"minLength", "maxLength", "minItems", "maxItems", "pattern"})


def input_schema(schema: Schema) -> Schema:
    """Return a tool's input schema without titles and text bounds; descriptions, defaults and number bounds stay."""
    kept: Schema = {}
    for key, value in schema.items():
        if key in _UNSAID or (key == "title" and isinstance(value, str)) or (key, value) == ("default", ""):
            continue
        if key == "properties" and isinstance(value, dict):
            kept[key] = {name: input_schema(field) for name, field in value.items()}
        else:
            kept[key] = input_schema(value) if isinstance(value, dict) else value
    return kept


def output_schema(schema: Schema) -> Schema:
    """Return the names and types of a result's fields.

    Every field of our results is always there, so no list of required names is needed to read them. Lists of plain
    texts (queries, failures and the like) and what only tells how an answer came about are left out: they are in the
    answer all the same.
    """
    fields = schema.get("properties")
    assert isinstance(fields, dict)  # noqa: S101  a result model always has fields; pydantic wrote this schema
    listed = {name: _type_of(field) for name, field in fields.items()}
    return {
        "type": "object",
        "properties": {name: kind for name, kind in listed.items() if kind != _TEXTS and name not in _ASIDE},
    }


def _type_of(field: Schema) -> Schema:
    kind = field.get("type", "object")
    if kind != "array":
        return {"type": kind}
    items = field.get("items")
    held = items.get("type", "object") if isinstance(items, dict) else "object"
    return {"type": "array", "items": {"type": held}}
