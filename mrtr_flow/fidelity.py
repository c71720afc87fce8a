"""Whether two Python values are the same in value and type, and where they are not. Pure."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import math
from collections.abc import Sequence
from typing import Any, cast

from mrtr_flow.plain import is_object

__all__ = ("difference",)


def difference(a: Any, b: Any, path: str = "$") -> str | None:
    """The path of the first place where two values differ in value or type, or None.

    An int where a float is annotated is no difference: the flow gets the float, live and replayed.
    """
    if type(a) is int and type(b) is float:
        return None if a == b else path
    if type(a) is not type(b):
        return path
    if isinstance(a, set | frozenset):
        return path  # its order is another one in the next process
    parts, others = _parts(a, path), _parts(b, path)
    if parts is not None and others is not None:
        if [name for name, _, _ in parts] != [name for name, _, _ in others]:
            return path
        pairs = zip(parts, others, strict=True)
        return next((found for (_, at, x), (_, _, y) in pairs if (found := difference(x, y, at))), None)
    if isinstance(a, float):
        same = (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    elif isinstance(a, decimal.Decimal):
        same = a.as_tuple() == b.as_tuple()
    elif isinstance(a, datetime.datetime | datetime.time):
        same = a == b and a.fold == b.fold and str(a.tzinfo) == str(b.tzinfo)
    else:
        same = bool(a == b)
    return None if same else path


def _parts(value: Any, path: str) -> list[tuple[str, str, Any]] | None:
    """What a composite value is made of, in a fixed order: name with its type, path, value. None: it has no parts."""
    items: list[tuple[Any, Any]]
    fields: Any = getattr(cast("Any", type(value)), "__pydantic_fields__", None)
    if fields is not None:  # a model: what it caches beside its fields does not count, what it hides does
        hidden: dict[str, Any] = {**(value.__pydantic_extra__ or {}), **(value.__pydantic_private__ or {})}
        items = [(name, getattr(value, name, None)) for name in fields] + sorted(hidden.items())
    elif dataclasses.is_dataclass(value):
        items = [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    elif is_object(value):
        items = sorted(value.items(), key=lambda item: (type(item[0]).__name__, repr(item[0])))
    elif isinstance(value, list | tuple):
        row = cast("Sequence[Any]", value)
        return [(str(index), f"{path}[{index}]", item) for index, item in enumerate(row)]
    else:
        return None
    return [(f"{type(name).__name__} {name!r}", f"{path}.{name}", item) for name, item in items]
