"""JSON values <-> positional values, directed by a JSON schema. Pure; no third-party package.

A `Packing` is compiled once from a JSON schema (the form that was sent, or a step's return type). It knows only
what saves bytes: property names, string enumerations, and what may hold them. The rules:

- object with properties: an array in property order. Absent properties at the end are dropped; with an absent one
  in the middle, or a name the schema lacks, a map `{position or name: value}`.
- string enumeration: the index. A value outside it travels as it is.
- date, and date-time in UTC: a whole number, if that gives the same text back.
- array, map and nullable hold another packing; everything else travels as it is.

`pack` and `unpack` are inverse for every JSON value, whether it fits the schema or not. Two packings are
interchangeable iff their `digest` is equal: it covers names, order, types and enumerations with their titles.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from mrtr_flow.plain import is_array, is_object

__all__ = ("ANY", "Packing", "compile_schema", "options_of")


_EPOCH = datetime(1970, 1, 1)


class Packing:
    """Packs what it cannot improve as it is. `shape` is the JSON description that `digest` covers."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape

    @property
    def digest(self) -> bytes:
        """32 bytes of SHA-256 over the shape."""
        return hashlib.sha256(json.dumps(self.shape, separators=(",", ":")).encode()).digest()

    def pack(self, value: Any) -> Any:
        return value

    def unpack(self, value: Any) -> Any:
        return value


class _Enum(Packing):
    def __init__(self, values: Sequence[str], titles: Sequence[str]) -> None:
        super().__init__(["enum", *map(list, zip(values, titles, strict=True))])
        self._index = {value: index for index, value in enumerate(values)}
        self._values = tuple(values)

    def pack(self, value: Any) -> Any:
        return self._index.get(value, value) if isinstance(value, str) else [value]

    def unpack(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return self._values[value] if isinstance(value, int) else value[0]


class _Instant(Packing):
    """A date as days, a date-time in UTC as seconds, both since 1970; text spelled otherwise as it is."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self._unit = timedelta(days=1) if kind == "date" else timedelta(seconds=1)
        self._spell = "%Y-%m-%d" if kind == "date" else "%Y-%m-%dT%H:%M:%SZ"

    def _text(self, count: int) -> str:
        moment = _EPOCH + count * self._unit
        return f"{moment.year:04}{moment.strftime(self._spell.removeprefix('%Y'))}"

    def pack(self, value: Any) -> Any:
        if not isinstance(value, str):
            return [value]
        try:
            count = (datetime.strptime(value, self._spell) - _EPOCH) // self._unit
        except ValueError:
            return value
        return count if self._text(count) == value else value

    def unpack(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return self._text(value) if isinstance(value, int) else value[0]


class _Nullable(Packing):
    def __init__(self, inner: Packing) -> None:
        super().__init__(["nullable", inner.shape])
        self._inner = inner

    def pack(self, value: Any) -> Any:
        return None if value is None else self._inner.pack(value)

    def unpack(self, value: Any) -> Any:
        return None if value is None else self._inner.unpack(value)


class _Array(Packing):
    def __init__(self, inner: Packing) -> None:
        super().__init__(["array", inner.shape])
        self._inner = inner

    def pack(self, value: Any) -> Any:
        return [self._inner.pack(item) for item in value] if is_array(value) else {"": value}

    def unpack(self, value: Any) -> Any:
        return value[""] if is_object(value) else [self._inner.unpack(item) for item in value]


class _Map(Packing):
    def __init__(self, inner: Packing) -> None:
        super().__init__(["map", inner.shape])
        self._inner = inner

    def pack(self, value: Any) -> Any:
        if not is_object(value):
            return [value]
        return {name: self._inner.pack(item) for name, item in value.items()}

    def unpack(self, value: Any) -> Any:
        if is_array(value):
            return value[0]
        return {name: self._inner.unpack(item) for name, item in value.items()}


class _Object(Packing):
    def __init__(self, fields: Mapping[str, Packing]) -> None:
        super().__init__(["object", *([name, packing.shape] for name, packing in fields.items())])
        self._fields = tuple(fields.items())
        self._names = {name: position for position, name in enumerate(fields)}

    def pack(self, value: Any) -> Any:
        if not is_object(value):
            return {"": value, -1: True}  # not an object: the mark -1 tells it from an object with a property ""
        rest = dict(value)
        row = [(name, packing.pack(rest.pop(name))) for name, packing in self._fields if name in rest]
        if not rest and all(name == field for (name, _), (field, _) in zip(row, self._fields, strict=False)):
            return [item for _, item in row]
        return {**{self._names[name]: item for name, item in row}, **rest}

    def unpack(self, value: Any) -> Any:
        fields = self._fields
        if is_array(value):
            if len(value) > len(fields):
                raise ValueError(f"object has {len(fields)} properties but {len(value)} were recorded")
            return {name: packing.unpack(item) for (name, packing), item in zip(fields, value, strict=False)}
        if -1 in value:
            return value[""]
        found = {fields[key][0]: fields[key][1].unpack(item) for key, item in value.items() if isinstance(key, int)}
        return found | {key: item for key, item in value.items() if isinstance(key, str)}


ANY = Packing("any")
_INSTANTS = {name: _Instant(name) for name in ("date", "date-time")}
_SCALARS = {name: Packing(name) for name in ("string", "integer", "number", "boolean", "null")}


def compile_schema(schema: Mapping[str, Any]) -> Packing:
    """The packing of a JSON schema, references into its own `$defs` resolved. What it cannot use packs as it is."""
    return _compile(schema, schema.get("$defs", {}), ())


def _compile(node: Any, defs: Mapping[str, Any], open_refs: tuple[str, ...]) -> Packing:
    if not is_object(node):
        return ANY
    ref = node.get("$ref")
    if isinstance(ref, str):
        name = ref.rpartition("/")[2]
        if ref in open_refs or name not in defs:  # a recursive type has no finite packing
            return ANY
        return _compile(defs[name], defs, (*open_refs, ref))
    options = options_of(node)
    if options is not None:
        return _Enum([value for value, _ in options], [title for _, title in options])
    arms = [arm for arm in node.get("anyOf", ()) if arm != {"type": "null"}]
    if len(arms) == 1 and len(node["anyOf"]) == 2:
        return _Nullable(_compile(arms[0], defs, open_refs))
    if node.get("type") == "string" and node.get("format") in _INSTANTS:
        return _INSTANTS[node["format"]]
    kind, properties, others = node.get("type"), node.get("properties"), node.get("additionalProperties")
    if kind == "object" and is_object(properties) and properties:
        return _Object({name: _compile(item, defs, open_refs) for name, item in properties.items()})
    if kind == "object" and is_object(others):
        return _Map(_compile(others, defs, open_refs))
    if kind == "array" and "prefixItems" not in node:
        return _Array(_compile(node.get("items"), defs, open_refs))
    return _SCALARS.get(kind, ANY) if isinstance(kind, str) else ANY


def options_of(node: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """The (value, title) pairs of a string enumeration, in the spellings of the form grammar."""
    arms = node.get("oneOf") or node.get("anyOf")
    if is_array(arms):
        if not all(is_object(arm) and isinstance(arm.get("const"), str) for arm in arms):
            return None
        return [(arm["const"], str(arm.get("title", arm["const"]))) for arm in arms]
    values = node.get("enum")
    if not is_array(values) or not values or not all(isinstance(value, str) for value in values):
        return None
    return list(zip(values, map(str, node.get("enumNames", values)), strict=True))
