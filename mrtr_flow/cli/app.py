"""The commands."""

from __future__ import annotations

import base64
import os
import sys
from typing import Annotated, Any

import typer

from mrtr_flow.cli import files
from mrtr_flow.definition import Definition
from mrtr_flow.errors import FlowError

__all__ = ("app",)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Write a multi-question MCP tool as one function.",
)


@app.command()
def play(
    target: Annotated[str, typer.Argument(metavar="FILE[:FLOW]", help="A Python file with flows; one of them.")],
    arg: Annotated[list[str] | None, typer.Option(help="An argument of the flow, NAME=VALUE.")] = None,
    auto: Annotated[bool, typer.Option(help="Answer with the flow's examples, as without a terminal.")] = False,
) -> None:
    """Play a flow against two real servers that share only a key: another process answers every round."""
    from mrtr_flow.cli.playing import play_flow

    with _readable_errors():
        file, definition = files.one_flow(target)
        given = dict(_pair(item) for item in arg or [])
        auto = auto or not (sys.stdin.isatty() and sys.stdout.isatty())
        sys.exit(play_flow(file, definition, given, auto=auto))


@app.command()
def serve(
    targets: Annotated[list[str], typer.Argument(metavar="FILE...", help="Python files with flows, or FILE:FLOW.")],
    http: Annotated[
        int | None, typer.Option(metavar="PORT", help="Serve Streamable HTTP on loopback; 0: a free port.")
    ] = None,
    name: Annotated[str, typer.Option(help="The server's name, which its tokens are bound to.")] = "mrtr-flow",
    debug: Annotated[bool, typer.Option(help="Log what exceptions say: it may hold answers.")] = False,
    until_eof: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Serve flows over stdio, or over HTTP with --http. Keys come from MRTR_KEYS."""
    from mrtr_flow.cli import serving

    with _readable_errors():
        flows: list[Definition[..., Any]] = []
        serving.quiet_output(debug=debug)
        for target in targets:
            file, flow_name = files.split(target)
            flows += [files.one_flow(target)[1]] if flow_name else files.flows_in(file)
        if http is None:
            serving.serve_stdio(name, flows)
        else:
            serving.serve_http(name, flows, http, until_eof=until_eof)


@app.command()
def keygen(label: Annotated[str, typer.Argument(help="The key's name in logs, such as 2026-12.")] = "key") -> None:
    """Print a new key for MRTR_KEYS. The first key seals; keep old ones behind it while their tokens live."""
    with _readable_errors():
        if not label or set(label) & set(":,"):
            raise FlowError(f"label {label!r} is empty or holds ':' or ','; give a plain name")
        secret = base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
        typer.echo(f"{label}:{secret}")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise FlowError(f"argument {text!r} is not NAME=VALUE")
    return name, value


def _first(error: Any) -> Any:
    """What was raised inside the clients' task groups."""
    inner: tuple[Any, ...] = getattr(error, "exceptions", ())
    return _first(inner[0]) if inner else error


class _readable_errors:
    """Our own errors end the command with their text; nothing else is hidden."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        error = _first(error)
        if isinstance(error, FlowError):
            typer.echo(f"mrtr-flow: {error}", err=True)
            raise typer.Exit(2) from error
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(130) from error
