"""Forms on the wire are exactly the closed grammar, and answers become values of the asked type."""

from __future__ import annotations

import datetime
import typing
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from mrtr_flow import DefinitionError, Flow, ask, flow
from mrtr_flow.form import form_for, raw_form
from mrtr_flow.schema import Invalid
from tests.helpers import tester


class Color(Enum):
    RED = "r"
    DARK_BLUE = "b"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Trip(BaseModel):
    to: Annotated[str, Field(min_length=2, max_length=20, description="City")]
    nights: Annotated[int, Field(gt=0, lt=60)]
    budget: Annotated[float, Field(gt=0)] = 100
    color: Color
    level: Level = Level.HIGH
    day: datetime.date
    labels: list[Literal["bug", "docs"]] = []
    note: str | None = None
    code: Annotated[str, Field(pattern="^[A-Z]+$")] = "A"
    breakfast: bool = False


def test_a_model_is_sent_in_the_grammar_and_nothing_else() -> None:
    assert form_for(Trip).schema == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "title": "To", "minLength": 2, "maxLength": 20, "description": "City"},
            "nights": {"type": "integer", "title": "Nights", "minimum": 1, "maximum": 59},
            "budget": {"type": "number", "title": "Budget", "default": 100.0, "description": "Must be more than 0."},
            "color": {
                "type": "string",
                "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Dark blue"}],
                "title": "Color",
            },
            "level": {
                "type": "string",
                "oneOf": [{"const": "1", "title": "Low"}, {"const": "2", "title": "High"}],
                "title": "Level",
                "default": "2",
            },
            "day": {"type": "string", "title": "Day", "format": "date"},
            "labels": {
                "type": "array",
                "items": {"type": "string", "enum": ["bug", "docs"]},
                "title": "Labels",
                "default": [],
            },
            "note": {"type": "string", "title": "Note"},
            "code": {"type": "string", "title": "Code", "default": "A", "description": "Must match ^[A-Z]+$."},
            "breakfast": {"type": "boolean", "title": "Breakfast", "default": False},
        },
        "required": ["to", "nights", "color", "day"],
    }


@dataclass
class Seat:
    row: int
    letter: Literal["A", "B"] = "A"


class Address(TypedDict):
    street: str
    number: typing.NotRequired[int]


class Plain(typing.TypedDict):
    street: str


@pytest.mark.parametrize(
    ("asked", "sent", "value"),
    [
        (int, {"value": 5}, 5),
        (str, {"value": ""}, ""),
        (bool, {"value": False}, False),
        (float, {"value": 5}, 5.0),
        (int | None, {}, None),
        (int | None, {"value": 3}, 3),
        (Literal["a", "b"], {"value": "b"}, "b"),
        (Literal[1, 2], {"value": "2"}, 2),
        (Literal["x", 7], {"value": "7"}, 7),
        (Color, {"value": "b"}, Color.DARK_BLUE),
        (Color | None, {"value": "r"}, Color.RED),
        (Level, {"value": "1"}, Level.LOW),
        (datetime.date, {"value": "2026-01-02"}, datetime.date(2026, 1, 2)),
        (list[Color], {"value": ["r", "b"]}, [Color.RED, Color.DARK_BLUE]),
        (list[Level], {"value": ["2"]}, [Level.HIGH]),
        (Decimal, {"value": "1.10"}, Decimal("1.1")),
        (Annotated[int, Field(ge=3)], {"value": 3}, 3),
        (Seat, {"row": 3}, Seat(3)),
        (Address, {"street": "x"}, {"street": "x"}),
        (Plain, {"street": "x"}, {"street": "x"}),
    ],
)
def test_an_answer_becomes_a_value_of_the_asked_type_live_and_replayed(asked: Any, sent: Any, value: Any) -> None:
    seen: list[Any] = []

    @flow
    def question() -> Flow[str]:
        seen.append((yield from ask("?", asked)))
        return (yield from ask("Again?", str))

    tester(question).start().answer(sent).answer("x")
    assert seen == [value, value]
    assert [type(item) for item in seen] == [type(value)] * 2


def test_defaults_are_filled_in_by_the_server_and_left_out_of_the_token() -> None:
    value = form_for(Trip).decode(form_for(Trip).accept({"to": "Rome", "nights": 1, "color": "r", "day": "2026-01-02"}))
    assert (value.budget, value.level, value.labels, value.note, value.breakfast) == (100, Level.HIGH, [], None, False)
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "default": 0},
            "b": {"type": "boolean", "default": False},
            "c": {"type": "string"},
        },
    }
    assert raw_form(schema).decode({}) == {"a": 0, "b": False}


def test_the_types_own_validators_ask_again_with_their_reason() -> None:
    class Pair(BaseModel):
        low: int
        high: int

        @field_validator("high")
        @classmethod
        def ordered(cls, high: int, info: Any) -> int:
            if high < info.data["low"]:
                raise ValueError("must not be below low")
            return high

    @flow
    def pair() -> Flow[int]:
        answer = yield from ask("?", Pair)
        return answer.high - answer.low

    t = tester(pair).start().answer({"low": 5, "high": 3})
    assert "high: value error, must not be below low" in t.message
    assert t.answer({"low": 5, "high": 7}).result == 2


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ({"type": "string", "pattern": "x"}, "'pattern'"),
        ({"type": "string", "format": "ipv4"}, "'ipv4'"),
        ({"type": "integer", "exclusiveMinimum": 0}, "'exclusiveMinimum'"),
        ({"type": "integer", "enum": [1]}, "'enum'"),
        ({"type": "string", "enum": []}, "enum"),
        ({"type": "string", "enum": ["a"], "enumNames": ["A", "B"]}, "enumNames"),
        ({"type": "string", "oneOf": [{"const": "a"}]}, "oneOf"),
        ({"type": "array", "items": {"type": "string"}}, "items"),
        ({"type": "array", "items": {"type": "integer", "enum": [1]}}, "enum"),
        ({"type": "object"}, "type"),
        ({"type": ["string", "null"]}, "type"),
        ({"anyOf": [{"type": "string"}]}, "type"),
        ({"$ref": "#/x"}, "type"),
        ({"type": "string", "default": 3}, "default"),
        ({"type": "integer", "default": 5.5}, "default"),
        ({"type": "string", "enum": ["a"], "default": "b"}, "default"),
        (3, "type"),
        ({"type": "string", "minLength": "x"}, "minLength"),
        ({"type": "string", "minLength": 5, "maxLength": 1}, "minLength 5 over maxLength 1"),
        ({"type": "integer", "minimum": True}, "minimum"),
        ({"type": "string", "title": 5}, "title"),
        ({"type": "string", "enum": ["a", "a"]}, "enum"),
        ({"type": "string", "oneOf": [1]}, "oneOf"),
        ({"type": "string", "oneOf": [{"const": 1, "title": "x"}]}, "oneOf"),
        ({"type": "string", "enum": ["a"], "enumNames": 5}, "enumNames"),
        ({"type": "array", "items": {"type": "integer", "enum": ["a"]}}, "enum"),
    ],
)
def test_a_raw_form_outside_the_grammar_is_refused_and_inside_is_sent_as_it_is(field: Any, problem: str) -> None:
    with pytest.raises(DefinitionError, match=r"field 'a'|default of field 'a'") as caught:
        ask("?", {"type": "object", "properties": {"a": field}})
    assert problem in str(caught.value)


def test_a_raw_form_is_sent_as_it_is() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "a": {"type": "string", "enum": ["x"], "enumNames": ["X"], "default": "x"},
            "b": {"type": "array", "items": {"anyOf": [{"const": "p", "title": "P"}]}, "minItems": 1, "maxItems": 1},
            "c": {"type": "number", "minimum": 0.5},
        },
        "required": ["b"],
    }
    t = tester(_raw(schema)).start()
    assert t.asked["ask"].schema == schema
    assert t.answer({"b": ["P"], "c": 1, "extra": 1}).result == {"a": "x", "b": ["p"], "c": 1}


def _raw(schema: Any) -> Any:
    @flow
    def raw() -> Flow[dict[str, Any]]:
        return (yield from ask("?", schema))

    return raw


@pytest.mark.parametrize(
    "top",
    [
        {"title": "x"},
        {"additionalProperties": False},
        {"$defs": {}},
        {"type": "array"},
        {"properties": []},
        {"properties": {}},
        {"required": ["nope"]},
        {"required": "a"},
        {"required": 3},
        {"properties": {"a": {"type": "string", "default": datetime.date(2026, 1, 1)}}},
    ],
)
def test_only_the_grammars_keywords_are_allowed_on_top(top: Any) -> None:
    with pytest.raises(DefinitionError, match="form"):
        ask("?", {"type": "object", "properties": {"a": {"type": "string"}}, **top})


def test_a_decimal_keeps_every_digit_and_a_float_refuses_what_it_cannot_keep() -> None:
    exact = form_for(Decimal)
    assert exact.decode(exact.accept({"value": "0.1234567890123456789012345"})) == Decimal(
        "0.1234567890123456789012345"
    )
    assert str(exact.decode(exact.accept({"value": "5.10"}))) == "5.10"
    number = form_for(float)
    assert number.decode(number.accept({"value": "5.10"})) == 5.1
    for value in ("0.1234567890123456789012345", 9007199254740993, "9007199254740993", 10**399, "1" * 399, "1e400"):
        with pytest.raises(Invalid):
            number.accept({"value": value})


def test_aliases_are_what_is_asked_and_answered() -> None:
    class Aliased(BaseModel):
        x: str = Field("dx", alias="y")
        y: str = Field("dy", alias="z")

    form = form_for(Aliased)
    assert list(form.schema["properties"]) == ["y", "z"]
    value = form.decode(form.accept({"y": "1"}))
    assert (value.x, value.y) == ("1", "dy")
