"""What a flow returns is a tool result: text, structured content and output schema as the official SDK makes them."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import anyio
import pytest
from mcp import Client, MCPError
from mcp.server import MCPServer
from mcp_types import ImageContent, TextContent
from pydantic import BaseModel, RootModel, computed_field

from mrtr_flow import DefinitionError, Flow, Reply, ask, flow, step
from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from mrtr_flow.adapters.mcp import add_flows
from tests.helpers import KEYS

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Model(BaseModel):
    name: str
    size: int | None = None


@dataclass
class Data:
    name: str


class Typed(typing.TypedDict):
    name: str


class Node(BaseModel):
    value: int
    next: Node | None = None


class Computed(BaseModel):
    side: int

    @computed_field
    @property
    def area(self) -> int:
        return self.side**2


class Names(RootModel[list[str]]):
    pass


IMAGE = ImageContent(type="image", data="AAAA", mime_type="image/png")
CASES: list[tuple[Any, Any]] = [
    (str, "plain text"),
    (str, ""),
    (int, 3),
    (float, 1.5),
    (bool, False),
    (None, None),
    (Literal["a"], "a"),
    (Model, Model(name="x")),
    (Data, Data("x")),
    (Typed, {"name": "x"}),
    (dict[str, int], {"a": 1}),
    (dict[int, str], {1: "a"}),
    (list[int], [1, 2]),
    (list[Model], [Model(name="x", size=1)]),
    (int | None, None),
    (Model | str, "x"),
    (Node, Node(value=1, next=Node(value=2))),
    (TextContent, TextContent(type="text", text="block")),
    (list[TextContent | ImageContent], [TextContent(type="text", text="a"), IMAGE]),
]


def returning(annotation: Any, value: Any) -> Callable[..., Any]:
    def result() -> Any:
        """Give it."""
        yield from step(int)
        return value

    result.__annotations__["return"] = Flow[annotation]
    return result


async def through_jsonrpc(definition: Any) -> tuple[Any, Any]:
    server = JsonRpcServer([definition], name="results", keys=KEYS)
    base = {"jsonrpc": "2.0", "id": 1}
    listed = await server.handle({**base, "method": "tools/list", "params": {"_meta": META}})
    called = await server.handle({**base, "method": "tools/call", "params": {"name": "result", "_meta": META}})
    return listed["result"]["tools"][0], called["result"]


async def through_sdk(add: Callable[[MCPServer[Any]], None]) -> tuple[Any, Any]:
    server: MCPServer[Any] = MCPServer("results")
    add(server)
    async with Client(server) as client:
        tool = (await client.list_tools()).tools[0].model_dump(mode="json", by_alias=True, exclude_none=True)
        result = (await client.call_tool("result", {})).model_dump(mode="json", by_alias=True, exclude_none=True)
    return tool, result


def untitled(schema: Any) -> Any:
    """Without titles, which the SDK derives from its own wrapper classes, and without the names of definitions."""
    if isinstance(schema, dict):
        return {key: untitled(item) for key, item in schema.items() if key not in ("title", "description")}
    return [untitled(item) for item in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize(("annotation", "value"), CASES, ids=str)
def test_a_result_is_the_same_on_both_adapters_and_as_a_plain_tool_of_the_sdk(annotation: Any, value: Any) -> None:
    definition = flow(returning(annotation, value))

    def plain() -> Any:
        """Give it."""
        return value

    plain.__annotations__["return"] = annotation

    async def main() -> None:
        reference = await through_jsonrpc(definition)
        ours = await through_sdk(lambda server: add_flows(server, definition, keys=KEYS))
        theirs = await through_sdk(lambda server: server.add_tool(plain, name="result"))
        for mine, other in ((reference, ours), (ours, theirs)):
            assert untitled(mine[0].get("outputSchema")) == untitled(other[0].get("outputSchema"))
            assert mine[1]["content"] == other[1]["content"]
            assert mine[1].get("structuredContent") == other[1].get("structuredContent")
            assert mine[1]["isError"] is other[1]["isError"] is False

    anyio.run(main)


def test_a_result_that_is_not_of_the_declared_type_is_a_tool_error_and_says_why_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        _, result = await through_jsonrpc(flow(returning(Model, "secret")))
        assert result["isError"] is True
        assert "secret" not in str(result)

    anyio.run(main)
    assert "result of result is not of its declared type" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("annotation", "value"), [(float, float("nan")), (list[float], [float("inf")]), (Any, object())]
)
def test_what_json_does_not_have_is_a_tool_error(annotation: Any, value: Any) -> None:
    async def main() -> Any:
        return await through_jsonrpc(flow(returning(annotation, value)))

    _, result = anyio.run(main)
    assert result["isError"] is True


def test_computed_fields_are_in_the_result_as_its_schema_says() -> None:
    async def main() -> Any:
        return await through_jsonrpc(flow(returning(Computed, Computed(side=3))))

    tool, result = anyio.run(main)
    assert tool["outputSchema"]["required"] == ["side", "area"]
    assert result["structuredContent"] == {"side": 3, "area": 9}


def test_a_root_model_of_a_list_is_wrapped_as_lists_are() -> None:
    async def main() -> Any:
        return await through_jsonrpc(flow(returning(Names, Names(["a"]))))

    tool, result = anyio.run(main)
    assert tool["outputSchema"]["type"] == "object"
    assert result["structuredContent"] == {"result": ["a"]}


def test_changing_a_response_changes_nothing_for_the_next() -> None:
    async def main() -> Any:
        definition = flow(returning(Model, Model(name="x")))
        tool, _ = await through_jsonrpc(definition)
        tool["outputSchema"]["properties"]["name"]["title"] = "changed"
        return await through_jsonrpc(definition)

    tool, _ = anyio.run(main)
    assert tool["outputSchema"]["properties"]["name"]["title"] == "Name"


def test_a_return_type_without_a_schema_is_refused_at_definition() -> None:
    with pytest.raises(DefinitionError, match="has no JSON schema"):
        flow(returning(Callable[[], int], None))


def test_a_reply_has_words_of_its_own_beside_the_structured_content() -> None:
    async def main() -> Any:
        return await through_jsonrpc(flow(returning(Reply[Model], Reply(Model(name="x"), "One x, as ordered."))))

    tool, result = anyio.run(main)
    assert list(tool["outputSchema"]["properties"]) == ["name", "size"]
    assert result["content"] == [{"type": "text", "text": "One x, as ordered."}]
    assert result["structuredContent"] == {"name": "x", "size": None}
    assert result["isError"] is False


def test_a_reply_may_be_a_failure_that_the_model_reads() -> None:
    async def main() -> Any:
        return await through_jsonrpc(flow(returning(Reply[Model], Reply[Model].error("There is no x left; try y."))))

    _, result = anyio.run(main)
    assert result["content"] == [{"type": "text", "text": "There is no x left; try y."}]
    assert result["isError"] is True
    assert "structuredContent" not in result


def test_a_reply_without_a_value_must_be_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> Any:
        return await through_jsonrpc(flow(returning(Reply[Model], Reply[Model](None, "Nothing to order."))))

    _, result = anyio.run(main)
    assert result["isError"] is True
    assert "give a value, or use Reply.error" in caplog.text
    assert "Nothing to order" not in caplog.text


@pytest.mark.parametrize("annotation", [Model, str, list[int], dict[str, int], Model | str])
def test_none_is_refused_where_the_output_schema_has_none(annotation: Any) -> None:
    async def main() -> Any:
        return await through_jsonrpc(flow(returning(annotation, None)))

    _, result = anyio.run(main)
    assert result["isError"] is True


def test_a_reply_has_the_value_none_where_its_type_has_it() -> None:
    async def main() -> Any:
        return await through_jsonrpc(flow(returning(Reply[Model | None], Reply[Model | None](None, "There is none."))))

    _, result = anyio.run(main)
    assert result["isError"] is False
    assert result["structuredContent"] == {"result": None}


@pytest.mark.parametrize(
    "annotation",
    [Reply[Model] | str, Reply[Model] | None, Reply | str, list[Reply[Model]], Annotated[Reply[Model], "ordered"]],
    ids=str,
)
def test_a_reply_inside_another_type_is_refused_at_definition(annotation: Any) -> None:
    with pytest.raises(DefinitionError, match=r"put the other types inside it"):
        flow(returning(annotation, None))


@pytest.mark.parametrize("annotation", [Reply[TextContent], Reply[list[TextContent | ImageContent]]], ids=str)
def test_a_reply_of_content_blocks_is_refused_at_definition(annotation: Any) -> None:
    with pytest.raises(DefinitionError, match="return the blocks without a Reply"):
        flow(returning(annotation, None))


@pytest.mark.parametrize("annotation", [Any, Reply, Reply[Any]], ids=str)
@pytest.mark.parametrize(
    ("value", "structured"),
    [
        ({"a": 1}, {"a": 1}),
        (Model(name="x"), {"name": "x", "size": None}),
        ([1, 2], {"result": [1, 2]}),
        (3, {"result": 3}),
        (None, None),
    ],
    ids=str,
)
def test_a_reply_of_no_declared_type_keeps_its_value_without_an_output_schema(
    annotation: Any, value: Any, structured: Any
) -> None:
    definition = flow(returning(annotation, Reply(value, "As ordered.")))

    async def main() -> Any:
        ours = await through_sdk(lambda server: add_flows(server, definition, keys=KEYS))
        return await through_jsonrpc(definition), ours

    for tool, result in anyio.run(main):
        assert "outputSchema" not in tool
        assert result["content"] == [{"type": "text", "text": "As ordered."}]
        assert result.get("structuredContent") == structured


@pytest.mark.parametrize("value", [{"a": float("nan")}, [float("inf")], Reply({"a": float("nan")}, "As ordered.")])
def test_an_untyped_result_with_a_number_json_does_not_have_is_a_tool_error(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> Any:
        return await through_jsonrpc(flow(returning(Any, value)))

    _, result = anyio.run(main)
    assert result["isError"] is True
    assert "NaN" not in str(result)
    assert "with finite numbers" in caplog.text


def test_a_list_inside_itself_is_a_tool_error() -> None:
    value: list[Any] = []
    value.append(value)

    async def main() -> Any:
        return await through_jsonrpc(flow(returning(Any, value)))

    _, result = anyio.run(main)
    assert result["isError"] is True


async def read(definition: Any, of: str) -> list[Any]:
    """The response of both adapters to reading the flow: a result, or an error object."""
    method, params = ("prompts/get", {"name": "result"}) if of == "prompt" else ("resources/read", {"uri": "test://it"})
    server = JsonRpcServer([definition], name="results", keys=KEYS)
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    response = await server.handle(request)
    answers = [response.get("error") or response["result"]]
    sdk: MCPServer[Any] = MCPServer("results")
    add_flows(sdk, definition, keys=KEYS)
    async with Client(sdk) as client:
        try:
            result = await (client.get_prompt("result") if of == "prompt" else client.read_resource("test://it"))
            answers.append(result.model_dump(mode="json", by_alias=True, exclude_none=True))
        except MCPError as error:
            answers.append(error.error.model_dump(mode="json"))
    return answers


def reading(of: str, value: Any) -> Any:
    if of == "prompt":
        return flow.prompt(returning(Any, value))

    @flow.resource("test://{place}", name="result")
    def result(place: str) -> Flow[Any]:
        """Give it."""
        yield from step(int)
        return value

    return result


@pytest.mark.parametrize("of", ["prompt", "resource"])
@pytest.mark.parametrize(
    "value",
    [object(), {"a": object()}, {"a": float("nan")}, Reply("secret", "secret"), Reply[str].error("secret"), None],
    ids=str,
)
def test_a_prompt_or_resource_that_returns_what_it_cannot_is_the_flows_failure_on_both_adapters(
    of: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for error in anyio.run(read, reading(of, value), of):
        assert error["code"] == -32603
        assert error["data"] == {"reason": "flow_failed"}
    assert caplog.text.count("result of result is not of its declared type") == 2
    assert "secret" not in caplog.text


EMBEDDED = {"uri": "test://it", "text": "It."}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "It."},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "test://it", "name": "it"},
        {"type": "resource", "resource": EMBEDDED},
        {"type": "resource", "resource": {"uri": "test://it", "blob": "AAAA"}},
        IMAGE,
    ],
    ids=str,
)
def test_a_prompt_may_return_every_content_block_of_the_protocol(block: Any) -> None:
    for result in anyio.run(read, reading("prompt", [{"role": "assistant", "content": block}, "Go on."]), "prompt"):
        assert [message["role"] for message in result["messages"]] == ["assistant", "user"]
        assert result["messages"][0]["content"].items() >= (block if isinstance(block, dict) else {}).items()


@pytest.mark.parametrize(
    ("block", "lacks"),
    [
        ({"type": "text"}, "of type text with no text"),
        ({"type": "text", "text": 3}, "of type text with no text"),
        ({"type": "image", "data": "AAAA", "mime_type": "image/png"}, "of type image with no mimeType"),
        ({"type": "audio"}, "of type audio with no data and no mimeType"),
        ({"type": "resource_link", "uri": "test://it"}, "of type resource_link with no name"),
        ({"type": "resource"}, "resource has no uri and no text or blob"),
        ({"type": "resource", "resource": {"uri": "test://it"}}, "resource has no text or blob"),
        ({"type": "resource", **EMBEDDED}, "resource has no uri"),
        ({"type": "tool_use"}, "another type than text, image, audio, resource_link, resource"),
        ({"type": ["text"]}, "another type than text"),
        ({}, "another type than text"),
        ([{"type": "text", "text": "It."}], "no text, content block or message"),
    ],
    ids=str,
)
def test_a_prompt_message_that_lacks_what_its_type_needs_is_the_flows_failure_and_the_log_names_it(
    block: Any, lacks: str, caplog: pytest.LogCaptureFixture
) -> None:
    for error in anyio.run(read, reading("prompt", {"role": "user", "content": block}), "prompt"):
        assert error["code"] == -32603
        assert error["data"] == {"reason": "flow_failed"}
    assert caplog.text.count(lacks) == 2


def test_a_reply_of_a_prompt_or_resource_is_refused_when_the_flow_is_defined() -> None:
    def replies(id: str) -> Flow[Reply[str]]:
        yield from ask("?", str)
        return Reply(id, "")

    for make in (flow.prompt, flow.resource("r://{id}")):
        with pytest.raises(DefinitionError, match="result of replies is a Reply, which only a tool can give; return "):
            make(replies)
