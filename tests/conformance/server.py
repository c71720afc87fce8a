"""The conformance fixture, built with flows: `python -m tests.conformance.server --port N`, endpoint /mcp."""

from __future__ import annotations

import argparse
import logging
import socket
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types.methods import is_input_required
from pydantic import BaseModel
from starlette.applications import Starlette

from mrtr_flow import Flow, ask, confirm, flow, gather, list_roots, sample, step
from mrtr_flow.adapters.mcp import add_flows


class Name(BaseModel):
    name: str


class Color(BaseModel):
    color: str


class Context(BaseModel):
    context: str


@flow
def test_input_required_result_elicitation() -> Flow[str]:
    """Ask for a name."""
    answer = yield from ask("What is your name?", Name, key="user_name")
    return f"Hello, {answer.name}!"


@flow
def test_input_required_result_request_state() -> Flow[str]:
    """Ask for a confirmation and carry state."""
    return "state-ok" if (yield from confirm("Please confirm")) else "state-ok: not confirmed"


@flow
async def test_input_required_result_multi_round() -> str:
    """Ask twice, one after the other."""
    name = await ask("Step 1: what is your name?", Name, key="step1")
    color = await ask(f"Step 2: what is your favourite colour, {name.name}?", Color, key="step2")
    return f"{name.name} likes {color.color}"


@flow
def test_input_required_result_tampered_state() -> Flow[str]:
    """Ask for a confirmation; the state must verify."""
    return "confirmed" if (yield from confirm("Please confirm")) else "not confirmed"


@flow
def test_input_required_result_sampling() -> Flow[str]:
    """Ask the client's model."""
    answer = yield from sample("What is the capital of France?", max_tokens=100, key="capital_question")
    return answer.text


@flow
def test_input_required_result_list_roots() -> Flow[str]:
    """Ask for the client's roots."""
    roots = yield from list_roots(key="client_roots")
    return ", ".join(root.uri for root in roots)


@flow
async def test_input_required_result_multiple_inputs() -> str:
    """Ask a person, a model and the client in one round."""
    name, greeting, roots = await gather(
        ask("What is your name?", Name, key="user_name"),
        sample("Write a short greeting.", max_tokens=50, key="greeting"),
        list_roots(key="client_roots"),
    )
    return f"{greeting.text} {name.name}, {len(roots)} roots"


@flow
def test_input_required_result_capabilities() -> Flow[str]:
    """Ask a person where the client can, else a model."""
    name = yield from ask("What is your name?", Name, key="user_name", if_unsupported=None)
    if name is not None:
        return name.name
    return (yield from sample("Make up a name.", max_tokens=20)).text


@flow.prompt
def test_input_required_result_prompt() -> Flow[str]:
    """A prompt that asks for its context first."""
    context = yield from ask("What is the context?", Context, key="user_context")
    return f"Use this context: {context.context}"


@flow
def test_missing_capability() -> Flow[str]:
    """Needs a model."""
    return (yield from sample("Say something.", max_tokens=20)).text


@flow
def test_streaming_elicitation() -> Flow[str]:
    """Ask for a name."""
    return (yield from ask("What is your name?", Name, key="user_name")).name


@flow
def test_logging_tool() -> Flow[str]:
    """Log, and be done."""
    return (yield from step(log_something))


def log_something() -> str:
    logging.getLogger(__name__).info("something")
    return "logged on the server"


FLOWS = (
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_prompt,
    test_input_required_result_tampered_state,
    test_input_required_result_capabilities,
    test_missing_capability,
    test_streaming_elicitation,
    test_logging_tool,
)


def build(*, broken: bool) -> Starlette:
    """The fixture as an application. `broken` is the negative control: see `_break`."""
    server: MCPServer[Any] = MCPServer("mrtr-flow-conformance", version="1", log_level="WARNING", subscriptions=False)
    add_flows(server, *FLOWS)
    if broken:
        server.middleware.insert(0, _break)
    return server.streamable_http_app()


async def _break(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """What a careless server does: leaves out `resultType`, accepts any state, asks on tools/list."""
    asks = {"ok": {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": {}}}}
    if ctx.method == "tools/list":
        return {"resultType": "input_required", "inputRequests": asks, "requestState": "x"}
    if ctx.params is not None and "requestState" in ctx.params:
        return {"content": [{"type": "text", "text": "any state will do"}]}
    result = await call_next(ctx)
    if isinstance(result, dict) and is_input_required(result):
        return {name: value for name, value in result.items() if name != "resultType"}
    return result


def main() -> None:
    """Serve until interrupted; the URL is the first line of the output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="0 takes a free one")
    parser.add_argument("--broken", action="store_true", help="break the rules: the negative control")
    given = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", given.port))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(build(broken=given.broken), log_level="warning", ws="none")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
