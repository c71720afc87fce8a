"""Forms: a Python type or a raw schema as a question's fields, and a client's answer as a value of that type.

Rules:

- A scalar is wrapped as one field, `value`.
- An answer is coerced field by field (the table in `coerce`), reduced to the known fields, and stored like that.
  Defaults are filled in at each decoding, not stored.
- The type's own validation comes last, on the coerced content; a value that decodes differently each time is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final, cast

from mrtr_flow.errors import DefinitionError
from mrtr_flow.grammar import Field, check, narrow, resolve
from mrtr_flow.packing import Packing, compile_schema, options_of
from mrtr_flow.plain import is_array, is_object
from mrtr_flow.schema import Invalid, Shape, type_name

__all__ = ("Form", "coerce", "form_for", "raw_form")

VALUE: Final = "value"
Content = dict[str, Any]


class Form:
    """One form: what goes on the wire, how its answers are packed, and how they become a Python value."""

    def __init__(self, schema: dict[str, Any], decode: Callable[[Content], Any], name: str) -> None:
        self.schema: Final = schema
        self.name: Final = name
        self._decode = decode

    @cached_property
    def packing(self) -> Packing:
        """How accepted content is packed: positional, by the schema that was sent."""
        return compile_schema(self.schema)

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that change when answers under this form would be read differently."""
        return self.packing.digest

    def decode(self, content: Content) -> Any:
        """Accepted content as the Python value. Raises `Invalid`, or `NotRecordable` if it is another one each time."""
        return self._decode(content)

    def accept(self, content: Any) -> Content:
        """A client's `content` in the form it is stored in. Raises `Invalid` with the reason to tell the person."""
        if content is not None and not is_object(content):
            raise Invalid("the answer is not an object of fields")
        sent = content or {}
        required = self.schema.get("required", ())
        taken: Content = {}
        problems: list[str] = []
        for name, field in self.schema["properties"].items():
            value = sent.get(name)
            if value is None:
                if name in required:
                    problems.append(f"{name}: missing")
                continue
            try:
                taken[name] = coerce(value, field)
            except Invalid as error:
                problems.append(f"{name}: {error}")
        if problems:
            raise Invalid("; ".join(problems))
        self._decode(taken)
        return taken


@lru_cache(maxsize=1024)
def form_for(annotation: Any) -> Form:
    """The form of a Python type, made once per type. Raises `DefinitionError` naming the field that cannot be asked."""
    shape: Shape[Any] = Shape(annotation)
    name = type_name(annotation)
    schema = shape.json_schema(names=True)
    defs: Mapping[str, Any] = schema.get("$defs", {})
    node = resolve(schema, defs)
    wrapped = node.get("type") != "object"
    if not wrapped and not node.get("properties"):
        raise DefinitionError(
            f"type {name} cannot be asked: a form has named fields; use a model, dataclass or TypedDict"
        )
    sources: Mapping[str, Any] = {VALUE: schema} if wrapped else node["properties"]
    fields = {
        key: narrow(source, defs, name if wrapped else f"{name}.{key}", _title(key)) for key, source in sources.items()
    }
    if wrapped:
        fields[VALUE].schema["title"] = _title(VALUE)
    must = [VALUE] if wrapped else node.get("required", [])
    required = [key for key in fields if key in must and not fields[key].optional]
    # null unions are not in the grammar, so a field that may be null may be left out, and then is None
    blanks = {key: None for key in fields if key in must and fields[key].optional}
    sent: dict[str, Any] = {"type": "object", "properties": {key: field.schema for key, field in fields.items()}}
    if required:
        sent["required"] = required

    def decode(content: Content) -> Any:
        native = {**blanks, **{key: _native(value, fields[key]) for key, value in content.items()}}
        return shape.check_stable(native[VALUE] if wrapped else native)

    return Form(sent, decode, name)


def raw_form(schema: Mapping[str, Any]) -> Form:
    """A form given as JSON schema: checked against the grammar, sent as it is; its answers are dicts.

    Raises `DefinitionError` naming what the grammar lacks.
    """
    return _raw_form(json.dumps(schema))


@lru_cache(maxsize=1024)
def _raw_form(text: str) -> Form:
    schema = cast("dict[str, Any]", json.loads(text))
    check(schema)
    fields = cast("dict[str, dict[str, Any]]", schema["properties"])
    defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
    for name, default in defaults.items():
        if _refused(default, fields[name]):
            raise DefinitionError(f"default of field {name!r} does not fit the field")

    def decode(content: Content) -> Content:
        return {
            name: content[name] if name in content else defaults[name]
            for name in fields
            if name in content or name in defaults
        }

    return Form(schema, decode, "form")


def _refused(value: Any, field: Mapping[str, Any]) -> bool:
    try:
        return type(coerce(value, field)) is not type(value) or coerce(value, field) != value
    except Invalid:
        return True


def _title(name: str) -> str:
    return name.replace("_", " ").strip().capitalize()


def _native(value: Any, field: Field) -> Any:
    """Integer choices travel as text; the type's own validation wants the integers."""
    if not field.integers:
        return value
    return [field.integers[item] for item in value] if is_array(value) else field.integers[value]


_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")


def coerce(value: Any, field: Mapping[str, Any]) -> Any:
    """One field's value as clients really send it, in the type of the field. Raises `Invalid` with the reason.

    | field | taken as it is | coerced | asked again |
    |---|---|---|---|
    | string | text within its limits | | anything else |
    | string choice | a member | a title that only one member has | anything else |
    | integer | whole numbers of any size | `5.0`; `"5"` | `5.5`, `true`, `"42xyz"`, not finite |
    | number | finite numbers | `"5"`, `"5.5"` | `true`, not finite |
    | boolean | `true`, `false` | `"true"`, `"false"` in any case | numbers, other text |
    | multi-select | lists of members | titles | anything else |
    """
    kind = field["type"]
    if kind == "array":
        if not is_array(value):
            raise Invalid("choose from the list")
        members = _members(field["items"])
        chosen = [_member(item, members) for item in value]
        _within(len(chosen), field.get("minItems"), field.get("maxItems"), "choose at {} {}")
        return chosen
    if kind == "string":
        if members := _members(field):
            return _member(value, members)
        if not isinstance(value, str):
            raise Invalid("must be text")
        _within(len(value), field.get("minLength"), field.get("maxLength"), "must have at {} {} characters")
        return value
    if kind == "boolean":
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        if not isinstance(value, bool):
            raise Invalid("answer true or false")
        return value
    number = _number(value, kind)
    _within(number, field.get("minimum"), field.get("maximum"), "must be at {} {}")
    return number


def _number(value: Any, kind: str) -> int | float:
    if isinstance(value, str):
        text = value.strip()
        if _INTEGER.fullmatch(text):
            value = int(text)
        elif _DECIMAL.fullmatch(text):
            value = float(text)
    if isinstance(value, float) and value.is_integer() and kind == "integer":
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else int | float):
        raise Invalid("must be a whole number" if kind == "integer" else "must be a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise Invalid("must be a number")
    return value


def _within(size: float, least: Any, most: Any, text: str) -> None:
    if least is not None and size < least:
        raise Invalid(text.format("least", least))
    if most is not None and size > most:
        raise Invalid(text.format("most", most))


def _members(field: Mapping[str, Any]) -> dict[str, str]:
    """Members by value and by title; values win, titles that two members share are left out. Empty: no choice."""
    pairs = options_of(field) or []
    titles = [title for _, title in pairs]
    by_title = {title: value for value, title in pairs if titles.count(title) == 1}
    return by_title | {value: value for value, _ in pairs}


def _member(value: Any, members: Mapping[str, str]) -> str:
    if not isinstance(value, str) or value not in members:
        raise Invalid("choose one of the given options")
    return members[value]
