"""The reference adapter: JSON-RPC messages as dicts, no SDK. The others are compared with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from mrtr_flow import wire
from mrtr_flow.adapters.hosting import Keys, ToolHost, key_ring
from mrtr_flow.definition import Definition
from mrtr_flow.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, ProtocolError
from mrtr_flow.plain import is_object
from mrtr_flow.runner import Call

__all__ = ("JsonRpcServer",)


class JsonRpcServer:
    """Serves flows as tools over JSON-RPC messages (MCP 2026-07-28: server/discover, tools/list, tools/call).

    `name` is the server's name and the audience of its tokens. `keys`: see `key_ring`. `clock` gives Unix seconds.
    Raises `DefinitionError` for two flows of one name.
    """

    def __init__(
        self,
        flows: Iterable[Definition[..., Any]],
        *,
        name: str,
        keys: Keys | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._name = name
        self._host = ToolHost(key_ring(keys, name), clock)
        for definition in flows:
            self._host.add(definition)
        self._methods = {"server/discover": self._discover, "tools/list": self._list, "tools/call": self._call}

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
            method = self._methods.get(message["method"])
            if method is None:
                raise ProtocolError(METHOD_NOT_FOUND, "Method not found", message["method"])
            result = await method(params, principal)
        except ProtocolError as error:
            return _error(request_id, error)
        result["_meta"] = {wire.META_SERVER: {"name": self._name, "version": ""}}
        return {"jsonrpc": "2.0", "id": request_id, "result": result}

    async def _discover(self, params: Mapping[str, Any], principal: str | None) -> dict[str, Any]:
        return {
            "resultType": "complete",
            "supportedVersions": [wire.PROTOCOL_VERSION],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
        }

    async def _list(self, params: Mapping[str, Any], principal: str | None) -> dict[str, Any]:
        return {"resultType": "complete", "tools": self._host.tools(), "ttlMs": 0, "cacheScope": "private"}

    async def _call(self, params: Mapping[str, Any], principal: str | None) -> dict[str, Any]:
        name = params.get("name")
        if not isinstance(name, str) or name not in self._host:
            raise ProtocolError(INVALID_PARAMS, "Unknown tool")
        return await self._host.call(
            Call(
                method="tools/call",
                target=name,
                arguments=params.get("arguments"),
                state=params.get("requestState"),
                responses=params.get("inputResponses"),
                capabilities=params["_meta"][wire.META_CAPABILITIES],
                principal=principal,
            )
        )


def _checked(params: Any) -> Mapping[str, Any]:
    """Params with the `_meta` every request carries. Raises `ProtocolError`."""
    meta: Any = params.get("_meta") if is_object(params) else None
    version = meta.get(wire.META_VERSION) if is_object(meta) else None
    if not is_object(params) or not isinstance(version, str) or not is_object(meta.get(wire.META_CAPABILITIES)):
        raise ProtocolError(
            INVALID_PARAMS, "params._meta must carry the protocol version and the client's capabilities"
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
