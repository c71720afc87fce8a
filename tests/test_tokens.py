"""The token in hostile hands: bad input has one outcome each, loses nothing, and costs little."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from mrtr_flow import DefinitionError, Flow, ask, current, flow, step
from mrtr_flow.errors import InvalidToken, ProtocolError
from mrtr_flow.seal import MAX_TOKEN, Binding, KeyRing, parse_keys
from tests.helpers import KEYS, OTHER_KEYS, Clock, named, ring, tester


class Grant(BaseModel):
    token: SecretStr


FROZEN = (-32602, "Invalid or expired requestState", {"reason": "invalid_request_state"})


def quote(n: float) -> int:
    return 420


@flow
def book(n: float) -> Flow[str]:
    """Book."""
    fare = yield from step(quote, n)
    row = yield from ask("Which row?", int)
    seat = yield from ask(f"Seat in row {row}?", str)
    return f"{row}{seat} {fare}"


def accept(value: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"value": value}}


def refusal(t: Any, **sent: Any) -> tuple[int, str, Any]:
    """The error object of a request, and proof that the call goes on from where it was."""
    with pytest.raises(ProtocolError) as caught:
        t.send({"ask": accept(7)}, **sent)
    error = caught.value
    assert t.answer(7).answer("C").result == "7C 420"
    return error.code, error.message, error.data


@pytest.mark.parametrize("state", ["", "x", "A" * 37, "A" * 60, "A" * (MAX_TOKEN + 1), 3, 1.5, True, ["x"], {"a": 1}])
def test_what_is_no_token_is_refused_with_the_one_frozen_error(state: Any) -> None:
    assert refusal(tester(book).start(n=1), state=state) == FROZEN


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-1],
        lambda token: token[1:],
        lambda token: token + "\n",
        lambda token: token + "=",
        lambda token: token + "A",
        lambda token: token + "-TAMPERED",
        lambda token: " " + token,
        lambda token: token.replace(token[20], "%" + "41", 1),
        lambda token: token.swapcase(),
        lambda token: token[:20] + "é" + token[21:],
        lambda token: token * 2,
    ],
)
def test_a_truncated_padded_or_recoded_token_is_refused(spoil: Any) -> None:
    t = tester(book).start(n=1)
    assert refusal(t, state=spoil(t.state)) == FROZEN


def test_a_mebibyte_of_garbage_is_refused_before_anything_is_decoded() -> None:
    keys = ring()
    binding = Binding("tools/call", "book", b"{}", None)
    started = time.perf_counter()
    for _ in range(1000):
        with pytest.raises(InvalidToken, match="length"):
            keys.open("A" * 2**20, binding, 0)
    assert time.perf_counter() - started < 5  # a decode alone would take far longer a thousand times


def test_another_tool_principal_or_arguments_are_refused_and_named_in_the_log_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    t = tester(book, principal="ada").start(n=1)
    t.principal = "bob"
    with pytest.raises(ProtocolError) as caught:
        t.answer(7)
    assert (caught.value.code, caught.value.message, caught.value.data) == FROZEN
    assert "principal differs" in caplog.text
    t.principal = None
    with pytest.raises(ProtocolError):
        t.answer(7)
    t.principal = "ada"
    assert refusal(t, arguments={"n": 2}) == FROZEN
    assert "request differs" in caplog.text
    assert t.state is not None
    assert t.state not in caplog.text

    other = tester(named("other", book.fn), principal="ada").start(n=1)
    with pytest.raises(ProtocolError):
        other.send({"ask": accept(7)}, state=t.state)
    assert other.answer(7).answer("C").finished


@pytest.mark.parametrize(
    ("before", "after"),
    [({"n": 1}, {"n": 1.0}), ({"n": 0}, {"n": -0.0}), ({"n": 1.0}, {"n": 1}), ({"n": 1e2}, {"n": 100})],
)
def test_numbers_that_a_client_respells_are_the_same_arguments(before: Any, after: Any) -> None:
    t = tester(book)
    t.start(**before)
    t.send({"ask": accept(7)}, arguments=after)
    assert t.message == "Seat in row 7?"


def test_absent_and_empty_arguments_and_key_order_are_the_same() -> None:
    @flow
    def none() -> Flow[str]:
        return (yield from ask("?", str))

    @flow
    def two(a: int, b: int) -> Flow[str]:
        return (yield from ask("?", str))

    t = tester(none).start()
    assert t.send({"ask": accept("x")}, arguments=None).result == "x"
    t = tester(two).start(a=1, b=2)
    assert t.send({"ask": accept("x")}, arguments={"b": 2, "a": 1}).result == "x"


@pytest.mark.parametrize("pair", [(1, True), (1, "1"), (True, "true"), (None, 0), ([1], [1, 1])])
def test_values_of_other_types_are_other_arguments(pair: tuple[Any, Any]) -> None:
    @flow
    def anything(x: Any) -> Flow[str]:
        return (yield from ask("?", str))

    t = tester(anything).start(x=pair[0])
    with pytest.raises(ProtocolError):
        t.send({"ask": accept("x")}, arguments={"x": pair[1]})


@pytest.mark.parametrize("arguments", [{"n": float("inf")}, {"n": float("nan")}, [], "x", 3])
def test_arguments_that_are_no_json_object_are_invalid_params(arguments: Any) -> None:
    with pytest.raises(ProtocolError) as caught:
        tester(book).send(None, arguments=arguments)
    assert caught.value.code == -32602


def test_arguments_too_long_or_too_deep_are_invalid_params() -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    for value in (deep, "x" * 2**20):
        with pytest.raises(ProtocolError) as caught:
            tester(book).send(None, arguments={"n": value})
        assert caught.value.code == -32602


def test_arguments_that_do_not_fit_the_signature_are_a_readable_failure_without_the_value() -> None:
    t = tester(book).start(n="hunter2")
    assert t.failure.reason == "invalid_arguments"
    assert "n: input should be a valid number" in t.failure.text
    assert "hunter2" not in t.failure.text


def test_an_expired_token_gets_its_own_text_and_a_tampered_one_does_not() -> None:
    clock = Clock()
    t = tester(book, clock=clock).start(n=1)
    clock.advance(30 * 60)
    with pytest.raises(ProtocolError) as caught:
        t.answer(7)
    assert caught.value.code == -32602
    assert caught.value.data == {"reason": "expired_request_state"}
    assert "call again" in caught.value.message
    assert t.state is not None
    with pytest.raises(ProtocolError) as caught:
        t.send({"ask": accept(7)}, state=t.state[:-1] + ("A" if t.state[-1] != "A" else "B"))
    assert caught.value.data == FROZEN[2]


def test_ttl_is_for_each_round_and_max_age_for_the_run() -> None:
    @flow(ttl=60, max_age=100)
    def slow() -> Flow[str]:
        out = ""
        for _ in range(3):
            out += yield from ask("?", str)
        return out

    clock = Clock()
    t = tester(slow, clock=clock).start()
    clock.advance(59)
    t.answer("a")
    clock.advance(40)
    t.answer("b")
    clock.advance(2)
    with pytest.raises(ProtocolError) as caught:
        t.answer("c")
    assert caught.value.data == {"reason": "expired_request_state"}


@pytest.mark.parametrize("state", [None])
def test_null_is_absent(state: None) -> None:
    t = tester(book).start(n=1)
    t.send({"ask": accept(7)}, state=state)
    assert list(t.asked) == ["ask"]  # a fresh run: the answer came after a step, so it does not count


def test_state_without_answers_gives_the_same_token_back() -> None:
    t = tester(book).start(n=1)
    before = t.state
    for responses in (None, {}, {"unknown": accept(7)}):
        t.send(responses)
        assert t.state == before
    assert t.answer(7).answer("C").result == "7C 420"


@pytest.mark.parametrize(
    "response",
    [
        {"roots": []},
        {"roots": [{"uri": "file:///x"}]},
        {"role": "assistant", "model": "m", "content": {"type": "text", "text": "7"}},
    ],
)
def test_an_answer_of_another_kind_is_asked_again_with_the_reason(response: Any) -> None:
    t = tester(book).start(n=1).send({"ask": response})
    assert "it answers another kind of question" in t.message
    assert t.answer(7).answer("C").result == "7C 420"


@pytest.mark.parametrize(
    "responses",
    [
        {"ask": 12345},
        {"ask": None},
        {"ask": []},
        {"ask": {}},
        {"ask": {"action": "reject"}},
        {"ask": {"action": "accept", "content": "7"}},
        {"ask": {"action": "accept", "content": {"value": {"nested": 1}}}},
        {"ask": {"action": "accept", "content": {"value": [1]}}},
        {"other": 12345},
        [],
        "x",
    ],
)
def test_an_entry_outside_the_schema_is_invalid_params_and_nothing_is_lost(responses: Any) -> None:
    t = tester(book).start(n=1)
    with pytest.raises(ProtocolError) as caught:
        t.send(responses)
    assert caught.value.code == -32602
    assert t.answer(7).answer("C").result == "7C 420"


# ---------------------------------------------------------------------- keys


def test_the_first_key_seals_and_all_open_so_keys_rotate_without_losing_a_call() -> None:
    old, new = parse_keys(OTHER_KEYS)[0], parse_keys(KEYS)[0]

    def open_with(keys: list[tuple[str, bytes]], state: str | None, clock: Clock) -> Any:
        t = tester(book, ring=KeyRing(keys, audience="a"), clock=clock)
        t.start(n=1)
        return t.send({"ask": accept(7)}, state=state)

    clock = Clock()
    for minting, opening in (
        ([old], [old, new]),
        ([old, new], [new, old]),
        ([new, old], [old, new]),
        ([new, old], [new]),
    ):
        t = tester(book, ring=KeyRing(minting, audience="a"), clock=clock).start(n=1)
        assert open_with(opening, t.state, clock).message == "Seat in row 7?"
    with pytest.raises(ProtocolError):
        open_with([new], tester(book, ring=KeyRing([old], audience="a"), clock=clock).start(n=1).state, clock)


def test_a_token_of_another_audience_is_refused_though_the_secret_is_shared() -> None:
    t = tester(book, ring=ring("one")).start(n=1)
    other = tester(book, ring=ring("two")).start(n=1)
    with pytest.raises(ProtocolError):
        other.send({"ask": accept(7)}, state=t.state)


def test_rotation_does_not_move_idempotency_keys() -> None:
    old, new = parse_keys(OTHER_KEYS)[0], parse_keys(KEYS)[0]

    def charge() -> str:
        return current().idempotency_key

    @flow
    def pay() -> Flow[str]:
        yield from ask("?", str)
        return (yield from step(charge))

    t = tester(pay, ring=KeyRing([old], audience="a")).start()
    first = t.send({"ask": accept("x")}, state=t.state).result
    rotated = tester(pay, ring=KeyRing([new, old], audience="a")).start()
    assert rotated.send({"ask": accept("x")}, state=t.state).result == first


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nolabel", "no label"),
        (":" + KEYS.partition(":")[2], "no label"),
        ("a:!!!", "not base64url"),
        ("a:AAAA", "3 bytes"),
        ("a:" + "A" * 43, "not random"),
        (f"{KEYS},{KEYS.replace('test', 'again')}", "twice"),
        ("", "empty"),
    ],
)
def test_keys_that_are_no_keys_are_refused_without_quoting_them(text: str, problem: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        KeyRing(parse_keys(text), audience="a")
    assert problem in str(caught.value)
    assert "AAAA" not in str(caught.value)


def test_equal_state_and_second_give_the_equal_token_and_any_difference_another() -> None:
    keys = ring()
    binding = Binding("tools/call", "book", b"{}", None)
    token = keys.seal(b"\x90abcd", binding, 1000)
    assert keys.seal(b"\x90abcd", binding, 1000) == token
    others = [
        keys.seal(b"\x90abce", binding, 1000),
        keys.seal(b"\x90abcd", binding, 1001),
        keys.seal(b"\x90abcd", Binding("prompts/get", "book", b"{}", None), 1000),
        keys.seal(b"\x90abcd", Binding("tools/call", "book2", b"{}", None), 1000),
        keys.seal(b"\x90abcd", Binding("tools/call", "book", b"[]", None), 1000),
        keys.seal(b"\x90abcd", Binding("tools/call", "book", b"{}", ""), 1000),
    ]
    assert len({token, *others}) == 7
    assert len(token) == 38


def test_only_a_token_of_an_unknown_key_is_explained_by_keys_that_lived_as_long_as_a_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def process(first: int) -> Any:
        keys = KeyRing([("process", bytes(range(first, first + 32)))], audience="test", ephemeral=True)
        return tester(book, ring=keys).start(n=1)

    before, after = process(1), process(2)
    with pytest.raises(ProtocolError):
        after.send(state=before.state)
    assert (
        "unknown key, or a token of another server; keys were made for this process alone: set MRTR_KEYS" in caplog.text
    )
    caplog.clear()
    with pytest.raises(ProtocolError):
        after.send(arguments={"n": 2})
    assert "refused: request differs" in caplog.text
    assert "MRTR_KEYS" not in caplog.text


def test_what_a_type_says_is_secret_is_not_put_into_a_token(caplog: pytest.LogCaptureFixture) -> None:
    def grant() -> Grant:
        return Grant(token=SecretStr("hush-hush"))

    def bare() -> SecretStr:
        return SecretStr("hush-hush")

    for fn in (grant, bare):

        @flow
        def connect() -> Flow[str]:
            yield from step(fn)  # noqa: B023
            return (yield from ask("Go on?", str))

        t = tester(connect).start()
        assert t.state is None
        assert t.failure.reason == "flow_failed"
    assert caplog.text.count("cannot be recorded") == 2
    assert "hush" not in caplog.text
