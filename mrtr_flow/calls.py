"""What goes into a round and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = ("Call", "Failed", "Finished", "InputRequired", "Round")


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as it came: nothing in it is trusted. `host` is what the flow's host parameter receives."""

    method: str
    target: str
    arguments: Any
    state: Any = None
    responses: Any = None
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    principal: str | None = None
    host: Any = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The flow returned `value`."""

    value: Any


@dataclass(frozen=True, slots=True)
class InputRequired:
    """The flow asks: `requests` is `inputRequests`, `state` the token."""

    requests: dict[str, Any]
    state: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The call ends without a result, with a text for the model and a slug for the program.

    `cause` is what the author needs to see: it may hold answers, so it is not logged above debug level, nor sent.
    """

    text: str
    reason: str
    cause: BaseException | None = field(default=None, repr=False, compare=False)


Round: TypeAlias = Finished | InputRequired | Failed
