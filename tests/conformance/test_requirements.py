"""The manifest of requirements is whole, and names tests that exist."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.requirements import OFFICIAL, REQUIREMENTS, Requirement
from tests.conformance.test_official import SCENARIOS

ROOT = Path(__file__).parents[2]
IDS = (
    *(f"S{number}" for number in range(1, 38)),
    *(f"E{number}" for number in range(1, 16)),
    *(f"G{number}" for number in range(1, 4)),
    *(f"X{number}" for number in range(1, 18)),
    *(f"M{number}" for number in range(1, 5)),
    *(f"H{number}" for number in range(1, 7)),
    "R1",
)
LEFT_OUT = {"E14": "how a client shows a page and gets consent for it binds the client only"}


def node_ids() -> Iterator[str]:
    """The ids of all tests, without parameters."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT).as_posix()
        body = ast.parse(path.read_text()).body
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                yield from (f"{file}::{node.name}::{name}" for name in tests_in(node.body))
        yield from (f"{file}::{name}" for name in tests_in(body))


def tests_in(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


KNOWN = frozenset(node_ids())


def test_every_requirement_is_there_once_and_each_one_left_out_has_a_reason() -> None:
    found = [requirement.id for requirement in REQUIREMENTS]
    assert found == [id for id in IDS if id not in LEFT_OUT]
    assert set(LEFT_OUT) <= set(IDS)
    assert all(LEFT_OUT.values())


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_a_requirement_has_a_test_or_an_honest_note(requirement: Requirement) -> None:
    kind = requirement.note.partition(": ")[0]
    assert kind in ("", "host", "author")
    assert requirement.shown_by or kind == "host"
    assert requirement.note == "" or len(requirement.note) > len(f"{kind}: ")
    assert requirement.clause
    assert requirement.text
    assert "\n" not in requirement.text


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_the_tests_it_names_exist(requirement: Requirement) -> None:
    for node_id in requirement.shown_by:
        name, bracket, parameter = node_id.partition("[")
        assert name in KNOWN, f"{requirement.id} names {node_id}, which is no test"
        if bracket:
            assert name == OFFICIAL
            assert parameter.removesuffix("]") in SCENARIOS
    assert len(set(requirement.shown_by)) == len(requirement.shown_by)


def test_every_test_of_a_row_and_every_official_scenario_shows_a_requirement() -> None:
    named = {node_id for requirement in REQUIREMENTS for node_id in requirement.shown_by}
    rows = {node_id for node_id in KNOWN if node_id.startswith("tests/conformance/test_rows.py::")}
    assert rows <= named
    assert {f"{OFFICIAL}[{scenario}]" for scenario in SCENARIOS} <= named


def test_a_name_that_is_no_test_would_be_noticed() -> None:
    assert "tests/conformance/test_requirements.py::test_a_name_that_is_no_test_would_be_noticed" in KNOWN
    assert "tests/conformance/test_requirements.py::tests_in" not in KNOWN
    assert not any("conformance/server.py" in node_id for node_id in KNOWN)
