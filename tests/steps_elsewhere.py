"""A decorator as libraries have them, in another module than the functions it wraps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def traced(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper
