"""What the type checkers must infer from the public API. Checked by `tests/test_typecheck.py`, never run.

Each function is one promise; both spellings (`yield from` in a `Flow[...]`, `await` in an `async def`) make the same.
"""

# pyright: strict

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeVar, assert_type

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from mrtr_flow import (
    Declined,
    Flow,
    Root,
    Sampled,
    StepError,
    ask,
    ask_url,
    confirm,
    flow,
    gather,
    list_roots,
    sample,
    step,
)
from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from mrtr_flow.testing import FlowTester

T = TypeVar("T")
Row = Annotated[int, Field(gt=0)]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Seat(BaseModel):
    row: int
    letter: str = "A"


@dataclass
class Guest:
    name: str


class Address(TypedDict):
    street: str


SCHEMA: Final = {"type": "object", "properties": {"name": {"type": "string"}}}


def quote(flight: str, /, bags: int = 0, *, currency: str = "EUR") -> int:
    return len(flight) + bags + len(currency)


async def charge(amount: int) -> Seat:
    return Seat(row=amount)


def log(text: str) -> None:
    del text


async def notify(text: str) -> None:
    del text


def find(flight: str) -> Seat | None:
    return Seat(row=1) if flight else None


def charge_later(amount: int) -> Awaitable[Seat]:
    return charge(amount)


class Service:
    def price(self, flight: str) -> int:
        return len(flight)

    async def pay(self, amount: int) -> Seat:
        return Seat(row=amount)

    def __call__(self, text: str) -> str:
        return text


service = Service()


# ---------------------------------------------------------------------- ask and confirm


@flow
def a_generator_asks_for_every_kind_of_type() -> Flow[None]:
    assert_type((yield from ask("?", int)), int)
    assert_type((yield from ask("?", str)), str)
    assert_type((yield from ask("?", date)), date)
    assert_type((yield from ask("?", int | None)), int | None)
    assert_type((yield from ask("?", Literal["a", "b"])), Literal["a", "b"])
    assert_type((yield from ask("?", Literal[1, 2])), Literal[1, 2])
    assert_type((yield from ask("?", list[Literal["a", "b"]])), list[Literal["a", "b"]])
    assert_type((yield from ask("?", Annotated[int, Field(gt=0)])), int)
    assert_type((yield from ask("?", Row | None)), int | None)
    assert_type((yield from ask("?", Colour)), Colour)
    assert_type((yield from ask("?", Seat)), Seat)
    assert_type((yield from ask("?", Guest)), Guest)
    assert_type((yield from ask("?", Address)), Address)
    assert_type((yield from ask("?", SCHEMA)), dict[str, Any])
    assert_type((yield from ask("?", {"type": "object", "properties": {}})), dict[str, Any])
    assert_type((yield from ask("?", int, key="age", attempts=1)), int)
    assert_type((yield from confirm("?")), bool)
    assert_type((yield from confirm("?", key="sure")), bool)


@flow
async def a_coroutine_asks_for_every_kind_of_type() -> None:
    assert_type(await ask("?", int), int)
    assert_type(await ask("?", str), str)
    assert_type(await ask("?", date), date)
    assert_type(await ask("?", int | None), int | None)
    assert_type(await ask("?", Literal["a", "b"]), Literal["a", "b"])
    assert_type(await ask("?", Literal[1, 2]), Literal[1, 2])
    assert_type(await ask("?", list[Literal["a", "b"]]), list[Literal["a", "b"]])
    assert_type(await ask("?", Annotated[int, Field(gt=0)]), int)
    assert_type(await ask("?", Row | None), int | None)
    assert_type(await ask("?", Colour), Colour)
    assert_type(await ask("?", Seat), Seat)
    assert_type(await ask("?", Guest), Guest)
    assert_type(await ask("?", Address), Address)
    assert_type(await ask("?", SCHEMA), dict[str, Any])
    assert_type(await ask("?", {"type": "object", "properties": {}}), dict[str, Any])
    assert_type(await ask("?", int, key="age", attempts=1), int)
    assert_type(await confirm("?"), bool)
    assert_type(await confirm("?", key="sure"), bool)


@flow
def an_answer_narrows_and_is_used_without_a_cast() -> Flow[str]:
    row = yield from ask("Row?", int | None)
    seat = yield from ask("Seat?", Seat)
    while not (yield from confirm(f"Row {row}?")):
        row = yield from ask("Row?", int)
    return seat.letter if row is None else "-" * row


# ---------------------------------------------------------------------- steps


@flow
def a_generator_performs_sync_and_async_steps() -> Flow[None]:
    assert_type((yield from step(quote, "LH 1")), int)
    assert_type((yield from step(quote, "LH 1", 2, currency="USD")), int)
    assert_type((yield from step(charge, 5)), Seat)
    assert_type((yield from step(charge, amount=5)), Seat)
    assert_type((yield from step(find, "LH 1")), Seat | None)
    assert_type((yield from step(len, "LH 1")), int)
    yield from step(log, "done")
    yield from step(notify, "done")


@flow
async def a_coroutine_performs_sync_and_async_steps() -> None:
    assert_type(await step(quote, "LH 1"), int)
    assert_type(await step(quote, "LH 1", 2, currency="USD"), int)
    assert_type(await step(charge, 5), Seat)
    assert_type(await step(charge, amount=5), Seat)
    assert_type(await step(find, "LH 1"), Seat | None)
    assert_type(await step(len, "LH 1"), int)
    await step(log, "done")
    await step(notify, "done")


@flow
async def whatever_is_called_is_a_step() -> None:
    assert_type(await step(service.price, "LH 1"), int)
    assert_type(await step(service.pay, 5), Seat)
    assert_type(await step(service, "done"), str)
    assert_type(await step(Seat, row=1), Seat)
    assert_type(await step(charge_later, 5), Seat)
    assert_type(await step(partial(service.price, "LH 1")), int)
    assert_type(await step(partial(service.pay, 5)), Seat)
    assert_type(await step(lambda: 5), int)
    assert_type(await step(json.loads, "{}"), Any)


@flow
def options_keep_the_type_of_a_step() -> Flow[None]:
    assert_type((yield from step(quote, "LH 1").options(key="fare")), int)
    assert_type((yield from step(charge, 5).options(public=True)), Seat)


@flow
async def options_keep_the_type_of_an_awaited_step() -> None:
    assert_type(await step(quote, "LH 1").options(key="fare"), int)
    assert_type(await step(charge, 5).options(public=True), Seat)


# ---------------------------------------------------------------------- gather


@flow
def a_generator_gathers_tuples() -> Flow[None]:
    assert_type((yield from gather(ask("?", int), confirm("?"))), tuple[int, bool])
    three = yield from gather(ask("?", Seat), ask("?", Colour, key="colour"), ask("?", SCHEMA, key="raw"))
    assert_type(three, tuple[Seat, Colour, dict[str, Any]])
    seat, colour, raw = three
    assert_type(seat, Seat)
    assert_type(colour, Colour)
    assert_type(raw, dict[str, Any])
    assert_type((yield from gather(ask("?", int))), tuple[int])
    four = yield from gather(ask("?", int), confirm("?"), ask("?", str), ask("?", Seat))
    assert_type(four, tuple[int, bool, str, Seat])
    five = yield from gather(ask("?", int), confirm("?"), ask("?", str), ask("?", Seat), ask("?", int | None))
    assert_type(five, tuple[int, bool, str, Seat, int | None])
    rows = [ask(f"Row {number}?", int) for number in range(8)]
    assert_type((yield from gather(*rows)), tuple[int, ...])
    six = yield from gather(rows[0], rows[1], rows[2], rows[3], rows[4], rows[5])
    assert_type(six, tuple[int, ...])


@flow
async def a_coroutine_gathers_tuples() -> None:
    assert_type(await gather(ask("?", int), confirm("?")), tuple[int, bool])
    three = await gather(ask("?", Seat), ask("?", Colour, key="colour"), ask("?", SCHEMA, key="raw"))
    assert_type(three, tuple[Seat, Colour, dict[str, Any]])
    seat, colour, raw = three
    assert_type(seat, Seat)
    assert_type(colour, Colour)
    assert_type(raw, dict[str, Any])
    assert_type(await gather(ask("?", int)), tuple[int])
    four = await gather(ask("?", int), confirm("?"), ask("?", str), ask("?", Seat))
    assert_type(four, tuple[int, bool, str, Seat])
    five = await gather(ask("?", int), confirm("?"), ask("?", str), ask("?", Seat), ask("?", int | None))
    assert_type(five, tuple[int, bool, str, Seat, int | None])
    rows = [ask(f"Row {number}?", int) for number in range(8)]
    assert_type(await gather(*rows), tuple[int, ...])
    six = await gather(rows[0], rows[1], rows[2], rows[3], rows[4], rows[5])
    assert_type(six, tuple[int, ...])


# ---------------------------------------------------------------------- helpers


def free_row(flight: str) -> Flow[int]:
    """A helper that asks: no flow by itself."""
    row = yield from ask("Row?", int)
    while (yield from step(quote, flight)) < row:
        row = yield from ask("Another row?", int)
    return row


def chosen(kind: type[T]) -> Flow[T]:
    """A helper that asks for whatever it is given."""
    return (yield from ask("?", kind))


async def awaited_row(flight: str) -> int:
    row = await ask("Row?", int)
    while await step(quote, flight) < row:
        row = await ask("Another row?", int)
    return row


@flow
def a_generator_helper_keeps_its_type() -> Flow[int]:
    row = yield from free_row("LH 1")
    assert_type(row, int)
    assert_type((yield from chosen(Seat)), Seat)
    return row


@flow
async def a_coroutine_helper_keeps_its_type() -> int:
    row = await awaited_row("LH 1")
    assert_type(row, int)
    return row


# ---------------------------------------------------------------------- @flow


@flow
def bare(flight: str, *, bags: int = 0) -> Flow[Seat]:
    row = yield from ask(f"{flight}, {bags} bags. Row?", int)
    return Seat(row=row)


@flow(title="Book", version="2", examples={"flight": "LH 1"})
def with_options(flight: str, *, bags: int = 0) -> Flow[Seat]:
    row = yield from ask(f"{flight}, {bags} bags. Row?", int)
    return Seat(row=row)


@flow
async def awaited_bare(flight: str, *, bags: int = 0) -> Seat:
    row = await ask(f"{flight}, {bags} bags. Row?", int)
    return Seat(row=row)


@flow(name="awaited", ttl=60, annotations={"readOnlyHint": True})
async def awaited_with_options(flight: str, *, bags: int = 0) -> Seat:
    row = await ask(f"{flight}, {bags} bags. Row?", int)
    return Seat(row=row)


@flow
def a_flow_inside_a_generator_keeps_its_result() -> Flow[None]:
    one = yield from bare("LH 1", bags=1)
    assert_type(one, Seat)
    two = yield from with_options("LH 1", bags=1)
    assert_type(two, Seat)


@flow
async def a_flow_inside_a_coroutine_keeps_its_result() -> None:
    one = await awaited_bare("LH 1", bags=1)
    assert_type(one, Seat)
    two = await awaited_with_options("LH 1", bags=1)
    assert_type(two, Seat)


def a_flow_says_what_it_is() -> None:
    assert_type(bare.name, str)
    assert_type(with_options.version, str | None)
    assert_type(awaited_bare.ttl, float)


def every_host_takes_every_flow() -> None:
    FlowTester(bare).start(flight="LH 1")
    FlowTester(awaited_with_options).start(flight="LH 1")
    JsonRpcServer([bare, with_options, awaited_bare, awaited_with_options], name="flights")


# ---------------------------------------------------------------------- what stays untyped, and what may be caught


@flow
def a_bare_yield_is_allowed_and_untyped() -> Flow[str]:
    row = yield ask("?", int)
    assert_type(row, Any)
    sure = yield confirm("?")
    assert_type(sure, Any)
    return f"{row} {sure}"


@flow
def refusals_and_failures_are_caught_with_their_types() -> Flow[str]:
    try:
        row = yield from ask("?", int)
        yield from step(log, str(row))
    except Declined as error:
        assert_type(error.key, str)
        return "declined"
    except StepError as error:
        assert_type(error.step, str)
        return error.type
    return "done"


# ---------------------------------------------------------------------- the other questions, and what to go on with


@flow
def a_generator_asks_everything() -> Flow[None]:
    assert_type((yield from ask_url("?", "https://x.example")), None)
    assert_type((yield from ask_url("?", "https://x.example", if_declined=False)), bool | None)
    assert_type((yield from sample("?", max_tokens=5)), Sampled)
    assert_type((yield from sample("?", max_tokens=5, if_unsupported=None)), Sampled | None)
    assert_type((yield from list_roots()), list[Root])
    assert_type((yield from list_roots(if_unsupported=None)), list[Root] | None)
    assert_type((yield from ask("?", int, if_declined="x")), int | str)
    assert_type((yield from ask("?", int, if_unsupported=None)), int | None)
    assert_type((yield from ask("?", SCHEMA, if_declined=None)), dict[str, Any] | None)
    assert_type((yield from confirm("?", if_unsupported=None)), bool | None)
    assert_type(
        (yield from gather(ask("?", int), sample("?", max_tokens=5), list_roots())), tuple[int, Sampled, list[Root]]
    )
    assert_type((yield from gather(ask_url("?", "https://x.example"), confirm("?"))), tuple[None, bool])


@flow
async def a_coroutine_asks_everything() -> None:
    assert_type(await sample("?", max_tokens=5), Sampled)
    assert_type(await list_roots(), list[Root])
    assert_type(await ask("?", int, if_declined=None, if_unsupported="x"), int | str | None)
    assert_type(await gather(ask("?", int), sample("?", max_tokens=5), list_roots()), tuple[int, Sampled, list[Root]])
