"""MCP's form grammar: the closed list of what a form-mode elicitation may contain (spec: elicitation, form mode).

`narrow` turns a pydantic schema into it, `check` holds a raw schema against it. The rules:

- On top only `type`, `properties`, `required` (and `$schema` of a raw form); flat; no `$ref`, no null unions.
- What the grammar lacks (patterns, exclusive bounds of numbers, other formats) stays on the server, is enforced
  there and is said in the description. `gt=0` on an int is `minimum: 1`.
- Enumerations are inlined: `Enum` members with their names as titles, `Literal` plain, integers as their text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
    """One form field: its schema as sent, whether null was allowed, whether every digit of a number counts, and its
    integer choices by their text."""

    schema: dict[str, Any]
    optional: bool = False
    exact: bool = False
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
    node, optional, exact = _one_arm(resolve(node, defs), defs)
    if node.get("writeOnly") or node.get("format") == "password":
        raise DefinitionError(f"type {place} cannot be asked: a form is no place for secrets; use ask_url(...)")
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
    return Field(out, optional, exact, {str(option): option for option in options or () if isinstance(option, int)})


def _one_arm(node: Node, defs: Node) -> tuple[Node, bool, bool]:
    """A union as its only arm that is not null; whether null was allowed; whether it is a Decimal, sent as a number."""
    arms = [resolve(arm, defs) for arm in cast("list[Node]", node.get("anyOf", []))]
    if not arms:
        return node, False, False
    kept = [arm for arm in arms if arm.get("type") != "null"]
    optional = len(kept) < len(arms)
    exact = [arm.get("type") for arm in kept] == ["number", "string"]
    if len(kept) != 1 and not exact:
        return node, optional, False
    return {**kept[0], **{key: value for key, value in node.items() if key != "anyOf"}}, optional, exact


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
    """Hold a raw form against the grammar. Raises `DefinitionError` naming what the grammar lacks."""
    unknown = sorted(set(schema) - {"$schema", "type", "properties", "required"})
    if unknown:
        raise DefinitionError(
            f"form has {unknown[0]!r} on top, which the grammar lacks; keep type, properties, required"
        )
    properties: Any = schema.get("properties")
    if schema.get("type") != "object" or not is_object(properties) or not properties:
        raise DefinitionError("form is not an object with properties; give {'type': 'object', 'properties': {...}}")
    required: Any = schema.get("required", [])
    if not _texts(required) or not set(required) <= set(properties):
        raise DefinitionError("form requires what is not a list of its properties' names")
    for name, node in properties.items():
        _check_field(name, node)


def _check_field(name: str, node: Any) -> None:
    kind: Any = node.get("type") if is_object(node) else None
    if not is_object(node) or not isinstance(kind, str) or kind not in _LIMITS:
        raise DefinitionError(f"field {name!r} has no type of the grammar; it has {', '.join(_LIMITS)}")
    own = {"string": ("enum", "oneOf", "enumNames"), "array": ("items",)}.get(kind, ())
    for keyword, value in node.items():
        if keyword not in ("type", *_ANNOTATIONS, *_LIMITS[kind], *own):
            raise DefinitionError(
                f"field {name!r} has {keyword!r}, which the grammar lacks for {kind}; check it in the flow"
            )
        if keyword in _VALUES and not _VALUES[keyword](value):
            raise DefinitionError(f"field {name!r} has {keyword} {value!r}, which the grammar does not allow")
    for least, most in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
        if least in node and most in node and node[least] > node[most]:
            raise DefinitionError(f"field {name!r} has {least} {node[least]} over {most} {node[most]}")
    choices: Any = node.get("items") if kind == "array" else node
    if not is_object(choices) or (kind == "array" and set(choices) not in ({"type", "enum"}, {"anyOf"})):
        raise DefinitionError(f"field {name!r} has items other than one enumeration; give type and enum, or anyOf")
    _check_choices(name, choices, choices if kind == "array" and "enum" in choices else {"type": "string"})


def _check_choices(name: str, node: Node, typed: Node) -> None:
    values: Any = node.get("enum")
    if values is not None and not (values and _texts(values) and typed["type"] == "string"):
        raise DefinitionError(
            f"field {name!r} has an enum with other things than different texts; map them in the flow"
        )
    if "enumNames" in node and not (is_array(node["enumNames"]) and len(node["enumNames"]) == len(values or ())):
        raise DefinitionError(f"field {name!r} has enumNames that do not match its enum")
    for keyword in ("oneOf", "anyOf"):
        arms: Any = node.get(keyword)
        if arms is None:
            continue
        if not is_array(arms) or not arms or not all(is_object(arm) and set(arm) == {"const", "title"} for arm in arms):
            raise DefinitionError(f"field {name!r} has {keyword} with other things than const and title")
        if not _texts([arm["const"] for arm in arms]) or not all(isinstance(arm["title"], str) for arm in arms):
            raise DefinitionError(
                f"field {name!r} has {keyword} with other things than different texts and their titles"
            )


def _texts(value: Any) -> bool:
    """Whether a JSON value is an array of different texts."""
    return is_array(value) and all(isinstance(item, str) for item in value) and len(set(value)) == len(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_ANNOTATIONS: Final = ("title", "description", "default")
_VALUES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "title": _is_text,
    "description": _is_text,
    "format": lambda value: value in FORMATS,
    "minimum": _is_number,
    "maximum": _is_number,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
}
