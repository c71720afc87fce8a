"""MCP's form grammar: the closed list of what a form-mode elicitation may contain (spec: elicitation, form mode).

`narrow` turns a pydantic schema into it, `check` holds a raw schema against it. The rules:

- On top only `type`, `properties`, `required` (and `$schema` of a raw form); flat; no `$ref`, no null unions.
- What the grammar lacks (patterns, exclusive bounds of numbers, other formats) stays on the server, is enforced
  there and is said in the description. `gt=0` on an int is `minimum: 1`.
- Enumerations are inlined: `Enum` members with their names as titles, `Literal` plain, integers as their text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from mrtr_flow.errors import DefinitionError
from mrtr_flow.plain import is_array, is_object

__all__ = ("Field", "check", "narrow", "resolve")

Node = Mapping[str, Any]
FORMATS: Final = ("date", "date-time", "email", "uri")
_LIMITS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "format"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
}


@dataclass(frozen=True, slots=True)
class Field:
    """One form field: its schema as sent, whether null was allowed, and its integer choices by their text."""

    schema: dict[str, Any]
    optional: bool = False
    integers: Mapping[str, int] = field(default_factory=dict[str, int])


def resolve(node: Node, defs: Node) -> Node:
    """Follow `$ref`. Titles and descriptions of the definition belong to its class, not to the field: dropped."""
    while "$ref" in node:
        target = cast("Node", defs[node["$ref"].rpartition("/")[2]])
        own = {key: value for key, value in node.items() if key != "$ref"}
        node = {**{key: value for key, value in target.items() if key not in ("title", "description")}, **own}
    return node


def narrow(node: Node, defs: Node, place: str, title: str) -> Field:
    """A pydantic field schema in the grammar. Raises `DefinitionError` naming `place`.

    `title` is used where the schema has none.
    """
    node, optional = _without_null(resolve(node, defs), defs)
    many = node.get("type") == "array"
    if many and node.get("uniqueItems"):
        raise DefinitionError(
            f"type {place} cannot be asked: a set has another order in each process; use list[Literal[...]]"
        )
    choices = resolve(cast("Node", node.get("items", {})), defs) if many else node
    options = _options(choices, place)
    if many and options is None:
        raise DefinitionError(f"type {place} cannot be asked: a form's only lists are choices; use list[Literal[...]]")
    notes: list[str] = []
    out: dict[str, Any] = {"title": node.get("title", title)}
    if options is not None:
        texts = [str(option) for option in options]
        names = cast("list[str] | None", choices.get("x-names"))
        titled = names is not None and [
            {"const": text, "title": name.replace("_", " ").strip().capitalize()}
            for text, name in zip(texts, names, strict=True)
        ]
        if many:
            items = {"anyOf": titled} if titled else {"type": "string", "enum": texts}
            out = {"type": "array", "items": items, **out}
        else:
            out = {"type": "string", **({"oneOf": titled} if titled else {"enum": texts}), **out}
    elif node.get("type") in ("string", "integer", "number", "boolean"):
        out = {"type": node["type"], **out}
    else:
        raise DefinitionError(
            f"type {place} cannot be asked: a form's fields are text, numbers, booleans, dates and choices; "
            "split it into several fields or questions"
        )
    out.update(_limits(node, cast("str", out["type"]), notes))
    if node.get("default") is not None:
        out["default"] = _default(node["default"], out)
    if described := " ".join(filter(None, [node.get("description"), *notes])):
        out["description"] = described
    return Field(out, optional, {str(option): option for option in options or () if isinstance(option, int)})


def _without_null(node: Node, defs: Node) -> tuple[Node, bool]:
    """A null union without its null, and whether there was one; a Decimal as a number."""
    arms = [resolve(arm, defs) for arm in cast("list[Node]", node.get("anyOf", []))]
    if not arms:
        return node, False
    kept = [arm for arm in arms if arm.get("type") != "null"]
    optional = len(kept) < len(arms)
    if [arm.get("type") for arm in kept] == ["number", "string"]:
        kept = kept[:1]
    if len(kept) != 1:
        return node, optional
    return {**kept[0], **{key: value for key, value in node.items() if key != "anyOf"}}, optional


def _options(node: Node, place: str) -> list[str | int] | None:
    options = cast("list[Any] | None", [node["const"]] if "const" in node else node.get("enum"))
    if options is None:
        return None
    if not all(isinstance(option, str | int) and not isinstance(option, bool) for option in options):
        raise DefinitionError(f"type {place} cannot be asked: a form's choices are text or whole numbers")
    if len(set(map(str, options))) != len(options):
        raise DefinitionError(f"type {place} cannot be asked: two of its choices have the same text")
    return options


def _default(default: Any, out: Node) -> Any:
    if out["type"] == "array":
        return [str(item) for item in default]
    if out["type"] == "number":
        return float(default)  # a Decimal's default is text in its schema
    return str(default) if out["type"] == "string" else default


def _limits(node: Node, kind: str, notes: list[str]) -> dict[str, Any]:
    """The limits the grammar has; those it lacks are appended to `notes`, for the description."""
    out: dict[str, Any] = {keyword: node[keyword] for keyword in _LIMITS[kind] if keyword in node}
    if "format" in out and out["format"] not in FORMATS:
        notes.append(f"Format: {out.pop('format')}.")
    if "exclusiveMinimum" in node and kind == "integer":
        out["minimum"] = max(math.floor(node["exclusiveMinimum"]) + 1, out.get("minimum", -math.inf))
    elif "exclusiveMinimum" in node:
        notes.append(f"Must be more than {node['exclusiveMinimum']}.")
    if "exclusiveMaximum" in node and kind == "integer":
        out["maximum"] = min(math.ceil(node["exclusiveMaximum"]) - 1, out.get("maximum", math.inf))
    elif "exclusiveMaximum" in node:
        notes.append(f"Must be less than {node['exclusiveMaximum']}.")
    if "multipleOf" in node:
        notes.append(f"Must be a multiple of {node['multipleOf']}.")
    if "pattern" in node and kind == "string":
        notes.append(f"Must match {node['pattern']}.")
    return out


def check(schema: Node) -> None:
    """Hold a raw form against the grammar. Raises `DefinitionError` naming the keyword the grammar lacks."""
    unknown = sorted(set(schema) - {"$schema", "type", "properties", "required"})
    if unknown:
        raise DefinitionError(
            f"form has {unknown[0]!r} on top, which the grammar lacks; keep type, properties, required"
        )
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        raise DefinitionError("form is not an object with properties; give {'type': 'object', 'properties': {...}}")
    properties = cast("dict[str, Any]", schema["properties"])
    missing = [name for name in schema.get("required", ()) if name not in properties]
    if missing:
        raise DefinitionError(f"form requires {missing[0]!r}, which is not among its properties")
    for name, node in properties.items():
        _check_field(name, node)


def _check_field(name: str, node: Any) -> None:
    kind: Any = node.get("type") if is_object(node) else None
    if not is_object(node) or not isinstance(kind, str) or kind not in _LIMITS:
        raise DefinitionError(f"field {name!r} has no type of the grammar; it has {', '.join(_LIMITS)}")
    own = {"string": ("enum", "oneOf", "enumNames"), "array": ("items",)}.get(kind, ())
    unknown = sorted(set(node) - {"type", "title", "description", "default", *_LIMITS[kind], *own})
    if unknown:
        raise DefinitionError(
            f"field {name!r} has {unknown[0]!r}, which the grammar lacks for {kind}; check it in the flow"
        )
    if "format" in node and node["format"] not in FORMATS:
        raise DefinitionError(f"field {name!r} has format {node['format']!r}; the grammar has {', '.join(FORMATS)}")
    choices: Any = node.get("items") if kind == "array" else node
    if not is_object(choices) or (kind == "array" and set(choices) not in ({"type", "enum"}, {"anyOf"})):
        raise DefinitionError(f"field {name!r} has items other than one enumeration; give type and enum, or anyOf")
    _check_choices(name, choices)


def _check_choices(name: str, node: Node) -> None:
    values: Any = node.get("enum")
    if values is not None and not (is_array(values) and values and all(isinstance(value, str) for value in values)):
        raise DefinitionError(
            f"field {name!r} has an enum with other things than text; use text and map it in the flow"
        )
    if "enumNames" in node and len(node["enumNames"]) != len(values or ()):
        raise DefinitionError(f"field {name!r} has enumNames that do not match its enum")
    for keyword in ("oneOf", "anyOf"):
        arms: Any = node.get(keyword)
        if arms is not None and not (arms and all(set(arm) == {"const", "title"} for arm in arms)):
            raise DefinitionError(f"field {name!r} has {keyword} with other things than const and title")
