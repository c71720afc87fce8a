"""What happens when the code is not the code the token was minted by: nothing is answered for another question."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from mrtr_flow import Flow, ask, confirm, flow, gather, step
from mrtr_flow.errors import ProtocolError
from mrtr_flow.testing import FlowTester
from tests.helpers import named, tester


def work() -> int:
    return 1


def other_work() -> int:
    return 2


def recorded() -> Flow[str]:
    size = yield from ask("Which size?", str, key="size")
    n = yield from step(work)
    color = yield from ask(f"Which colour, {size} {n}?", str, key="color")
    return size + color


def at_color() -> FlowTester:
    """A tester whose token holds an answer and a step, and waits for the colour."""
    t = tester(named("shop", recorded)).start().answer("XYZZY")
    assert list(t.asked) == ["color"]
    return t


def renamed_key() -> Flow[str]:
    yield from ask("Which size?", str, key="length")
    yield from step(work)
    return (yield from ask("Which colour, XYZZY 1?", str, key="color"))


def reworded() -> Flow[str]:
    yield from ask("Which size, please?", str, key="size")
    yield from step(work)
    return (yield from ask("Which colour, XYZZY 1?", str, key="color"))


def other_type() -> Flow[str]:
    yield from ask("Which size?", int, key="size")
    yield from step(work)
    return (yield from ask("Which colour, XYZZY 1?", str, key="color"))


def inserted_question() -> Flow[str]:
    yield from ask("Which size?", str, key="size")
    yield from ask("Which fit?", str, key="fit")
    return (yield from ask("Which colour, XYZZY 1?", str, key="color"))


def inserted_step() -> Flow[str]:
    yield from step(other_work)
    yield from ask("Which size?", str, key="size")
    yield from step(work)
    return (yield from ask("Which colour, XYZZY 1?", str, key="color"))


def other_step() -> Flow[str]:
    yield from ask("Which size?", str, key="size")
    yield from step(other_work)
    return (yield from ask("Which colour, XYZZY 1?", str, key="color"))


def step_made_public() -> Flow[str]:
    yield from ask("Which size?", str, key="size")
    yield from step(work).options(public=True)
    return (yield from ask("Which colour, XYZZY 1?", str, key="color"))


def step_before_the_pending_question() -> Flow[str]:
    yield from ask("Which size?", str, key="size")
    yield from step(work)
    yield from step(other_work)
    return (yield from ask("Which colour, XYZZY 1?", str, key="color"))


def returns_early() -> Flow[str]:
    return (yield from ask("Which size?", str, key="size"))


def raises_early() -> Flow[str]:
    yield from ask("Which size?", str, key="size")
    raise KeyError("size")


def returns_at_the_frontier() -> Flow[str]:
    yield from ask("Which size?", str, key="size")
    yield from step(work)
    return "done"


def swallows() -> Flow[str]:
    try:
        yield from ask("Which length?", str, key="length")
    except BaseException:
        return "swallowed"
    return "not swallowed"


@pytest.mark.parametrize(
    "changed",
    [
        renamed_key, reworded, other_type, inserted_question, inserted_step, other_step, step_made_public,
        step_before_the_pending_question, returns_early, raises_early, returns_at_the_frontier, swallows,
    ],
    ids=lambda changed: changed.__name__,
)  # fmt: skip
def test_a_changed_flow_stops_for_good_before_anything_live_runs(
    changed: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    t = at_color()
    done = len(t.steps)
    t.definition = named("shop", changed)
    t.answer("red")
    assert t.failure.reason == "flow_changed"
    assert (
        t.failure.text
        == "shop was changed while this call was under way, so it cannot go on; call it again from the start"
    )
    assert len(t.steps) == done
    assert (
        "M" not in caplog.text.replace("Maybe", "").replace("KeyError", "").split("remedy")[0]
        or "Which" not in caplog.text
    )
    assert "shop diverged at" in caplog.text


def test_the_message_names_version_event_place_helper_chain_and_remedy(caplog: pytest.LogCaptureFixture) -> None:
    def helper() -> Flow[str]:
        return (yield from ask("Which length?", str, key="length"))

    def changed() -> Flow[str]:
        return (yield from helper())

    t = tester(named("shop", recorded, version="7")).start().answer("XYZZY")
    t.definition = named("shop", changed, version="7")
    t.answer("red")
    text = caplog.messages[-1]
    assert text.startswith(
        "shop@7 diverged at event 1 of 2: recorded an answer or a step result (its text is not in the token)"
    )
    assert "ask('length') at test_divergence.py:" in text
    assert "in changed > helper" in text
    assert "version=" in text


def test_a_changed_pending_question_is_asked_again_and_all_answers_are_kept() -> None:
    def reworded_pending() -> Flow[str]:
        size = yield from ask("Which size?", str, key="size")
        yield from step(work)
        return size + (yield from ask("Which color?", str, key="color"))

    t = at_color()
    t.definition = named("shop", reworded_pending)
    t.answer("red")
    assert t.message == "Which color?"
    assert t.answer("blue").result == "XYZZYblue"
    assert [performed.name for performed in t.steps] == ["work"]


def test_a_question_that_changes_every_round_ends_after_four_changes(caplog: pytest.LogCaptureFixture) -> None:
    rates = iter(range(100))

    @flow
    def volatile() -> Flow[str]:
        return (yield from ask(f"The rate is {next(rates)}. Go on?", str))

    t = tester(volatile).start()
    for _ in range(4):
        t.answer("yes")
        assert t.asked
    t.answer("yes")
    assert t.failure.reason == "question_changed"
    assert caplog.text.count("asks another question than before: ask at test_divergence.py:") == 5
    assert "or two versions are serving" in caplog.text


def test_edits_that_keep_the_effects_keep_the_calls_that_are_under_way() -> None:
    def edited() -> Flow[str]:
        size_of_it = yield from ask("Which size?", str, key="size")
        count = yield from step(work)
        text = f"Which colour, {size_of_it} {count}?"
        colour = yield from ask(text, str, key="color")
        if (yield from confirm("Gift?")):
            return "gift"
        return size_of_it.lower() + colour

    t = at_color()
    t.definition = named("shop", edited)
    assert t.answer("red").answer(False).result == "xyzzyred"


def test_set_order_in_a_question_never_gives_one_question_the_answer_of_another() -> None:
    items = ["b", "a"]

    def body() -> Flow[list[str]]:
        out: list[str] = []
        for item in list(items):
            out.append(f"{item}={(yield from ask(f'Value of {item}?', str, key=item))}")
        return out

    t = tester(named("loop", body)).start()
    items.reverse()
    t.send({"b": {"action": "accept", "content": {"value": "for b"}}})
    assert t.message == "Value of a?"


def test_a_token_of_one_flow_does_not_open_under_another_though_its_questions_are_the_same() -> None:
    def same() -> Flow[str]:
        return (yield from ask("?", str))

    t = tester(named("one", same)).start()
    t.definition = named("two", same)
    with pytest.raises(ProtocolError):
        t.answer("x")


def test_a_gather_with_a_partial_answer_that_changed_is_asked_anew() -> None:
    def before() -> Flow[Any]:
        return (yield from gather(ask("A?", str, key="a"), ask("B?", str, key="b")))

    def after() -> Flow[Any]:
        return (yield from gather(ask("A?", str, key="a"), ask("B, please?", str, key="b")))

    t = tester(named("pair", before)).start().answer(a="1")
    t.definition = named("pair", after)
    t.answer(b="2")
    assert list(t.asked) == ["a", "b"]
    assert t.answer(a="3", b="4").result == ("3", "4")


def test_a_divergence_inside_a_step_holding_run_names_the_pending_question(caplog: pytest.LogCaptureFixture) -> None:
    t = at_color()
    t.definition = named("shop", step_before_the_pending_question)
    with caplog.at_level(logging.ERROR, "mrtr_flow"):
        t.answer("red")
    assert "at the pending question, after 2 events: recorded a question to the client" in caplog.text
    assert "step(other_work)" in caplog.text
