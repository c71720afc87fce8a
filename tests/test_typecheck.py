"""mypy and pyright infer the exact types of both spellings, and refuse wrong use.

Each checker runs once, over both files of `tests/typecheck`, in strict mode and without the package's own settings.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
API: Final = Path("tests/typecheck/api.py")
WRONG: Final = Path("tests/typecheck/wrong.py")
MARK: Final = "# wrong"

Errors = Mapping[Path, Mapping[int, str]]
"""The first error of each line, by file and line number."""


def _run(*arguments: str) -> str:
    """What a checker prints. It ends with 0 or 1; anything else is a failure of its own."""
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", *arguments, str(API), str(WRONG)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, 1), f"{arguments[0]} failed:\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def _mypy() -> list[tuple[str, int, str]]:
    # its own cache and no configuration: what a user of the package sees, and no fight with a check of the package
    output = _run("mypy", "--strict", "--config-file=", "--output=json", "--cache-dir=.mypy_cache/typecheck")
    found: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [(item["file"], item["line"], item["message"]) for item in found if item["severity"] == "error"]


def _pyright() -> list[tuple[str, int, str]]:
    output = _run("pyright", "--pythonpath", sys.executable, "--outputjson")
    found: list[dict[str, Any]] = json.loads(output[output.index("{") :])["generalDiagnostics"]
    return [
        (item["file"], item["range"]["start"]["line"] + 1, item["message"])
        for item in found
        if item["severity"] == "error"
    ]


CHECKERS: Final[Mapping[str, Callable[[], list[tuple[str, int, str]]]]] = {"mypy": _mypy, "pyright": _pyright}


@lru_cache
def _errors_of(checker: str) -> Errors:
    errors: dict[Path, dict[int, str]] = {API: {}, WRONG: {}}
    for name, line, message in CHECKERS[checker]():
        file = (ROOT / name).resolve().relative_to(ROOT)
        if file in errors:  # the package's own errors are the business of a check of the package
            errors[file].setdefault(line, message)
    return errors


@pytest.fixture(params=list(CHECKERS))
def errors(request: pytest.FixtureRequest) -> Errors:
    """The errors of one checker. Skips where it is not installed, except in CI."""
    checker = str(request.param)
    if importlib.util.find_spec(checker) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{checker} is not installed")
        pytest.skip(f"{checker} is not installed; run: pip install 'mrtr-flow[dev]'")
    return _errors_of(checker)


def test_every_effect_and_flow_has_its_exact_type(errors: Errors) -> None:
    found = [f"{API}:{line}: {message}" for line, message in sorted(errors[API].items())]
    assert not found, "\n".join(found)


def test_every_line_marked_wrong_is_refused_and_no_other(errors: Errors) -> None:
    lines = (ROOT / WRONG).read_text().splitlines()
    marked = {number for number, line in enumerate(lines, start=1) if line.endswith(MARK)}
    assert marked
    refused = errors[WRONG]
    found = [f"{WRONG}:{number}: accepted: {lines[number - 1].strip()}" for number in sorted(marked - set(refused))]
    found += [f"{WRONG}:{number}: not marked: {refused[number]}" for number in sorted(set(refused) - marked)]
    assert not found, "\n".join(found)
