"""The reference adapter: messages in, messages out, errors by the table."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mrtr_flow import DefinitionError, Flow, ask, flow
from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from tests.helpers import KEYS

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META: dict[str, Any] = {VERSION: "2026-07-28", CAPABILITIES: {"elicitation": {}}}


@flow(title="Pick", annotations={"readOnlyHint": True})
def pick() -> Flow[str]:
    """Pick one."""
    return (yield from ask("Which?", str))


def send(message: Any, principal: str | None = None) -> dict[str, Any]:
    server = JsonRpcServer([pick], name="picker", version="1.2", keys=KEYS)

    async def main() -> dict[str, Any]:
        return await server.handle(message, principal=principal)

    return anyio.run(main)


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "a", "method": method, "params": {"_meta": META, **params}}


def test_discover_names_the_version_and_the_server() -> None:
    result = send(request("server/discover"))["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {"tools": {}}
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "picker", "version": "1.2"}


def test_tools_are_listed_with_title_annotations_and_schemas() -> None:
    (tool,) = send(request("tools/list"))["result"]["tools"]
    assert tool == {
        "name": "pick",
        "title": "Pick",
        "description": "Pick one.",
        "inputSchema": {"type": "object", "properties": {}},
        "outputSchema": {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]},
        "annotations": {"readOnlyHint": True},
    }


def test_a_call_asks_and_ends() -> None:
    asked = send(request("tools/call", name="pick"), "ada")
    assert asked["id"] == "a"
    assert asked["result"]["resultType"] == "input_required"
    answer = {"ask": {"action": "accept", "content": {"value": "x"}}}
    again = request("tools/call", name="pick", requestState=asked["result"]["requestState"], inputResponses=answer)
    assert send(again, "ada")["result"]["structuredContent"] == {"result": "x"}
    assert send(again, "bob")["error"]["data"] == {"reason": "invalid_request_state"}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({}, -32600),
        ([], -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "tools/list"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "tools/list"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {VERSION: "2026-07-28"}}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {CAPABILITIES: {}}}}, -32602),
        (request("initialize"), -32601),
        (request("tools/call", name="nope"), -32602),
        (request("tools/call", name=["pick"]), -32602),
        (request("tools/call"), -32602),
        (request("tools/call", name="pick", arguments=[]), -32602),
        (request("tools/call", name="pick", inputResponses=3), -32602),
    ],
)
def test_errors_are_by_the_table(message: Any, code: int) -> None:
    assert send(message)["error"]["code"] == code


def test_an_unknown_version_names_the_known_ones() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {**META, VERSION: "v999"}}}
    error = send(message)["error"]
    assert (error["code"], error["data"]) == (-32022, {"supported": ["2026-07-28"], "requested": "v999"})


def test_a_notification_gets_no_answer() -> None:
    assert send({"jsonrpc": "2.0", "method": "notifications/cancelled"}) == {}


def test_two_flows_of_one_name_and_keys_without_a_name_are_refused() -> None:
    with pytest.raises(DefinitionError, match="registered already"):
        JsonRpcServer([pick, pick], name="x", keys=KEYS)
    with pytest.raises(DefinitionError, match="no name"):
        JsonRpcServer([pick], name="", keys=KEYS)


@pytest.mark.parametrize("arguments", [{}, {"language": 5}, {"language": None}, "language"])
def test_arguments_of_a_prompt_that_are_missing_or_no_text_are_invalid_params(arguments: Any) -> None:
    @flow.prompt
    def review(language: str) -> Flow[str]:
        return (yield from ask(f"What of {language}?", str))

    server = JsonRpcServer([review], name="prompts", keys=KEYS)
    message = request("prompts/get", name="review", arguments=arguments)
    assert anyio.run(server.handle, message)["error"]["code"] == -32602
