"""The services behind the flows: they answer what the corpus says, and count how often they are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from tests.corpus.data import CASES

__all__ = ("called", "done", "first_time", "stored")

T = TypeVar("T")

called: Final[list[str]] = []
"""The steps that were really performed, in order. Whoever plays a flow empties it."""

_RESULTS: Final[Mapping[str, Any]] = {
    name: result
    for case in CASES
    for steps in (*(played.steps for played in case.rounds), case.last_steps)
    for name, result in steps.items()
}
_STORED: Final[Mapping[str, Mapping[str, Any]]] = {
    kind: by_id for case in CASES for kind, by_id in (case.stored or {}).items()
}


def done(name: str, kind: type[T]) -> T:
    """Perform the work of a step: its result, as a `kind`."""
    called.append(name)
    return TypeAdapter(kind).validate_python(_RESULTS[name])


def stored(kind: str, identifier: str) -> Any:
    """What is kept under an identifier that never means anything else. Needs no step: it is the same in every round."""
    return _STORED[kind][identifier]


def first_time(name: str) -> bool:
    """Whether a step is performed for the first time, as a store with a record of it would know."""
    return name not in called
