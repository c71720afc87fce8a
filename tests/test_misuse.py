"""Wrong spellings are errors of their own, as early as they are known, and each names the remedy."""

from __future__ import annotations

import asyncio
import contextvars
import os
import uuid
from collections.abc import Callable
from typing import Any, Literal

import anyio
import pytest
from pydantic import BaseModel, Field

from mrtr_flow import (
    DefinitionError,
    EffectMisused,
    Flow,
    FlowError,
    ask,
    confirm,
    flow,
    gather,
    list_roots,
    sample,
    step,
)
from mrtr_flow.calls import Call
from mrtr_flow.runner import Runner
from tests.helpers import Clock, ring, tester


class Base(BaseModel):
    name: str


class Child(Base):
    extra: int = 1


class Forgetful(BaseModel):
    id: uuid.UUID = Field(default_factory=uuid.uuid4, exclude=True)


class Drawn(BaseModel):
    name: str
    id: str = Field(default_factory=lambda: str(uuid.uuid4()))


def work(n: int = 0) -> int:
    return n


def log_of(definition: Any, caplog: pytest.LogCaptureFixture, reason: str = "flow_failed", **options: Any) -> str:
    """Start a flow that must fail by its author's fault, and return the log; the client is told none of it."""
    t = tester(definition, **options).start()
    assert t.failure.reason == reason
    assert t.failure.cause is not None
    if reason == "flow_failed":
        assert t.failure.text == f"Error executing tool {definition.name}"
    return caplog.text


# ---------------------------------------------------------------------- at decoration


def test_async_def_with_yield_is_refused_with_both_right_spellings() -> None:
    async def both() -> Any:
        yield ask("?", str)

    with pytest.raises(DefinitionError, match=r"`await ask\(...\)`, or `def` with `yield from ask\(...\)`"):
        flow(both)  # type: ignore[arg-type]


def test_a_function_that_never_asks_is_refused() -> None:
    def plain() -> str:
        return "x"

    with pytest.raises(DefinitionError, match="register it as a plain tool"):
        flow(plain)  # type: ignore[call-overload]


def alone() -> Flow[str]:
    ask("?", str)
    return (yield from ask("?", str))


def in_a_condition() -> Flow[str]:
    if confirm("Sure?"):
        return "yes"
    return (yield from ask("?", str))


def in_a_loop() -> Flow[str]:
    while not confirm("Sure?"):
        yield from ask("?", str)
    return "x"


def in_a_comparison() -> Flow[str]:
    x = ask("?", int) == 3
    return (yield from ask(str(x), str))


def in_a_text() -> Flow[str]:
    return (yield from ask(f"{ask('?', int)}", str))


def returned() -> Flow[Any]:
    yield from ask("?", str)
    return step(work, 1).options(key="x")


@pytest.mark.parametrize(
    "body", [alone, in_a_condition, in_a_loop, in_a_comparison, in_a_text, returned], ids=lambda b: b.__name__
)
def test_an_effect_that_is_plainly_not_driven_is_found_in_the_source(body: Callable[..., Any]) -> None:
    with pytest.raises(DefinitionError, match=r"is not driven: missing `yield from` or `await` before it") as caught:
        flow(body)
    line = body.__code__.co_firstlineno
    named = int(str(caught.value).partition("on line ")[2].partition(" ")[0])
    assert line < named <= line + 3


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 0, -1, True, "600", 0.5, None])
@pytest.mark.parametrize("option", ["ttl", "max_age"])
def test_ttl_and_max_age_are_finite_seconds(option: str, seconds: Any) -> None:
    def body() -> Flow[str]:
        return (yield from ask("?", str))

    if option == "max_age" and seconds is None:
        return  # the default
    with pytest.raises(DefinitionError, match=f"{option} of body"):
        flow(**{option: seconds})(body)


def test_signatures_json_cannot_describe_are_refused() -> None:
    def star(*args: int) -> Flow[str]:
        return (yield from ask("?", str))

    def drawn(x: str = Field(default_factory=str)) -> Flow[str]:
        return (yield from ask("?", str))

    def opaque(x: asyncio.Queue[int]) -> Flow[str]:
        return (yield from ask("?", str))

    for body, text in ((star, "cannot be given by name"), (drawn, "default_factory"), (opaque, "signature of opaque")):
        with pytest.raises(DefinitionError, match=text):
            flow(body)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"name": "no spaces"}, {"version": ""}, {"steps": False, "max_age": 60}])
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    def body() -> Flow[str]:
        return (yield from ask("?", str))

    with pytest.raises(DefinitionError):
        flow(**options)(body)


# ---------------------------------------------------------------------- when the effect is made


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ask("?", set[Literal["a"]]), "another order in each process"),
        (lambda: ask("?", dict[str, int]), "named fields"),
        (lambda: ask("?", list[int]), "choices"),
        (lambda: ask("?", {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}), "'pattern'"),
        (lambda: ask("?", {"type": "object", "properties": {"a": {"type": "string"}}, "title": "x"}), "'title' on top"),
        (lambda: ask("?", int, key=""), "key of"),
        (lambda: ask("?", int, attempts=0), "attempts"),
        (lambda: ask(3, int), "message"),  # type: ignore[call-overload]
        (lambda: step(3), "not a function"),  # type: ignore[call-overload]
        (lambda: step(alone), "call it with `yield from alone(...)`"),
        (lambda: gather(), "no question"),
        (lambda: gather(gather(ask("?", int))), "another gather"),
        (lambda: gather(ask("?", int), step(work)), "step(work), not a question"),
        (lambda: gather(ask("?", int, key="a"), ask("?", int, key="a")), "'a' twice"),
    ],
)
def test_an_effect_that_cannot_be_is_refused_where_it_is_made(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        make()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [bool, lambda e: e == 1, lambda e: e != 1, lambda e: f"{e}", lambda e: e < 1, lambda e: e >= 1, lambda e: not e],
)
def test_an_effect_used_as_a_value_says_what_is_missing(use: Callable[[Any], Any]) -> None:
    with pytest.raises(EffectMisused, match=r"ask\(\) made at test_misuse.py:\d+ is used as a value: missing `yield"):
        use(ask("?", int))


# ---------------------------------------------------------------------- when the flow runs


def test_undriven_effects_are_reported_when_the_flow_completes(caplog: pytest.LogCaptureFixture) -> None:
    @flow
    def forgets() -> Flow[str]:
        row = ask("Which row?", int)
        del row
        return (yield from ask("Name?", str))

    t = tester(forgets).start().answer("x")
    assert t.failure.reason == "flow_failed"
    assert "ask() made at test_misuse.py:" in caplog.text
    assert "was never driven" in caplog.text


def test_an_effect_kept_for_later_or_given_options_counts_as_driven() -> None:
    @flow
    def later() -> Flow[str]:
        name, sure = ask("Name?", str), confirm("Sure?")
        yield from step(work, 1).options(key="named")
        return f"{(yield from name)} {(yield from sure)}"

    assert tester(later).start().answer("Ada").answer(True).result == "Ada True"


def helper() -> Flow[int]:
    return (yield from ask("?", int))


async def async_helper() -> int:
    return await ask("?", int)


@pytest.mark.parametrize(
    ("yielded", "text"),
    [
        (lambda: helper(), "yielded helper() itself: call a helper with `yield from helper(...)`"),
        (lambda: async_helper(), "yielded async_helper() itself"),
        (lambda: work, "yielded the function work: write `yield from step(work, ...)`"),
        (lambda: 3, "yielded a int: a flow yields effects"),
        (lambda: None, "awaited NoneType"),
    ],
)
def test_what_is_no_effect_is_refused_with_the_place(
    yielded: Callable[[], Any], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    @flow
    def wrong() -> Flow[Any]:
        yield yielded()

    log = log_of(wrong, caplog)
    assert text in log
    assert "test_misuse.py:" in log


def test_a_helper_returned_undriven_is_named(caplog: pytest.LogCaptureFixture) -> None:
    @flow
    def wrong() -> Flow[Any]:
        yield from step(work)
        return helper()

    assert "returned helper() undriven" in log_of(wrong, caplog)


async def sleeping() -> str:
    await asyncio.sleep(0.01)
    return "x"


async def trio_sleeping() -> str:
    await anyio.sleep(0.01)
    return "x"


async def thread() -> str:
    return await asyncio.to_thread(str, 1)


async def gathered() -> Any:
    return await asyncio.gather(ask("?", str), ask("?", str))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("body", "backend"),
    [
        (sleeping, "asyncio"),
        (trio_sleeping, "trio"),
        (trio_sleeping, "asyncio"),
        (thread, "asyncio"),
        (gathered, "asyncio"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_foreign_await_is_refused_with_the_right_spelling(
    body: Callable[..., Any], backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_of(flow(body), caplog, backend=backend)
    assert "which only an event loop can answer: put the work into `await step(...)`" in log
    assert "`await gather(ask(...), ask(...))`" in log


def test_a_bare_yield_works_too() -> None:
    @flow
    def bare() -> Flow[str]:
        n = yield ask("n?", int)
        return f"{n + 1}"

    assert tester(bare).start().answer(1).result == "2"


# ---------------------------------------------------------------------- suspension


def test_a_suspended_flow_is_unwound_at_once_and_its_finally_runs() -> None:
    events: list[str] = []
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")

    @flow
    def careful() -> Flow[str]:
        token = variable.set("inside")
        try:
            return (yield from ask("?", str))
        finally:
            events.append(variable.get())
            variable.reset(token)

    t = tester(careful).start()
    assert events == ["inside"]
    assert variable.get() == "outside"
    t.answer("x")
    assert events == ["inside", "inside"]


def test_suspension_is_not_an_exception_that_a_flow_can_catch() -> None:
    @flow
    async def wraps() -> str:
        try:
            return await ask("?", str)
        except Exception:
            return "caught"

    assert tester(wraps).start().answer("fine").result == "fine"


def test_an_effect_yielded_while_unwinding_is_dropped() -> None:
    @flow
    def tidy() -> Flow[str]:
        try:
            return (yield from ask("?", str))
        finally:
            yield from step(work)

    t = tester(tidy).start()
    assert not t.steps
    t.answer("x")
    assert t.result == "x"
    assert len(t.steps) == 1


def test_a_flow_that_will_not_unwind_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    resist = [True]

    @flow
    def stubborn() -> Flow[str]:
        while resist:
            try:
                yield from ask("?", str)
            except BaseException:
                continue
        return "gave in"

    assert "does not unwind after 32 attempts" in log_of(stubborn, caplog)
    resist.clear()


def test_a_finally_that_fails_is_an_error_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    @flow
    def broken() -> Flow[str]:
        try:
            return (yield from ask("?", str))
        finally:
            raise KeyError("x")

    log = log_of(broken, caplog)
    assert "raised KeyError at test_misuse.py:" in log
    assert "runs every round and must not fail" in log


def test_asking_inside_a_task_group_unwinds_or_is_named(caplog: pytest.LogCaptureFixture) -> None:
    @flow
    async def grouped() -> str:
        async with asyncio.TaskGroup():
            return await ask("?", str)

    assert "asks inside a task group" in log_of(grouped, caplog)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_busy_task_group_around_a_question_is_an_error_and_the_event_loop_survives(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    @flow
    async def grouped() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 100)
            return await ask("?", str)

    @flow
    async def fine() -> str:
        return await ask("?", str)

    async def main() -> list[Any]:
        call = {"capabilities": {"elicitation": {}}}
        ended: list[Any] = []
        for definition in (grouped, fine):
            runner = Runner(definition, ring(), clock=Clock(), entropy=os.urandom)
            ended.append(await runner.round(Call("tools/call", definition.name, {}, **call)))
        await anyio.sleep(0)
        return ended

    failed, asked = anyio.run(main, backend=backend)
    assert failed.reason == "flow_failed"
    assert asked.state
    assert "asks inside a task group" in caplog.text


def test_a_flow_that_answers_its_own_unwinding_with_a_return_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    @flow
    def swallows() -> Flow[str]:
        try:
            return (yield from ask("?", str))
        except BaseException:
            return "failed"

    assert "returned while it was unwound" in log_of(swallows, caplog)


def test_a_flow_is_unwound_in_its_own_context_when_a_step_result_is_refused() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")
    seen: list[str] = []

    def give() -> Any:
        return {1, 2}

    @flow
    def sets() -> Flow[str]:
        variable.set("inside")
        try:
            yield from step(give)
        finally:
            seen.append(variable.get())
        return "x"

    assert tester(sets).start().failure.reason == "flow_failed"
    assert seen == ["inside"]


def test_a_dropped_effect_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    @flow
    def tidy() -> Flow[str]:
        try:
            return (yield from ask("?", str))
        finally:
            yield from step(work)

    tester(tidy).start()
    assert "tidy yields step(work) while it is unwound, which is dropped" in caplog.text


# ---------------------------------------------------------------------- what the source check leaves alone


def test_correct_code_passes_the_check_of_the_source() -> None:
    @flow
    def correct() -> Flow[str]:
        def row(number: int) -> Any:
            return ask(f"Row {number}?", int)

        later = None
        first = yield from row(1)
        second = yield from (later or ask("Or?", int))
        return f"{first}{second}"

    @flow
    def shadowed() -> Flow[str]:
        confirm = lambda n: n > 3  # noqa: E731
        n = yield from ask("?", int)
        return "more" if confirm(n) else "less"

    assert tester(correct).start().answer(1).answer(2).result == "12"
    assert tester(shadowed).start().answer(4).result == "more"


def in_an_assertion() -> Flow[str]:
    assert confirm("Sure?")
    return (yield from ask("?", str))


def given_to_a_step() -> Flow[str]:
    yield from step(work, ask("?", int))
    return "x"


def in_a_longer_condition() -> Flow[str]:
    n = yield from ask("?", int)
    if n > 3 and not confirm("Sure?"):
        return "no"
    return "yes"


@pytest.mark.parametrize(
    "body", [in_an_assertion, given_to_a_step, in_a_longer_condition], ids=lambda body: body.__name__
)
def test_more_places_where_an_effect_is_plainly_not_driven(body: Callable[..., Any]) -> None:
    with pytest.raises(DefinitionError, match="is not driven"):
        flow(body)


def test_methods_lambdas_and_flows_as_steps_are_refused() -> None:
    class Desk:
        def book(self, row: int) -> Flow[str]:
            return (yield from ask(f"{self}{row}?", str))

    with pytest.raises(DefinitionError, match="is a method"):
        flow(Desk.book)  # type: ignore[type-var]

    @flow
    def inner() -> Flow[str]:
        return (yield from ask("?", str))

    with pytest.raises(DefinitionError, match=r"call it with `yield from inner\(...\)`"):
        step(inner)

    @flow
    def unnamed() -> Flow[str]:
        return str((yield from step(lambda: 1)))

    assert tester(unnamed).start().failure.reason == "flow_failed"


# ---------------------------------------------------------------------- cancellation


@pytest.mark.parametrize("swallow", [False, True])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancelled_step_is_thrown_into_the_flow_once(
    swallow: bool, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    async def slow() -> int:
        await anyio.sleep_forever()
        return 1

    @flow
    def waits() -> Flow[str]:
        try:
            yield from step(slow)
        except BaseException as error:
            heard.append(type(error).__name__)
            if not swallow:
                raise
        return (yield from ask("?", str))

    runner = Runner(waits, ring(), clock=Clock(), entropy=os.urandom)

    async def main() -> Any:
        with anyio.CancelScope() as scope:
            scope.deadline = anyio.current_time() + 0.05
            return await runner.round(Call("tools/call", "waits", {}, capabilities={"elicitation": {}}))
        return "cancelled"

    assert anyio.run(main, backend=backend) == "cancelled"
    assert heard == ["CancelledError" if backend == "asyncio" else "Cancelled"]
    assert ("went on after step(slow) was cancelled" in caplog.text) is swallow


# ---------------------------------------------------------------------- limits


def test_a_loop_without_end_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    @flow
    def endless() -> Flow[str]:
        while True:
            yield from step(work)

    assert "endless has 256 events, the most a run may have" in log_of(endless, caplog, "too_large")


def test_too_many_events_and_too_large_values_are_named_when_they_are_recorded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def large() -> str:
        return "x" * 70_000

    def half() -> str:
        return "y" * 40_000

    @flow
    def many() -> Flow[str]:
        for _ in range(300):
            yield from step(work)
        return (yield from ask("?", str))

    @flow
    def big() -> Flow[str]:
        yield from step(large)
        return (yield from ask("?", str))

    @flow
    def token() -> Flow[str]:
        yield from step(half)
        return (yield from ask("?", str))

    assert "many has 256 events, the most a run may have, and goes on with step(work)" in log_of(
        many, caplog, "too_large"
    )
    assert "outcome of step(large) at test_misuse.py" in log_of(big, caplog, "too_large")
    assert "most of it is the outcome of step(half) at test_misuse.py" in log_of(token, caplog, "too_large")


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_step_result_nested_too_deep_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    @flow
    def deep() -> Flow[str]:
        yield from step(nested, 5000)
        return (yield from ask("?", str))

    assert "more than 64 levels deep" in log_of(deep, caplog)


@pytest.mark.parametrize("value", [(1, 2), {1, 2}, b"x", float("nan"), object(), {1: 2}])
def test_a_step_result_that_json_does_not_keep_is_refused_naming_step_and_path(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def give() -> Any:
        return {"a": [value]}

    @flow
    def unplain() -> Flow[str]:
        yield from step(give)
        return (yield from ask("?", str))

    log = log_of(unplain, caplog)
    assert "result of step(give) at test_misuse.py:" in log
    assert "$.a[0]" in log


def test_a_typed_result_that_changes_when_replayed_is_refused_naming_the_path(caplog: pytest.LogCaptureFixture) -> None:
    def child() -> Base:
        return Child(name="x")

    def drawn() -> Forgetful:
        return Forgetful()

    for fn in (child, drawn):

        @flow(name=fn.__name__)
        def typed() -> Flow[str]:
            yield from step(fn)  # noqa: B023
            return (yield from ask("?", str))

        assert "cannot be recorded" in log_of(typed, caplog)
        caplog.clear()


def test_an_answer_that_decodes_to_another_value_each_time_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    @flow
    def draws() -> Flow[str]:
        return (yield from ask("?", Drawn)).id

    t = tester(draws).start().answer({"name": "x"})
    assert t.failure.reason == "flow_failed"
    assert "$.id" in caplog.text


def test_a_coroutine_annotated_as_a_generator_flow_is_told_its_annotation() -> None:
    with pytest.raises(DefinitionError, match=r"^book is async and annotated -> Flow\[str\]; annotate it -> str$"):

        @flow
        async def book() -> Flow[str]:  # type: ignore[misc]
            return await ask("?", str)


def test_a_resource_without_its_uri_template_is_refused_where_it_is_written() -> None:
    with pytest.raises(DefinitionError, match=r"@flow.resource has no URI template; write @flow.resource\("):
        flow.resource(lambda: "")  # type: ignore[call-overload]


def test_roots_and_samples_are_answered_with_what_they_are_or_the_tester_says_how() -> None:
    @flow
    def both() -> Flow[str]:
        roots, said = yield from gather(list_roots(), sample("Say.", max_tokens=9))
        return f"{roots[0].uri} {said.text}"

    t = tester(both).start()
    with pytest.raises(FlowError, match=r"^roots are answered with a list of URIs, or a full result$"):
        t.answer(roots="file:///a")
    with pytest.raises(FlowError, match=r"^a sample is answered with a text, or a full result$"):
        t.answer(sample=["Hm."])
    assert t.asked["sample"].params["messages"][0]["content"] == {"type": "text", "text": "Say."}
    assert t.answer(roots=["file:///a"], sample="Hm.").result == "file:///a Hm."
