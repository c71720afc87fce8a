"""Ways to play a call of the corpus by hand, each round on a new runner or server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp import Client
from mcp.server import MCPServer
from mcp_types import CreateMessageResult, ElicitResult, InputRequiredResult, ListRootsResult

from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from mrtr_flow.adapters.mcp import add_flows
from mrtr_flow.definition import ResourceDefinition
from mrtr_flow.testing import Asked
from tests.corpus.data import Case
from tests.corpus.flows import FLOWS
from tests.corpus.world import called
from tests.helpers import KEYS, Clock, tester

__all__ = ("SERVER", "Played", "arguments_of", "play", "through_jsonrpc", "through_mcp")

SERVER: Final = "corpus"
CAPABILITIES: Final[Mapping[str, Any]] = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
_RESPONSES: Final[Mapping[str, Any]] = {
    "elicitation/create": ElicitResult,
    "sampling/createMessage": CreateMessageResult,
    "roots/list": ListRootsResult,
}


@dataclass(frozen=True)
class Played:
    """A call as it went: by round the wire questions and the characters of the token; the steps that were performed
    in each round and after the last; the end, in wire form."""

    requests: list[dict[str, Any]]
    tokens: list[int]
    steps: list[list[str]]
    result: dict[str, Any]


class _Rounds:
    """Collects a `Played`."""

    def __init__(self) -> None:
        self._requests: list[dict[str, Any]] = []
        self._tokens: list[int] = []
        self._steps: list[list[str]] = []
        called.clear()

    def asked(self, requests: Any, state: str | None) -> None:
        self._requests.append(json.loads(json.dumps(requests)))
        self._tokens.append(len(state or ""))
        self._performed()

    def ended(self, result: Mapping[str, Any]) -> Played:
        self._performed()
        plain = json.loads(json.dumps({name: value for name, value in result.items() if name != "_meta"}))
        return Played(self._requests, self._tokens, self._steps, plain)

    def _performed(self) -> None:
        self._steps.append(called[sum(map(len, self._steps)) :])


def arguments_of(case: Case) -> dict[str, Any]:
    """What the flow is called with: a tool's arguments, or the values a resource's URI gives its template."""
    definition = FLOWS[case.name]
    if isinstance(definition, ResourceDefinition):
        return dict(definition.given(case.target, {}))
    return dict(case.arguments or {})


def play(case: Case) -> Played:
    """With `FlowTester`."""
    rounds = _Rounds()
    t = tester(FLOWS[case.name], principal=case.principal, capabilities=CAPABILITIES).start(**arguments_of(case))
    for played in case.rounds:
        requests = {key: _request(asked) for key, asked in t.asked.items()}
        rounds.asked(requests, t.state)
        t.send(played.responses)
    assert [step.name for step in t.steps] == called
    return rounds.ended(t.wire_result)


def _request(asked: Asked) -> dict[str, Any]:
    return {"method": asked.method, "params": dict(asked.params)} if asked.params else {"method": asked.method}


async def through_jsonrpc(case: Case) -> Played:
    """With the reference adapter."""
    rounds, clock = _Rounds(), Clock()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    }
    params: dict[str, Any] = {"_meta": meta, "uri": case.target}
    if case.method == "tools/call":
        params = {"_meta": meta, "name": case.target, "arguments": dict(case.arguments or {})}
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": case.method, "params": params}

    async def send(**more: Any) -> dict[str, Any]:
        server = JsonRpcServer([FLOWS[case.name]], name=SERVER, keys=KEYS, clock=clock)
        response = await server.handle({**message, "params": {**params, **more}}, principal=case.principal)
        result: dict[str, Any] = response["result"]
        return result

    result = await send()
    for played in case.rounds:
        rounds.asked(result["inputRequests"], result["requestState"])
        result = await send(requestState=result["requestState"], inputResponses=played.responses)
    return rounds.ended(result)


async def through_mcp(case: Case) -> Played:
    """With the official SDK's server and client. In one process nobody is authenticated, so there is no principal."""
    rounds, clock, definition = _Rounds(), Clock(), FLOWS[case.name]

    async def send(**more: Any) -> Any:
        server: MCPServer[Any] = MCPServer(SERVER)
        add_flows(server, definition, keys=KEYS, clock=clock)
        async with Client(
            server, elicitation_callback=never, sampling_callback=never, list_roots_callback=never
        ) as client:
            if case.method == "resources/read":
                return await client.session.read_resource(case.target, allow_input_required=True, **more)
            return await client.session.call_tool(
                case.target, dict(case.arguments or {}), allow_input_required=True, **more
            )

    result = await send()
    for played in case.rounds:
        assert isinstance(result, InputRequiredResult), result
        asked = _plain(result)["inputRequests"]
        rounds.asked(asked, result.request_state)
        responses = {
            key: _RESPONSES[asked[key]["method"]].model_validate(response) for key, response in played.responses.items()
        }
        result = await send(request_state=result.request_state, input_responses=responses)
    return rounds.ended(_plain(result))


async def never(context: Any, params: Any = None) -> Any:
    raise AssertionError("the client answered by itself")


def _plain(result: Any) -> dict[str, Any]:
    plain: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain
