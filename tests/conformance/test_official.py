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

SCENARIOS = (
    "basic-elicitation",
    "request-state",
    "multi-round",
    "result-type",
    "tampered-state",
    "missing-input-response",
    "ignore-extra-params",
    "validate-input",
)


@pytest.fixture(scope="module")
def runner() -> None:
    if not official.installed():
        text = f"the conformance runner is not in {official.HOME}; .ci/run installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    command = [sys.executable, "-m", "tests.conformance.server", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    yield cast("IO[str]", process.stdout).readline().strip()
    process.terminate()
    process.communicate(timeout=10)


@pytest.mark.usefixtures("runner")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_official_scenario_has_no_failure_and_no_warning(scenario: str, url: str, tmp_path: Path) -> None:
    report = official.run(f"input-required-result-{scenario}", url, tmp_path)
    assert report.problems == []
    assert report.succeeded >= 2


def test_a_warning_a_failure_and_an_empty_report_are_problems() -> None:
    fine = {"id": "x", "status": "SUCCESS"}
    wire = {"id": "wire-schema-valid", "status": "SUCCESS"}
    assert official.judge("s", [fine, wire]).problems == []
    for status in ("FAILURE", "WARNING"):
        assert official.judge("s", [fine, {"id": "y", "status": status}]).problems == [f"s: y {status} "]
    for checks in ([], [wire], [{"id": "x", "status": "SKIPPED"}]):
        assert official.judge("s", checks).problems == ["s: no check of its own succeeded"]
