"""The reference adapter: JSON-RPC messages as dicts, no SDK. The others are compared with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from mrtr_flow import wire
from mrtr_flow.adapters.hosting import FlowHost, Keys, key_ring
from mrtr_flow.definition import Definition
from mrtr_flow.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, ProtocolError
from mrtr_flow.plain import is_object
from mrtr_flow.results import PRIVATE

__all__ = ("JsonRpcServer",)

# by the method that reads one: the capability, the method that lists them, the member that holds them
_LISTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "tools/call": ("tools", "tools/list", "tools"),
    "prompts/get": ("prompts", "prompts/list", "prompts"),
    "resources/read": ("resources", "resources/templates/list", "resourceTemplates"),
}


class JsonRpcServer:
    """Serves flows over JSON-RPC messages (MCP 2026-07-28: server/discover, tools, prompts, resources).

    `name` is the server's name and the audience of its tokens, `version` the server's own, which clients are told.
    `keys`: see `key_ring`. `clock` gives Unix seconds.
    Raises `DefinitionError` for two flows of one name.
    """

    def __init__(
        self,
        flows: Iterable[Definition[..., Any]],
        *,
        name: str,
        version: str = "",
        keys: Keys | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._info = {"name": name, "version": version}
        self._host = FlowHost(key_ring(keys, name), clock)
        for definition in flows:
            self._host.add(definition)
        self._offered = [method for method in _LISTS if self._host.listed(method)]

    async def handle(self, message: dict[str, Any], *, principal: str | None = None) -> dict[str, Any]:
        """The response to one request; `{}` to a notification. `principal` is who the transport authenticated."""
        if (
            not isinstance(cast("object", message), dict)
            or message.get("jsonrpc") != "2.0"
            or not isinstance(message.get("method"), str)
        ):
            return _error(None, ProtocolError(INVALID_REQUEST, "message is no JSON-RPC 2.0 request"))
        if "id" not in message:
            return {}
        request_id = message["id"]
        if isinstance(request_id, bool) or not isinstance(request_id, str | int):
            return _error(None, ProtocolError(INVALID_REQUEST, "id is neither text nor a whole number"))
        try:
            params = _checked(message.get("params"))
            result = await self._answer(message["method"], params, principal)
        except ProtocolError as error:
            return _error(request_id, error)
        result["_meta"] = {wire.META_SERVER: {**self._info}}
        return {"jsonrpc": "2.0", "id": request_id, "result": result}

    async def _answer(self, method: str, params: Mapping[str, Any], principal: str | None) -> dict[str, Any]:
        if method == "server/discover":
            capabilities: dict[str, Any] = {_LISTS[offered][0]: {} for offered in self._offered}
            versions = [wire.PROTOCOL_VERSION]
            return {"resultType": "complete", "supportedVersions": versions, "capabilities": capabilities, **PRIVATE}
        if method in self._offered:
            result = await self._host.call(
                method, params, capabilities=params["_meta"][wire.META_CAPABILITIES], principal=principal
            )
            if result is None:
                raise ProtocolError(INVALID_PARAMS, f"Unknown {_LISTS[method][0].removesuffix('s')}")
            return result
        for offered in self._offered:
            _, list_method, member = _LISTS[offered]
            if method == list_method:
                return {"resultType": "complete", member: self._host.listed(offered), **PRIVATE}
        if method == "resources/list" and "resources/read" in self._offered:
            return {"resultType": "complete", "resources": [], **PRIVATE}
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found", method)


def _checked(params: Any) -> Mapping[str, Any]:
    """Params with the `_meta` every request carries. Raises `ProtocolError`."""
    meta: Any = params.get("_meta") if is_object(params) else None
    version = meta.get(wire.META_VERSION) if is_object(meta) else None
    if not is_object(params) or not isinstance(version, str) or not is_object(meta.get(wire.META_CAPABILITIES)):
        raise ProtocolError(
            INVALID_PARAMS,
            f"this server speaks MCP {wire.PROTOCOL_VERSION}: params._meta must carry {wire.META_VERSION} and "
            f"{wire.META_CAPABILITIES}",
        )
    if version != wire.PROTOCOL_VERSION:
        data = {"supported": [wire.PROTOCOL_VERSION], "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return params


def _error(request_id: str | int | None, error: ProtocolError) -> dict[str, Any]:
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": body}
