"""The protocol's requirements that no other test shows, from outside: messages in, messages out.

Every request goes to a server of its own, through the reference adapter or over HTTP through the official SDK, so
whatever a round needs must be in it. `requirements` says which test shows what.
"""

from __future__ import annotations

import ast
import gc
import inspect
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import anyio
import httpx
import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import ElicitRequestURLParams, ElicitResult
from mcp_types.methods import serialize_server_result
from pydantic import AnyHttpUrl, AnyUrl, BaseModel, Field, SecretStr

import mrtr_flow
from mrtr_flow import (
    Cancelled,
    CapabilityMissing,
    Declined,
    Definition,
    DefinitionError,
    Flow,
    ask,
    ask_url,
    confirm,
    current,
    flow,
    gather,
    list_roots,
    sample,
    step,
)
from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from mrtr_flow.adapters.mcp import add_flows
from tests.helpers import KEYS, Clock, tester

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
SERVER = "io.modelcontextprotocol/serverInfo"
ALL: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
FORMS: Mapping[str, Any] = {"elicitation": {"form": {}}}
Flows: TypeAlias = Sequence[Definition[..., Any]]


# ---------------------------------------------------------------------- flows


class Traveller(BaseModel):
    name: str
    seat: Literal["aisle", "window"] = "aisle"


@flow
def plan(city: str) -> Flow[str]:
    """Ask in every way there is, and then once more."""
    who, _, text, roots = yield from gather(
        ask("Who travels?", Traveller, key="who"),
        ask_url("Please sign in", "https://example.com/sign-in", key="page"),
        sample("Say hello", max_tokens=9, key="hello"),
        list_roots(key="roots"),
    )
    sure = yield from confirm(f"Go to {city}?")
    return f"{who.name} to {city}: {text.text} {len(roots)} {sure}"


@flow.prompt
def letter(topic: str) -> Flow[str]:
    """A letter."""
    return f"{topic} in {(yield from ask('Which tone?', str))}"


@flow.resource("notes://{id}")
def note(id: str) -> Flow[str]:
    """A note."""
    return f"{id} in {(yield from ask('Which language?', str))}"


FLOWS: Flows = (plan, letter, note)
ANSWERS: Mapping[str, Any] = {
    "who": {"action": "accept", "content": {"name": "Ada"}},
    "page": {"action": "accept"},
    "hello": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi"}, "stopReason": "endTurn"},
    "roots": {"roots": [{"uri": "file:///a"}]},
    "confirm": {"action": "accept", "content": {"ok": True}},
    "ask": {"action": "accept", "content": {"value": "x"}},
}
CALLS: Mapping[str, dict[str, Any]] = {
    "tools/call": {"name": "plan", "arguments": {"city": "Rome"}},
    "prompts/get": {"name": "letter", "arguments": {"topic": "Rain"}},
    "resources/read": {"uri": "notes://7"},
}
LISTS = ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list")


# ---------------------------------------------------------------------- edges


@dataclass(frozen=True)
class Reply:
    """What came back for one request: everything on the stream, in order. `status` is 0 where there is no HTTP."""

    messages: list[dict[str, Any]]
    status: int = 0
    headers: Mapping[str, str] | None = None

    @property
    def result(self) -> dict[str, Any]:
        result: dict[str, Any] = self.messages[-1]["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.messages[-1]["error"]
        return error


def meta_of(capabilities: Mapping[str, Any], meta: Mapping[str, Any] | None) -> dict[str, Any]:
    return {VERSION: "2026-07-28", CAPABILITIES: dict(capabilities), **(meta or {})}


def jsonrpc(
    flows: Flows,
    method: str,
    *,
    capabilities: Mapping[str, Any] = ALL,
    meta: Mapping[str, Any] | None = None,
    principal: str | None = None,
    **params: Any,
) -> Reply:
    """One request to a new reference server."""

    async def main() -> dict[str, Any]:
        server = JsonRpcServer(flows, name="rows", keys=KEYS, clock=Clock())
        params["_meta"] = meta_of(capabilities, meta)
        return await server.handle({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, principal=principal)

    return Reply([json.loads(json.dumps(anyio.run(main)))])


class Verifier(TokenVerifier):
    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="client", scopes=[], subject=token)


def hosted(flows: Flows, *, guarded: bool = False) -> MCPServer[Any]:
    options: dict[str, Any] = {}
    if guarded:
        auth = AuthSettings(issuer_url=AnyHttpUrl("https://issuer.example"), resource_server_url=None)
        options = {"token_verifier": Verifier(), "auth": auth}
    server: MCPServer[Any] = MCPServer("rows", **options)
    add_flows(server, *flows, keys=KEYS, clock=Clock())
    return server


def post(server: MCPServer[Any], body: Any, headers: Mapping[str, Any], verb: str = "POST") -> Reply:
    """One HTTP request to a server in this process, whatever its body. A header of None is left out."""

    async def main() -> Reply:
        app = server.streamable_http_app(stateless_http=True)
        base = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
        }
        sent = {name: value for name, value in {**base, **headers}.items() if value is not None}
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000")
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with app.router.lifespan_context(app), http:
            got = await http.request(verb, "/mcp", content=content, headers=sent)
        if got.headers.get("content-type", "").startswith("text/event-stream"):
            lines = [line[6:] for line in got.text.splitlines() if line.startswith("data: ")]
            return Reply([json.loads(line) for line in lines], got.status_code, got.headers)
        is_json = got.headers.get("content-type", "").startswith("application/json")
        return Reply([got.json()] if is_json else [], got.status_code, got.headers)

    return anyio.run(main)


def http(
    flows: Flows,
    method: str,
    *,
    capabilities: Mapping[str, Any] = ALL,
    meta: Mapping[str, Any] | None = None,
    principal: str | None = None,
    headers: Mapping[str, Any] | None = None,
    **params: Any,
) -> Reply:
    """One request over HTTP to a new server of the official SDK."""
    params["_meta"] = meta_of(capabilities, meta)
    routed: dict[str, Any] = {"Mcp-Method": method, "Mcp-Name": params.get("uri", params.get("name"))}
    if principal is not None:
        routed["Authorization"] = f"Bearer {principal}"
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return post(hosted(flows, guarded=principal is not None), message, {**routed, **(headers or {})})


Edge: TypeAlias = Callable[..., Reply]
both = pytest.mark.parametrize("edge", [jsonrpc, http], ids=["jsonrpc", "http"])
methods = pytest.mark.parametrize("method", CALLS)


def answers_to(result: Mapping[str, Any]) -> dict[str, Any]:
    """This round's answers and state, as a client sends them back."""
    answers = {key: ANSWERS[key.partition("~")[0]] for key in result["inputRequests"]}
    return {"inputResponses": answers, "requestState": result["requestState"]}


def whole(edge: Edge, method: str, flows: Flows = FLOWS) -> list[dict[str, Any]]:
    """The results of a whole call, round by round."""
    found = [edge(flows, method, **CALLS[method]).result]
    while found[-1]["resultType"] == "input_required":
        found.append(edge(flows, method, **CALLS[method], **answers_to(found[-1])).result)
    return found


def nested(value: Any) -> Iterator[Any]:
    """A JSON value and everything in it."""
    yield value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in items:
        yield from nested(item)


# ---------------------------------------------------------------------- results


@both
@methods
def test_tools_prompts_and_resources_ask_and_then_complete(edge: Edge, method: str) -> None:
    *asked, end = whole(edge, method)
    assert [result["resultType"] for result in asked] == ["input_required"] * (2 if method == "tools/call" else 1)
    expected = {
        "tools/call": lambda: end["structuredContent"] == {"result": "Ada to Rome: Hi 1 True"},
        "prompts/get": lambda: end["messages"] == [{"role": "user", "content": {"type": "text", "text": "Rain in x"}}],
        "resources/read": lambda: end["contents"] == [{"uri": "notes://7", "mimeType": "text/plain", "text": "7 in x"}],
    }
    assert expected[method](), end


@both
@pytest.mark.parametrize("method", LISTS)
def test_lists_and_discover_never_ask_though_a_retry_is_sent(edge: Edge, method: str) -> None:
    state = edge(FLOWS, "tools/call", **CALLS["tools/call"]).result["requestState"]
    for extra in ({}, {"requestState": state, "inputResponses": dict(ANSWERS)}):
        result = edge(FLOWS, method, **extra).result
        assert result["resultType"] == "complete"
        assert not {"inputRequests", "requestState"} & set(result)


@both
def test_every_result_says_its_type_and_names_the_server_interim_ones_too(edge: Edge) -> None:
    found = [result for method in CALLS for result in whole(edge, method)]
    found += [edge(FLOWS, method).result for method in LISTS]
    assert {result["resultType"] for result in found} == {"complete", "input_required"}
    assert len(found) == 12
    for result in found:
        assert list(result["_meta"]) == [SERVER]
        assert result["_meta"][SERVER]["name"] == "rows"
        assert isinstance(result["_meta"][SERVER]["version"], str)
        assert "serverInfo" not in result


@both
def test_an_interim_result_holds_questions_and_a_state_and_nothing_else(edge: Edge) -> None:
    for method in CALLS:
        for result in whole(edge, method)[:-1]:
            assert set(result) == {"resultType", "inputRequests", "requestState", "_meta"}
            assert result["inputRequests"]
            assert isinstance(result["requestState"], str)
            assert len(result["requestState"]) >= 38


@both
def test_no_null_no_empty_state_and_no_empty_questions_on_the_wire(edge: Edge) -> None:
    replies = [edge(FLOWS, method).messages for method in LISTS]
    replies += [whole(edge, method) for method in CALLS]
    for value in nested(replies):
        assert value is not None
        if isinstance(value, dict):
            assert value.get("requestState", "x") != ""
            assert value.get("inputRequests", "x") != {}


@methods
def test_what_the_reference_adapter_sends_is_what_the_official_types_describe(method: str) -> None:
    for result in whole(jsonrpc, method):
        assert serialize_server_result(method, "2026-07-28", result) == result
    for listed in LISTS:
        result = jsonrpc(FLOWS, listed).result
        assert serialize_server_result(listed, "2026-07-28", result) == result


@both
def test_questions_are_bare_requests_of_the_three_methods_with_the_keys_of_the_author(edge: Edge) -> None:
    requests = edge(FLOWS, "tools/call", **CALLS["tools/call"]).result["inputRequests"]
    assert {key: request["method"] for key, request in requests.items()} == {
        "who": "elicitation/create",
        "page": "elicitation/create",
        "hello": "sampling/createMessage",
        "roots": "roots/list",
    }
    assert all(set(request) <= {"method", "params"} for request in requests.values())


@both
def test_keys_are_unique_in_a_round_and_in_a_run(edge: Edge) -> None:
    @flow
    def same() -> Flow[str]:
        yield from gather(ask("A?", str), ask("B?", str), ask("C?", str))
        return (yield from ask("D?", str))

    first = edge((same,), "tools/call", name="same").result
    assert list(first["inputRequests"]) == ["ask", "ask~2", "ask~3"]
    second = edge((same,), "tools/call", name="same", **answers_to(first)).result
    assert list(second["inputRequests"]) == ["ask~4"]


@both
def test_a_read_resource_carries_private_cache_hints_and_an_interim_result_none(edge: Edge) -> None:
    asked, end = whole(edge, "resources/read")
    assert not {"ttlMs", "cacheScope"} & set(asked)
    assert (end["ttlMs"], end["cacheScope"]) == (0, "private")
    for method in LISTS:
        result = edge(FLOWS, method).result
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")


def test_a_public_cache_hint_of_the_host_does_not_reach_a_flow() -> None:
    def cached() -> MCPServer[Any]:
        hint = CacheHint(ttl_ms=60_000, scope="public")
        server: MCPServer[Any] = MCPServer("rows", cache_hints={"resources/read": hint})
        add_flows(server, note, keys=KEYS, clock=Clock())
        return server

    def read(**params: Any) -> dict[str, Any]:
        sent = {**CALLS["resources/read"], "_meta": meta_of(ALL, None), **params}
        message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": sent}
        return post(cached(), message, {"Mcp-Method": "resources/read", "Mcp-Name": "notes://7"}).result

    asked = read()
    assert not {"ttlMs", "cacheScope"} & set(asked)
    end = read(**answers_to(asked))
    assert (end["ttlMs"], end["cacheScope"]) == (0, "private")


@both
def test_server_discover_names_version_and_offers_and_has_no_capability_for_questions(edge: Edge) -> None:
    result = edge(FLOWS, "server/discover").result
    assert "2026-07-28" in result["supportedVersions"]
    assert {"tools", "prompts", "resources"} <= set(result["capabilities"])
    assert not {"elicitation", "sampling", "roots"} & set(result["capabilities"])


# ---------------------------------------------------------------------- elicitation on the wire


@both
def test_a_form_is_message_mode_and_a_flat_schema(edge: Edge) -> None:
    who = edge(FLOWS, "tools/call", **CALLS["tools/call"]).result["inputRequests"]["who"]
    assert who == {
        "method": "elicitation/create",
        "params": {
            "message": "Who travels?",
            "mode": "form",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "title": "Name"},
                    "seat": {"type": "string", "enum": ["aisle", "window"], "title": "Seat", "default": "aisle"},
                },
                "required": ["name"],
            },
        },
    }


@both
def test_a_page_is_mode_message_and_url_without_an_elicitation_id(edge: Edge) -> None:
    page = edge(FLOWS, "tools/call", **CALLS["tools/call"]).result["inputRequests"]["page"]
    assert page == {
        "method": "elicitation/create",
        "params": {"message": "Please sign in", "mode": "url", "url": "https://example.com/sign-in"},
    }


class Nested(BaseModel):
    inner: Traveller


@pytest.mark.parametrize(
    "asked", [Nested, list[Traveller], list[str], dict[str, str], list[list[str]], tuple[int, int]]
)
def test_a_form_that_is_not_flat_is_refused(asked: Any) -> None:
    with pytest.raises(DefinitionError, match="cannot be asked"):
        _ = ask("?", asked)


@both
@pytest.mark.parametrize(
    ("asked", "sent", "got"),
    [
        (float, 1.5, 1.5),
        (int, 3, 3),
        (str, "x", "x"),
        (bool, False, False),
        (list[Literal["a", "b"]], ["b", "a"], ["b", "a"]),
        (list[Literal["a", "b"]], [], []),
    ],
)
def test_an_answer_may_be_text_number_boolean_or_a_list_of_texts(edge: Edge, asked: Any, sent: Any, got: Any) -> None:
    seen: list[Any] = []

    @flow
    def question() -> Flow[str]:
        seen.append((yield from ask("?", asked)))
        return "end"

    first = edge((question,), "tools/call", name="question").result
    answer = {"ask": {"action": "accept", "content": {"value": sent}}}
    end = edge((question,), "tools/call", name="question", requestState=first["requestState"], inputResponses=answer)
    assert end.result["structuredContent"] == {"result": "end"}
    assert seen == [got]


@pytest.mark.parametrize("secret", [SecretStr, Annotated[str, Field(json_schema_extra={"format": "password"})]])
def test_a_type_for_secrets_is_not_asked_in_a_form(secret: Any) -> None:
    with pytest.raises(DefinitionError, match="ask_url"):
        _ = ask("What is your password?", secret)


def test_what_we_add_to_a_forms_text_holds_no_url() -> None:
    @flow
    def question() -> Flow[str]:
        return str((yield from ask("Your page?", AnyUrl, attempts=15)))

    t = tester(question).start()
    assert "http" not in json.dumps(t.asked["ask"].schema)
    for wrong in ("no url", "https://evil.example:99999999/x", 5, ["https://evil.example"], {"value": None}):
        t.answer(wrong)
        assert t.message.startswith("Your page?\n(The last answer was not taken: ")
        assert "://" not in t.message


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://ada:secret@example.com/", "example.com", "https://"]
)
def test_a_page_is_a_web_address_that_signs_nobody_in(url: str) -> None:
    with pytest.raises(DefinitionError):
        _ = ask_url("Open this", url)


def test_consent_to_open_a_page_is_not_taken_for_its_end() -> None:
    done: list[bool] = []

    def is_done() -> bool:
        return bool(done)

    @flow
    def sign_in() -> Flow[str]:
        for _ in range(3):
            yield from ask_url("Please sign in", "https://example.com/sign-in", key="page")
            if (yield from step(is_done)):
                return "signed in"
        return "given up"

    t = tester(sign_in).start().answer(page=True)
    assert list(t.asked) == ["page~2"]
    done.append(True)
    assert t.answer(**{"page~2": True}).result == "signed in"
    assert tester(sign_in).start().decline().failure.reason == "not_answered"


def test_a_page_can_tell_whether_the_one_who_opened_it_is_the_one_who_calls() -> None:
    opened_by: list[str] = []

    def is_same() -> bool:
        return opened_by == [current().principal]

    @flow
    def link() -> Flow[bool]:
        yield from ask_url("Please sign in", "https://example.com/sign-in")
        return (yield from step(is_same))

    for who, same in (("ada", True), ("mallory", False)):
        t = tester(link, principal="ada").start()
        opened_by[:] = [who]
        assert t.answer(True).result is same


@both
@pytest.mark.parametrize(
    ("action", "heard"), [("accept", "accept x"), ("decline", "Declined"), ("cancel", "Cancelled"), (None, None)]
)
def test_accept_decline_cancel_and_no_answer_are_four_things(edge: Edge, action: str | None, heard: str | None) -> None:
    @flow
    def choose() -> Flow[str]:
        try:
            return f"accept {(yield from ask('?', str))}"
        except (Declined, Cancelled) as error:
            return type(error).__name__

    first = edge((choose,), "tools/call", name="choose").result
    sent: dict[str, Any] = {"requestState": first["requestState"]}
    if action is not None:
        sent["inputResponses"] = {"ask": {"action": action, "content": {"value": "x"}}}
    result = edge((choose,), "tools/call", name="choose", **sent).result
    if heard is None:
        assert result == first
    else:
        assert result["structuredContent"] == {"result": heard}


# ---------------------------------------------------------------------- capabilities


@flow
def form_only() -> Flow[str]:
    """Ask in a form."""
    return (yield from ask("?", str))


@flow
def url_only() -> Flow[str]:
    """Ask to open a page."""
    yield from ask_url("Open", "https://example.com/")
    return "opened"


@flow
def tool_using() -> Flow[str]:
    """Ask a model that may use tools."""
    tools = [{"name": "look", "inputSchema": {"type": "object"}}]
    return (yield from sample("?", max_tokens=9, tools=tools)).text


@flow
def plain_sample() -> Flow[str]:
    """Ask a model."""
    return (yield from sample("?", max_tokens=9)).text


@flow
def context_using() -> Flow[str]:
    """Ask a model that sees the server's context."""
    return (yield from sample("?", max_tokens=9, include_context="thisServer")).text


@flow
def rooted() -> Flow[str]:
    """Ask for roots."""
    return str(len((yield from list_roots())))


GATED: Flows = (form_only, url_only, tool_using, plain_sample, context_using, rooted)


@both
@pytest.mark.parametrize(
    ("name", "capabilities", "missing"),
    [
        ("form_only", {}, {"elicitation": {"form": {}}}),
        ("form_only", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("form_only", {"elicitation": {}}, None),
        ("form_only", {"elicitation": {"form": {}}}, None),
        ("form_only", {"elicitation": {"form": {}, "url": {}}}, None),
        ("url_only", {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("url_only", {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        ("url_only", {"elicitation": {"url": {}}}, None),
        ("tool_using", {"sampling": {}}, {"sampling": {"tools": {}}}),
        ("tool_using", {"sampling": {"tools": {}}}, None),
        ("plain_sample", {"elicitation": {}}, {"sampling": {}}),
        ("plain_sample", {"sampling": {}}, None),
        ("context_using", {"sampling": {"tools": {}}}, {"sampling": {"context": {}}}),
        ("context_using", {"sampling": {"context": {}}}, None),
        ("rooted", {}, {"roots": {}}),
        ("rooted", {"roots": {}}, None),
    ],
)
def test_only_what_this_request_declares_is_asked_down_to_modes_and_tools(
    edge: Edge, name: str, capabilities: Any, missing: Any
) -> None:
    reply = edge(GATED, "tools/call", capabilities=capabilities, name=name)
    if missing is None:
        assert len(reply.result["inputRequests"]) == 1
        return
    assert (reply.error["code"], reply.error["data"]) == (-32021, {"requiredCapabilities": missing})
    assert reply.status in (0, 400)


@both
def test_an_optional_question_is_left_out_and_a_needed_one_is_the_error(edge: Edge) -> None:
    @flow
    def degrades() -> Flow[str]:
        name, roots = yield from gather(
            ask("Name?", str, key="name", if_unsupported="nobody"), list_roots(key="roots", if_unsupported=None)
        )
        return f"{name} {roots}"

    @flow
    def catches() -> Flow[str]:
        try:
            yield from ask_url("Open", "https://example.com/", key="page")
        except CapabilityMissing:
            return "by post: " + (yield from ask("Address?", str, key="address"))
        return "opened"

    flows = (degrades, catches)
    none = edge(flows, "tools/call", capabilities={}, name="degrades").result
    assert none["structuredContent"] == {"result": "nobody None"}
    some = edge(flows, "tools/call", capabilities=FORMS, name="degrades").result
    assert list(some["inputRequests"]) == ["name"]
    assert list(edge(flows, "tools/call", capabilities=FORMS, name="catches").result["inputRequests"]) == ["address"]
    assert edge(flows, "tools/call", capabilities={}, name="catches").error["code"] == -32021


@both
def test_capabilities_are_looked_at_anew_in_every_round_and_a_refused_round_can_be_sent_again(edge: Edge) -> None:
    call = CALLS["tools/call"]
    first = edge(FLOWS, "tools/call", **call).result
    less: dict[str, Any] = {"sampling": {}, "roots": {}}
    refused = edge(FLOWS, "tools/call", capabilities=less, **call, **answers_to(first))
    assert refused.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}, "url": {}}}}
    pending = edge((form_only,), "tools/call", name="form_only").result["requestState"]
    refused = edge((form_only,), "tools/call", capabilities=less, name="form_only", requestState=pending)
    assert refused.error["code"] == -32021
    again = edge(FLOWS, "tools/call", **call, **answers_to(first)).result
    assert list(again["inputRequests"]) == ["confirm"]
    asked = edge(FLOWS, "tools/call", capabilities=FORMS, **call, requestState=first["requestState"])
    assert not {"page", "hello", "roots"} & set(asked.messages[0].get("result", {}).get("inputRequests", {}))


@both
def test_nobody_is_asked_in_vain_when_a_question_of_the_same_gather_cannot_be_asked(edge: Edge) -> None:
    reply = edge(FLOWS, "tools/call", capabilities=FORMS, **CALLS["tools/call"])
    assert "error" in reply.messages[0], f"asked {list(reply.result['inputRequests'])}, and ends with -32021 after it"
    assert reply.error["code"] == -32021


@both
def test_a_question_left_out_of_a_gather_is_asked_once_it_can_be(edge: Edge) -> None:
    @flow
    def degrades() -> Flow[str]:
        name, roots = yield from gather(ask("Name?", str, key="ask"), list_roots(key="roots", if_unsupported=None))
        return f"{name} {roots}"

    first = edge((degrades,), "tools/call", capabilities=FORMS, name="degrades").result
    assert list(first["inputRequests"]) == ["ask"]
    second = edge((degrades,), "tools/call", capabilities=ALL, name="degrades", **answers_to(first)).result
    asked = list(second.get("inputRequests", {}))
    assert asked == ["roots"], "what the first round did not declare was held against the second, which does"


# ---------------------------------------------------------------------- each request by itself


@both
def test_calls_under_way_at_the_same_time_are_told_apart_by_their_state_alone(edge: Edge) -> None:
    @flow
    def echo() -> Flow[str]:
        first = yield from ask("First?", str)
        return first + (yield from ask("Second?", str))

    def answer(state: str, key: str, value: str) -> dict[str, Any]:
        responses = {key: {"action": "accept", "content": {"value": value}}}
        sent = {"name": "echo", "requestState": state, "inputResponses": responses}
        return edge((echo,), "tools/call", **sent).result

    states = [edge((echo,), "tools/call", name="echo").result["requestState"] for _ in "ab"]
    states = [answer(state, "ask", letter)["requestState"] for state, letter in zip(states, "ab", strict=True)]
    ends = [answer(state, "ask~2", "!")["structuredContent"]["result"] for state in reversed(states)]
    assert ends == ["b!", "a!"]


@both
def test_a_token_of_one_adapter_goes_on_at_the_other(edge: Edge) -> None:
    other = http if edge is jsonrpc else jsonrpc
    first = edge(FLOWS, "tools/call", **CALLS["tools/call"]).result
    second = other(FLOWS, "tools/call", **CALLS["tools/call"], **answers_to(first)).result
    end = edge(FLOWS, "tools/call", **CALLS["tools/call"], **answers_to(second)).result
    assert end["structuredContent"] == {"result": "Ada to Rome: Hi 1 True"}


@both
@methods
def test_client_info_is_optional_and_changes_nothing(edge: Edge, method: str) -> None:
    first = edge(FLOWS, method, **CALLS[method]).result
    info = {CLIENT: {"name": "another client", "version": "2"}}
    with_info = edge(FLOWS, method, meta=info, **CALLS[method], **answers_to(first)).result
    without = edge(FLOWS, method, **CALLS[method], **answers_to(first)).result
    if with_info["resultType"] == "input_required":
        assert list(with_info["inputRequests"]) == list(without["inputRequests"])
    else:
        assert with_info == without


@both
def test_unknown_members_are_ignored_wherever_a_client_may_put_them(edge: Edge) -> None:
    call = CALLS["tools/call"]
    declared = {**ALL, "elicitation": {"form": {"x": 1}, "url": {}, "voice": {}}, "com.example/other": {"a": [1]}}
    first = edge(FLOWS, "tools/call", capabilities=declared, meta={"com.example/x": 1, "progressToken": 7}, **call)
    sent = answers_to(first.result)
    sent["inputResponses"] = {
        **sent["inputResponses"],
        "who": {"action": "accept", "content": {"name": "Ada", "extra": "x"}, "_meta": {"a": 1}},
        "unknown": {"action": "decline"},
        "confirm": {"action": "decline"},
        "": {"roots": []},
    }
    second = edge(FLOWS, "tools/call", meta={"progressToken": 8, "traceparent": "00-1-2-3"}, **call, **sent).result
    assert list(second["inputRequests"]) == ["confirm"]
    end = edge(FLOWS, "tools/call", unknown={"a": 1}, **call, **answers_to(second)).result
    assert end["structuredContent"] == {"result": "Ada to Rome: Hi 1 True"}


@both
def test_what_is_missing_is_asked_again_and_what_came_is_kept(edge: Edge) -> None:
    call = CALLS["tools/call"]
    first = edge(FLOWS, "tools/call", **call).result
    sent = answers_to(first)
    sent["inputResponses"] = {key: ANSWERS[key] for key in ("who", "hello")}
    second = edge(FLOWS, "tools/call", **call, **sent).result
    assert list(second["inputRequests"]) == ["page", "roots"]
    third = edge(FLOWS, "tools/call", **call, **answers_to(second)).result
    assert list(third["inputRequests"]) == ["confirm"]


@both
@methods
def test_a_state_is_bound_to_caller_request_and_arguments(edge: Edge, method: str) -> None:
    call = CALLS[method]
    asked = edge(FLOWS, method, principal="ada", **call).result
    sent = answers_to(asked)
    others: dict[str, dict[str, Any]] = {
        "tools/call": {"name": "plan", "arguments": {"city": "Oslo"}},
        "prompts/get": {"name": "letter", "arguments": {"topic": "Sun"}},
        "resources/read": {"uri": "notes://8"},
    }
    for principal, given in (("bob", call), (None, call), ("ada", others[method])):
        refused = edge(FLOWS, method, principal=principal, **given, **sent)
        assert refused.error == {
            "code": -32602,
            "message": "Invalid or expired requestState",
            "data": {"reason": "invalid_request_state"},
        }
    for other in CALLS:
        if other != method:
            assert edge(FLOWS, other, principal="ada", **CALLS[other], **sent).error["code"] == -32602
    assert edge(FLOWS, method, principal="ada", **call, **sent).result["resultType"] in ("complete", "input_required")


def test_a_state_shows_nothing_of_answers_and_step_results_and_does_not_stand_for_a_caller() -> None:
    def look_up() -> str:
        return "card 4711-0815"

    @flow
    def pay() -> Flow[str]:
        yield from ask("Your name?", str)
        yield from step(look_up)
        return f"{current().principal} {(yield from ask('Sure?', str))}"

    t = tester(pay, principal="ada").start().answer("Lovelace")
    assert t.state is not None
    plain = t.state.encode().translate(bytes.maketrans(b"-_", b"+/"))
    for text in (b"4711", b"Lovelace", b"pay", b"ada"):
        assert text not in plain
    assert t.answer("x").result == "ada x"


# ---------------------------------------------------------------------- errors


@both
def test_a_tools_failure_is_a_complete_result_and_other_methods_have_an_error_for_it(edge: Edge) -> None:
    def refuse() -> str:
        raise ValueError("secret host name")

    @flow
    def breaks() -> Flow[str]:
        yield from ask("?", str)
        return (yield from step(refuse))

    @flow.prompt(name="breaks")
    def breaks_prompt() -> Flow[str]:
        yield from ask("?", str)
        return (yield from step(refuse))

    @flow.resource("breaks://{id}", name="breaks")
    def breaks_resource(id: str) -> Flow[str]:
        yield from ask("?", str)
        return (yield from step(refuse))

    flows: Flows = (breaks, breaks_prompt, breaks_resource)
    for method, call in (
        ("tools/call", {"name": "breaks"}),
        ("prompts/get", {"name": "breaks"}),
        ("resources/read", {"uri": "breaks://1"}),
    ):
        first = edge(flows, method, **call).result
        failed = edge(flows, method, **call, **answers_to(first))
        if method == "tools/call":
            assert failed.result["isError"] is True
            assert failed.result["resultType"] == "complete"
            assert failed.result["content"][0]["text"] == "Error executing tool breaks: step 'refuse' failed"
        else:
            assert failed.error["code"] == -32603
            assert failed.error["data"] == {"reason": "step_failed"}
        assert "secret" not in json.dumps(failed.messages)
        declined = edge(
            flows,
            method,
            **call,
            requestState=first["requestState"],
            inputResponses={"ask": {"action": "decline"}},
        )
        if method == "tools/call":
            assert declined.result["isError"] is True
        else:
            assert (declined.error["code"], declined.error["data"]) == (-32602, {"reason": "not_answered"})


@pytest.mark.parametrize(
    ("edge", "method", "call"),
    [
        (jsonrpc, "tools/call", {"name": "nope"}),
        (jsonrpc, "prompts/get", {"name": "nope"}),
        (jsonrpc, "resources/read", {"uri": "nope://1"}),
        (http, "resources/read", {"uri": "nope://1"}),
    ],
)
def test_an_unknown_tool_prompt_or_resource_is_invalid_params(edge: Edge, method: str, call: Any) -> None:
    assert edge(FLOWS, method, **call).error["code"] == -32602


@both
def test_arguments_are_held_against_the_signature_before_anything_runs(edge: Edge) -> None:
    started: list[int] = []

    @flow
    def counted(seats: Annotated[int, Field(ge=1)]) -> Flow[str]:
        started.append(seats)
        return (yield from ask("?", str))

    for wrong in ({}, {"seats": 0}, {"seats": "many"}, {"seats": None}):
        result = edge((counted,), "tools/call", name="counted", arguments=wrong).result
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("arguments of counted are not valid: seats: ")
    assert started == []


@both
def test_an_answer_that_is_no_answer_is_an_error_and_one_that_does_not_fit_is_asked_again(edge: Edge) -> None:
    def answered(response: Any) -> Reply:
        first = edge((form_only,), "tools/call", name="form_only").result
        sent = {"requestState": first["requestState"], "inputResponses": response}
        return edge((form_only,), "tools/call", name="form_only", **sent)

    malformed: list[Any] = [{"ask": 12345}, {"ask": {"action": "yes"}}, {"ask": {}}, {"other": "x"}, [], "x"]
    for response in malformed:
        reply = answered(response)
        assert reply.error["code"] == -32602
        assert reply.status in (0, 400)
    misfits: list[Any] = [{"action": "accept", "content": {}}, {"action": "accept"}, {"roots": []}]
    for response in misfits:
        again = answered({"ask": response}).result["inputRequests"]["ask"]["params"]["message"]
        assert again.startswith("?\n(The last answer was not taken: ")
    for absent in ({}, None, {"other": {"action": "accept", "content": {}}}):
        assert answered(absent).result["inputRequests"]["ask"]["params"]["message"] == "?"


@both
def test_an_error_of_the_sdk_raised_in_a_flow_never_becomes_the_retired_code(edge: Edge) -> None:
    def needs_page() -> str:
        page = ElicitRequestURLParams(message="m", url="https://example.com", elicitation_id="1")
        raise UrlElicitationRequiredError([page])

    @flow
    def old() -> Flow[str]:
        if (yield from ask("Step?", bool)):
            return (yield from step(needs_page))
        return needs_page()

    first = edge((old,), "tools/call", name="old").result
    for value in (True, False):
        answer = {"ask": {"action": "accept", "content": {"value": value}}}
        sent = {"requestState": first["requestState"], "inputResponses": answer}
        result = edge((old,), "tools/call", name="old", **sent).result
        assert result["isError"] is True
        assert "32042" not in json.dumps(result)


def test_no_other_error_code_is_in_the_source() -> None:
    codes: set[int] = set()
    for path in Path(mrtr_flow.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                value = getattr(node.operand, "value", None)
                if isinstance(value, int) and 32000 <= value <= 32768:
                    codes.add(-value)
    assert codes == {-32600, -32601, -32602, -32603, -32021, -32022}


# ---------------------------------------------------------------------- nothing kept


def held(code: Any) -> list[Any]:
    """The suspended functions of one code object that are still in memory."""
    gc.collect()
    return [
        item
        for item in gc.get_objects()
        if (inspect.isgenerator(item) and item.gi_code is code) or (inspect.iscoroutine(item) and item.cr_code is code)
    ]


def ours() -> int:
    """How many instances of this package's classes are in memory."""
    gc.collect()
    return sum(str(type(item).__module__).startswith("mrtr_flow.") for item in gc.get_objects())


def request(name: str, **params: Any) -> dict[str, Any]:
    sent = {"name": name, "_meta": meta_of(ALL, None), **params}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": sent}


@pytest.mark.parametrize("spelling", ["yield from", "await"])
def test_a_server_keeps_nothing_of_a_call_between_rounds(spelling: str) -> None:
    @flow(name="waits")
    def generator() -> Flow[str]:
        yield from step(str, 1)
        return (yield from ask("?", str))

    @flow(name="waits")
    async def coroutine() -> str:
        await step(str, 1)
        return await ask("?", str)

    definition: Any = generator if spelling == "yield from" else coroutine

    async def main() -> None:
        server = JsonRpcServer([definition], name="rows", keys=KEYS)
        await server.handle(request("waits"))
        before = ours()
        answers = [await server.handle(request("waits")) for _ in range(20)]
        assert all(answer["result"]["resultType"] == "input_required" for answer in answers)
        assert held(definition.fn.__code__) == []
        assert ours() <= before

    anyio.run(main)


def test_a_server_of_the_sdk_keeps_nothing_of_a_call_between_rounds() -> None:
    @flow
    def waits() -> Flow[str]:
        return (yield from ask("?", str))

    async def never(context: Any, params: Any) -> Any:
        raise AssertionError("the client answered by itself")

    async def main() -> None:
        async with Client(hosted((waits,)), elicitation_callback=never) as client:
            counts = []
            for _ in range(3):
                for _ in range(5):
                    await client.session.call_tool("waits", {}, allow_input_required=True)
                assert held(waits.fn.__code__) == []
                counts.append(ours())
        assert len(set(counts)) == 1

    anyio.run(main)


@dataclass
class Slow:
    """A step that waits until it is cancelled, and what it saw."""

    started: anyio.Event
    keys: list[str]
    ended: list[str]

    async def wait(self) -> str:
        self.keys.append(current().idempotency_key)
        self.started.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.append("cancelled")
        raise AssertionError


def slow_flow(slow: Slow) -> Definition[..., Any]:
    @flow(name="slow")
    def waits() -> Flow[str]:
        yield from ask("Ready?", bool)
        return (yield from step(slow.wait).options(key="wait"))

    return waits


READY = {"ask": {"action": "accept", "content": {"value": True}}}


def test_a_cancelled_request_mints_nothing_keeps_nothing_and_can_be_sent_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        slow = Slow(anyio.Event(), [], [])
        definition = slow_flow(slow)
        server = JsonRpcServer([definition], name="rows", keys=KEYS)
        first = (await server.handle(request("slow")))["result"]
        answers: list[Any] = []

        async def call() -> None:
            again = request("slow", requestState=first["requestState"], inputResponses=READY)
            answers.append(await server.handle(again))

        for number in (1, 2):
            slow.started = anyio.Event()
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await slow.started.wait()
                group.cancel_scope.cancel()
            assert slow.ended == ["cancelled"] * number
            assert held(definition.fn.__code__) == []
        assert answers == []
        assert slow.keys[0] == slow.keys[1]

    with caplog.at_level(logging.INFO, "mrtr_flow"):
        anyio.run(main)
    assert caplog.records == []


def test_a_client_that_hangs_up_cancels_its_request_and_is_sent_nothing() -> None:
    async def main() -> None:
        slow = Slow(anyio.Event(), [], [])
        definition = slow_flow(slow)
        app = hosted((definition,)).streamable_http_app(stateless_http=True)
        token = JsonRpcServer([definition], name="rows", keys=KEYS, clock=Clock())
        first = (await token.handle(request("slow")))["result"]
        body = json.dumps(request("slow", requestState=first["requestState"], inputResponses=READY)).encode()
        headers = {
            "host": "127.0.0.1:8000",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "slow",
        }
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        incoming = iter([{"type": "http.request", "body": body, "more_body": False}])
        sent: list[Any] = []

        async def receive() -> Any:
            for event in incoming:
                return event
            await slow.started.wait()
            return {"type": "http.disconnect"}

        async def send(event: Any) -> None:
            sent.append(event)

        async with app.router.lifespan_context(app):
            await app(scope, receive, send)
        assert slow.ended == ["cancelled"]
        assert sent == []
        assert held(definition.fn.__code__) == []

    anyio.run(main)


def test_a_cancelled_notification_stops_the_step_and_nothing_is_answered() -> None:
    async def main() -> None:
        slow = Slow(anyio.Event(), [], [])
        definition = slow_flow(slow)

        async def ready(context: Any, params: Any) -> Any:
            return ElicitResult(action="accept", content={"value": True})

        async with Client(hosted((definition,)), elicitation_callback=ready) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "slow", {})
                await slow.started.wait()
                group.cancel_scope.cancel()
            with anyio.fail_after(5):
                while not slow.ended:
                    await anyio.lowlevel.checkpoint()
            assert held(definition.fn.__code__) == []
            assert [tool.name for tool in (await client.list_tools()).tools] == ["slow"]
        assert slow.ended == ["cancelled"]

    anyio.run(main)


@pytest.mark.parametrize("params", [{"requestId": 99}, {"requestId": None}, {"requestId": []}, {}, None, "x"])
def test_a_cancellation_of_nothing_or_of_nonsense_is_ignored(params: Any) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}

    async def main() -> dict[str, Any]:
        return await JsonRpcServer(FLOWS, name="rows", keys=KEYS).handle(message)

    assert anyio.run(main) == {}
    reply = post(hosted(FLOWS), message, {"Mcp-Method": "notifications/cancelled"})
    assert reply.status in ((202, 400) if isinstance(params, str) else (202,))
    assert not [message for message in reply.messages if "result" in message]


# ---------------------------------------------------------------------- streams, progress, logs


@flow
def talkative(context: Context[Any, Any]) -> Flow[str]:
    """Report progress and log, then ask, then report progress and log again."""
    yield from step(talk, context, 1)
    name = yield from ask("Name?", str)
    yield from step(talk, context, 2)
    return name


async def talk(context: Context[Any, Any], number: int) -> int:
    await context.report_progress(number, 2, f"part {number}")
    await context.info(f"log {number}")
    return number


LOUD = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*deprecated.*")
def test_a_stream_holds_notifications_of_this_request_and_ends_with_its_result() -> None:
    first = http((talkative,), "tools/call", meta=LOUD, name="talkative")
    second = http((talkative,), "tools/call", meta=LOUD, name="talkative", **answers_to(first.result))
    for number, reply, kind in ((1, first, "input_required"), (2, second, "complete")):
        assert reply.headers is not None
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.headers["x-accel-buffering"] == "no"
        assert [message.get("method") for message in reply.messages] == [
            "notifications/progress",
            "notifications/message",
            None,
        ]
        progress = reply.messages[0]["params"]
        assert progress == {"progressToken": "p", "progress": number, "total": 2, "message": f"part {number}"}
        assert reply.result["resultType"] == kind
        assert all("id" not in message for message in reply.messages[:-1])
        assert reply.messages[-1]["id"] == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*deprecated.*")
def test_without_a_progress_token_and_a_log_level_there_is_one_plain_response() -> None:
    first = http((talkative,), "tools/call", name="talkative")
    second = http((talkative,), "tools/call", name="talkative", **answers_to(first.result))
    for reply in (first, second):
        assert reply.headers is not None
        assert reply.headers["content-type"] == "application/json"
        assert len(reply.messages) == 1
        assert "method" not in reply.messages[0]


@both
def test_everything_a_server_sends_is_a_response_to_the_request(edge: Edge) -> None:
    state: dict[str, Any] = {}
    for _ in range(3):
        reply = edge(FLOWS, "tools/call", **CALLS["tools/call"], **state)
        (message,) = reply.messages
        assert set(message) == {"jsonrpc", "id", "result"}
        assert message["id"] == 1
        if "inputRequests" in reply.result:
            state = answers_to(reply.result)
    assert reply.result["isError"] is False


def test_logs_hold_no_answer_no_result_no_token_and_no_key(caplog: pytest.LogCaptureFixture) -> None:
    def fetch(text: str) -> str:
        if text == "hunter2-b":
            raise ConnectionError(f"cannot reach hunter2-host for {text}")
        return "hunter2-result"

    @flow
    def secrets() -> Flow[int]:
        text = yield from ask("Which?", str)
        yield from step(fetch, text)
        number = yield from ask(f"A number for {text}?", int)
        raise ValueError(f"hunter2 {number}")

    def answer(key: str, value: Any) -> dict[str, Any]:
        return {key: {"action": "accept", "content": {"value": value}}}

    tokens: list[str] = []

    def call(**sent: Any) -> Reply:
        reply = http((secrets,), "tools/call", name="secrets", **sent)
        tokens.extend(message["result"].get("requestState", "") for message in reply.messages if "result" in message)
        return reply

    with caplog.at_level(logging.INFO):
        first = call().result["requestState"]
        second = call(requestState=first, inputResponses=answer("ask", "hunter2-a")).result["requestState"]
        assert call(requestState=first, inputResponses=answer("ask", "hunter2-b")).result["isError"]
        wrong = call(requestState=second, inputResponses=answer("ask~2", "hunter2-c")).result["requestState"]
        assert call(requestState=wrong, inputResponses=answer("ask~2", 5)).result["isError"]
        assert call(requestState=second[:-4] + "AAAA", inputResponses=answer("ask~2", 5)).error["code"] == -32602
        assert call(requestState=second, arguments={"x": "hunter2-d"}).error["code"] == -32602
    assert len(caplog.records) >= 3
    written = caplog.text + "".join(str(record.exc_info or "") for record in caplog.records)
    assert "hunter2" not in written
    for secret in (*filter(None, tokens), KEYS.partition(":")[2]):
        assert secret not in written


# ---------------------------------------------------------------------- HTTP, through the host


@both
def test_an_expired_state_is_refused(edge: Edge) -> None:
    first = edge(FLOWS, "tools/call", **CALLS["tools/call"]).result
    clock = Clock()
    clock.advance(30 * 60)
    server = JsonRpcServer(FLOWS, name="rows", keys=KEYS, clock=clock)

    async def main() -> dict[str, Any]:
        return await server.handle(request("plan", arguments={"city": "Rome"}, **answers_to(first)))

    error = anyio.run(main)["error"]
    assert (error["code"], error["data"]) == (-32602, {"reason": "expired_request_state"})


PLAN: dict[str, Any] = request("plan", arguments={"city": "Rome"})
NAMED = {"Mcp-Method": "tools/call", "Mcp-Name": "plan"}


def spoiled(**changed: Any) -> dict[str, Any]:
    """The call with another `_meta`; None leaves a member out."""
    meta = {**PLAN["params"]["_meta"], **changed}
    kept = {name: value for name, value in meta.items() if value is not None}
    return {**PLAN, "params": {**PLAN["params"], "_meta": kept}}


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {}, 400, -32700),
        ([PLAN], {}, 400, -32600),
        ({**PLAN, "id": None}, {}, 400, -32600),
        ({**PLAN, "params": CALLS["tools/call"]}, {}, 400, -32602),
        (spoiled(**{VERSION: None}), {}, 400, -32602),
        (spoiled(**{CAPABILITIES: None}), {}, 400, -32602),
        (spoiled(**{VERSION: "v999"}), {"MCP-Protocol-Version": "v999"}, 400, -32022),
        (spoiled(**{CAPABILITIES: {}}), {}, 400, -32021),
        (PLAN, {"Mcp-Name": "letter"}, 400, -32020),
        (PLAN, {"Mcp-Name": None}, 400, -32020),
        (PLAN, {"Mcp-Method": "prompts/get"}, 400, -32020),
        (PLAN, {"Mcp-Name": "=?base64?cGxhbg?="}, 400, -32020),
        ({**PLAN, "method": "initialize"}, {"Mcp-Method": "initialize", "Mcp-Name": None}, 404, -32601),
        ({**PLAN, "method": "no/such"}, {"Mcp-Method": "no/such", "Mcp-Name": None}, 404, -32601),
        (PLAN, {"Mcp-Name": "=?base64?cGxhbg==?="}, 200, None),
        (PLAN, {"mcp-NAME": "plan", "Mcp-Name": None}, 200, None),
        (PLAN, {"Mcp-Name": "Plan"}, 400, -32020),
    ],
)
def test_what_is_wrong_before_a_flow_is_reached_has_its_status_and_code(
    body: Any, headers: Any, status: int, code: int | None
) -> None:
    reply = post(hosted(FLOWS), body, {**NAMED, **headers})
    assert reply.status == status
    if code is None:
        assert reply.result["resultType"] == "input_required"
    else:
        assert reply.error["code"] == code


def test_only_posts_of_a_known_origin_are_served_and_no_session_is_made() -> None:
    assert post(hosted(FLOWS), PLAN, {**NAMED, "Origin": "https://evil.example"}).status == 403
    for verb in ("GET", "DELETE"):
        assert post(hosted(FLOWS), b"", {}, verb).status == 405
    served = post(hosted(FLOWS), PLAN, {**NAMED, "Mcp-Session-Id": "mine", "Last-Event-ID": "7"})
    assert served.status == 200
    assert served.headers is not None
    assert "mcp-session-id" not in served.headers
    notified = post(hosted(FLOWS), {"jsonrpc": "2.0", "method": "notifications/x"}, {"Mcp-Method": "notifications/x"})
    assert (notified.status, notified.messages) == (202, [])


def test_a_mirrored_argument_is_checked_in_every_round() -> None:
    @flow
    def regional(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> Flow[str]:
        return region + (yield from ask("?", str))

    (tool,) = http((regional,), "tools/list").result["tools"]
    assert tool["inputSchema"]["properties"]["region"]["x-mcp-header"] == "Region"
    call: dict[str, Any] = {"name": "regional", "arguments": {"region": "eu"}}
    right, wrong = {"Mcp-Param-Region": "eu"}, {"Mcp-Param-Region": "us"}
    first = http((regional,), "tools/call", headers=right, **call).result
    for headers in ({}, wrong):
        for sent in ({}, answers_to(first)):
            refused = http((regional,), "tools/call", headers=headers, **call, **sent)
            assert (refused.status, refused.error["code"]) == (400, -32020)
    end = http((regional,), "tools/call", headers=right, **call, **answers_to(first)).result
    assert end["structuredContent"] == {"result": "eux"}
