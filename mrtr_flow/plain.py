"""JSON values as Python has them: None, bool, int, finite float, str, list, and dict with str keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, TypeGuard, cast

from mrtr_flow.errors import NotRecordable

__all__ = ("MAX_DEPTH", "check_plain", "fresh", "is_array", "is_object")

MAX_DEPTH: Final = 64


def is_object(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, Mapping)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def fresh(value: Any) -> Any:
    """A copy of a JSON value that shares no object or array with it."""
    if is_object(value):
        return {name: fresh(item) for name, item in value.items()}
    return [fresh(item) for item in value] if is_array(value) else value


def check_plain(value: Any, path: str = "$", depth: int = 0) -> None:
    """Refuse what is not exactly a JSON value, or over 64 levels deep. Raises `NotRecordable` naming the path."""
    if depth > MAX_DEPTH:
        raise NotRecordable(f"value is nested more than {MAX_DEPTH} levels deep; return a flatter one", path)
    kind = cast("Any", type(value))
    if value is None or kind in (str, int, bool) or (kind is float and math.isfinite(value)):
        return
    if kind is list:
        for index, item in enumerate(value):
            check_plain(item, f"{path}[{index}]", depth + 1)
    elif kind is dict and all(type(key) is str for key in value):
        for key, item in value.items():
            check_plain(item, f"{path}.{key}", depth + 1)
    else:
        raise NotRecordable(
            f"value at {path} is {'not finite' if kind is float else f'a {kind.__name__}'}, which JSON does not keep; "
            "annotate the return type of the step, or return JSON values",
            path,
        )
