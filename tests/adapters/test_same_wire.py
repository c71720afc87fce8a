"""Every flow of `flows/` runs alike through the reference adapter and the official SDK."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp_types import ElicitResult, InputRequiredResult

from mrtr_flow import Definition
from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from mrtr_flow.adapters.mcp import add_flows
from mrtr_flow.cli.files import flows_in
from mrtr_flow.cli.playing import example_answer, example_arguments
from tests.helpers import KEYS, Clock

FILES = sorted((Path(__file__).parents[2] / "flows").glob("*.py"))
FLOWS = [definition for file in FILES for definition in flows_in(file)]
CAPABILITIES = {"elicitation": {"form": {}}}
Trace = list[Any]


async def through_jsonrpc(definition: Definition[..., Any]) -> Trace:
    trace: Trace = []
    arguments, examples = example_arguments(definition), dict(definition.examples)
    state: str | None = None
    responses: dict[str, Any] = {}
    clock = Clock()
    while True:
        server = JsonRpcServer([definition], name="flows", keys=KEYS, clock=clock)
        params: dict[str, Any] = {
            "name": definition.name,
            "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
            },
        }
        if state is not None:
            params |= {"requestState": state, "inputResponses": responses}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = json.loads(json.dumps((await server.handle(message))["result"]))
        result.pop("_meta")
        if result["resultType"] != "input_required":
            return [*trace, result]
        state = result["requestState"]
        trace.append((len(state), normal(result["inputRequests"])))
        responses = {key: example_answer(examples, key, request) for key, request in result["inputRequests"].items()}


async def through_mcp(definition: Definition[..., Any]) -> Trace:
    trace: Trace = []
    arguments, examples = example_arguments(definition), dict(definition.examples)
    state: str | None = None
    responses: dict[str, Any] = {}
    clock = Clock()
    while True:
        server: MCPServer[Any] = MCPServer("flows")
        add_flows(server, definition, keys=KEYS, clock=clock)
        async with Client(server, elicitation_callback=never) as client:
            result = await client.session.call_tool(
                definition.name,
                arguments,
                request_state=state,
                input_responses=responses or None,
                allow_input_required=True,
            )
        plain = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        plain.pop("_meta")
        if not isinstance(result, InputRequiredResult):
            return [*trace, plain]
        state = result.request_state
        assert state is not None
        trace.append((len(state), normal(plain["inputRequests"])))
        responses = {
            key: ElicitResult.model_validate(example_answer(examples, key, request))
            for key, request in plain["inputRequests"].items()
        }


async def never(context: Any, params: Any) -> Any:
    raise AssertionError("the client answered by itself")


def normal(requests: Mapping[str, Any]) -> Any:
    """Without the order of members, which JSON does not have."""
    return json.loads(json.dumps(requests, sort_keys=True))


@pytest.mark.parametrize("definition", FLOWS, ids=lambda definition: definition.name)
def test_a_flow_runs_alike_through_both_adapters(definition: Definition[..., Any]) -> None:
    ways: list[Callable[..., Any]] = [through_jsonrpc, through_mcp]
    one, other = (anyio.run(way, definition) for way in ways)
    assert hide_keys(one) == hide_keys(other)
    assert one[-1]["isError"] is False


def hide_keys(trace: Trace) -> Any:
    """Without what comes from the random run id: idempotency keys, cut short by the flows."""
    *rounds, end = trace
    text = json.dumps(end)
    for block in end["content"]:
        text = text.replace(json.dumps(block["text"])[1:-1], "")
    structure = json.loads(text)
    return rounds, len(json.dumps(end)), structure.keys()


@pytest.mark.parametrize("definition", FLOWS, ids=lambda definition: definition.name)
def test_both_adapters_list_a_flow_alike(definition: Definition[..., Any]) -> None:
    async def listed() -> tuple[Any, Any]:
        server = JsonRpcServer([definition], name="flows", keys=KEYS)
        params = {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        }
        one = await server.handle({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params})
        host: MCPServer[Any] = MCPServer("flows")
        add_flows(host, definition, keys=KEYS)
        async with Client(host) as client:
            other = await client.list_tools()
        return one["result"]["tools"], [
            tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in other.tools
        ]

    one, other = anyio.run(listed)
    assert one == other
    assert one[0]["description"]


def test_every_flow_of_the_project_is_at_most_sixty_lines() -> None:
    assert len(FILES) >= 4
    for file in FILES:
        assert len(file.read_text().splitlines()) <= 60, file.name
