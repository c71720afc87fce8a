"""Flows on the official Python SDK's `MCPServer` (mcp 2.3).

The SDK seals `requestState` by itself, and a token of ours must not be sealed twice. So a middleware stands before its
`RequestStateBoundary`: it takes our token off a request before the boundary sees it, and puts the next one on the
result after. The handler of the flow, and nothing else, gets and gives them through a slot. Whether a request is a
flow's is decided by what the SDK has registered under its name or URI at that moment; all others keep the SDK's
sealing. The SDK calls its middleware API provisional, hence the pin.
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import Prompt, PromptArgument
from mcp.server.mcpserver.resources.templates import DEFAULT_RESOURCE_SECURITY, ResourceTemplate
from mcp.server.mcpserver.tools.base import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.server.request_state import RequestStateBoundary, authenticated_principal
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INVALID_PARAMS,
    CallToolResult,
    InputRequiredResult,
    ToolAnnotations,
)
from mcp_types.methods import is_input_required
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mrtr_flow import wire
from mrtr_flow.adapters.hosting import KEYS_VARIABLE, FlowHost, Keys, key_ring, target_of
from mrtr_flow.definition import Definition
from mrtr_flow.errors import DefinitionError, ProtocolError
from mrtr_flow.results import PRIVATE, listed, tool_error

__all__ = ("add_flows",)

_UNNAMED: Final = "mcp-server"
_log = logging.getLogger("mrtr_flow")


def add_flows(
    server: MCPServer[Any],
    *flows: Definition[..., Any],
    keys: Keys | None = None,
    clock: Callable[[], float] | None = None,
    audience: str | None = None,
) -> None:
    """Offer flows as tools, prompts and resources of an `MCPServer`.

    `keys` are `(label, secret)` pairs or text as in `MRTR_KEYS`, which is read if they are left out; without either,
    a random key lives as long as the process. `audience` is what tokens are bound to, by default the server's name.
    `clock` gives Unix seconds.

    Raises `DefinitionError` for a name that is taken, an unnamed server with keys, keys given a second time, or a
    server whose state boundary is not where it was in mcp 2.3.
    """
    if not isinstance(server, MCPServer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DefinitionError(
            f"add_flows was given a {type(server).__name__} first; give the MCPServer, then the flows"
        )
    if not flows:
        raise DefinitionError("add_flows was given no flow; give one or more")
    unsealed = _installed(server)
    if unsealed is None:
        name = audience or ("" if server.name == _UNNAMED else server.name)
        unsealed = _install(server, FlowHost(key_ring(keys, name), clock))
    elif keys is not None or clock is not None or audience is not None:
        raise DefinitionError(
            f"server {server.name!r} has its keys, clock and audience already; give them with the first flows"
        )
    for definition in flows:
        add = {"prompts/get": _add_prompt, "resources/read": _add_resource}.get(
            getattr(definition, "method", ""), _add_tool
        )
        unsealed.entries.append((add(server, unsealed.host, definition), definition))


def _handler(host: FlowHost, definition: Definition[..., Any]) -> Callable[..., Any]:
    """What the SDK calls for a flow. Its arguments are ignored: the flow validates the request by itself."""

    async def handler(context: Context[Any, Any], **_: Any) -> Any:
        request = context.request_context
        slot = _slot.get()
        if slot is None or slot.definition is not definition or slot.used:
            # as by read_resource(...) in another handler: the request, and what its client may be asked, is not ours
            raise MCPError(INVALID_PARAMS, f"{definition.name} asks its client, so only a client can call it")
        slot.used = True
        params = {**(request.params or {}), "requestState": slot.incoming}
        if request.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return _too_old(request)
        try:
            result = await host.call(
                request.method,
                params,
                capabilities=_capabilities(request, params),
                principal=authenticated_principal(request),
                host=context,
            )
        except ProtocolError as error:
            raise MCPError(error.code, error.message, error.data) from error
        if result is None:  # a URI that the SDK's template takes and ours does not
            uri = params.get("uri")
            raise MCPError(INVALID_PARAMS, f"Unknown resource: {uri}", {"uri": uri})
        if is_input_required(result):
            asked = InputRequiredResult.model_validate(result)
            slot.outgoing = asked.request_state
            return asked.model_copy(update={"request_state": None})
        if request.method == "tools/call":
            return CallToolResult.model_validate(result)
        if request.method == "prompts/get":
            return result["messages"]
        slot.private = True
        (content,) = result["contents"]
        return content["text"] if "text" in content else base64.b64decode(content["blob"])

    return handler


def _too_old(request: ServerRequestContext[Any, Any]) -> CallToolResult:
    text = (
        f"this asks questions over several rounds, which needs MCP {wire.PROTOCOL_VERSION}; "
        f"this client speaks {request.protocol_version}"
    )
    if request.method != "tools/call":
        raise MCPError(INVALID_PARAMS, text, {"reason": "protocol_version"})
    return CallToolResult.model_validate(tool_error(text))


def _add_tool(server: MCPServer[Any], host: FlowHost, definition: Definition[..., Any]) -> object:
    name = getattr(definition, "name", "")
    if server._tool_manager.get_tool(name) is not None:
        raise DefinitionError(f"tool {name!r} is registered on this server already; give the flow another name=")
    try:
        annotations = (
            None if name == "" or definition.annotations is None else ToolAnnotations(**definition.annotations)
        )
    except ValueError:
        raise DefinitionError(
            f"annotations of {name} are none of a tool's; see the protocol's ToolAnnotations"
        ) from None
    host.add(definition)
    handler = _handler(host, definition)

    async def tool_handler(context: Context[Any, Any]) -> CallToolResult:
        return cast("CallToolResult", await handler(context))

    server.add_tool(
        tool_handler,
        name=name,
        title=definition.title,
        description=definition.description,
        annotations=annotations,
        structured_output=False,
    )
    tool = cast("Tool", server._tool_manager.get_tool(name))
    tool.parameters = definition.parameters.json_schema
    tool.fn_metadata = FuncMetadata(arg_model=ArgModelBase, output_schema=definition.output.json_schema)
    return tool


class _FlowPrompt(Prompt):
    """A prompt whose flow judges the arguments: the SDK has no error of the protocol for one that is missing."""

    async def render(self, arguments: dict[str, Any] | None, context: Context[Any, Any]) -> Any:
        return await super().render({argument.name: "" for argument in self.arguments or ()}, context)


def _add_prompt(server: MCPServer[Any], host: FlowHost, definition: Definition[..., Any]) -> object:
    if server._prompt_manager.get_prompt(definition.name) is not None:
        raise DefinitionError(
            f"prompt {definition.name!r} is registered on this server already; give the flow another name="
        )
    host.add(definition)
    entry = listed(definition)
    prompt = _FlowPrompt(
        name=definition.name,
        title=definition.title,
        description=definition.description,
        arguments=[PromptArgument.model_validate(argument) for argument in entry["arguments"]],
        fn=_handler(host, definition),
        context_kwarg="context",
    )
    server.add_prompt(prompt)
    return prompt


def _add_resource(server: MCPServer[Any], host: FlowHost, definition: Definition[..., Any]) -> object:
    entry = listed(definition)
    templates = server._resource_manager._templates
    if entry["uriTemplate"] in templates:
        raise DefinitionError(
            f"resource {entry['uriTemplate']!r} is registered on this server already; give the flow another URI"
        )
    try:
        parsed = UriTemplate.parse(entry["uriTemplate"])
    except ValueError as error:
        raise DefinitionError(f"URI template of {definition.name} is none to the SDK: {error}") from None
    host.add(definition)
    template = templates[entry["uriTemplate"]] = ResourceTemplate(
        uri_template=entry["uriTemplate"],
        name=definition.name,
        title=definition.title,
        description=definition.description,
        mime_type=entry["mimeType"],
        fn=_handler(host, definition),
        parameters=definition.parameters.json_schema,
        context_kwarg="context",
        parsed_template=parsed,
        security=DEFAULT_RESOURCE_SECURITY,
    )
    return template


def _capabilities(request: ServerRequestContext[Any, Any], params: Mapping[str, Any]) -> Mapping[str, Any]:
    """What this request declares, as it was sent."""
    meta = params.get("_meta")
    declared = cast("Mapping[str, Any]", meta).get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, Mapping) else None
    if isinstance(declared, Mapping):
        return cast("Mapping[str, Any]", declared)
    known = request.session.client_capabilities
    return {} if known is None else known.model_dump(mode="json", by_alias=True, exclude_none=True)


# ---------------------------------------------------------------------- sealed once


@dataclass(slots=True)
class _Slot:
    """What the middleware and the handler of one request tell each other past the boundary."""

    definition: Definition[..., Any]
    incoming: str | None
    used: bool = False
    outgoing: str | None = None
    private: bool = False


_slot: Final[ContextVar[_Slot | None]] = ContextVar("mrtr_flow.adapters.mcp.slot", default=None)


class _Unsealed:
    """Stands directly before the boundary, and passes our tokens around it."""

    def __init__(self, server: MCPServer[Any], host: FlowHost) -> None:
        self.host: Final = host
        self.entries: Final[list[tuple[object, Definition[..., Any]]]] = []
        """The SDK's objects for our flows, and the flows."""
        self._server = server
        self._warned = False

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        entry = self._entry(ctx.method, ctx.params or {})
        definition = next((definition for own, definition in self.entries if own is entry), None)
        if definition is None:
            return await call_next(ctx)
        if self.host.ring.ephemeral and ctx.request is not None and not self._warned:
            self._warned = True
            _log.warning(
                "flows are served over HTTP with a key that dies with this process; set %s so that a restart or "
                "another worker can go on",
                KEYS_VARIABLE,
            )
        params = dict(ctx.params or {})
        state = params.pop("requestState", None)
        if state is not None and not isinstance(state, str):
            _log.warning("requestState refused: not text")
            error = wire.invalid_state()
            raise MCPError(error.code, error.message, error.data)
        slot = _Slot(definition, state)
        before = _slot.set(slot)
        try:
            result = await call_next(replace(ctx, params=params))
        finally:
            _slot.reset(before)
        wired = cast("dict[str, Any]", result)
        if slot.outgoing is not None:
            return {**wired, "requestState": slot.outgoing}
        return {**wired, **PRIVATE} if slot.private else wired

    def _entry(self, method: str, params: Mapping[str, Any]) -> object:
        """What the SDK has registered for a request, found as it finds it."""
        target = target_of(method, params)
        if target is None:
            return None
        if method == "tools/call":
            return self._server._tool_manager.get_tool(target)
        if method == "prompts/get":
            return self._server._prompt_manager.get_prompt(target)
        if method != "resources/read":
            return None
        resources = self._server._resource_manager
        if target in resources._resources:
            return resources._resources[target]
        templates = resources._templates.values()
        return next((item for item in templates if item.parsed_template.match(target) is not None), None)


def _installed(server: MCPServer[Any]) -> _Unsealed | None:
    return next((item for item in server.middleware if isinstance(item, _Unsealed)), None)


def _install(server: MCPServer[Any], host: FlowHost) -> _Unsealed:
    places = [index for index, item in enumerate(server.middleware) if isinstance(item, RequestStateBoundary)]
    if len(places) != 1:
        raise DefinitionError(
            f"server {server.name!r} has {len(places)} request state boundaries, not the one of mcp 2.3; "
            "install mcp>=2.3,<2.4"
        )
    unsealed = _Unsealed(server, host)
    server.middleware.insert(places[0], unsealed)
    return unsealed
