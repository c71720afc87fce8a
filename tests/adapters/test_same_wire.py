"""Every flow of `flows/` runs alike through the reference adapter and the official SDK."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp_types import InputRequiredResult, InputResponse
from pydantic import TypeAdapter

from mrtr_flow import Definition
from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from mrtr_flow.adapters.mcp import add_flows
from mrtr_flow.cli.files import flows_in
from mrtr_flow.cli.playing import example_answer, example_arguments, send
from tests.helpers import KEYS, Clock

FILES = sorted((Path(__file__).parents[2] / "flows").glob("*.py"))
FLOWS = [definition for file in FILES for definition in flows_in(file)]
LISTS = {
    "tools/call": ("tools/list", "tools"),
    "prompts/get": ("prompts/list", "prompts"),
    "resources/read": ("resources/templates/list", "resourceTemplates"),
}
RESPONSE: TypeAdapter[Any] = TypeAdapter(InputResponse)
CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
Trace = list[Any]


async def through_jsonrpc(definition: Definition[..., Any]) -> Trace:
    trace: Trace = []
    arguments, examples = example_arguments(definition), dict(definition.examples)
    target = {"uri" if definition.method == "resources/read" else "name": definition.target(arguments)}
    given = {} if definition.method == "resources/read" else {"arguments": arguments}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    }
    retry: dict[str, Any] = {}
    clock = Clock()
    while True:
        server = JsonRpcServer([definition], name="flows", keys=KEYS, clock=clock)
        params = {**target, **given, "_meta": meta, **retry}
        message = {"jsonrpc": "2.0", "id": 1, "method": definition.method, "params": params}
        result = json.loads(json.dumps((await server.handle(message))["result"]))
        result.pop("_meta")
        if result["resultType"] != "input_required":
            return [*trace, result]
        trace.append((len(result["requestState"]), normal(result["inputRequests"])))
        answers = {key: example_answer(examples, key, request) for key, request in result["inputRequests"].items()}
        retry = {"requestState": result["requestState"], "inputResponses": answers}


async def through_mcp(definition: Definition[..., Any]) -> Trace:
    trace: Trace = []
    arguments, examples = example_arguments(definition), dict(definition.examples)
    state: str | None = None
    responses: dict[str, Any] | None = None
    clock = Clock()
    while True:
        server: MCPServer[Any] = MCPServer("flows")
        add_flows(server, definition, keys=KEYS, clock=clock)
        callbacks: dict[str, Any] = dict.fromkeys(
            ("elicitation_callback", "sampling_callback", "list_roots_callback"), never
        )
        async with Client(server, **callbacks) as client:
            result = await send(client.session, definition, arguments, state, responses)
        plain = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        plain.pop("_meta")
        if not isinstance(result, InputRequiredResult):
            return [*trace, plain]
        state = result.request_state
        assert state is not None
        trace.append((len(state), normal(plain["inputRequests"])))
        responses = {
            key: RESPONSE.validate_python(example_answer(examples, key, request), by_name=False)
            for key, request in plain["inputRequests"].items()
        }


async def never(*_: Any) -> Any:
    raise AssertionError("the client answered by itself")


def normal(requests: Mapping[str, Any]) -> Any:
    """Without the order of members, which JSON does not have."""
    return json.loads(json.dumps(requests, sort_keys=True))


@pytest.mark.parametrize("definition", FLOWS, ids=lambda definition: definition.name)
def test_a_flow_runs_alike_through_both_adapters(definition: Definition[..., Any]) -> None:
    ways: list[Callable[..., Any]] = [through_jsonrpc, through_mcp]
    one, other = (anyio.run(way, definition) for way in ways)
    assert stable(one) == stable(other)
    assert one[-1].get("isError", False) is False


def stable(trace: Trace) -> Any:
    """Without what comes from chance: what the random run id makes of idempotency keys, and random states."""
    text = re.sub(r"state=[\w-]+", "state=x", json.dumps(trace, sort_keys=True))
    return re.sub(r"-[0-9a-f]{4,8}\b", "-x", re.sub(r"run=[0-9a-f]{8}", "run=x", text))


@pytest.mark.parametrize("definition", FLOWS, ids=lambda definition: definition.name)
def test_both_adapters_list_a_flow_alike(definition: Definition[..., Any]) -> None:
    async def listed() -> tuple[Any, Any]:
        server = JsonRpcServer([definition], name="flows", keys=KEYS)
        method, member = LISTS[definition.method]
        params = {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        }
        one = await server.handle({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        host: MCPServer[Any] = MCPServer("flows")
        add_flows(host, definition, keys=KEYS)
        async with Client(host) as client:
            ask_for = {"tools": client.list_tools, "prompts": client.list_prompts}
            other = await ask_for.get(member, client.list_resource_templates)()
        entries = other.model_dump(mode="json", by_alias=True, exclude_none=True)
        return one["result"][member], entries[member]

    one, other = anyio.run(listed)
    assert one == other
    assert one[0]["description"]


def test_every_flow_of_the_project_is_at_most_sixty_lines() -> None:
    assert len(FILES) >= 4
    for file in FILES:
        assert len(file.read_text().splitlines()) <= 60, file.name
