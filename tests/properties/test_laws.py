"""Laws, for any flow and any answers."""

from __future__ import annotations

import os
import string
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mrtr_flow import Declined, Definition, Flow, StepError, ask, confirm, current, flow, gather, step
from mrtr_flow.calls import Call, Failed, Finished, InputRequired, Round
from mrtr_flow.errors import InvalidToken, ProtocolError
from mrtr_flow.journal import Corrupt, Journal, pack, unpack
from mrtr_flow.packing import compile_schema
from mrtr_flow.runner import Runner
from mrtr_flow.seal import Binding
from tests.helpers import Clock, ring

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
Program = list[tuple[str, Any]]
KINDS = ("ask", "confirm", "gather", "step", "public", "fails")
PROGRAMS = st.lists(st.tuples(st.sampled_from(KINDS), JSON), min_size=1, max_size=7)


def build(program: Program, performed: list[str]) -> Definition[..., Any]:
    """A flow that does what a program says, and returns all it saw."""

    def work(name: str, value: Any) -> Any:
        performed.append(f"{name} {current().idempotency_key}")
        return value

    def fail(name: str) -> None:
        performed.append(f"{name} {current().idempotency_key}")
        raise ValueError(name)

    @flow(name="program")
    def run(seed: int) -> Flow[Any]:
        seen: list[Any] = [str(current().uuid4())]
        for number, (kind, value) in enumerate(program):
            name = f"{kind}{number}"
            try:
                if kind == "ask":
                    seen.append((yield from ask(f"{name} after {len(seen)}?", str)))
                elif kind == "confirm":
                    seen.append((yield from confirm(f"{name}?")))
                elif kind == "gather":
                    seen.append([*(yield from gather(ask(f"{name} a?", int), ask(f"{name} b?", str, key="b")))])
                elif kind == "fails":
                    yield from step(fail, name)
                else:
                    seen.append((yield from step(work, name, value).options(public=kind == "public")))
            except (Declined, StepError) as error:
                seen.append(type(error).__name__)
        return seen

    return run


class Played:
    """A client that plays a program with given choices, each round on a new runner, and may send rounds twice."""

    def __init__(self, definition: Definition[..., Any], choices: list[int], *, twice: bool = False) -> None:
        self.definition = definition
        self.choices = choices
        self.twice = twice
        self.clock = Clock()
        self.rounds = 0

    async def round(self, state: str | None, responses: Any) -> Round:
        entropy = (lambda size: bytes(size)) if state is None else os.urandom
        runner = Runner(self.definition, ring(), clock=self.clock, entropy=entropy)
        call = Call("tools/call", "program", {"seed": 1}, state, responses, {"elicitation": {}}, principal="p")
        self.rounds += 1
        return await runner.round(call)

    def answer(self, key: str, request: Any, number: int) -> dict[str, Any]:
        choice = self.choices[number % len(self.choices)]
        field, schema = next(iter(request["params"]["requestedSchema"]["properties"].items()))
        if choice % 5 == 0:
            return {"action": "decline"}
        value: Any = {"integer": choice, "boolean": choice % 2 == 0, "string": f"é{choice}\u0000"}[schema["type"]]
        return {"action": "accept", "content": {field: value}}

    async def play(self) -> Any:
        state: str | None = None
        responses: Any = None
        number = 0
        while True:
            ended = await self.round(state, responses)
            if self.twice and state is not None:
                again = await self.round(state, responses)
                assert type(again) is type(ended)
            if not isinstance(ended, InputRequired):
                return ended
            responses = {}
            for key, request in ended.requests.items():
                number += 1
                responses[key] = self.answer(key, request, number)
            state = ended.state
            self.clock.advance(1)


async def one_sitting(definition: Definition[..., Any], choices: list[int]) -> list[Any]:
    """The same flow run by hand, without a journal, a token or a round."""
    player = Played(definition, choices)
    first = await player.play()
    assert isinstance(first, Finished | Failed)
    return first.value if isinstance(first, Finished) else [first.text]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PROGRAMS, st.lists(st.integers(0, 1000), min_size=1, max_size=6))
def test_one_sitting_equals_any_cut_into_rounds_and_no_step_runs_twice_on_a_lineage(
    program: Program, choices: list[int]
) -> None:
    performed: list[str] = []
    definition = build(program, performed)
    cut = anyio.run(one_sitting, definition, choices)
    by_hand: list[str] = []
    straight = drive_straight(build(program, by_hand), choices)
    assert cut[1:] == straight[1:]
    assert [line.partition(" ")[0] for line in performed] == [line.partition(" ")[0] for line in by_hand]
    assert len(set(performed)) == len(performed)


def drive_straight(definition: Definition[..., Any], choices: list[int]) -> list[Any]:
    """One sitting with no engine at all: a generator driven by hand, effects answered on the spot."""
    from mrtr_flow.context import Current, running
    from mrtr_flow.elicitation import Ask
    from mrtr_flow.questions import CANCELLED, DECLINED, Gather
    from mrtr_flow.steps import Step

    player = Played(definition, choices)
    number = 0
    scope = running.set(Current("program", "p", bytes(10), "key"))
    try:
        generator = definition.start({"seed": 1}, None)
        send: Any = lambda: next(generator)  # noqa: E731
        while True:
            try:
                effect = send()
            except StopIteration as stop:
                return list(stop.value)
            if isinstance(effect, Step):
                args, kwargs = effect.arguments()
                try:
                    value = effect.fn(*args, **kwargs)
                    send = lambda value=value: generator.send(value)  # noqa: E731
                except ValueError as error:
                    failed = StepError("fail", "ValueError", str(error))
                    send = lambda failed=failed: generator.throw(failed)  # noqa: E731
                continue
            questions = effect.questions if isinstance(effect, Gather) else (effect,)
            values: list[Any] = []
            thrown: BaseException | None = None
            for index, question in enumerate(questions):
                assert isinstance(question, Ask)
                number += 1
                key = question.key or ("b" if index else "ask")
                item = question.judge(player.answer(key, question.request(), number))
                assert item != CANCELLED
                if item == DECLINED and question.kind == "confirm":
                    values.append(False)
                elif item == DECLINED:
                    thrown = thrown or Declined("declined")
                else:
                    values.append(question.value(item))
            if thrown is not None:
                send = lambda thrown=thrown: generator.throw(thrown)  # noqa: E731
            else:
                value = tuple(values) if isinstance(effect, Gather) else values[0]
                send = lambda value=value: generator.send(value)  # noqa: E731
    finally:
        running.reset(scope)


@settings(max_examples=40, deadline=None)
@given(PROGRAMS, st.lists(st.integers(0, 1000), min_size=1, max_size=6))
def test_a_round_that_is_sent_again_gives_the_same_idempotency_keys(program: Program, choices: list[int]) -> None:
    once: list[str] = []
    twice: list[str] = []
    anyio.run(Played(build(program, once), choices).play)
    anyio.run(Played(build(program, twice), choices, twice=True).play)
    assert set(once) == set(twice)
    assert len(twice) >= len(once)


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=5, max_size=200), st.integers(0, 10**6), st.integers(1, 255))
def test_any_changed_byte_of_a_token_is_refused(payload: bytes, place: int, change: int) -> None:
    keys, binding = ring(), Binding("tools/call", "f", b"{}", "p")
    token = keys.seal(payload, binding, 1000)
    assert keys.open(token, binding, 0).payload == payload
    alphabet = string.ascii_letters + string.digits + "-_"
    index = place % len(token)
    other = alphabet[(alphabet.index(token[index]) + change) % 64]
    if other != token[index]:
        with pytest.raises(InvalidToken) as caught:
            keys.open(token[:index] + other + token[index + 1 :], binding, 0)
        assert not caught.value.expired


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 63))
def test_any_changed_character_in_requeststate_is_the_one_frozen_error(place: int, change: int) -> None:
    async def main() -> None:
        player = Played(build([("ask", None), ("ask", None)], []), [1])
        first = await player.round(None, None)
        assert isinstance(first, InputRequired)
        alphabet = string.ascii_letters + string.digits + "-_"
        index = place % len(first.state)
        changed = alphabet[(alphabet.index(first.state[index]) + change) % 64]
        with pytest.raises(ProtocolError) as caught:
            await player.round(first.state[:index] + changed + first.state[index + 1 :], {})
        assert (caught.value.code, caught.value.message, caught.value.data) == (
            -32602,
            "Invalid or expired requestState",
            {"reason": "invalid_request_state"},
        )

    anyio.run(main)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_authentic_payload_reads_or_is_corrupt(payload: bytes) -> None:
    try:
        journal = Journal.decode(payload)
    except Corrupt:
        return
    assert journal.events <= 257


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_an_event_keeps_value_and_type(value: Any) -> None:
    again = unpack(pack(value, "x"))
    assert again == value
    assert repr(again) == repr(value)


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "integer"},
            {"type": "string", "format": "date"},
            {"type": "string", "format": "date-time"},
            {"type": "boolean"},
            {"enum": ["a", "b"]},
            {"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
            {},
        ]
    ),
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda some: {"anyOf": [some, {"type": "null"}]}, inner)
        | st.builds(lambda some: {"type": "object", "additionalProperties": some}, inner)
        | st.builds(
            lambda fields: {"type": "object", "properties": fields},
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1),
        )
    ),
    max_leaves=6,
)
FITTING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["a", "b", "c", "", "2026-01-02"])
    | st.dates().map(str)
    | st.datetimes().map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ"))
    | st.sampled_from(
        ["2026-1-2", "0001-01-01", " 2026-01-02", "2026-02-30", "9999-12-31T23:59:59Z", "2026-01-02T03:04:60Z"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c", "d", ""]), inner),
    max_leaves=8,
)


@settings(max_examples=500, deadline=None)
@given(SCHEMAS, FITTING)
def test_packing_is_inverse_for_every_value_whether_it_fits_the_schema_or_not(schema: Any, value: Any) -> None:
    packing = compile_schema(schema)
    again = packing.unpack(unpack(pack(packing.pack(value), "x")))
    assert again == value
    assert compile_schema(schema).digest == packing.digest
