"""Law: whatever a client sends as answers gives a question, a result or an invalid-params error, never a fault."""

from __future__ import annotations

import copy
import datetime as dt
import json
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mrtr_flow import Flow, ask, ask_url, confirm, flow, gather, list_roots, sample
from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from tests.helpers import KEYS, Clock

TEXT = st.text(st.characters(), max_size=8)  # with lone surrogates: JSON can spell them
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(10**30, 10**31) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Order(BaseModel):
    dish: Literal["soup", "salad"]
    size: Size = Size.SMALL
    day: dt.date
    price: Decimal | None = None
    extras: list[Literal["bread", "salt"]] = Field(default=[], max_length=2)
    rating: float = Field(default=1, ge=0, le=5)


@flow
def everything() -> Flow[str]:
    who = yield from ask("Who?", str)
    seen = yield from gather(
        ask("What?", Order, key="order"),
        ask("When?", dt.datetime, key="when"),
        confirm("Sure?", key="sure"),
        ask_url("Sign in.", "https://example.com/in", key="in"),
        sample("Say.", max_tokens=9, key="say"),
        list_roots(key="roots"),
        ask("How many?", int, if_declined=0, key="count"),
    )
    return repr((who, seen, (yield from ask("Last?", bool))))


GOOD: dict[str, Any] = {
    "ask": {"action": "accept", "content": {"value": "Ada"}},
    "order": {
        "action": "accept",
        "content": {"dish": "soup", "size": "l", "day": "2026-12-01", "price": "1.50", "extras": ["salt"], "rating": 3},
    },
    "when": {"action": "accept", "content": {"value": "2026-12-01T12:00:00Z"}},
    "sure": {"action": "accept", "content": {"ok": True}},
    "in": {"action": "accept"},
    "say": {"role": "assistant", "content": {"type": "text", "text": "Hm."}, "model": "m", "stopReason": "endTurn"},
    "roots": {"roots": [{"uri": "file:///a", "name": "a"}]},
    "count": {"action": "decline"},
    "ask~2": {"action": "cancel"},
}


def spoiled(path: tuple[Any, ...], value: Any) -> Any:
    """The good answers with the value at a path replaced, or a member added there."""
    answers = copy.deepcopy(GOOD)
    holder: Any = answers
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = value
    return answers


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    return [at, *(path for name, inner in members for path in paths(inner, (*at, name)))]


PATHS = paths(GOOD)
ANSWERS = (
    JSON
    | st.builds(spoiled, st.sampled_from(PATHS[1:]), JSON)
    | st.builds(lambda key, value: {**GOOD, key: value}, st.sampled_from([*GOOD, "order~2", "ask~3"]), JSON)
    | st.dictionaries(st.sampled_from([*GOOD]), st.sampled_from([*GOOD.values()]), max_size=8)
)


def call(answers: Any, state: str | None) -> dict[str, Any]:
    """What the server says, over real JSON text both ways."""
    params = {"name": "everything", "arguments": {}, "inputResponses": answers}
    everything_declared = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
    prefix = "io.modelcontextprotocol/"
    meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": everything_declared}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, "_meta": meta}}
    if state is not None:
        message["params"]["requestState"] = state  # type: ignore[index]
    server = JsonRpcServer([everything], name="test", keys=KEYS, clock=Clock())
    text = json.dumps(anyio.run(server.handle, json.loads(json.dumps(message))))
    answered: dict[str, Any] = json.loads(text)
    return answered


def kind(answered: dict[str, Any]) -> str:
    if "error" in answered:
        assert answered["error"]["code"] == -32602, answered
        return "refused"
    result = answered["result"]
    if result["resultType"] == "input_required":
        assert result["inputRequests"], answered
        assert result["requestState"], answered
        return "asked"
    assert result["resultType"] == "complete", answered
    assert result["content"][0]["text"], answered
    return "complete"


FIRST = call({"ask": GOOD["ask"]}, None)["result"]["requestState"]
SECOND = call(GOOD, FIRST)["result"]["requestState"]


def test_the_good_answers_are_taken() -> None:
    assert kind(call(GOOD, FIRST)) == "asked"
    end = call({"ask~2": {"action": "accept", "content": {"value": True}}}, SECOND)
    assert end["result"]["content"][0]["text"].endswith("True)")


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ANSWERS, st.sampled_from([None, FIRST, SECOND]))
def test_any_answers_give_a_question_a_result_or_invalid_params(answers: Any, state: str | None) -> None:
    kind(call(answers, state))
