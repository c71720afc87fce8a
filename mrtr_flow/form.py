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
from datetime import datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, Final, cast

from mrtr_flow.errors import DefinitionError
from mrtr_flow.grammar import Field, check, narrow, resolve
from mrtr_flow.packing import Packing, compile_schema, options_of
from mrtr_flow.plain import fresh, is_array, is_object
from mrtr_flow.schema import Invalid, shape_of, type_name

__all__ = ("Form", "coerce", "form_for", "raw_form")

VALUE: Final = "value"
Content = dict[str, Any]


class Form:
    """One form: what goes on the wire, how its answers are packed, and how they become a Python value."""

    def __init__(
        self, schema: dict[str, Any], decode: Callable[[Content], Any], name: str, exact: frozenset[str] = frozenset()
    ) -> None:
        self.schema: Final = schema
        self._exact = exact
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
        fields = self.schema["properties"]
        for name, field in fields.items():
            place = f"{name}: " if len(fields) > 1 else ""  # nobody is shown the name of an only field
            value = sent.get(name)
            if value is None:
                if name in required:
                    problems.append(f"{place}missing")
                continue
            try:
                taken[name] = coerce(value, field, exact=name in self._exact)
            except Invalid as error:
                problems.append(f"{place}{error}")
        if problems:
            raise Invalid("; ".join(problems))
        self._decode(taken)
        return taken


def form_for(annotation: Any) -> Form:
    """The form of a Python type, made once per type. Raises `DefinitionError` naming the field that cannot be asked."""
    try:
        return _form_for(repr(annotation), annotation)  # equal is not enough: see `shape_of`
    except TypeError:  # not hashable
        return _form_for.__wrapped__("", annotation)


@lru_cache(maxsize=1024)
def _form_for(spelling: str, annotation: Any) -> Form:
    shape = shape_of(annotation)
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
        own = None if "x-names" in node else schema.get("title")  # an enumeration's is the name of its class
        fields[VALUE].schema["title"] = own or _title(VALUE)
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

    return Form(sent, decode, name, frozenset(key for key, field in fields.items() if field.exact))


def raw_form(schema: Mapping[str, Any]) -> Form:
    """A form given as JSON schema: checked against the grammar, sent as it is; its answers are dicts.

    Raises `DefinitionError` naming what the grammar lacks.
    """
    try:
        text = json.dumps(fresh(schema))
    except (TypeError, ValueError):
        raise DefinitionError("form is not JSON; give plain dicts, lists and texts") from None
    return _raw_form(text)


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
    return [field.integers.get(item, item) for item in value] if is_array(value) else field.integers.get(value, value)


def coerce(value: Any, field: Mapping[str, Any], *, exact: bool = False) -> Any:
    """One field's value as clients really send it, in the type of the field. Raises `Invalid` with the reason.

    | field | taken as it is | coerced | asked again |
    |---|---|---|---|
    | string | text within its limits, `""` too | | anything else |
    | string, `date` or `date-time` | the ISO spelling (RFC 3339) | | other orders |
    | string, `email` or `uri` | `a@b`, `scheme:rest` | | anything else |
    | string choice | a member | a title that only one member has; a whole number by its text | anything else |
    | integer | whole numbers of any size | `5.0`; `"5"` | `5.5`, `true`, `"42xyz"`, `""`, not finite |
    | number | numbers a float keeps exactly | `"5"`, `"5.5"` | `true`, too many digits, not finite |
    | boolean | `true`, `false` | `"true"`, `"false"` in any case | numbers, other text |
    | multi-select | lists of members | titles | anything else |

    `null` is an absent field. An absent field takes its default, or is asked again if it is required. `exact` (a
    Decimal) keeps every digit of a number that is sent as text.
    """
    kind = field["type"]
    if kind == "array":
        members = _members(field["items"])
        if not is_array(value):
            raise Invalid(f"choose from {_options(members)}")
        chosen = [_member(item, members) for item in value]
        _within(len(chosen), field.get("minItems"), field.get("maxItems"), "choose at {} {}")
        return chosen
    if kind == "string":
        if members := _members(field):
            return _member(value, members)
        return _text(value, field)
    if kind == "boolean":
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        if not isinstance(value, bool):
            raise Invalid("answer true or false")
        return value
    number = _whole(value) if kind == "integer" else _number(value, exact)
    _within(
        float(number) if isinstance(number, str) else number,
        field.get("minimum"),
        field.get("maximum"),
        "must be at {} {}",
    )
    return number


_INTEGER = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,3})?", re.ASCII)
_FORMATS: Final = {
    "date": (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII), "must be a date such as 2026-12-31"),
    "date-time": (
        re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]{5,15}([Zz]|[+-][0-9]{2}:[0-9]{2})?", re.ASCII),
        "must be a date and time such as 2026-12-31T09:30:00Z",
    ),
    "email": (re.compile(r"[^@\s]+@[^@\s]+"), "must be an email address"),
    "uri": (re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", re.ASCII), "must be a URI"),
}


def _whole(value: Any) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid("must be a whole number")
    return value


def _number(value: Any, exact: bool) -> int | float | str:
    text = value.strip() if isinstance(value, str) else None
    if text is not None and not _DECIMAL.fullmatch(text):
        raise Invalid("must be a number")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Invalid("must be a number")
    try:
        near = float(value)
    except OverflowError:
        raise Invalid("must be a smaller number") from None
    if not math.isfinite(near):
        raise Invalid("must be a number")
    if exact:
        return cast("int | float", value) if text is None else text
    if text is not None:
        number: int | float = int(text) if _INTEGER.fullmatch(text) else near
        kept = Decimal(text) == Decimal(repr(near))
    else:
        number = cast("int | float", value)
        kept = number == near
    if not kept:
        raise Invalid("has more digits than can be kept")
    return number


def _text(value: Any, field: Mapping[str, Any]) -> str:
    if not isinstance(value, str):
        raise Invalid("must be text")
    _within(len(value), field.get("minLength"), field.get("maxLength"), "must have at {} {} characters")
    form = _FORMATS.get(field.get("format", ""))
    if form is not None and not form[0].fullmatch(value):
        raise Invalid(form[1])
    if field.get("format") in ("date", "date-time"):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise Invalid(_FORMATS[field["format"]][1]) from None
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
    return {value: value for value, _ in pairs} | {t: v for t, v in by_title.items() if t not in dict(pairs)}


def _member(value: Any, members: Mapping[str, str]) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or value not in members:
        raise Invalid(f"choose one of {_options(members)}")
    return members[value]


def _options(members: Mapping[str, str]) -> str:
    values = list(dict.fromkeys(members.values()))
    return ", ".join(values[:10]) + (", ..." if len(values) > 10 else "")
