"""Resources by URI: which URIs a template takes, on both servers alike, and which arguments make one. And arguments
of prompts, which are texts too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import anyio
import httpx
import pytest
from mcp.server import MCPServer
from pydantic import BaseModel, BeforeValidator, Json

from mrtr_flow import Definition, DefinitionError, Flow, FlowError, ask, flow
from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from mrtr_flow.adapters.mcp import add_flows
from tests.adapters.test_mcp import Wire
from tests.helpers import KEYS, tester


@flow.resource("n://{a}/{b}", mime_type="application/json")
def pair(a: str, b: str) -> Flow[list[str]]:
    """Two values."""
    return [a, b]
    yield


@flow.resource("d://{a}-{b}", mime_type="application/json")
def dashed(a: str, b: str) -> Flow[list[str]]:
    """Two values with a separator that values may hold."""
    return [a, b]
    yield


@flow.resource("events://{year}-{month}-{day}.{kind}/", mime_type="application/json")
def events(year: str, month: str, day: str, kind: str) -> Flow[list[str]]:
    """Four values, and an end."""
    return [year, month, day, kind]
    yield


FLOWS = (pair, dashed, events)


async def by_reference(message: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(json.dumps(await JsonRpcServer(FLOWS, name="n", keys=KEYS).handle(message)))
    return answer


async def by_sdk(message: dict[str, Any]) -> dict[str, Any]:
    made: MCPServer[Any] = MCPServer("n")
    add_flows(made, *FLOWS, keys=KEYS)
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": message["method"],
        "Mcp-Name": message["params"]["uri"],
    }
    app = Wire(made).app
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000")
    async with app.router.lifespan_context(app), http:
        answer: dict[str, Any] = (await http.post("/mcp", json=message, headers=headers)).json()
    return answer


Send = Callable[[dict[str, Any]], Any]


def read(send: Send, uri: str) -> Any:
    """What the flow was given, or the code of the error."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri, "_meta": meta}}
    answer = anyio.run(send, message)
    return answer["error"]["code"] if "error" in answer else json.loads(answer["result"]["contents"][0]["text"])


both = pytest.mark.parametrize("send", [by_reference, by_sdk])


@both
@pytest.mark.parametrize(
    ("uri", "given"),
    [
        ("n://x/y", ["x", "y"]),
        ("n://a%2Fb/%C3%BC%20", ["a/b", "ü "]),
        ("n://1.0..2.0/...", ["1.0..2.0", "..."]),
        ("n://xy:/z", -32602),
        ("n://xy%3A/z", ["xy:", "z"]),
        ("d://1-2-3", ["1-2", "3"]),
        ("events://2026-09-01.all/", ["2026", "09", "01", "all"]),
        ("events://-----1.-1./", -32602),
    ],
)
def test_a_uri_gives_the_variables_their_values(send: Send, uri: str, given: Any) -> None:
    assert read(send, uri) == given


@both
@pytest.mark.parametrize(
    "uri",
    [
        "n://x/%2e%2e%2fetc",
        "n://../y",
        "n://x/..",
        "n://x/a%2F..",
        "n://x/a%2F..%2Fb",
        "n://x/a%5C..%5C..%5Cb",
        "n://%2Fetc/y",
        "n://%5C%5Chost/y",
        "n://C%3A%5Cx/y",
        "n://c%3Ax/y",
        "n://x/%00",
        "n://x/a%00b",
    ],
)
def test_a_value_that_leads_out_of_a_directory_is_no_resource(send: Send, uri: str) -> None:
    assert read(send, uri) == -32602


@both
@pytest.mark.parametrize("value", ["%zz", "%", "a%", "%4", "%FF", "%C3", "%ED%A0%80", "a b", "a\n", ""])
def test_a_value_that_is_not_escaped_utf_8_is_no_resource(send: Send, value: str) -> None:
    assert read(send, f"n://x/{value}") == -32602
    assert read(send, f"n://{value}/x") == -32602


@both
@pytest.mark.parametrize(
    "uri",
    [
        "events://" + "-" * 60_000 + "/",
        "events://" + "-" * 60_000,
        "events://" + "-." * 30_000 + "/",
        "events://" + "." * 60_000 + "/",
        "events://" + "%2D" * 20_000 + "/",
        "d://" + "-" * 60_000 + "/",
        "n://x/" + "y" * 65_531,
    ],
    ids=range(7),
)
def test_a_hostile_uri_is_answered_at_once(send: Send, uri: str) -> None:
    """Where matching backtracks these do not end."""
    assert read(send, uri) == -32602


def test_a_uri_of_65_536_characters_is_read_as_by_the_sdk() -> None:
    assert read(by_reference, "n://x/" + "y" * 65_530) == ["x", "y" * 65_530]


@pytest.mark.parametrize("template", ["n://{a}{b}", "n://x/{a}{b}/y"])
def test_variables_side_by_side_are_refused(template: str) -> None:
    text = f"uri template {template!r} has variables with nothing between them; separate them, as in {{a}}/{{b}}"
    with pytest.raises(DefinitionError, match=f"^{re.escape(text)}$"):

        @flow.resource(template)
        def sides(a: str, b: str) -> Flow[str]:
            return (yield from ask("?", str))


@pytest.mark.parametrize(
    ("definition", "arguments"),
    [
        (pair, {"a": "x/y", "b": "ü %zz \n"}),
        (pair, {"a": "-1", "b": "1.5"}),
        (dashed, {"a": "1-2", "b": "3"}),
    ],
)
def test_a_call_runs_with_the_arguments_that_its_uri_gives_back(
    definition: Definition[..., Any], arguments: dict[str, str]
) -> None:
    assert tester(definition).start(**arguments).result == list(arguments.values())


@pytest.mark.parametrize(
    ("definition", "arguments", "uri", "read_as"),
    [
        (dashed, {"a": "1", "b": "2-3"}, "d://1-2-3", "{'a': '1-2', 'b': '3'}"),
        (pair, {"a": "", "b": "x"}, "n:///x", "no values"),
        (pair, {"a": "..", "b": "x"}, "n://../x", "no values"),
        (pair, {"a": "x", "b": "/etc"}, "n://x/%2Fetc", "no values"),
        (pair, {"a": "x", "b": "\ud800"}, "n://x/%3F", "{'a': 'x', 'b': '?'}"),
    ],
)
def test_arguments_that_their_uri_does_not_give_back_are_refused(
    definition: Any, arguments: dict[str, str], uri: str, read_as: str
) -> None:
    text = (
        f"uri {uri!r} of {definition.name} is read as {read_as}, not as {arguments}; give values that are not empty, "
        f"lead out of no directory and do not hold what separates them in {definition.template}"
    )
    with pytest.raises(FlowError, match=f"^{re.escape(text)}$"):
        tester(definition).start(**arguments)


def test_arguments_that_are_no_texts_are_compared_as_texts() -> None:
    @flow.resource("t://{year}/{share}/{on}")
    def typed(year: int, share: float, on: bool) -> Flow[str]:
        return f"{year!r} {share!r} {on!r}"
        yield

    assert tester(typed).start(year=2026, share=-0.5, on=True).result == "2026 -0.5 True"


# ---------------------------------------------------------------------- prompts


class Place(BaseModel):
    city: str


def prompt_of(annotation: Any) -> Definition[..., Any]:
    def written(value: Any) -> Flow[str]:
        return repr(value)
        yield

    written.__annotations__["value"] = annotation
    return flow.prompt(written)


@pytest.mark.parametrize(
    "type_", [Place, Place | None, list[str], list[str] | None, dict[str, int] | list[Place], None], ids=str
)
def test_a_prompt_parameter_that_no_text_can_be_is_refused(type_: Any) -> None:
    text = "parameter 'value' of prompt written is no text on the wire; use a scalar type"
    with pytest.raises(DefinitionError, match=f"^{re.escape(text)}$"):
        prompt_of(type_)


@pytest.mark.parametrize(
    ("type_", "sent", "value"),
    [
        (str | None, "x", "x"),
        (int | Place, "3", 3),
        (Literal["a", "b"] | list[str], "b", "b"),
        (Any, "x", "x"),
        (Json[list[int]], "[1]", [1]),
        (
            Annotated[list[str], BeforeValidator(lambda text: text.split(","), json_schema_input_type=str)],
            "a,b",
            ["a", "b"],
        ),
    ],
    ids=str,
)
def test_a_prompt_parameter_that_some_text_can_be_is_read_from_it(type_: Any, sent: str, value: Any) -> None:
    assert tester(prompt_of(type_)).start(value=sent).result == repr(value)
