"""The official conformance scenarios against a server that is built with flows: no failure, no warning."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import IO, cast

import pytest

from tests.conformance import official

# scenario, and how many checks of it must have succeeded at the least
SCENARIOS = {
    "input-required-result-basic-elicitation": 3,
    "input-required-result-basic-sampling": 3,
    "input-required-result-basic-list-roots": 3,
    "input-required-result-request-state": 3,
    "input-required-result-multiple-input-requests": 3,
    "input-required-result-multi-round": 4,
    "input-required-result-missing-input-response": 2,
    "input-required-result-non-tool-request": 3,
    "input-required-result-result-type": 2,
    "input-required-result-unsupported-methods": 2,
    "input-required-result-tampered-state": 2,
    "input-required-result-capability-check": 2,
    "input-required-result-ignore-extra-params": 2,
    "input-required-result-validate-input": 3,
    "server-stateless": 24,
}
# what the deliberately broken variant of the fixture must be caught at
BROKEN = ("basic-elicitation", "result-type", "unsupported-methods", "tampered-state")


@pytest.fixture(scope="module")
def runner() -> None:
    if not official.installed():
        text = f"the conformance runner is not in {official.HOME}; .ci/run installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)


def serve(*options: str) -> Generator[str]:
    command = [sys.executable, "-m", "tests.conformance.server", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    yield cast("IO[str]", process.stdout).readline().strip()
    process.terminate()
    process.communicate(timeout=10)


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    yield from serve()


@pytest.fixture(scope="module")
def broken_url() -> Generator[str]:
    yield from serve("--broken")


@pytest.mark.usefixtures("runner")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_official_scenario_has_no_failure_and_no_warning(scenario: str, url: str, tmp_path: Path) -> None:
    report = official.run(scenario, url, tmp_path)
    assert report.problems == []
    assert report.succeeded >= SCENARIOS[scenario]


@pytest.mark.usefixtures("runner")
@pytest.mark.parametrize("scenario", BROKEN)
def test_the_same_check_fails_on_a_server_that_breaks_the_rules(scenario: str, broken_url: str, tmp_path: Path) -> None:
    assert official.run(f"input-required-result-{scenario}", broken_url, tmp_path).problems


def test_a_warning_a_failure_and_an_empty_report_are_problems() -> None:
    fine = {"id": "x", "status": "SUCCESS"}
    wire = {"id": "wire-schema-valid", "status": "SUCCESS"}
    assert official.judge("s", [fine, wire]).problems == []
    for status in ("FAILURE", "WARNING"):
        assert official.judge("s", [fine, {"id": "y", "status": status}]).problems == [f"s: y {status} "]
    for checks in ([], [wire], [{"id": "x", "status": "SKIPPED"}]):
        assert official.judge("s", checks).problems == ["s: no check of its own succeeded"]
