"""Eight calls as data: what was asked in each round, what was answered, what the steps returned, how it ended.

`corpus.json` differs from the conversations it was taken from in these places, and only there:

- Wire form is written short: a form by its message, its fields and what is required; a sample by its user text and
  the other parameters; an answer by its content, text or roots; a tool result by its text and structured content.
  `Round` and `Case` have the wire forms.
- The URI of the resource is its target only; the conversation had it among the arguments too.
- `roots/list` has no `params`; the conversation had an empty object. Both are the protocol's.
- `take_snapshot` has `lag_s`, and `parse_findings` has `findings`. The questions name these facts, and no step of the
  conversation yielded them. A flow may ask only what it can derive again in the next round.
- `stored` is what never changes under its identifier (a commit, an image digest, a revision of a ledger). Flows look
  it up anew in each round by the identifier that a step recorded, so that it does not travel in the token. The ledger
  has two names that the conversation only showed as withheld.
- A tool result has `isError`; the conversation left it out. False is the protocol's default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

__all__ = ("CASES", "Case", "Round")


@dataclass(frozen=True)
class Round:
    """The steps a round performs, by name; the questions it ends with and what is answered, by key."""

    steps: Mapping[str, Any]
    asks: Mapping[str, Mapping[str, Any]]
    answers: Mapping[str, Any]

    @cached_property
    def requests(self) -> dict[str, Any]:
        """`inputRequests`."""
        return {key: _request(ask) for key, ask in self.asks.items()}

    @cached_property
    def responses(self) -> dict[str, Any]:
        """`inputResponses`, in the order the client sent them, which may be another than that of the questions."""
        return {key: _response(self.asks[key], answer) for key, answer in self.answers.items()}


@dataclass(frozen=True)
class Case:
    """One call. `target` is the tool's name or the resource's URI, `last_steps` are performed after the last answer."""

    name: str
    method: str
    target: str
    principal: str
    rounds: tuple[Round, ...]
    last_steps: Mapping[str, Any]
    arguments: Mapping[str, Any] | None = None
    text: str = ""
    structured: Mapping[str, Any] | None = None
    contents: tuple[Mapping[str, Any], ...] | None = None
    stored: Mapping[str, Mapping[str, Any]] | None = None

    @property
    def steps(self) -> list[list[str]]:
        """The names of the steps of each round, and of those after the last answer."""
        return [*(list(played.steps) for played in self.rounds), list(self.last_steps)]

    @property
    def questions(self) -> int:
        return sum(len(played.asks) for played in self.rounds)

    @property
    def result(self) -> dict[str, Any]:
        """The complete result, in wire form."""
        if self.contents is not None:
            contents = [dict(content) for content in self.contents]
            return {"resultType": "complete", "contents": contents, "ttlMs": 0, "cacheScope": "private"}
        content = [{"type": "text", "text": self.text}]
        structured = dict(self.structured or {})
        return {"resultType": "complete", "content": content, "structuredContent": structured, "isError": False}


def _request(ask: Mapping[str, Any]) -> dict[str, Any]:
    if "form" in ask:
        schema = {"type": "object", "properties": ask["form"], "required": ask["required"]}
        params = {"mode": "form", "message": ask["message"], "requestedSchema": schema}
        return {"method": "elicitation/create", "params": params}
    if "sample" in ask:
        params = {name: value for name, value in ask.items() if name != "sample"}
        params["messages"] = [{"role": "user", "content": {"type": "text", "text": ask["sample"]}}]
        return {"method": "sampling/createMessage", "params": params}
    return {"method": "roots/list"}


def _response(ask: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    if "form" in ask:
        return {"action": "accept", "content": answer}
    if "sample" in ask:
        content = {"type": "text", "text": answer}
        return {"role": "assistant", "content": content, "model": "example-model-1", "stopReason": "endTurn"}
    return {"roots": [{"uri": uri} if name is None else {"uri": uri, "name": name} for uri, name in answer.items()]}


def _case(name: str, entry: Mapping[str, Any]) -> Case:
    more = {member: value for member, value in entry.items() if member != "rounds"}
    return Case(name, rounds=tuple(Round(**played) for played in entry["rounds"]), **more)


CASES: Final = tuple(
    _case(name, entry) for name, entry in json.loads(Path(__file__).with_name("corpus.json").read_text("utf-8")).items()
)
