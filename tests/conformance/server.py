"""The conformance fixture, built with flows: `python -m tests.conformance.server --port N`, endpoint /mcp."""

from __future__ import annotations

import argparse
import socket

import uvicorn
from mcp.server import MCPServer
from pydantic import BaseModel

from mrtr_flow import Flow, ask, confirm, flow
from mrtr_flow.adapters.mcp import add_flows


class Name(BaseModel):
    name: str


class Color(BaseModel):
    color: str


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


FLOWS = (
    test_input_required_result_elicitation,
    test_input_required_result_request_state,
    test_input_required_result_multi_round,
    test_input_required_result_tampered_state,
)


def main() -> None:
    """Serve until interrupted; the URL is the first line of the output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="0 takes a free one")
    listener = socket.create_server(("127.0.0.1", parser.parse_args().port))
    server = MCPServer("mrtr-flow-conformance", version="1", log_level="WARNING")
    add_flows(server, *FLOWS)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning", ws="none")).run(sockets=[listener])


if __name__ == "__main__":
    main()
