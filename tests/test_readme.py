"""The README is true: its Python runs, what it prints is what is printed, its commands are one line each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mrtr_flow import Definition
from mrtr_flow.testing import FlowTester

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def section(title: str) -> str:
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("source", PYTHON, ids=range(len(PYTHON)))
def test_a_python_block_runs(source: str, tmp_path: Path) -> None:
    file = tmp_path / "block.py"
    file.write_text(source)
    namespace: dict[str, Any] = {"__name__": "block"}
    exec(compile(source, str(file), "exec"), namespace)
    if "def book(" not in source:
        assert "\nassert " in source, "a block that is no flow to play shows what comes of it"
        return
    book = namespace["book"]
    assert isinstance(book, Definition)
    t = FlowTester(book).start(flight="LH 431").answer(2).answer(14).answer(12).answer(True)
    assert t.result.startswith("Row 12, ticket LH431-12-")


def test_the_transcript_is_what_play_prints() -> None:
    command = [sys.executable, "-m", "mrtr_flow.cli", "play", "flows/book_seat.py"]
    printed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    ).stdout
    shown = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)[0]

    def stable(text: str) -> str:
        return re.sub(r"LH431-12-\w+", "LH431-12-x", re.sub(r"pid \d+", "pid", text))

    assert stable(shown) in stable(printed)


@pytest.mark.parametrize(("title", "does"), [("Try it", "mrtr-flow play flows/"), ("Test it", "/pytest")])
def test_a_command_section_has_one_block_of_one_line_that_does_all_the_set_up(title: str, does: str) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", section(title), flags=re.DOTALL)
    (line,) = block.splitlines()
    assert line.startswith("python3 -m venv ")
    assert "activate" not in line
    assert does in line


def test_the_size_table_is_what_the_benchmark_prints() -> None:
    command = [sys.executable, "-m", "benchmarks", "size", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    measured = [[row["run_id"], row["no_run_id"], row["sdk"]] for row in json.loads(done.stdout)["states"][:4]]
    rows = re.findall(r"^\| [^|]+ \| (\d+) \| (\d+) \| (\d+) \|$", section("Size"), flags=re.MULTILINE)
    assert [[int(cell) for cell in row] for row in rows] == measured
