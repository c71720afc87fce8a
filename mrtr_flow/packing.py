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
from datetime import date, datetime, timedelta
from typing import Any

from mrtr_flow.plain import is_array, is_object

__all__ = ("ANY", "Packing", "compile_schema", "options_of")


_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_SECOND = timedelta(seconds=1)


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


class _Date(Packing):
    """A date as days since 1970; text spelled otherwise as it is."""

    def pack(self, value: Any) -> Any:
        if not isinstance(value, str):
            return [value]
        try:
            day = date.fromisoformat(value)
        except ValueError:
            return value
        return day.toordinal() - _EPOCH_DAY if day.isoformat() == value else value

    def unpack(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return date.fromordinal(value + _EPOCH_DAY).isoformat() if isinstance(value, int) else value[0]


class _DateTime(Packing):
    """A date-time in UTC as seconds since 1970; text spelled otherwise as it is."""

    def pack(self, value: Any) -> Any:
        if not isinstance(value, str):
            return [value]
        try:
            moment = datetime.fromisoformat(value.removesuffix("Z"))
        except ValueError:
            return value
        if moment.tzinfo is not None or f"{moment.isoformat()}Z" != value or moment.microsecond:
            return value
        return (moment - _EPOCH) // _SECOND

    def unpack(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return f"{(_EPOCH + value * _SECOND).isoformat()}Z" if isinstance(value, int) else value[0]


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
        self._fields = tuple(fields)
        self._names = {name: position for position, name in enumerate(fields)}
        # None: travels as it is, without a call
        plain = [type(packing) is Packing for packing in fields.values()]
        self._packs = [(name, None if p else f.pack) for (name, f), p in zip(fields.items(), plain, strict=True)]
        self._unpacks = [(name, None if p else f.unpack) for (name, f), p in zip(fields.items(), plain, strict=True)]

    def pack(self, value: Any) -> Any:
        if not is_object(value):
            return {"": value, -1: True}  # not an object: the mark -1 tells it from an object with a property ""
        row: list[Any] = []
        for name, pack in self._packs:
            if name not in value:
                break
            row.append(value[name] if pack is None else pack(value[name]))
        if len(row) == len(value):
            return row
        packs = dict(self._packs)
        return {
            self._names.get(name, name): item if (pack := packs.get(name)) is None else pack(item)
            for name, item in value.items()
        }

    def unpack(self, value: Any) -> Any:
        if is_array(value):
            if len(value) > len(self._fields):
                raise ValueError(f"object has {len(self._fields)} properties but {len(value)} were recorded")
            pairs = zip(self._unpacks, value, strict=False)
            return {name: item if unpack is None else unpack(item) for (name, unpack), item in pairs}
        if -1 in value:
            return value[""]
        found: dict[str, Any] = {}
        for key, item in value.items():
            name, unpack = self._unpacks[key] if isinstance(key, int) else (key, None)
            found[name] = item if unpack is None else unpack(item)
        return found


ANY = Packing("any")
_INSTANTS = {"date": _Date("date"), "date-time": _DateTime("date-time")}
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
