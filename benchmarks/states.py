"""Ten states of tool calls that ask, as data: what was asked, answered and done until a question is pending."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

__all__ = ("MAX_TOKENS", "NOW", "Event", "State", "load")

NOW: Final = 1_780_000_000.123456
"""Unix seconds at which every state is sealed, by us and by the peers."""

MAX_TOKENS: Final = 1024
"""`maxTokens` of every sampling request."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One effect, and its outcome: a form's content, a step's result, a sampled message, roots. None: pending.

    `key` is the question's key or the step's name. `public`: the client may see the step's result.
    """

    kind: Literal["ask", "url", "sample", "roots", "step"]
    key: str
    message: str = ""
    schema: Mapping[str, Any] | None = None
    url: str = ""
    public: bool = False
    answer: Any = None


@dataclass(frozen=True, kw_only=True)
class State:
    """One `tools/call` whose last event is pending.

    `limits` are the characters our token may have at most, with and without run id.
    """

    name: str
    tool: str
    arguments: Mapping[str, Any]
    principal: str
    audience: str
    events: tuple[Event, ...]
    limits: tuple[int, ...] | None = None

    @property
    def done(self) -> tuple[Event, ...]:
        return self.events[:-1]

    @property
    def pending(self) -> Event:
        return self.events[-1]

    @property
    def has_step(self) -> bool:
        return any(event.kind == "step" for event in self.events)


def load() -> list[State]:
    """The states in `states.json`, whose principal and audience all of them share."""
    data = json.loads(Path(__file__).with_name("states.json").read_text("utf-8"))
    return [
        State(
            name=entry["name"],
            tool=entry["tool"],
            arguments=entry["arguments"],
            principal=data["principal"],
            audience=data["audience"],
            events=tuple(Event(**event) for event in entry["events"]),
            limits=tuple(entry["limits"]) if "limits" in entry else None,
        )
        for entry in data["states"]
    ]
