"""Serve flows with the official SDK, over stdio or Streamable HTTP on loopback."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, cast

import uvicorn
from mcp.server import MCPServer

from mrtr_flow.adapters.mcp import add_flows
from mrtr_flow.definition import Definition

__all__ = ("HOST", "quiet_output", "serve_http", "serve_stdio")

HOST = "127.0.0.1"


def quiet_output(*, debug: bool) -> None:
    """Log in plain lines on standard error, with what exceptions say only if `debug`."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", force=True)
    if debug:
        logging.getLogger("mrtr_flow").setLevel(logging.DEBUG)


def _server(name: str, flows: Sequence[Definition[..., Any]]) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer(name, log_level="WARNING")
    add_flows(server, *flows)
    return server


def serve_stdio(name: str, flows: Sequence[Definition[..., Any]]) -> None:
    """Serve until standard input ends. What flows print goes to standard error: the SDK keeps the descriptor."""
    cast("TextIOWrapper", sys.stdout).reconfigure(line_buffering=True)
    _server(name, flows).run("stdio")


def serve_http(name: str, flows: Sequence[Definition[..., Any]], port: int, *, until_eof: bool = False) -> None:
    """Serve on loopback until interrupted; port 0 takes a free one. The URL is the first line on standard output.

    `until_eof`: stop when standard input ends, so that no server outlives the program that started it.
    """
    app = _server(name, flows).streamable_http_app()
    listener = socket.create_server((HOST, port))
    print(f"http://{HOST}:{listener.getsockname()[1]}/mcp", flush=True)  # noqa: T201
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what flows print from here on is seen, and in nobody's way
    cast("TextIOWrapper", sys.stdout).reconfigure(line_buffering=True)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    if until_eof:
        threading.Thread(target=_exit_at_eof, args=(server,), daemon=True).start()
    server.run(sockets=[listener])


def _exit_at_eof(server: uvicorn.Server) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    server.should_exit = True
