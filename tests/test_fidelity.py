"""A value that a flow sees again is the value it saw first, or it is refused when it is recorded."""

from __future__ import annotations

import datetime
import decimal
import functools
import typing
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, PrivateAttr, computed_field, model_validator

from mrtr_flow import DefinitionError, Flow, StepError, ask, flow, gather, step
from mrtr_flow.form import form_for
from tests.helpers import tester
from tests.steps_elsewhere import traced


class Color(Enum):
    RED = "r"


class Point(BaseModel):
    x: int
    y: float = 0

    @cached_property
    def size(self) -> int:
        return self.x * 2


class Area(BaseModel):
    side: int

    @computed_field
    @property
    def area(self) -> int:
        return self.side**2


class Secretive(BaseModel):
    name: str
    _token: str = PrivateAttr("none")


class Before(BaseModel):
    n: int

    @model_validator(mode="before")
    @classmethod
    def measured(cls, data: Any) -> Any:
        if "raw" in data:
            data["n"] = len(data.pop("raw"))
        return data


class Row(typing.TypedDict):
    id: int


@dataclass
class Pair:
    left: datetime.date
    right: tuple[int, ...]


class Drawn(BaseModel):
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)


class Quote(BaseModel):
    price: decimal.Decimal


def replayed(fn: Callable[..., Any], *, fails: bool = False) -> Any:
    """What a flow sees of a step's result, live and replayed."""
    seen: list[Any] = []

    @flow
    def look() -> Flow[str]:
        seen.append((yield from step(fn)))
        return (yield from ask("?", str))

    t = tester(look).start()
    if fails:
        assert t.failure.reason == "flow_failed"
        return str(t.failure.cause)
    t.answer("x")
    live, again = seen
    assert live == again
    assert type(live) is type(again)
    return live


def returning(annotation: Any, value: Any) -> Callable[[], Any]:
    def give() -> Any:
        return value

    give.__annotations__["return"] = annotation
    return give


def point() -> Point:
    made = Point(x=2)
    assert made.size == 4
    return made


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 3),
        (Color, Color.RED),
        (datetime.datetime, datetime.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=datetime.UTC)),
        (datetime.timedelta, datetime.timedelta(days=1, microseconds=5)),
        (uuid.UUID, uuid.UUID(int=5)),
        (decimal.Decimal, decimal.Decimal("1.10")),
        (Pair, Pair(datetime.date(2026, 1, 2), (1, 2))),
        (dict[int, Color], {5: Color.RED}),
        (list[Row], [{"id": 1}]),
        (typing.List[Row], [{"id": 1}]),  # noqa: UP006
        (Row | None, None),
        (tuple[int, str], (1, "a")),
        (Area, Area(side=3)),
        (Before, Before(n=3)),
        (Point | Area, Area(side=2)),
        (dict[str, Any], {"a": [1, {"b": None}]}),
        (Literal["b", "a"], "a"),
        (None, None),
    ],
    ids=str,
)
def test_a_typed_result_is_the_same_live_and_replayed(annotation: Any, value: Any) -> None:
    assert replayed(returning(annotation, value)) == value


def test_what_a_model_caches_beside_its_fields_does_not_count() -> None:
    assert replayed(point) == Point(x=2)


def test_a_float_that_happens_to_be_whole_is_a_float_both_times() -> None:
    live = replayed(returning(float, 10))
    assert (live, type(live)) == (10.0, float)


def secretive() -> Secretive:
    made = Secretive(name="x")
    made._token = "real"
    return made


@pytest.mark.parametrize(
    ("fn", "place"),
    [
        (returning(dict, {1: "a"}), "$"),
        (returning(dict[Any, Any], {"1": 1, 2: 3}), "$"),
        (returning(object, (1, 2)), "$"),
        (returning(set[int], {1, 2}), "$"),
        (returning(list[float], [float("nan")]), "finite"),
        (secretive, "$._token"),
    ],
)
def test_what_would_come_back_as_something_else_is_refused_with_the_place(fn: Any, place: str) -> None:
    assert place in replayed(fn, fails=True)


def test_a_refused_result_is_not_quoted(caplog: pytest.LogCaptureFixture) -> None:
    def leak() -> Quote:
        return Quote.model_construct(price="SECRETSECRET")  # type: ignore[arg-type]

    assert "SECRET" not in replayed(leak, fails=True)
    assert "SECRET" not in caplog.text


def test_arguments_that_are_drawn_anew_each_round_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    @dataclass
    class Stamped:
        at: float = field(default_factory=lambda: float(uuid.uuid4().int))

    @flow
    def model(m: Drawn) -> Flow[str]:
        return m.id + (yield from ask("?", str))

    assert tester(model).start(m={"id": "given"}).asked
    assert tester(model).start(m={}).failure.reason == "flow_failed"
    assert "argument at $.m.id decodes to another value each round" in caplog.text


def test_a_validator_that_changes_its_input_gets_an_input_of_its_own() -> None:
    @flow
    def question(m: Before) -> Flow[int]:
        return m.n + (yield from ask("?", Before)).n

    assert tester(question).start(m={"raw": "abc"}).answer({"n": 4}).result == 7


def test_order_in_a_literal_is_its_own_in_each_flow_whatever_was_asked_before() -> None:
    one, other = form_for(Literal["yes", "no"]), form_for(Literal["no", "yes"])
    assert one.schema["properties"]["value"]["enum"] == ["yes", "no"]
    assert other.schema["properties"]["value"]["enum"] == ["no", "yes"]
    assert one.digest != other.digest
    assert form_for(list[Literal["a", "b"]]).digest != form_for(list[Literal["b", "a"]]).digest


@traced
def wrapped() -> Quote:
    return Quote(price=decimal.Decimal("1.50"))


def awaitable() -> Awaitable[int]:
    async def later() -> int:
        return 5

    return later()


@dataclass
class Callable_:
    rate: int

    def __call__(self) -> int:
        return self.rate


class Service:
    def load(self) -> Quote:
        return Quote(price=decimal.Decimal(2))


@pytest.mark.parametrize(
    ("fn", "value"),
    [
        (wrapped, Quote(price=decimal.Decimal("1.50"))),
        (awaitable, 5),
        (Callable_(7), 7),
        (Service().load, Quote(price=decimal.Decimal(2))),
        (functools.partial(returning(int, 3)), 3),
        (str, ""),
    ],
    ids=str,
)
def test_every_kind_of_callable_is_a_step_with_its_own_result_type(fn: Any, value: Any) -> None:
    assert replayed(fn) == value


def test_partials_are_named_by_their_function() -> None:
    effect = step(functools.partial(returning(int, 3)))
    assert effect.name == "give"


def test_a_result_type_without_a_schema_is_refused_where_the_step_is_made_with_its_name() -> None:
    class Connection:
        pass

    with pytest.raises(DefinitionError, match=r"result of step\(give\) at test_fidelity.py:\d+ cannot be recorded"):
        step(returning(Connection, Connection()))


def test_what_a_public_steps_exception_says_is_not_recorded_and_a_long_one_is_cut() -> None:
    def fail() -> None:
        raise ValueError("x" * 70_000)

    seen: list[str] = []

    @flow
    def careful() -> Flow[str]:
        for effect in (step(fail), step(fail).options(public=True)):
            try:
                yield from effect
            except StepError as error:
                seen.append(error.message)
        return (yield from ask("?", str))

    assert tester(careful).start().asked
    assert [len(text) for text in seen] == [1000, 0]


def test_an_explicit_key_is_verbatim_in_a_gather_whatever_stands_before_it() -> None:
    @flow
    def both() -> Flow[tuple[int, int]]:
        return (yield from gather(ask("a?", int), ask("b?", int, key="ask")))

    t = tester(both).start()
    assert {key: asked.message for key, asked in t.asked.items()} == {"ask": "b?", "ask~2": "a?"}
    assert t.answer(**{"ask": 1, "ask~2": 2}).result == (2, 1)


def test_wrong_answers_are_counted_for_what_is_still_open_and_start_anew_with_each_right_one() -> None:
    @flow
    def both() -> Flow[tuple[int, int]]:
        return (yield from gather(ask("a?", int, key="a"), ask("b?", int, key="b")))

    t = tester(both).start().answer(a="x").answer(a="y").answer(a=1, b="z").answer(b="z")
    assert t.answer(b=2).result == (1, 2)


def test_an_answer_that_is_too_long_is_asked_again_and_nothing_is_lost() -> None:
    @flow
    def story() -> Flow[int]:
        name = yield from ask("Name?", str)
        return len(name) + len((yield from ask("Story?", str)))

    t = tester(story).start().answer("Ada").answer("x" * 100_000)
    assert "it is too long" in t.message
    t.answer("y" * 17_000)
    assert "bytes of at most 16384" in t.message
    assert t.answer("z" * 16_000).result == 16_003


def test_twenty_thousand_choices_are_asked_again() -> None:
    @flow
    def choose() -> Flow[int]:
        return len((yield from ask("?", list[Literal["a", "b"]])))

    t = tester(choose).start().answer(["a"] * 20_000)
    assert "it is too long" in t.message
    assert t.answer(["a"]).result == 1


def test_a_validator_that_raises_anything_is_a_wrong_answer_without_its_text() -> None:
    class Odd(BaseModel):
        n: int

        @model_validator(mode="after")
        def refuse(self) -> Odd:
            raise KeyError(f"SECRET {self.n}")

    @flow
    def odd() -> Flow[str]:
        return str((yield from ask("?", Odd)))

    t = tester(odd).start().answer({"n": 1})
    assert t.message.endswith("is not accepted (KeyError).)")


def test_defaults_of_parameters_are_of_their_type_or_refused_at_definition() -> None:
    def wrong(n: int = "zz") -> Flow[str]:  # type: ignore[assignment]
        return (yield from ask(f"{n}?", str))

    with pytest.raises(DefinitionError, match="default of parameter 'n' of wrong is not of its type"):
        flow(wrong)


def test_a_changed_parameter_type_is_another_flow() -> None:
    def before(row: int) -> Flow[str]:
        yield from ask(f"Row {row}?", str)
        return (yield from ask("?", str))

    def after(row: float) -> Flow[str]:
        yield from ask(f"Row {row:.0f}?", str)
        return (yield from ask("?", str))

    t = tester(flow(name="seat")(before)).start(row=3).answer("x")
    t.definition = flow(name="seat")(after)
    assert t.answer("y").failure.reason == "flow_changed"
