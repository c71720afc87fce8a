"""The peer: a state as the official SDK (mcp 2.3) carries it. Its own code digests, encodes, stamps and seals.

Every event is one entry of its resolver state. The SDK itself never records what the server computed: a resolver that
does not ask runs again each round. The entry of a step is what recording its result there takes; it has no question
digest. URL questions are not offered to resolvers either; the entry is that of any other question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, Final, cast
from unittest.mock import patch

from mcp.server import request_state
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.mcpserver import resolve
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequest,
    SamplingMessage,
    TextContent,
)

from benchmarks.states import MAX_TOKENS, NOW, Event, State

__all__ = ("NAME", "characters", "codec")

NAME: Final = f"mcp {version('mcp')}"
_MODULE: Final = "acme_ops.tools"  # the SDK's keys are `module:function`, so its length counts once a question
_SECRET: Final = bytes(range(32))


def characters(state: State) -> int:
    """Characters of the `requestState` that the SDK sends for this state."""
    inner = _inner(state)
    boundary, context = _boundary(state)

    async def handler(_: ServerRequestContext[Any, Any]) -> HandlerResult:
        return {"resultType": "input_required", "requestState": inner}

    # its two timestamps are written as JSON numbers, so their digits count
    with patch.object(request_state, "time", SimpleNamespace(time=lambda: NOW)):
        sealed = cast("dict[str, Any]", asyncio.run(boundary(context, handler)))
    return len(sealed["requestState"])


def codec(state: State) -> tuple[Callable[[], str], Callable[[], Any]]:
    """Seal and open of this state as the SDK does it; what is digested once a definition is digested before."""
    outcomes = {_key(event): _entry(event) for event in state.done}
    asked = {_key(state.pending): resolve._request_digest(_request(state.pending))}
    boundary, context = _boundary(state)

    def seal() -> str:
        return boundary._seal(context, resolve._encode_state(outcomes, asked))

    token = seal()
    echoed = replace(context, params={**(context.params or {}), "requestState": token})

    def open_() -> Any:
        return resolve._decode_state(boundary._unseal(echoed)[0])

    assert open_().outcomes.keys() == outcomes.keys()
    return seal, open_


def _inner(state: State) -> str:
    return resolve._encode_state(
        {_key(event): _entry(event) for event in state.done},
        {_key(state.pending): resolve._request_digest(_request(state.pending))},
    )


def _boundary(state: State) -> tuple[RequestStateBoundary, ServerRequestContext[Any, Any]]:
    security = RequestStateSecurity(keys=[_SECRET], bind_principal=lambda _: state.principal)
    context: ServerRequestContext[Any, Any] = ServerRequestContext(
        session=cast("Any", None),
        lifespan_context={},
        protocol_version="2026-07-28",
        method="tools/call",
        params={"name": state.tool, "arguments": state.arguments},
    )
    return RequestStateBoundary(security, default_audience=state.audience), context


def _key(event: Event) -> str:
    def resolver() -> None: ...

    resolver.__module__, resolver.__qualname__ = _MODULE, event.key
    return resolve._state_key(resolver)


def _entry(event: Event) -> resolve._StateEntry:
    digest = None if event.kind == "step" else resolve._request_digest(_request(event))
    return resolve._StateEntry(action="accept", data=event.answer, q=digest)


def _request(event: Event) -> InputRequest:
    if event.kind == "ask":
        form = ElicitRequestFormParams(message=event.message, requested_schema=dict(event.schema or {}))
        return ElicitRequest(params=form)
    if event.kind == "url":
        return ElicitRequest(params=ElicitRequestURLParams(message=event.message, url=event.url))
    if event.kind == "sample":
        message = SamplingMessage(role="user", content=TextContent(text=event.message))
        return resolve._render_request(resolve.Sample([message], max_tokens=MAX_TOKENS))
    return resolve._render_request(resolve.ListRoots())
