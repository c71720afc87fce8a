"""What the type checkers must refuse: every line marked `# wrong`, and no other. Checked, never run."""

# pyright: strict

from __future__ import annotations

from mrtr_flow import Flow, ask, confirm, flow, gather, step


def quote(flight: str, *, bags: int = 0) -> int:
    return len(flight) + bags


async def charge(amount: int) -> str:
    return str(amount)


# ---------------------------------------------------------------------- results


@flow
def results_have_the_type_that_was_asked_for() -> Flow[None]:
    _text: str = yield from ask("?", int)  # wrong
    _maybe: int = yield from ask("?", int | None)  # wrong
    _sure: str = yield from confirm("?")  # wrong
    _raw: list[str] = yield from ask("?", {"type": "object", "properties": {}})  # wrong
    _fare: str = yield from step(quote, "LH 1")  # wrong
    _paid: int = yield from step(charge, 5)  # wrong
    _named: str = yield from step(quote, "LH 1").options(key="fare")  # wrong
    _pair: tuple[int, int] = yield from gather(ask("?", int), ask("?", str))  # wrong


@flow
async def awaited_results_have_the_type_that_was_asked_for() -> None:
    _text: str = await ask("?", int)  # wrong
    _maybe: int = await ask("?", int | None)  # wrong
    _sure: str = await confirm("?")  # wrong
    _raw: list[str] = await ask("?", {"type": "object", "properties": {}})  # wrong
    _fare: str = await step(quote, "LH 1")  # wrong
    _paid: int = await step(charge, 5)  # wrong
    _named: str = await step(quote, "LH 1").options(key="fare")  # wrong
    _pair: tuple[int, int] = await gather(ask("?", int), ask("?", str))  # wrong


@flow
def a_flow_returns_what_it_declares() -> Flow[str]:
    row = yield from ask("?", int)
    return row  # wrong


# ---------------------------------------------------------------------- arguments


@flow
def steps_take_the_arguments_of_their_function() -> Flow[None]:
    yield from step(quote, 1)  # wrong
    yield from step(quote)  # wrong
    yield from step(quote, "LH 1", 2)  # wrong
    yield from step(quote, "LH 1", bags="two")  # wrong
    yield from step(quote, "LH 1", weight=2)  # wrong
    yield from step(charge, "five")  # wrong
    yield from step(charge)  # wrong
    yield from step(quote, "LH 1").options(name="fare")  # wrong
    yield from step("quote", "LH 1")  # wrong


@flow
async def awaited_steps_take_the_arguments_of_their_function() -> None:
    await step(quote, 1)  # wrong
    await step(quote)  # wrong
    await step(charge, "five")  # wrong
    await step(charge)  # wrong


@flow
def questions_take_a_text_first() -> Flow[None]:
    yield from ask(int, "?")  # wrong
    yield from ask("?")  # wrong
    yield from ask("?", int, attempts="3")  # wrong
    yield from ask("?", int, default=3)  # wrong
    yield from confirm(True)  # wrong
    yield from gather("?")  # wrong
    yield from gather(ask)  # wrong


# ---------------------------------------------------------------------- flows


@flow
def bare(flight: str) -> Flow[int]:
    return (yield from ask(f"{flight}?", int))


@flow(title="Book")
def with_options(flight: str) -> Flow[int]:
    return (yield from ask(f"{flight}?", int))


@flow
async def awaited_bare(flight: str) -> int:
    return await ask(f"{flight}?", int)


@flow(title="Book")
async def awaited_with_options(flight: str) -> int:
    return await ask(f"{flight}?", int)


@flow
def flows_keep_their_parameters() -> Flow[None]:
    yield from bare(1)  # wrong
    yield from bare()  # wrong
    yield from with_options(1)  # wrong
    yield from with_options()  # wrong


@flow
async def awaited_flows_keep_their_parameters() -> None:
    await awaited_bare(1)  # wrong
    await awaited_bare()  # wrong
    await awaited_with_options(1)  # wrong
    await awaited_with_options()  # wrong


@flow
def flows_keep_their_result() -> Flow[None]:
    _one: str = yield from bare("LH 1")  # wrong
    _two: str = yield from with_options("LH 1")  # wrong


@flow
async def awaited_flows_keep_their_result() -> None:
    _one: str = await awaited_bare("LH 1")  # wrong
    _two: str = await awaited_with_options("LH 1")  # wrong


@flow
async def a_coroutine_awaits_no_generator_flow() -> None:
    await bare("LH 1")  # wrong


@flow(timeout=3)  # wrong
def options_are_known() -> Flow[int]:
    return (yield from ask("?", int))


@flow(ttl="30")  # wrong
def options_have_types() -> Flow[int]:
    return (yield from ask("?", int))


@flow  # wrong
def a_plain_function_is_no_flow() -> int:
    return 1


@flow(title="Book")  # wrong
def a_plain_function_with_options_is_no_flow() -> int:
    return 1


# ---------------------------------------------------------------------- forgotten keywords


@flow
def a_question_that_is_not_driven_is_no_answer() -> Flow[int]:
    yield from confirm("?")
    return ask("?", int)  # wrong


@flow
async def a_question_that_is_not_awaited_is_no_answer() -> int:
    return ask("?", int)  # wrong
