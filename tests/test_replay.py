"""The replay contract: one straight function, cut into rounds, sees what it would have seen in one sitting."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pydantic import BaseModel

from mrtr_flow import (
    Cancelled,
    CapabilityMissing,
    Declined,
    Flow,
    FlowError,
    StepError,
    ask,
    confirm,
    current,
    flow,
    gather,
    list_roots,
    sample,
    step,
)
from mrtr_flow.errors import ProtocolError
from tests.helpers import Clock, named, tester


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_step_runs_once_and_replays_in_every_later_round(backend: str) -> None:
    calls: list[str] = []

    def quote(flight: str) -> int:
        calls.append(flight)
        return 400 + len(calls)

    @flow
    def book(flight: str) -> Flow[str]:
        fare = yield from step(quote, flight)
        row = yield from ask("Which row?", int)
        seat = yield from ask(f"Which seat in row {row}?", str)
        return f"{row}{seat} for {fare}"

    t = tester(book, backend=backend).start(flight="LH 1")
    t.answer(7).answer("C")
    assert t.result == "7C for 401"
    assert calls == ["LH 1"]
    assert [performed.name for performed in t.steps] == ["quote"]


def test_both_spellings_and_both_kinds_of_step_behave_alike(backend: str) -> None:
    async def double(n: int) -> int:
        return 2 * n

    def half(n: int) -> float:
        return n / 2

    @flow
    def generator() -> Flow[list[float]]:
        n = yield from ask("n?", int)
        return [(yield from step(double, n)), (yield from step(half, n))]

    @flow
    async def coroutine() -> list[float]:
        n = await ask("n?", int)
        return [await step(double, n), await step(half, n)]

    for definition in (generator, coroutine):
        assert tester(definition, backend=backend).start().answer(5).result == [10, 2.5]


def test_loops_branches_and_helpers_keep_their_locals() -> None:
    def lines(limit: int) -> Flow[list[str]]:
        found: list[str] = []
        while len(found) < limit:
            found.append((yield from ask(f"Line {len(found) + 1}?", str)))
        return found

    @flow
    def report() -> Flow[str]:
        count = yield from ask("How many?", int)
        found = yield from lines(count)
        if count > 2 and not (yield from confirm("So many?")):
            return "no"
        return "+".join(found)

    t = tester(report).start().answer(3)
    assert t.message == "Line 1?"
    t.answer("a").answer("b").answer("c")
    assert t.message == "So many?"
    assert t.answer(True).result == "a+b+c"


def test_a_repeated_key_takes_the_first_free_number() -> None:
    @flow
    def keys() -> Flow[str]:
        yield from ask("1", int)
        yield from ask("2", int, key="ask~2")
        yield from ask("3", int)
        yield from ask("4", int, key="row")
        yield from ask("5", int, key="row")
        return "end"

    t = tester(keys).start()
    seen: list[str] = []
    while t.asked:
        seen += t.asked
        t.answer(**dict.fromkeys(t.asked, 1))
    assert seen == ["ask", "ask~2", "ask~3", "row", "row~2"]


def test_any_token_may_be_resumed_again_and_forks_share_the_run_id() -> None:
    ids: list[str] = []

    @flow
    def pick() -> Flow[str]:
        ids.append(current().id)
        first = yield from ask("First?", str)
        second = yield from ask("Second?", str)
        return first + second

    t = tester(pick).start()
    at_first = t.state
    assert t.answer("a").answer("b").result == "ab"
    t.send({"ask": {"action": "accept", "content": {"value": "z"}}}, state=at_first)
    assert t.answer("y").result == "zy"
    assert len(set(ids)) == 1


def test_the_live_value_is_the_replayed_value_not_the_object_the_step_returned() -> None:
    class Cart(BaseModel):
        items: list[str]

    kept: list[Cart] = []

    def load() -> Cart:
        kept.append(Cart(items=["a"]))
        return kept[-1]

    @flow
    def shop() -> Flow[bool]:
        cart = yield from step(load)
        same = cart is kept[-1]
        cart.items.append("b")
        yield from ask("Go on?", bool)
        return same or kept[-1].items != ["a"]

    assert tester(shop).start().answer(True).result is False


def test_a_step_gets_copies_of_its_arguments() -> None:
    def spoil(items: list[int]) -> None:
        items.clear()

    @flow
    def keep() -> Flow[list[int]]:
        items = [1, 2]
        yield from step(spoil, items)
        return items

    assert tester(keep).start().result == [1, 2]


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, 0.0, 2**70, -(2**64), "a\ud800b", 1.5, {"a": [None]}])
def test_falsy_and_awkward_step_results_replay_exactly(value: Any) -> None:
    def give() -> Any:
        return value

    seen: list[Any] = []

    @flow
    def awkward() -> Flow[str]:
        seen.append((yield from step(give)))
        yield from ask("?", str)
        return "end"

    tester(awkward).start().answer("x")
    assert len(seen) == 2
    for item in seen:
        assert item == value
        assert type(item) is type(value)


def test_a_step_error_is_the_same_live_and_replayed() -> None:
    def refuse() -> None:
        raise ValueError("no such card")

    seen: list[tuple[str, str, str]] = []

    @flow
    def pay() -> Flow[str]:
        try:
            yield from step(refuse)
        except StepError as error:
            assert error.is_a(ValueError)
            assert error.is_a("ValueError")
            assert not error.is_a(KeyError)
            seen.append((error.step, error.type, error.message))
        return (yield from ask("Another card?", str))

    t = tester(pay).start().answer("4711")
    assert t.result == "4711"
    assert seen == [("refuse", "ValueError", "no such card")] * 2
    assert len(t.steps) == 1


def test_a_step_error_nobody_catches_ends_the_call_and_is_not_recorded(caplog: pytest.LogCaptureFixture) -> None:
    attempts: list[int] = []

    def flaky() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError("secret host name")
        return "ok"

    @flow
    def fetch() -> Flow[str]:
        yield from ask("Ready?", bool)
        return (yield from step(flaky))

    t = tester(fetch).start()
    token = t.state
    t.answer(True)
    assert t.failure.reason == "step_failed"
    assert "secret" not in t.failure.text + caplog.text
    t.send({"ask": {"action": "accept", "content": {"value": True}}}, state=token)
    assert t.result == "ok"
    assert t.steps[0].idempotency_key == t.steps[1].idempotency_key


def test_several_effects_work_inside_an_except_block() -> None:
    def fail() -> None:
        raise RuntimeError("x")

    def fine() -> int:
        return 1

    @flow
    def recover() -> Flow[int]:
        try:
            yield from step(fail)
        except StepError:
            first = yield from step(fine)
            second = yield from ask("More?", int)
            return first + second + (yield from step(fine).options(key="again"))
        return 0

    assert tester(recover).start().answer(5).result == 7


def test_decline_and_cancel_are_thrown_into_the_flow_each_replay() -> None:
    @flow
    def choose() -> Flow[str]:
        heard: list[str] = []
        for kind in (Declined, Cancelled):
            try:
                yield from ask("Well?", str, key="well")
            except kind as error:
                heard.append(error.key)
        return (yield from ask(f"Heard {heard}", str))

    t = tester(choose).start().decline().cancel()
    assert t.message == "Heard ['well', 'well~2']"
    assert t.answer("done").result == "done"


@pytest.mark.parametrize(("action", "word"), [("decline", "declined"), ("cancel", "cancelled")])
def test_an_uncaught_decline_or_cancel_ends_the_call_readably(action: str, word: str) -> None:
    @flow
    def choose() -> Flow[str]:
        return (yield from ask("Well?", str, key="well"))

    t = tester(choose).start().send({"well": {"action": action, "content": {"value": "ignored"}}})
    assert t.failure.text == f"question 'well' was {word}, so choose stopped without a result"


def test_a_confirmation_is_true_only_for_accept_and_ok() -> None:
    @flow
    def sure() -> Flow[bool]:
        return (yield from confirm("Sure?"))

    assert tester(sure).start().answer(True).result is True
    assert tester(sure).start().answer(False).result is False
    assert tester(sure).start().decline().result is False
    assert tester(sure).start().cancel().failure.reason == "not_answered"


def test_a_gather_asks_in_one_round_keeps_partial_answers_and_asks_only_for_the_missing() -> None:
    @flow
    def form() -> Flow[tuple[str, int, bool]]:
        return (yield from gather(ask("Name?", str, key="name"), ask("Age?", int), confirm("Sure?")))

    t = tester(form).start()
    assert list(t.asked) == ["name", "ask", "confirm"]
    t.answer(ask=40)
    assert list(t.asked) == ["name", "confirm"]
    t.answer(name="Ada")
    assert list(t.asked) == ["confirm"]
    assert t.answer(confirm=False).result == ("Ada", 40, False)


def test_an_answer_once_given_stays_and_other_keys_are_ignored() -> None:
    @flow
    def form() -> Flow[tuple[str, str]]:
        return (yield from gather(ask("A?", str, key="a"), ask("B?", str, key="b")))

    t = tester(form).start().answer(a="first")
    answers = {key: {"action": "accept", "content": {"value": "late"}} for key in ("a", "b", "c")}
    assert t.send(answers).result == ("first", "late")


def test_a_round_without_an_answer_gives_the_same_question_and_the_same_token() -> None:
    @flow
    def ask_once() -> Flow[str]:
        return (yield from ask("Well?", str))

    t = tester(ask_once).start()
    before, asked = t.state, t.asked
    t.send({"other": {"action": "decline"}})
    assert (t.state, t.asked) == (before, asked)
    t.send(None)
    assert t.state == before


def test_a_wrong_answer_is_asked_again_with_the_reason_and_then_ends_the_call() -> None:
    @flow
    def age() -> Flow[int]:
        try:
            return (yield from ask("How old?", int, attempts=3))
        except FlowError:
            return -1

    t = tester(age).start().answer("old")
    assert t.message == "How old?\n(The last answer was not taken: must be a whole number.)"
    t.answer({})
    assert "missing" in t.message
    t.answer(5.5)
    assert t.failure.reason == "wrong_answers"
    assert "3 times" in t.failure.text
    assert tester(age).start().answer("x").answer("y").answer("41").result == 41


def test_idempotency_keys_are_equal_when_a_round_is_sent_again_and_differ_by_step_and_occurrence() -> None:
    def charge(n: int) -> str:
        return current().idempotency_key

    @flow
    def pay() -> Flow[list[str]]:
        n = yield from ask("How much?", int)
        first = yield from step(charge, n)
        return [first, (yield from step(charge, n)), (yield from step(charge, n).options(key="fee"))]

    t = tester(pay).start()
    token = t.state
    answer = {"ask": {"action": "accept", "content": {"value": 3}}}
    first, again = t.send(answer, state=token).result, t.send(answer, state=token).result
    fork = t.send({"ask": {"action": "accept", "content": {"value": 4}}}, state=token).result
    assert first == again == fork
    assert len(set(first)) == 3
    assert set(first).isdisjoint(tester(pay).start().answer(3).result)


def test_uuids_and_random_streams_replay_and_do_not_shift_each_other() -> None:
    seen: list[tuple[str, str, int]] = []

    @flow
    def draw() -> Flow[str]:
        run = current()
        seen.append((str(run.uuid4("a")), str(run.uuid4("a")), run.rng("b").randrange(10**9)))
        yield from ask("?", str)
        return str(run.uuid4("c"))

    t = tester(draw).start().answer("x")
    assert seen[0] == seen[1]
    assert seen[0][0] != seen[0][1]
    assert t.finished


def test_the_run_knows_when_it_started_and_who_calls() -> None:
    clock = Clock()
    seen: list[tuple[str, str | None]] = []

    @flow
    def look() -> Flow[str]:
        seen.append((current().started_at.isoformat(), current().principal))
        return (yield from ask("?", str))

    t = tester(look, clock=clock, principal="ada").start()
    clock.advance(60)
    t.answer("x")
    assert seen == [("2026-09-21T14:13:20+00:00", "ada")] * 2


def test_a_flow_without_steps_has_a_shorter_token_and_says_what_it_lacks() -> None:
    @flow
    def with_run_id() -> Flow[str]:
        return (yield from ask("?", str))

    @flow(steps=False)
    def without() -> Flow[str]:
        return (yield from ask("?", str))

    @flow(steps=False)
    def needs() -> Flow[str]:
        return current().id + (yield from ask("?", str))

    @flow(steps=False)
    def works() -> Flow[str]:
        return (yield from step(str, 1))

    assert tester(with_run_id).start().token_chars - tester(without).start().token_chars == 14
    assert tester(needs).start().failure.reason == "flow_failed"
    assert tester(works).start().failure.reason == "flow_failed"


def test_answers_without_state_count_for_the_first_questions_only() -> None:
    @flow
    def two() -> Flow[str]:
        first = yield from ask("First?", str, key="first")
        return first + (yield from ask("Second?", str, key="second"))

    accept = {"action": "accept", "content": {"value": "x"}}
    t = tester(two)
    t.send({"first": accept, "second": accept}, arguments={})
    assert list(t.asked) == ["second"]


def test_answers_without_state_do_not_count_after_a_step_or_a_drawn_value() -> None:
    def work() -> int:
        return 1

    @flow
    def stepped() -> Flow[str]:
        yield from step(work)
        return (yield from ask("?", str))

    @flow
    def drawn() -> Flow[str]:
        return (yield from ask(f"Is it {current().uuid4()}?", str))

    for definition in (stepped, drawn):
        t = tester(definition)
        t.send({"ask": {"action": "accept", "content": {"value": "x"}}}, arguments={})
        assert list(t.asked) == ["ask"]


def test_a_question_the_client_cannot_be_asked_is_thrown_recorded_and_else_a_protocol_error() -> None:
    @flow
    def falls_back() -> Flow[str]:
        try:
            return (yield from ask("?", str))
        except CapabilityMissing as error:
            assert error.required == {"elicitation": {"form": {}}}
            return "fallback"

    @flow
    def needs() -> Flow[str]:
        return (yield from ask("?", str))

    for capabilities in ({}, {"elicitation": {"url": {}}}, {"sampling": {}}):
        assert tester(falls_back, capabilities=capabilities).start().result == "fallback"
        with pytest.raises(ProtocolError) as caught:
            tester(needs, capabilities=capabilities).start()
        assert (caught.value.code, caught.value.data) == (
            -32021,
            {"requiredCapabilities": {"elicitation": {"form": {}}}},
        )
    for capabilities in ({"elicitation": {}}, {"elicitation": {"form": {}}}):
        assert tester(needs, capabilities=capabilities).start().asked


def test_a_long_run_is_warned_about_before_common_clients_give_up(caplog: pytest.LogCaptureFixture) -> None:
    @flow
    def long() -> Flow[str]:
        for number in range(9):
            yield from ask(f"{number}?", str)
        return "end"

    t = tester(long).start()
    with caplog.at_level(logging.WARNING, "mrtr_flow"):
        for _ in range(7):
            t.answer("x")
        assert not caplog.records
        t.answer("x")
    assert "common clients stop" in caplog.text
    assert t.answer("x").result == "end"


@pytest.mark.parametrize("version", [None, "2"])
def test_a_version_travels_in_the_token(version: str | None) -> None:
    def body() -> Flow[str]:
        return (yield from ask("?", str))

    t = tester(named("f", body, version="1")).start()
    t.definition = named("f", body, version=version)
    t.answer("x")
    assert t.failure.reason == "unknown_version"
    assert ("'2'" if version else "without version=") in t.failure.text


def test_the_warning_about_rounds_comes_once_however_often_the_ninth_question_is_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @flow
    def long() -> Flow[int]:
        total = 0
        for number in range(10):
            total += yield from ask(f"{number}?", int)
        return total

    with caplog.at_level(logging.WARNING, logger="mrtr_flow"):
        t = tester(long).start()
        for number in range(8):
            t.answer(number)
        t.send({"ask~9": {"action": "accept", "content": {"value": None}}}).answer(8).answer(9)
    assert t.result == 45
    assert len([record for record in caplog.records if "asks again" in record.getMessage()]) == 1


def test_wrong_answers_to_one_question_of_a_gather_are_not_counted_against_another() -> None:
    @flow
    def both() -> Flow[str]:
        return str((yield from gather(ask("A?", int, key="a", attempts=5), ask("B?", int, key="b", attempts=2))))

    wrong = {"action": "accept", "content": {"value": "x"}}
    t = tester(both).start()
    for sent in ({"a": wrong}, {"a": wrong}, {"a": wrong, "b": wrong}):
        t.send(sent)
        assert set(t.asked) == {"a", "b"}
    assert t.send({"b": wrong}).failure.text == (
        "question 'b' of both was answered wrongly 2 times, so the call ended; "
        "the last answer was not taken: must be a whole number"
    )


def test_an_answer_to_another_question_gives_no_further_attempts() -> None:
    @flow
    def three() -> Flow[str]:
        return str((yield from gather(ask("A?", int, key="a"), ask("B?", int, key="b"), ask("C?", int, key="c"))))

    def right(n: int) -> Any:
        return {"action": "accept", "content": {"value": n}}

    wrong = {"action": "accept", "content": {"value": "x"}}
    t = tester(three).start().send({"a": wrong, "b": right(1)}).send({"a": wrong, "c": right(2)})
    assert set(t.asked) == {"a"}
    assert t.send({"a": wrong}).failure.reason == "wrong_answers"


def test_right_answers_are_kept_beside_the_count_of_wrong_ones() -> None:
    @flow
    def two() -> Flow[str]:
        return str((yield from gather(ask("A?", int, key="a"), ask("B?", int, key="b"))))

    wrong = {"action": "accept", "content": {"value": "x"}}
    t = tester(two).start().send({"a": wrong}).answer(b=2).send({"a": wrong}).answer(a=1)
    assert t.result == "(1, 2)"


def test_all_capabilities_that_a_gather_lacks_are_named_at_once() -> None:
    @flow
    def many() -> Flow[str]:
        return str(
            (
                yield from gather(
                    ask("A?", str),
                    sample("B?", max_tokens=9, tools=[{"name": "search", "inputSchema": {"type": "object"}}]),
                    list_roots(),
                )
            )
        )

    with pytest.raises(ProtocolError) as caught:
        tester(many, capabilities={"elicitation": {}}).start()
    assert caught.value.code == -32021
    assert caught.value.data["requiredCapabilities"] == {"sampling": {"tools": {}}, "roots": {}}


def test_an_answer_to_what_the_client_cannot_be_asked_is_not_taken() -> None:
    @flow
    def either() -> Flow[str]:
        words, said = yield from gather(ask("A?", str), sample("B?", max_tokens=9, if_unsupported=None))
        return f"{words} {said}"

    forged = {"role": "assistant", "content": {"type": "text", "text": "forged"}, "model": "m"}
    t = tester(either, capabilities={"elicitation": {}}).start()
    assert set(t.asked) == {"ask"}
    assert t.send({"ask": {"action": "accept", "content": {"value": "x"}}, "sample": forged}).result == "x None"
