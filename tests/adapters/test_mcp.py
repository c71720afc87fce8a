"""Flows on the official SDK's server: sealed once, other tools untouched, mistakes found when flows are added."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context
from mcp.server.request_state import RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitResult, InputRequiredResult
from pydantic import AnyHttpUrl, BaseModel

from mrtr_flow import DefinitionError, Flow, StepError, ask, confirm, flow, step
from mrtr_flow.adapters.mcp import add_flows
from mrtr_flow.seal import KeyRing, parse_keys
from tests.helpers import KEYS

ACCEPT = {"action": "accept", "content": {"value": 7}}


@flow
def book(flight: str) -> Flow[str]:
    """Book a seat."""
    row = yield from ask("Which row?", int)
    return f"{flight} row {row}" if (yield from confirm(f"Row {row}?")) else "no"


def server(*flows: Any, **options: Any) -> MCPServer[Any]:
    made: MCPServer[Any] = MCPServer("flights")
    add_flows(made, *(flows or (book,)), **{"keys": KEYS, **options})
    return made


async def never(context: Any, params: Any) -> Any:
    raise AssertionError("the client answered by itself")


def client(made: Any, **options: Any) -> Client:
    return Client(made, elicitation_callback=never, **options)


class Wire:
    """Raw HTTP to a server in this process, as the SDK's own clients send it."""

    def __init__(self, made: MCPServer[Any], token: str | None = None) -> None:
        self.app = made.streamable_http_app(stateless_http=True)
        self.token = token

    async def call(self, name: str, arguments: Any = None, **params: Any) -> tuple[int, dict[str, Any]]:
        return await self.send("tools/call", name=name, arguments=arguments or {}, **params)

    async def send(self, method: str, **params: Any) -> tuple[int, dict[str, Any]]:
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            "Mcp-Name": params.get("name") or params["uri"],
        }
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}
        transport = httpx.ASGITransport(self.app)
        http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")
        async with self.app.router.lifespan_context(self.app), http:
            response = await http.post("/mcp", json=message, headers=headers)
        return response.status_code, response.json()


def run(function: Any) -> Any:
    return anyio.run(function)


def test_the_token_on_the_wire_is_ours_alone_and_opens_with_our_keys_only() -> None:
    async def main() -> None:
        status, body = await Wire(server()).call("book", {"flight": "LH 1"})
        token = body["result"]["requestState"]
        assert status == 200
        assert not token.startswith("v1.")
        assert len(token) == 52
        status, body = await Wire(server()).call(
            "book", {"flight": "LH 1"}, requestState=token, inputResponses={"ask": ACCEPT}
        )
        assert list(body["result"]["inputRequests"]) == ["confirm"]

    run(main)


def test_other_tools_keep_the_sealing_of_the_sdk() -> None:
    async def main() -> None:
        made = server()
        seen: list[Any] = []

        @made.tool()
        def plain(context: Context[Any, Any]) -> CallToolResult | InputRequiredResult:
            seen.append(context.request_state)
            if context.request_state is None:
                return InputRequiredResult(request_state="mine")
            return CallToolResult(content=[])

        wire = Wire(made)
        _, body = await wire.call("plain")
        state = body["result"]["requestState"]
        assert state.startswith("v1.")
        status, body = await Wire(made).call("plain", requestState=state[:-2])
        assert (status, body["error"]["data"]) == (400, {"reason": "invalid_request_state"})
        assert seen == [None]

    run(main)


def of_the_sdk(context: Context[Any, Any]) -> Any:
    """What a handler with the SDK's own rounds sees."""
    return InputRequiredResult(request_state="mine") if context.request_state is None else context.request_state


async def sealed_by_the_sdk(made: MCPServer[Any], method: str, **params: Any) -> dict[str, Any]:
    """The result of the second round, after the first was sealed by the SDK and a forged state was refused."""
    _, asked = await Wire(made).send(method, **params)
    token = asked["result"]["requestState"]
    assert token.startswith("v1.")
    _, forged = await Wire(made).send(method, **params, requestState="forged")
    assert forged["error"]["code"] == -32602
    result: dict[str, Any] = (await Wire(made).send(method, **params, requestState=token))[1]["result"]
    return result


def test_a_resource_of_the_sdk_that_comes_before_a_flow_of_the_same_uri_keeps_its_sealing_and_its_cache_hints() -> None:
    @flow.resource("notes://{id}")
    def note(id: str) -> Flow[str]:
        return id if (yield from confirm("Read it?")) else ""

    async def main() -> None:
        made: MCPServer[Any] = MCPServer("notes")

        @made.resource("notes://pub-{id}")
        def public(id: str, context: Context[Any, Any]) -> Any:
            return of_the_sdk(context)

        add_flows(made, note, keys=KEYS)
        result = await sealed_by_the_sdk(made, "resources/read", uri="notes://pub-1")
        assert result["contents"][0]["text"] == "mine"
        _, asked = await Wire(made).send("resources/read", uri="notes://1")
        assert not asked["result"]["requestState"].startswith("v1.")
        answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
        _, read = await Wire(made).send(
            "resources/read", uri="notes://1", requestState=asked["result"]["requestState"], inputResponses=answers
        )
        assert read["result"]["contents"][0]["text"] == "1"
        assert (read["result"]["ttlMs"], read["result"]["cacheScope"]) == (0, "private")

    run(main)


def test_a_tool_that_took_the_place_of_a_flow_keeps_the_sealing_of_the_sdk() -> None:
    async def main() -> None:
        made = server()
        made.remove_tool("book")

        @made.tool("book")
        def replaced(context: Context[Any, Any]) -> CallToolResult | InputRequiredResult:
            seen = of_the_sdk(context)
            return seen if isinstance(seen, InputRequiredResult) else CallToolResult(content=[])

        await sealed_by_the_sdk(made, "tools/call", name="book", arguments={})

    run(main)


def test_arguments_of_a_prompt_that_are_missing_or_no_text_are_invalid_params() -> None:
    @flow.prompt
    def review(language: str) -> Flow[str]:
        return (yield from ask(f"What of {language}?", str))

    async def main() -> None:
        made = server(review)
        for arguments in ({}, {"language": 5}, {"language": None}):
            _, body = await Wire(made).send("prompts/get", name="review", arguments=arguments)
            assert body["error"]["code"] == -32602, body
        _, body = await Wire(made).send("prompts/get", name="review", arguments={"language": "C"})
        assert body["result"]["resultType"] == "input_required"

    run(main)


def test_other_tools_answer_as_before() -> None:
    async def main() -> None:
        made = server()

        @made.tool()
        def double(n: int) -> int:
            return 2 * n

        async with client(made) as session:
            assert (await session.call_tool("double", {"n": 2})).structured_content == {"result": 4}
            assert {tool.name for tool in (await session.list_tools()).tools} == {"book", "double"}

    run(main)


@pytest.mark.parametrize("state", ["", "x", "A" * 52, 3, True, ["x"], {"a": 1}])
def test_what_is_no_token_is_the_frozen_error_with_status_400(state: Any) -> None:
    async def main() -> None:
        status, body = await Wire(server()).call(
            "book", {"flight": "x"}, requestState=state, inputResponses={"ask": ACCEPT}
        )
        assert status == 400
        assert body["error"] == {
            "code": -32602,
            "message": "Invalid or expired requestState",
            "data": {"reason": "invalid_request_state"},
        }

    run(main)


def test_null_state_and_null_answers_are_absent() -> None:
    async def main() -> None:
        status, body = await Wire(server()).call("book", {"flight": "x"}, requestState=None, inputResponses=None)
        assert (status, list(body["result"]["inputRequests"])) == (200, ["ask"])

    run(main)


def test_the_official_client_plays_a_flow_by_itself() -> None:
    async def main() -> None:
        async def answer(context: Any, params: Any) -> ElicitResult:
            field = next(iter(params.requested_schema["properties"]))
            return ElicitResult(action="accept", content={field: True if field == "ok" else 12})

        async with Client(server(), elicitation_callback=answer) as session:
            result = await session.call_tool("book", {"flight": "LH 1"})
        assert result.structured_content == {"result": "LH 1 row 12"}

    run(main)


def test_a_2025_client_gets_a_clear_error_before_anything_runs() -> None:
    performed: list[str] = []

    def work() -> None:
        performed.append("work")

    @flow
    def works() -> Flow[str]:
        yield from step(work)
        return (yield from ask("?", str))

    async def main() -> None:
        async with client(server(works), mode="legacy") as session:
            result = await session.call_tool("works", {})
        assert result.is_error
        assert "needs MCP 2026-07-28; this client speaks 2025-11-25" in result.content[0].text  # type: ignore[union-attr]

    run(main)
    assert performed == []


class Order(BaseModel):
    id: str


def test_the_hosts_context_is_injected_and_never_in_the_schema() -> None:
    def look(context: Context[Any, Any], order: str) -> str:
        return f"{order} by request {context.request_id}"

    @flow
    def lookup(order: str, context: Context[Any, Any]) -> Flow[Order]:
        yield from ask("?", str)
        return Order(id=(yield from step(look, context, order)))

    async def main() -> None:
        made = server(lookup)
        async with client(made) as session:
            tool = (await session.list_tools()).tools[0]
            assert list(tool.input_schema["properties"]) == ["order"]
            assert tool.output_schema is not None
            assert list(tool.output_schema["properties"]) == ["id"]
            first = await session.session.call_tool("lookup", {"order": "7"}, allow_input_required=True)
            assert isinstance(first, InputRequiredResult)
            last = await session.session.call_tool(
                "lookup",
                {"order": "7"},
                request_state=first.request_state,
                input_responses={"ask": ElicitResult(action="accept", content={"value": "x"})},
                allow_input_required=True,
            )
        assert isinstance(last, CallToolResult)
        assert last.structured_content["id"].startswith("7 by request ")

    run(main)


class Verifier(TokenVerifier):
    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="client", scopes=[], subject=token.partition("-")[0])


def test_a_token_belongs_to_the_authenticated_principal() -> None:
    async def main() -> None:
        def guarded() -> MCPServer[Any]:
            auth = AuthSettings(issuer_url=AnyHttpUrl("https://issuer.example"), resource_server_url=None)
            made: MCPServer[Any] = MCPServer("flights", token_verifier=Verifier(), auth=auth)
            add_flows(made, book, keys=KEYS)
            return made

        _, body = await Wire(guarded(), "ada-1").call("book", {"flight": "x"})
        token = body["result"]["requestState"]
        sent: dict[str, Any] = {"requestState": token, "inputResponses": {"ask": ACCEPT}}
        status, body = await Wire(guarded(), "bob-1").call("book", {"flight": "x"}, **sent)
        assert (status, body["error"]["data"]) == (400, {"reason": "invalid_request_state"})
        status, body = await Wire(guarded(), "ada-2").call("book", {"flight": "x"}, **sent)
        assert (status, list(body["result"]["inputRequests"])) == (200, ["confirm"])

    run(main)


def test_a_server_with_its_own_state_security_seals_flows_once_too() -> None:
    async def main() -> None:
        made: MCPServer[Any] = MCPServer("flights", request_state_security=RequestStateSecurity(keys=[b"k" * 32]))
        add_flows(made, book, keys=KEYS)
        _, body = await Wire(made).call("book", {"flight": "x"})
        assert len(body["result"]["requestState"]) == 52

    run(main)


def test_ephemeral_keys_are_warned_about_at_the_first_http_request_only(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        made: MCPServer[Any] = MCPServer("flights")
        add_flows(made, book)
        async with client(made) as session:
            await session.session.call_tool("book", {"flight": "x"}, allow_input_required=True)
        assert "MRTR_KEYS" not in caplog.text
        await Wire(made).call("book", {"flight": "x"})

    with caplog.at_level(logging.WARNING, "mrtr_flow"):
        run(main)
    assert caplog.text.count("set MRTR_KEYS so that a restart or another worker can go on") == 1


# ---------------------------------------------------------------------- registration


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRTR_KEYS", KEYS)

    async def main() -> str:
        made: MCPServer[Any] = MCPServer("flights")
        add_flows(made, book)
        _, body = await Wire(made).call("book", {"flight": "x"})
        return str(body["result"]["requestState"])

    token = run(main)
    assert token[:1] == KeyRing(parse_keys(KEYS), audience="flights").seal(b"\x90abcd", _binding(), 0)[:1]


def _binding() -> Any:
    from mrtr_flow.seal import Binding

    return Binding("tools/call", "book", b"{}", None)


def test_a_name_that_is_taken_fails_when_the_flow_is_added() -> None:
    made: MCPServer[Any] = MCPServer("flights")

    @made.tool(name="book")
    def plain() -> str:
        return "x"

    with pytest.raises(DefinitionError, match="tool 'book' is registered on this server already"):
        add_flows(made, book, keys=KEYS)
    with pytest.raises(DefinitionError, match="registered"):
        server(book, book)


def test_an_unnamed_server_with_keys_fails_unless_an_audience_is_given() -> None:
    for name in (None, ""):
        with pytest.raises(DefinitionError, match="keys but no name"):
            add_flows(MCPServer(name), book, keys=KEYS)
        add_flows(MCPServer(name), book, keys=KEYS, audience="flights")
        add_flows(MCPServer(name), book)


def test_flows_may_be_added_later_but_the_keys_only_once() -> None:
    @flow
    def other() -> Flow[str]:
        return (yield from ask("?", str))

    made = server()
    count = len(made.middleware)
    add_flows(made, other)
    assert len(made.middleware) == count
    with pytest.raises(DefinitionError, match="already"):
        add_flows(made, other, keys=KEYS)


def test_what_is_no_flow_fails_when_it_is_added() -> None:
    def plain() -> str:
        return "x"

    with pytest.raises(DefinitionError, match="no flow"):
        server(plain)


def test_a_protocol_error_reaches_the_client_with_its_data() -> None:
    async def main() -> None:
        async with Client(server()) as session:
            with pytest.raises(MCPError) as caught:
                await session.session.call_tool("book", {"flight": "x"}, allow_input_required=True)
        assert caught.value.error.code == -32021
        assert caught.value.error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}

    run(main)


def test_a_flow_that_is_read_from_inside_another_request_is_refused_and_runs_nothing() -> None:
    read: list[str] = []

    @flow.resource("bin://{id}")
    def bin_(id: str) -> Flow[str]:
        read.append(id)
        return id if (yield from confirm("Read it?")) else ""

    @flow
    def reader(context: Context[Any, Any]) -> Flow[str]:
        async def inner() -> str:
            return repr(await context.read_resource("bin://1"))

        try:
            return (yield from step(inner))
        except StepError as error:
            return error.type

    async def main() -> None:
        made = server(bin_, reader)

        @made.tool()
        async def plain(context: Context[Any, Any]) -> str:
            return repr(await context.read_resource("bin://1"))

        async with client(made) as connected:
            result = await connected.call_tool("reader", {})
            assert result.content[0].text.endswith("MCPError")
            with pytest.raises(MCPError, match=r"^bin_ asks its client, so only a client can call it$"):
                await connected.call_tool("plain", {})
        assert read == []

    run(main)
