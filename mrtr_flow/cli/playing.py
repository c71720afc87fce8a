"""`play`: two server processes that share only a key, the official client, and another process every round."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

import anyio
from mcp import Client, ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    ReadResourceResult,
    SamplingCapability,
    SamplingToolsCapability,
)
from rich.console import Console
from rich.markup import escape

from mrtr_flow.cli.terminal import ask_arguments, ask_question
from mrtr_flow.definition import Definition
from mrtr_flow.errors import FlowError
from mrtr_flow.plain import is_array
from mrtr_flow.testing import answer_to, asked_by
from mrtr_flow.wire import PROTOCOL_VERSION

__all__ = ("example_answer", "example_arguments", "play_flow", "send")

MAX_ROUNDS = 50


class Answers(Protocol):
    """Where arguments and answers come from."""

    async def arguments(self, schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]: ...

    async def answer(self, key: str, request: Mapping[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Server:
    """One server process."""

    name: str
    pid: int
    url: str


def play_flow(file: Path, definition: Definition[..., Any], given: Mapping[str, str], *, auto: bool) -> int:
    """Play one call to its end. Returns the exit status: 0 for a result, 1 for a tool error."""
    console = Console(highlight=False, soft_wrap=True)
    key = "play:" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    answers: Answers = _Examples(definition) if auto else _Terminal()
    with ExitStack() as stack:
        started = [stack.enter_context(_process(file, key, seed)) for seed in ("1", "2")]
        servers = [_ready(name, process) for name, process in zip("AB", started, strict=True)]
        console.print(
            f"[bold]{definition.name}[/bold] on two processes that share only a key: "
            + ", ".join(f"{s.name} pid {s.pid}" for s in servers)
        )
        return anyio.run(_play, console, definition, servers, answers, dict(given))


@contextmanager
def _process(file: Path, key: str, seed: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "mrtr_flow.cli", "serve", str(file), "--http", "0", "--until-eof", "--debug"]
    environment = {**os.environ, "MRTR_KEYS": key, "PYTHONHASHSEED": seed}
    # its own session: an interrupt in the terminal is for us alone, and the server ends when its standard input does
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with process:  # closes the pipes, and waits
        try:
            yield process
        finally:
            cast("IO[str]", process.stdin).close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def _ready(name: str, process: subprocess.Popen[str]) -> Server:
    """The server a process has become: its first line is its URL."""
    url = cast("IO[str]", process.stdout).readline().strip()
    if not url:
        raise FlowError(f"server process {name} did not start; its error is above")
    return Server(name, process.pid, url)


async def _play(
    console: Console, definition: Definition[..., Any], servers: list[Server], answers: Answers, given: dict[str, str]
) -> int:
    schema = definition.parameters.json_schema
    arguments = await answers.arguments(schema, {name: _argument(name, text, schema) for name, text in given.items()})
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(_client(server)) for server in servers]
        state: str | None = None
        responses: dict[str, Any] | None = None
        tokens: list[int] = []
        asked = 0
        for number in range(MAX_ROUNDS):
            server = servers[number % len(servers)]
            session = clients[number % len(servers)].session
            try:
                result = await send(session, definition, arguments, state, responses)
            except MCPError as error:
                raise FlowError(f"server {server.name} refused round {number + 1}: {error.error.message}") from None
            where = f"[dim]round {number + 1}[/dim]  {server.name} [dim]pid {server.pid}[/dim]"
            if not isinstance(result, InputRequiredResult):
                console.print(f"{where}  the end")
                failed = _show(console, result)
                console.print(
                    f"[dim]{_count(number + 1, 'round')}, {_count(asked, 'question')}; largest token "
                    f"{max(tokens, default=0)} characters, {sum(tokens)} in all; nothing was stored on a server[/dim]"
                )
                return 1 if failed else 0
            state = result.request_state or ""
            tokens.append(len(state))
            console.print(f"{where}  asks, and gives a token of {len(state)} characters")
            responses = {}
            for key, request in (result.input_requests or {}).items():
                asked += 1
                plain = request.model_dump(mode="json", by_alias=True, exclude_none=True)
                console.print(f"         [cyan]?[/cyan] {escape(_question(plain))}")
                responses[key] = await answers.answer(key, plain)
                console.print(f"         [green]>[/green] {escape(_shown(responses[key]))}")
    raise FlowError(f"flow {definition.name} still asks after {MAX_ROUNDS} rounds")


def _client(server: Server) -> Client:
    """A client that declares every capability; the answers are given here, between the rounds."""
    return Client(
        server.url,
        mode=PROTOCOL_VERSION,
        elicitation_callback=_never,
        sampling_callback=_never,
        sampling_capabilities=SamplingCapability(tools=SamplingToolsCapability()),
        list_roots_callback=_never,
    )


async def _never(context: Any, params: Any = None) -> Any:
    raise FlowError("the client answered a question by itself")


async def send(
    session: ClientSession,
    definition: Definition[..., Any],
    arguments: dict[str, Any],
    state: str | None,
    responses: dict[str, Any] | None,
) -> CallToolResult | GetPromptResult | ReadResourceResult | InputRequiredResult:
    """Send one round of a tool, prompt or resource with the official client."""
    target = definition.target(arguments)
    if definition.method == "prompts/get":
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in arguments.items()}
        return await session.get_prompt(
            target, texts, request_state=state, input_responses=responses, allow_input_required=True
        )
    if definition.method == "resources/read":
        return await session.read_resource(
            target, request_state=state, input_responses=responses, allow_input_required=True
        )
    return await session.call_tool(
        target, arguments, request_state=state, input_responses=responses, allow_input_required=True
    )


def _show(console: Console, result: CallToolResult | GetPromptResult | ReadResourceResult) -> bool:
    """Print a result; whether it is a tool error."""
    failed = isinstance(result, CallToolResult) and result.is_error
    parts: list[Any] = (
        result.content
        if isinstance(result, CallToolResult)
        else [message.content for message in result.messages]
        if isinstance(result, GetPromptResult)
        else list(result.contents)
    )
    for part in parts:
        text = getattr(part, "text", None) or f"({getattr(part, 'type', 'bytes')})"
        console.print(escape(text), style="red" if failed else "bold green")
    return failed


def _question(request: Mapping[str, Any]) -> str:
    """A question in a line or two."""
    params = request.get("params", {})
    if "messages" in params:
        last = params["messages"][-1]["content"]
        return f"(to the model) {last.get('text', last)}"
    text = str(params.get("message", "Which roots?"))
    return f"{text}\n           {params['url']}" if "url" in params else text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shown(response: Mapping[str, Any]) -> str:
    """An answer in a line."""
    content: Any = response.get("content") or {}
    if "roots" in response:
        return ", ".join(root["uri"] for root in response["roots"]) or "no roots"
    if response.get("action", "accept") != "accept" or not content:
        return str(response["action"])
    if "role" in response:
        return str(content.get("text", content["type"]))
    if len(content) == 1:
        return json.dumps(next(iter(content.values())), ensure_ascii=False)
    return ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in content.items())


def _argument(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    """`--arg` text as JSON where the schema wants something else than text."""
    field = schema["properties"].get(name)
    if field is None:
        raise FlowError(f"argument {name!r} is none of the flow's; it has {', '.join(schema['properties'])}")
    if field.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def example_arguments(definition: Definition[..., Any], given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The arguments a flow's examples give it, under those that are given. Raises `FlowError` for one that lacks."""
    schema = definition.parameters.json_schema
    known = {name: definition.examples[name] for name in schema["properties"] if name in definition.examples}
    known |= given or {}
    for name in schema.get("required", ()):
        if name not in known:
            raise FlowError(
                f"flow {definition.name} has no example for argument {name!r}; add it to examples=, "
                f"or give --arg {name}=..."
            )
    return known


def example_answer(examples: dict[str, Any], key: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to one question, by its key or the key before `~`. A list gives one answer after the other.

    Raises `FlowError` for a question without an example. Takes what it used out of `examples`.
    """
    name = key if key in examples else key.partition("~")[0]
    example = examples.get(name)
    whole = request["method"] == "roots/list" and is_array(example) and all(isinstance(uri, str) for uri in example)
    if is_array(example) and not whole:
        example, examples[name] = (example[0], example[1:]) if example else (None, [])
    if example is None:
        known = ", ".join(map(repr, examples)) or "none"
        raise FlowError(
            f"question {key!r} has no example, or no more; examples= of the flow has {known}: add {name!r}, "
            "or play it in a terminal"
        )
    return answer_to(asked_by(request), example)


class _Examples:
    """The flow's own examples."""

    def __init__(self, definition: Definition[..., Any]) -> None:
        self._definition = definition
        self._left = dict(definition.examples)

    async def arguments(self, schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        return example_arguments(self._definition, given)

    async def answer(self, key: str, request: Mapping[str, Any]) -> dict[str, Any]:
        return example_answer(self._left, key, request)


class _Terminal:
    """A person at the terminal."""

    async def arguments(self, schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        return await ask_arguments(schema, given)

    async def answer(self, key: str, request: Mapping[str, Any]) -> dict[str, Any]:
        return await ask_question(request)
