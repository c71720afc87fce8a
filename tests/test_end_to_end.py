"""Two real server processes that share only a key, the official client, and each round on the other process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any, cast

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, ElicitResult, InputRequiredResult

from tests.helpers import KEYS

FLOW = '''
from pathlib import Path
from mrtr_flow import Flow, ask, confirm, flow, step

LOG = Path(__file__).with_suffix(".log")


def quote(flight: str) -> int:
    with LOG.open("a") as log:
        log.write("quote\\n")
    return 420


def is_taken(flight: str, row: int) -> bool:
    return row in {1, 2}


@flow
def book(flight: str) -> Flow[str]:
    """Book a seat."""
    fare = yield from step(quote, flight)
    row = yield from ask("Which row?", int)
    while (yield from step(is_taken, flight, row)):
        row = yield from ask(f"Row {row} is taken. Another?", int)
    if not (yield from confirm(f"Pay {fare} for row {row}?")):
        return "Nothing booked"
    return f"Booked row {row}"
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "seats.py"
    path.write_text(FLOW)
    return path


@pytest.fixture
def servers(file: Path) -> Generator[list[str]]:
    """The URLs of two servers with different hash seeds."""
    processes: list[subprocess.Popen[str]] = []
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "mrtr_flow.cli", "serve", str(file), "--http", "0", "--until-eof"]
        environment = {**os.environ, "MRTR_KEYS": KEYS, "PYTHONHASHSEED": seed}
        processes.append(
            subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
    yield [cast("IO[str]", process.stdout).readline().strip() for process in processes]
    for process in processes:
        process.communicate(timeout=10)
        assert process.returncode == 0


async def never(context: Any, params: Any) -> Any:
    raise AssertionError("the client answered by itself")


def test_each_round_lands_on_the_other_process_and_the_quote_is_made_once(servers: list[str], file: Path) -> None:
    async def main() -> tuple[Any, list[str]]:
        state: str | None = None
        responses: Any = None
        asked: list[str] = []
        for number, content in enumerate([None, {"value": 1}, {"value": 2}, {"value": "7"}, {"ok": True}]):
            if content is not None:
                responses = {asked[-1]: ElicitResult(action="accept", content=content)}
            async with Client(servers[number % 2], mode="2026-07-28", elicitation_callback=never) as client:
                result = await client.session.call_tool(
                    "book",
                    {"flight": "LH 1"},
                    request_state=state,
                    input_responses=responses,
                    allow_input_required=True,
                )
            if isinstance(result, InputRequiredResult):
                asked += result.input_requests or {}
                state = result.request_state
        return result, asked

    result, asked = anyio.run(main)
    assert isinstance(result, CallToolResult)
    assert result.structured_content == {"result": "Booked row 7"}
    assert asked == ["ask", "ask~2", "ask~3", "confirm"]
    assert file.with_suffix(".log").read_text().splitlines() == ["quote"]


def test_a_flow_is_served_over_stdio_too(file: Path) -> None:
    async def main() -> Any:
        from mcp import StdioServerParameters

        async def answer(context: Any, params: Any) -> ElicitResult:
            field = next(iter(params.requested_schema["properties"]))
            return ElicitResult(action="accept", content={field: True if field == "ok" else 7})

        parameters = StdioServerParameters(
            command=sys.executable, args=["-m", "mrtr_flow.cli", "serve", str(file)], env={"MRTR_KEYS": KEYS}
        )
        async with Client(parameters, elicitation_callback=answer) as client:
            return await client.call_tool("book", {"flight": "LH 1"})

    assert anyio.run(main).structured_content == {"result": "Booked row 7"}
