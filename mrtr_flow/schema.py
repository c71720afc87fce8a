"""Python types as JSON: their schema, decoding, and encoding that is proved to be exact. The only user of pydantic.

Rules:

- A value is recorded only if what was encoded decodes, twice, to an equal value of the same type. So models with a
  `default_factory` that draws a new value, sets, subclasses of the annotated type and zone names that get lost are
  refused when they would be recorded, naming the path.
- Decoding is lax about Python spellings (a JSON string for a date) and never uses pickle.
- What a form field makes of what clients send (`"5"`, `5.0`, titles, null) is the table of `form.coerce`.
- Error texts name places and rules, never values: the values are somebody's data.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
import types
import typing
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Annotated, Any, Generic, TypeVar, Union, cast, get_args, get_origin

import typing_extensions
from pydantic import BaseModel, Field, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaError, core_schema, to_jsonable_python

from mrtr_flow.errors import DefinitionError, FlowError, NotRecordable
from mrtr_flow.fidelity import difference
from mrtr_flow.packing import ANY, Packing, compile_schema
from mrtr_flow.plain import check_plain, fresh

__all__ = (
    "Invalid",
    "Parameters",
    "Shape",
    "is_object_type",
    "shape_of",
    "tags_of",
    "to_plain",
    "type_hints",
    "type_name",
)

T = TypeVar("T")
_UNUSABLE = (PydanticUserError, SchemaError, NameError, TypeError, ValueError, RecursionError)


class Invalid(FlowError):
    """A JSON value does not fit a type. The text lists `place: rule` pairs and holds no value."""


def type_name(annotation: Any) -> str:
    """A type as a person writes it."""
    if get_origin(annotation) is Annotated:
        return type_name(get_args(annotation)[0])
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def type_hints(fn: Any, *names: str) -> dict[str, Any]:
    """The evaluated annotations of a function (all, or those named), which may name what its closure holds.

    Raises `NameError` for a name that is not defined (yet).
    """
    hints: Mapping[str, Any] = fn.__annotations__
    inner = inspect.unwrap(fn)  # a decorator's wrapper lives in another module than the names it repeats
    cells = zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True) if hasattr(inner, "__code__") else ()
    enclosing: dict[str, Any] = {}
    for name, cell in cells:
        with suppress(ValueError):  # a cell that is still empty
            enclosing[name] = cell.cell_contents
    wanted = types.SimpleNamespace(__annotations__={name: hints[name] for name in names or hints})
    return typing.get_type_hints(wanted, getattr(inner, "__globals__", {}), enclosing, include_extras=True)


class _NamedMembers(GenerateJsonSchema):
    """Keeps the names of an enumeration's members, which JSON schema has no word for, under `x-names`."""

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        return {**super().enum_schema(schema), "x-names": [member.name for member in schema["members"]]}


class Shape(Generic[T]):
    """One Python type and its JSON form. Build it once per definition: the schema is rendered on first use only.

    Raises `DefinitionError` where pydantic cannot describe the type.
    """

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        try:
            self._adapter: TypeAdapter[T] = TypeAdapter(_readable(annotation))
        except _UNUSABLE as error:
            raise DefinitionError(f"type {type_name(annotation)} cannot be used: {_first_line(error)}") from error

    def json_schema(
        self, mode: typing.Literal["validation", "serialization"] = "validation", *, names: bool = False
    ) -> dict[str, Any]:
        """The JSON schema (draft 2020-12) by alias; `names` adds enumerations' member names.

        Raises `DefinitionError` for types JSON cannot describe.
        """
        try:
            return self._adapter.json_schema(mode=mode, schema_generator=_NamedMembers if names else GenerateJsonSchema)
        except _UNUSABLE as error:
            raise DefinitionError(
                f"type {type_name(self.annotation)} has no JSON schema: {_first_line(error)}"
            ) from error

    @cached_property
    def packing(self) -> Packing:
        """How encoded values of this type are packed."""
        return ANY if self.annotation is Any else compile_schema(self.json_schema("serialization"))

    def decode(self, plain: Any) -> T:
        """A JSON value as the Python value; the type gets a copy of its own. Raises `Invalid`."""
        try:
            return self._adapter.validate_python(fresh(plain), by_alias=True, by_name=False)
        except ValidationError as error:
            try:  # strict models take a date as text only from JSON
                return self._adapter.validate_json(json.dumps(plain), by_alias=True, by_name=False)
            except (ValidationError, ValueError):
                raise Invalid(_describe(error)) from None
        except Exception as error:  # a validator of the author's may raise anything; its text may hold the value
            raise Invalid(f"is not accepted ({type(error).__name__})") from None

    def encode(self, value: Any) -> Any:
        """A Python value as a JSON value, everything in it that decodes again. Raises `NotRecordable`."""
        if self.annotation is Any:
            check_plain(value)
            return value
        return self._dump(value, round_trip=True)

    def render(self, value: Any) -> Any:
        """A Python value as its JSON schema promises it, computed fields included. Raises `NotRecordable`."""
        if value is None:  # pydantic serializes None as any type
            try:
                self.decode(None)
            except Invalid:
                raise NotRecordable(
                    f"result is None, which is no {type_name(self.annotation)}; give a value, or use Reply.error"
                ) from None
        return self._dump(value, round_trip=False)

    def _dump(self, value: Any, *, round_trip: bool) -> Any:
        try:
            plain = self._adapter.dump_python(
                value, mode="json", by_alias=True, round_trip=round_trip, warnings="error", exclude_none=False
            )
            json.dumps(plain, allow_nan=False)
        except Exception as error:  # a serializer of the author's may raise anything; its text may hold the value
            raise NotRecordable(
                f"value of type {type(value).__name__} cannot be sent as {type_name(self.annotation)} "
                f"({type(error).__name__}); return the annotated type, with finite numbers"
            ) from None
        return plain

    def record(self, value: Any) -> Any:
        """Encode `value` and prove that decoding gives it back, twice. Raises `NotRecordable` naming the path."""
        plain = self.encode(value)
        try:
            first, second = self.decode(plain), self.decode(plain)
        except Invalid as error:
            raise NotRecordable(f"value does not decode as {type_name(self.annotation)}: {error}") from None
        path = difference(value, first) or difference(first, second)
        if path is not None:
            raise NotRecordable(
                f"value of type {type_name(self.annotation)} changes at {path} when it is recorded and replayed; "
                "use a type that JSON keeps exactly",
                path,
            )
        return plain

    def check_stable(self, plain: Any) -> T:
        """Decode `plain` twice and return the value. Raises `Invalid`, or `NotRecordable` if the two differ."""
        first, second = self.decode(plain), self.decode(plain)
        path = difference(first, second)
        if path is not None:
            raise NotRecordable(
                f"answer of type {type_name(self.annotation)} decodes to another value each time at {path}; "
                "remove the default_factory or validator that draws it, and use current().uuid4() or a step",
                path,
            )
        return first


def shape_of(annotation: Any) -> Shape[Any]:
    """The shape of a type, made once per type. Raises `DefinitionError`."""
    try:
        # typing calls Literal["a", "b"] and Literal["b", "a"] equal, and their packings are not: hence the spelling
        return _shape_of(repr(annotation), annotation)
    except TypeError:  # not hashable
        return Shape(annotation)


@lru_cache(maxsize=1024)
def _shape_of(spelling: str, annotation: Any) -> Shape[Any]:
    return Shape(annotation)


class Parameters:
    """The parameters of a flow: (annotation, default) by name, `...` where there is no default."""

    def __init__(self, owner: str, fields: Mapping[str, tuple[Any, Any]]) -> None:
        self._names = {f"arg_{position}": name for position, name in enumerate(fields)}
        model_fields: dict[str, Any] = {}
        for field, name in self._names.items():
            annotation, default = fields[name]
            extras = [meta for meta in get_args(annotation)[1:] if isinstance(meta, FieldInfo)]
            if any(info.default_factory is not None for info in (*extras, default) if isinstance(info, FieldInfo)):
                raise DefinitionError(
                    f"parameter {name!r} of {owner} has a default_factory, which draws a new value each round; "
                    "give it a plain default, or None and a step"
                )
            title = name.replace("_", " ").strip().capitalize()
            model_fields[field] = (Annotated[_readable(annotation), Field(alias=name, title=title)], default)
        try:
            self._model = create_model(f"{owner}_arguments", **model_fields)
            self.json_schema: dict[str, Any] = self._model.model_json_schema(by_alias=True)
        except _UNUSABLE as error:
            raise DefinitionError(f"signature of {owner} cannot be used: {_first_line(error)}") from error
        self.json_schema.pop("title", None)
        self.json_schema.setdefault("properties", {})
        for name, (annotation, default) in fields.items():
            if default is not ... and not isinstance(default, FieldInfo):
                self._check_default(owner, name, annotation, default)

    @staticmethod
    def _check_default(owner: str, name: str, annotation: Any, default: Any) -> None:
        try:
            TypeAdapter(_readable(annotation)).validate_python(default)
        except ValidationError as error:
            raise DefinitionError(
                f"default of parameter {name!r} of {owner} is not of its type: {_describe(error)}"
            ) from None

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that change when arguments would be read differently."""
        return compile_schema(self.json_schema).digest

    def decode(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validated keyword arguments, decoded afresh. Raises `Invalid`, or `NotRecordable` for what is drawn."""
        first, second = self._decode(arguments), self._decode(arguments)
        path = difference(first, second)
        if path is not None:
            raise NotRecordable(
                f"argument at {path} decodes to another value each round; remove the default_factory or validator that "
                "draws it, and use current().uuid4() or a step",
                path,
            )
        return first

    def _decode(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            model = self._model.model_validate(fresh(arguments), by_alias=True, by_name=False)
        except ValidationError as error:
            raise Invalid(_describe(error)) from None
        except Exception as error:  # a validator of the author's may raise anything; its text may hold the value
            raise Invalid(f"arguments are not accepted ({type(error).__name__})") from None
        return {name: getattr(model, field) for field, name in self._names.items()}


def _readable(annotation: Any) -> Any:
    """pydantic refuses `typing.TypedDict` below Python 3.12: the same type, spelled with typing_extensions."""
    if sys.version_info >= (3, 12):
        return annotation
    if not typing.is_typeddict(annotation):
        return _with_readable_arguments(annotation)
    hints = typing_extensions.get_type_hints(annotation, include_extras=True)
    fields = {
        name: _readable(hint)
        if name in annotation.__required_keys__
        else typing_extensions.NotRequired[_readable(hint)]
        for name, hint in hints.items()
    }
    rebuilt: Any = typing_extensions.TypedDict(annotation.__name__, fields)  # type: ignore[misc]
    rebuilt.__doc__, rebuilt.__module__ = annotation.__doc__, annotation.__module__
    return rebuilt


def _with_readable_arguments(annotation: Any) -> Any:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return Annotated[_readable(args[0]), *args[1:]]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(_readable, args))]  # noqa: UP007
    if isinstance(annotation, types.GenericAlias) and args:
        return types.GenericAlias(cast("type", annotation.__origin__), tuple(map(_readable, args)))
    spelled = getattr(annotation, "copy_with", None)  # List[...], Sequence[...] and their kin
    return spelled(tuple(map(_readable, args))) if args and spelled is not None else annotation


def is_object_type(annotation: Any) -> bool:
    """Whether values of the type are JSON objects by themselves (and so need no wrapping in a tool result)."""
    if get_origin(annotation) is Annotated:
        return is_object_type(get_args(annotation)[0])
    if get_origin(annotation) is dict:
        return get_args(annotation)[0] is str
    if not isinstance(annotation, type):
        return False
    kind: type[Any] = annotation
    return issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind) or typing.is_typeddict(kind)


def tags_of(annotation: Any) -> tuple[Any, ...]:
    """What a model allows for its member `type`: nothing, if the type is no model or has no such literal."""
    if not isinstance(annotation, type) or not issubclass(annotation, BaseModel):
        return ()
    tag = annotation.model_fields.get("type")
    return () if tag is None else get_args(tag.annotation)


def to_plain(value: Any, *, keep_none: bool = False) -> Any:
    """Models and dataclasses as JSON values, by alias and without fields that are None; JSON values as they are.

    Raises `NotRecordable` for what JSON does not have.
    """
    try:
        plain = to_jsonable_python(value, by_alias=True, exclude_none=not keep_none)
        json.dumps(plain, allow_nan=False)
    except Exception as error:  # a serializer of the author's may raise anything; its text may hold the value
        raise NotRecordable(
            f"value of type {type(value).__name__} cannot be sent as JSON ({type(error).__name__}); "
            "give models or JSON values, with finite numbers"
        ) from None
    return plain


def _describe(error: ValidationError) -> str:
    """Places and rules of a validation error, without the values."""
    lines: list[str] = []
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(str(part) for part in item["loc"])
        text = item["msg"][:1].lower() + item["msg"][1:]
        lines.append(f"{place}: {text}" if place else text)
    return "; ".join(dict.fromkeys(lines))


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return text[:1].lower() + text[1:]
