"""What people ran into who built questions over several rounds, as inputs, and what must come out.

The entries go through the highest interface that shows them: `FlowTester`, the reference server, or the official
SDK's server over raw HTTP. Where both servers must agree, a test runs on both.
"""

from __future__ import annotations

import datetime
import gc
import itertools
import json
import random
import re
import typing
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, make_dataclass
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import anyio
import httpx
import pytest
import zstandard
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import AnyUrl, BaseModel, ConfigDict, Field

from mrtr_flow import (
    CapabilityMissing,
    Declined,
    DefinitionError,
    Flow,
    ask,
    ask_url,
    confirm,
    current,
    flow,
    gather,
    step,
)
from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from mrtr_flow.adapters.mcp import add_flows
from mrtr_flow.errors import ProtocolError
from mrtr_flow.seal import MAX_TOKEN, Binding
from tests.adapters.test_mcp import Wire
from tests.helpers import KEYS, START, Clock, named, ring, tester

INVALID = (-32602, "Invalid or expired requestState", {"reason": "invalid_request_state"})
FORMS: Mapping[str, Any] = {"elicitation": {"form": {}}}
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
Server: TypeAlias = JsonRpcServer | MCPServer[Any]
Make: TypeAlias = Callable[..., Server]


def accept(value: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"value": value}}


def refused(function: Callable[[], Any]) -> tuple[int, str, Any]:
    """The error object that a call ends in."""
    with pytest.raises(ProtocolError) as caught:
        function()
    return caught.value.code, caught.value.message, caught.value.data


def reference(*flows: Any, name: str = "field", **options: Any) -> JsonRpcServer:
    return JsonRpcServer(flows, name=name, **{"keys": KEYS, **options})


def official(*flows: Any, name: str = "field", **options: Any) -> MCPServer[Any]:
    made: MCPServer[Any] = MCPServer(name)
    add_flows(made, *flows, **{"keys": KEYS, **options})
    return made


both_servers = pytest.mark.parametrize("make", [reference, official], ids=["reference", "official"])


def message(name: str, capabilities: Mapping[str, Any] = FORMS, **params: Any) -> dict[str, Any]:
    meta = {VERSION: "2026-07-28", CAPABILITIES: capabilities}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "_meta": meta, **params}}


async def post(made: Server, name: str, capabilities: Mapping[str, Any] = FORMS, **params: Any) -> dict[str, Any]:
    """The response of either server to one call."""
    sent = message(name, capabilities, **params)
    if isinstance(made, JsonRpcServer):
        answer: dict[str, Any] = json.loads(json.dumps(await made.handle(json.loads(json.dumps(sent)))))
        return answer
    _, body = await post_text(made, json.dumps(sent))
    return body


async def post_text(made: MCPServer[Any], sent: str) -> tuple[int, dict[str, Any]]:
    """The status and body of a request whose JSON is spelled by the test."""
    app = Wire(made).app
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": json.loads(sent)["params"]["name"],
    }
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000")
    async with app.router.lifespan_context(app), http:
        response = await http.post("/mcp", content=sent, headers=headers)
    return response.status_code, response.json()


def run(function: Callable[[], Awaitable[Any]]) -> Any:
    return anyio.run(function)


def text_of(body: Mapping[str, Any]) -> str:
    return str(body["result"]["content"][0]["text"])


def noise(characters: int) -> str:
    """Text that does not compress."""
    return "".join(random.Random(characters).choices([chr(code) for code in range(33, 127)], k=characters))


@flow
def pick() -> Flow[str]:
    """Pick one."""
    return (yield from ask("Which?", str))


@flow
def count() -> Flow[str]:
    """Count."""
    n = yield from ask("How many?", int)
    return f"{n} {(yield from ask(f'{n}, and the name?', str))}"


# ---------------------------------------------------------------------- re-running, replay, identity


def test_each_local_before_the_last_question_has_the_value_it_had_when_asked() -> None:
    """People want to write a tool straight through, without counting their steps."""
    seen: list[tuple[Any, ...]] = []

    @flow
    def trip() -> Flow[str]:
        stops = ["home"]
        first = yield from ask("First?", str)
        stops.append(first.upper())
        second = yield from ask(f"After {stops}?", int)
        total = second * len(stops)
        seen.append((tuple(stops), second, total))
        third = yield from ask(f"{total}?", bool)
        return f"{stops} {total} {third}"

    t = tester(trip).start().answer("rome").answer(3)
    assert seen == [(("home", "ROME"), 3, 6)]
    assert t.answer(False).result == "['home', 'ROME'] 6 False"
    assert seen == [(("home", "ROME"), 3, 6)] * 2


def test_a_charge_before_two_questions_is_made_once_and_its_result_travels_in_the_token() -> None:
    """A tool that runs again from the top in every round pays again in every round."""
    charged: list[str] = []

    def charge() -> str:
        charged.append("card")
        if len(charged) > 1:
            raise AssertionError("charged twice")
        return f"receipt {len(charged)}"

    @flow
    def pay() -> Flow[str]:
        receipt = yield from step(charge)
        size = yield from ask("Size?", str)
        return f"{receipt} {size} {(yield from ask('Colour?', str))}"

    t = tester(pay).start().answer("L").answer("red")
    assert t.result == "receipt 1 L red"
    assert charged == ["card"]


@pytest.mark.parametrize("key", ["quote", "step", "ask~2", "ask~3", "tests.test_field_cases:quote", "", "value"])
def test_an_answer_can_only_be_given_to_the_question_that_is_pending(key: str) -> None:
    """State that a client echoes must not let it answer what was not asked, nor what the server computes."""

    def quote() -> int:
        return 420

    @flow
    def deal() -> Flow[list[Any]]:
        name = yield from ask("Name?", str)
        fare = yield from step(quote)
        return [name, fare, (yield from ask("Note?", str)), (yield from ask("End?", str))]

    t = tester(deal).start()
    t.send({"ask": accept("Ada"), key: accept("1")})
    assert list(t.asked) == ["ask~2"]
    first = t.state
    t.send({} if key == "ask~2" else {key: accept("1")})
    assert (list(t.asked), t.state) == (["ask~2"], first)
    assert t.answer("n").answer("e").result == ["Ada", 420, "n", "e"]


def test_one_helper_asked_twice_has_two_keys_and_swapped_calls_never_cross_their_answers() -> None:
    """Questions named by their code had one name for all closures of a factory."""

    def question(about: str) -> Flow[str]:
        return (yield from ask(f"{about}?", str))

    def one_way() -> Flow[str]:
        return f"{(yield from question('A'))}-{(yield from question('B'))}-{(yield from question('C'))}"

    def swapped() -> Flow[str]:
        b, a = (yield from question("B")), (yield from question("A"))
        return f"{a}-{b}-{(yield from question('C'))}"

    t, again = tester(named("f", one_way)).start(), tester(named("f", one_way)).start()
    assert list(t.asked) == list(again.asked) == ["ask"]
    assert list(t.answer("a").asked) == list(again.answer("a").asked) == ["ask~2"]
    t.definition = named("f", swapped)
    assert t.answer("b").failure.reason == "flow_changed"

    t = tester(named("f", one_way)).start()
    t.definition = named("f", swapped)
    t.answer("a")
    assert (list(t.asked), t.message) == (["ask"], "B?")
    assert t.answer("b").answer("a").answer("c").result == "a-b-c"


def test_a_yes_to_three_files_is_not_used_for_thirty() -> None:
    """A deployment between question and answer reworded the question."""
    deleted: list[int] = []

    def deleting(files: int, reworded: str = "Delete {} files?") -> Any:
        def body() -> Flow[str]:
            if (yield from confirm(reworded.format(files))):
                yield from step(deleted.append, files)
            return (yield from ask("Note?", str))

        return named("delete", body)

    t = tester(deleting(3)).start()
    t.definition = deleting(30)
    t.answer(True)
    assert (t.message, deleted) == ("Delete 30 files?", [])
    t.answer(True)
    assert deleted == [30]
    t.definition = deleting(30, "Really delete {} files?")
    t.answer("x")
    assert t.failure.reason == "flow_changed"
    assert t.failure.text.endswith("call it again from the start")


def test_a_branch_by_chance_is_reported_with_its_position_and_what_came_instead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A flow that asks one thing or another by chance must not take one answer for the other."""
    chances = itertools.cycle([0.1, 0.9])

    @flow
    def chance() -> Flow[str]:
        if next(chances) < 0.5:
            return "a" + (yield from ask("A?", str, key="a"))
        return "b" + (yield from ask("B?", str, key="b"))

    t = tester(chance).start()
    assert list(t.asked) == ["a"]
    t.answer(a="SECRET")
    assert list(t.asked) == ["b"]
    assert "chance asks another question than before: b at test_field_cases.py:" in caplog.text

    @flow
    def later() -> Flow[str]:
        which = "a" if next(chances) < 0.5 else "b"
        first = yield from ask(f"{which}?", str, key=which)
        return first + (yield from ask("Then?", str, key="then"))

    chances = itertools.cycle([0.1, 0.1, 0.9])
    t = tester(later).start().answer("SECRET").answer("x")
    assert t.failure.reason == "flow_changed"
    assert "later diverged at event 1 of 1: recorded an answer" in caplog.text
    assert "the code now yields ask('b') at test_field_cases.py:" in caplog.text
    assert "SECRET" not in caplog.text


def test_an_answer_sent_again_in_a_later_round_with_another_value_changes_nothing() -> None:
    """The signed answers win over what a client sends again beside them."""

    @flow
    def three() -> Flow[list[str]]:
        return [
            (yield from ask("1?", str, key="first")),
            (yield from ask("2?", str, key="second")),
            (yield from ask("3?", str, key="third")),
        ]

    t = tester(three).start().answer(first="a").answer(second="b")
    t.send({"third": accept("c"), "first": accept("changed"), "second": {"action": "decline"}})
    assert t.result == ["a", "b", "c"]


@both_servers
@pytest.mark.parametrize("answers", [None, {}, {"ask": accept("x")}])
def test_a_token_of_one_tool_is_refused_by_another_with_or_without_answers(make: Make, answers: Any) -> None:
    """A test that only asked for complete or input_required could never fail."""

    @flow
    def other() -> Flow[str]:
        return (yield from ask("Which?", str))

    async def main() -> dict[str, Any]:
        asked = await post(make(pick, other), "pick")
        sent = {} if answers is None else {"inputResponses": answers}
        return await post(make(pick, other), "other", requestState=asked["result"]["requestState"], **sent)

    error = run(main)["error"]
    assert (error["code"], error["message"], error["data"]) == INVALID


def test_suspension_passes_through_except_exception_in_both_spellings() -> None:
    """Wrappers that caught everything reported the suspension as a tool error."""

    @flow
    async def coroutine() -> str:
        try:
            return await ask("?", str)
        except Exception:
            return "failed"

    @flow
    def generator() -> Flow[str]:
        try:
            return (yield from ask("?", str))
        except Exception:
            return "failed"

    for definition in (coroutine, generator):
        t = tester(definition).start()
        assert list(t.asked) == ["ask"]
        assert t.answer("fine").result == "fine"
        assert tester(definition).start().decline().result == "failed"


# ---------------------------------------------------------------------- state token


def test_the_last_request_sent_twice_gives_one_result_and_one_idempotency_key_as_the_documentation_says() -> None:
    """Servers without a store run the body again on an exact replay; then it must be harmless, and documented."""
    receipts: dict[str, str] = {}

    def charge() -> str:
        return receipts.setdefault(current().idempotency_key, f"receipt {len(receipts) + 1}")

    @flow
    def pay() -> Flow[str]:
        yield from ask("Sure?", bool)
        return (yield from step(charge))

    t = tester(pay).start()
    token = t.state
    results = [t.send({"ask": accept(True)}, state=token).result for _ in range(3)]
    assert results == ["receipt 1"] * 3
    assert len(receipts) == 1
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    assert "A token can be sent twice" in readme
    assert "`current().idempotency_key`" in readme


def test_the_same_round_sent_in_parallel_has_one_effect_at_the_service_and_one_result() -> None:
    """A response is lost, the model sends the round again, and both arrive at once."""
    receipts: dict[str, str] = {}
    started: list[str] = []

    async def charge() -> str:
        started.append("x")
        await anyio.lowlevel.checkpoint()
        return receipts.setdefault(current().idempotency_key, f"receipt {len(receipts) + 1}")

    @flow
    def pay() -> Flow[str]:
        yield from ask("Sure?", bool)
        return (yield from step(charge))

    async def main() -> list[dict[str, Any]]:
        asked = await post(reference(pay), "pay")
        bodies: list[dict[str, Any]] = []

        async def again() -> None:
            sent = {"requestState": asked["result"]["requestState"], "inputResponses": {"ask": accept(True)}}
            bodies.append(await post(reference(pay), "pay", **sent))

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(again)
        await again()
        return bodies

    bodies = run(main)
    assert [body["result"]["structuredContent"] for body in bodies] == [{"result": "receipt 1"}] * 5
    assert len(started) == 5
    assert len(receipts) == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-1],
        lambda token: token + "\n",
        lambda token: "".join(f"%{ord(character):02X}" for character in token),
        lambda token: token.replace(token[0], f"%{ord(token[0]):02X}", 1),
        lambda token: token + "%3D%3D",
        lambda token: "invented",
    ],
    ids=["shorter", "newline", "percent", "one percent", "padding", "invented"],
)
@both_servers
def test_a_state_that_a_client_recodes_cuts_or_invents_gets_one_message_and_the_reason_is_logged_only(
    make: Make, spoil: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    """Clients encode, truncate, drop and invent state."""

    async def main() -> dict[str, Any]:
        asked = await post(make(pick), "pick")
        state = spoil(asked["result"]["requestState"])
        return await post(make(pick), "pick", requestState=state, inputResponses={"ask": accept("x")})

    error = run(main)["error"]
    assert (error["code"], error["message"], error["data"]) == INVALID
    assert re.search(
        r"requestState of pick refused: (length|not base64url|not canonical base64url|unknown key|tampered)",
        caplog.text,
    )


@both_servers
def test_a_state_that_a_client_drops_begins_anew_and_a_later_answer_is_not_used(make: Make) -> None:
    """Some clients send the answers and forget the state."""

    async def main() -> list[dict[str, Any]]:
        asked = await post(make(count), "count")
        sent = {"requestState": asked["result"]["requestState"], "inputResponses": {"ask": accept(3)}}
        asked = await post(make(count), "count", **sent)
        return [asked, await post(make(count), "count", inputResponses={"ask~2": accept("Ada")})]

    second, dropped = run(main)
    assert list(second["result"]["inputRequests"]) == ["ask~2"]
    assert list(dropped["result"]["inputRequests"]) == ["ask"]


def test_one_second_past_the_ttl_tells_how_to_restart_and_a_tampered_token_does_not() -> None:
    """An expired question must read as one; text for recovery must not help whoever tampers."""
    clock = Clock()
    t = tester(flow(name="pick", ttl=60)(pick.fn), clock=clock).start()
    assert t.state is not None
    tampered = t.state[:-1] + ("A" if t.state[-1] != "A" else "Q")
    clock.advance(61)
    code, text, data = refused(lambda: t.answer("x"))
    assert (code, data) == (-32602, {"reason": "expired_request_state"})
    assert "expired" in text
    assert text.endswith("call again from the start")
    assert refused(lambda: t.send({"ask": accept("x")}, state=tampered)) == INVALID
    assert t.start().answer("x").result == "x"


def test_an_answer_after_eleven_minutes_is_taken_in_every_round_and_the_time_is_an_option() -> None:
    """A flow that lived three minutes in all sent a person round in circles."""
    clock = Clock()
    t = tester(count, clock=clock).start()
    clock.advance(11 * 60)
    t.answer(3)
    clock.advance(29 * 60)
    assert t.answer("Ada").result == "3 Ada"

    short = tester(flow(name="count", ttl=3 * 60)(count.fn), clock=clock).start()
    clock.advance(11 * 60)
    _, text, _ = refused(lambda: short.answer(3))
    assert text == "The question waited too long for its answer, so this call has expired; call again from the start"


@both_servers
def test_a_server_with_keys_needs_a_name_and_replicas_of_one_name_open_each_others_tokens(make: Make) -> None:
    """Unnamed replicas each drew an audience by chance, and refused each other."""
    with pytest.raises(DefinitionError, match="server has keys but no name"):
        make(pick, name="")

    async def main() -> dict[str, Any]:
        asked = await post(make(pick), "pick")
        sent = {"requestState": asked["result"]["requestState"], "inputResponses": {"ask": accept("x")}}
        return await post(make(pick), "pick", **sent)

    assert run(main)["result"]["structuredContent"] == {"result": "x"}


@pytest.mark.parametrize("ttl", [float("inf"), float("-inf"), float("nan"), 0, -1, True, "600", None, 1e300])
def test_a_ttl_that_is_no_finite_time_is_refused_at_definition(ttl: Any) -> None:
    """An endless ttl minted tokens that had always expired."""
    with pytest.raises(DefinitionError, match="ttl of pick is"):
        flow(name="pick", ttl=ttl)(pick.fn)


def test_ten_thousand_calls_that_nobody_resumes_leave_nothing_in_memory() -> None:
    """Parked continuations grew without bound."""

    async def main() -> int:
        made = reference(pick)
        sent = message("pick")
        for _ in range(50):
            await made.handle(sent)
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(10_000):
            await made.handle(sent)
        gc.collect()
        return len(gc.get_objects()) - before

    assert run(main) < 100


@pytest.mark.parametrize(
    ("make", "size"), [(reference, 10_000_000), (official, 1_000_000)], ids=["reference", "official"]
)  # the SDK refuses longer requests by itself
def test_megabytes_of_state_are_refused_by_their_length(
    make: Make, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A codec without bounds decodes whatever it is sent."""

    async def main() -> dict[str, Any]:
        return await post(make(pick), "pick", requestState="A" * size)

    error = run(main)["error"]
    assert (error["code"], error["message"], error["data"]) == INVALID
    assert "requestState of pick refused: length" in caplog.text


@pytest.mark.parametrize(
    ("size", "reason"), [(60_000, "client part has bytes after its array"), (128 * 1024, "client part does not unzip")]
)
def test_a_token_that_inflates_a_thousandfold_is_refused_and_past_the_cap_it_is_not_inflated(
    size: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A sealed token may still hold a decompression bomb, if a key leaked or another server minted it."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        6, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=False, window_log=20
    )
    block = zstandard.ZstdCompressor(compression_params=parameters).compress(b"\x90" * size)[5:]
    assert size > 1000 * len(block)
    payload = bytes([0b101]) + START.to_bytes(4, "big") + bytes(6) + bytes([len(block)]) + block + bytes(4)
    token = ring().seal(payload, Binding("tools/call", "pick", b"{}", None), START + 60)
    t = tester(pick).start()
    assert refused(lambda: t.send({"ask": accept("x")}, state=token)) == INVALID
    assert reason in caplog.text
    assert t.answer("x").result == "x"


def test_answers_past_the_limit_end_the_call_when_the_token_is_sealed_and_the_log_names_the_question(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """State past a limit must be refused, never cut or sealed into what does not open."""

    @flow
    def long() -> Flow[int]:
        parts: list[str] = []
        for number in range(4):
            parts.append((yield from ask(f"Part {number}?", str, key=f"part{number}")))
        return sum(map(len, parts))

    t = tester(long).start().answer(noise(12_000)).answer(noise(12_001))
    assert t.token_chars <= MAX_TOKEN
    t.answer(noise(15_000))
    assert t.failure.reason == "too_large"
    assert t.failure.text == "long carries more answers and results than its state can hold, so it ended"
    assert "most of it is the outcome of ask('part2') at test_field_cases.py:" in caplog.text
    assert f"of at most {MAX_TOKEN}" in caplog.text


# ---------------------------------------------------------------------- answers and forms


class Person(BaseModel):
    age: int
    name: str = "nobody"


@pytest.mark.parametrize("content", [{}, None, {"name": "Ada"}, {"age": None}, {"other": 1}], ids=str)
def test_an_accept_without_a_required_field_is_asked_three_times_and_then_ends_cleanly(content: Any) -> None:
    """A client that cannot render a field accepts without it, and a server that asks again does so for ever."""

    @flow
    def register() -> Flow[int]:
        return (yield from ask("Who?", Person)).age

    t = tester(register).start()
    for _ in range(2):
        t.send({"ask": {"action": "accept", "content": content}})
        assert t.message == "Who?\n(The last answer was not taken: age: missing.)"
    t.send({"ask": {"action": "accept", "content": content}})
    assert t.rounds == 4
    assert t.failure.reason == "wrong_answers"
    assert t.failure.text == (
        "question 'ask' of register was answered wrongly 3 times, so the call ended; "
        "the last answer was not taken: age: missing"
    )
    assert t.wire_result["isError"] is True


@both_servers
def test_null_and_empty_content_are_valid_only_where_nothing_is_required(make: Make) -> None:
    """Clients accept with null and with {} although fields are required."""

    @flow
    def optional() -> Flow[str]:
        return repr((yield from ask("?", int | None)))

    async def answered(name: str, **content: Any) -> dict[str, Any]:
        return await post(make(pick, optional), name, inputResponses={"ask": {"action": "accept", **content}})

    async def main() -> None:
        contents: list[dict[str, Any]] = [{"content": None}, {"content": {}}, {}]
        for content in contents:
            body = await answered("pick", **content)
            assert "missing" in body["result"]["inputRequests"]["ask"]["params"]["message"]
            assert text_of(await answered("optional", **content)) == "None"

    run(main)


def test_a_decline_ends_the_flow_at_once_or_takes_its_branch_and_is_never_the_same_question_again() -> None:
    """A pattern that asks again on decline goes on until the client stops counting rounds."""
    t = tester(count).start().decline()
    assert (t.finished, t.rounds, t.asked) == (True, 2, {})
    assert t.failure.reason == "not_answered"

    @flow
    def branches() -> Flow[str]:
        name = yield from ask("Name?", str, if_declined=None)
        return "anonymous" if name is None else name

    @flow
    def catches() -> Flow[str]:
        try:
            return (yield from ask("Name?", str))
        except Declined:
            return (yield from ask("A nickname, then?", str))

    assert tester(branches).start().decline().result == "anonymous"
    t = tester(catches).start().decline()
    assert t.message == "A nickname, then?"
    assert t.decline().finished


def test_a_decline_is_never_true_and_differs_from_an_accepted_false() -> None:
    """Objects for declined and cancelled were truthy, so `if result: delete()` deleted."""
    deleted: list[str] = []

    @flow
    def bare() -> Flow[str]:
        if (yield from ask("Delete?", bool)):
            yield from step(deleted.append, "bare")
            return "deleted"
        return "kept"

    @flow
    def branching() -> Flow[str]:
        answer = yield from ask("Delete?", bool, if_declined=None)
        if answer:
            yield from step(deleted.append, "branching")
        return repr(answer)

    @flow
    def confirming() -> Flow[str]:
        if (yield from confirm("Delete?")):
            yield from step(deleted.append, "confirming")
        return "end"

    assert tester(bare).start().decline().failure.reason == "not_answered"
    assert tester(bare).start().cancel().failure.reason == "not_answered"
    assert tester(bare).start().answer(False).result == "kept"
    assert tester(branching).start().decline().result == "None"
    assert tester(branching).start().answer(False).result == "False"
    assert tester(branching).start().cancel().failure.reason == "not_answered"
    assert tester(confirming).start().decline().result == "end"
    assert tester(confirming).start().cancel().failure.reason == "not_answered"
    assert deleted == []
    assert tester(bare).start().answer(True).result == "deleted"


@both_servers
@pytest.mark.parametrize(("action", "word"), [("cancel", "cancelled"), ("decline", "declined")])
@pytest.mark.parametrize("content", [{}, None, {"value": "not a number"}, {"value": None}, {"other": ["x"]}], ids=str)
def test_content_of_a_cancel_or_decline_is_not_validated(make: Make, action: str, word: str, content: Any) -> None:
    """Clients send `{}`, null or half a form with a cancel, and servers found it invalid."""

    async def main() -> dict[str, Any]:
        return await post(make(count), "count", inputResponses={"ask": {"action": action, "content": content}})

    assert text_of(run(main)) == f"question 'ask' was {word}, so count stopped without a result"


@both_servers
@pytest.mark.parametrize("action", ["reject", "", "ACCEPT", "accepted", None, True, 1])
def test_an_unknown_action_is_an_invalid_answer_and_never_an_accept(make: Make, action: Any) -> None:
    """Clients answered `reject`, which the protocol does not have."""
    deleted: list[str] = []

    @flow
    def delete() -> Flow[str]:
        if (yield from confirm("Delete?")):
            yield from step(deleted.append, "x")
        return "end"

    async def main() -> list[dict[str, Any]]:
        asked = await post(make(delete), "delete")
        sent = {"requestState": asked["result"]["requestState"]}
        entry = {"action": action, "content": {"ok": True}}
        wrong = await post(make(delete), "delete", **sent, inputResponses={"confirm": entry})
        return [wrong, await post(make(delete), "delete", **sent, inputResponses={"confirm": {"action": "decline"}})]

    wrong, right = run(main)
    assert wrong["error"]["code"] == -32602
    assert deleted == []
    assert text_of(right) == "end"


def test_the_error_of_an_unknown_action_names_the_three_that_exist() -> None:
    """Whoever wrote the client must be able to read what is wrong with `reject`."""
    t = tester(pick).start()
    code, text, _ = refused(lambda: t.send({"ask": {"action": "reject"}}))
    assert code == -32602
    for action in ("accept", "decline", "cancel"):
        assert action in text


@both_servers
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_what_is_told_of_a_decline_does_not_say_that_a_person_refused(make: Make, action: str) -> None:
    """Clients decline by themselves within a moment, and nobody saw a form."""

    async def main() -> dict[str, Any]:
        return await post(make(pick), "pick", inputResponses={"ask": {"action": action}})

    text = text_of(run(main)).lower()
    assert "question 'ask' was" in text
    for word in ("user", "person", "human", "refused", "rejected"):
        assert word not in text


class Nothing(BaseModel):
    """Has no field."""


def test_a_confirmation_has_a_boolean_and_a_type_without_fields_is_refused() -> None:
    """A form without fields, for accept or decline alone, made a client hang."""

    @flow
    def delete() -> Flow[bool]:
        return (yield from confirm("Delete?"))

    assert tester(delete).start().asked["confirm"].schema == {
        "type": "object",
        "properties": {"ok": {"type": "boolean", "title": "Confirm"}},
        "required": ["ok"],
    }
    with pytest.raises(DefinitionError, match="type Nothing cannot be asked: a form has named fields"):
        ask("Delete?", Nothing)


class Color(Enum):
    RED = "r"
    DARK_BLUE = "b"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Size(StrEnum):
    S = "small"
    XL = "extra large"


class Strict(BaseModel):
    """A form with a description of its own."""

    model_config = ConfigDict(title="A title", extra="forbid", json_schema_extra={"examples": [1], "x-own": True})
    color: Color
    level: Level | None = None


@dataclass
class Described:
    """A form with a description of its own."""

    size: Size


class Typed(typing.TypedDict):
    """A form with a description of its own."""

    size: Size


@pytest.mark.parametrize("asked", [Strict, Described, Typed, Color, Level | None, list[Size], int, datetime.date])
def test_a_form_has_only_type_properties_and_required_on_top(asked: Any) -> None:
    """Clients that deny unknown fields refused a title on top of a form."""

    @flow
    def form() -> Flow[str]:
        return str((yield from ask("?", asked)))

    schema = tester(form).start().asked["ask"].schema
    assert set(schema) <= {"type", "properties", "required"}
    assert schema["type"] == "object"
    assert "$" not in json.dumps(schema)
    extras: list[dict[str, Any]] = [
        {"title": "A"},
        {"description": "A"},
        {"additionalProperties": False},
        {"$defs": {}},
    ]
    for extra in extras:
        with pytest.raises(DefinitionError, match="on top, which the grammar lacks"):
            ask("?", {**schema, **extra})


def field_of(asked: Any) -> dict[str, Any]:
    """The only field of a form as it is sent."""

    @flow
    def form() -> Flow[str]:
        return str((yield from ask("?", asked)))

    (field,) = tester(form).start().asked["ask"].schema["properties"].values()
    return dict(field)


def test_a_choice_with_titles_is_a_string_with_const_and_title() -> None:
    """An enumeration with titles and without a type was refused."""
    assert field_of(Color) == {
        "type": "string",
        "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Dark blue"}],
        "title": "Value",
    }
    assert field_of(list[Level]) == {
        "type": "array",
        "items": {"anyOf": [{"const": "1", "title": "Low"}, {"const": "2", "title": "High"}]},
        "title": "Value",
    }
    assert field_of(Literal["a", "b"]) == {"type": "string", "enum": ["a", "b"], "title": "Value"}


class Choices(BaseModel):
    color: Color
    level: Level
    size: Size
    maybe: Color | None
    preset: Level | None = Level.HIGH


def test_enumerations_of_text_of_whole_numbers_and_optional_ones_are_asked_and_answered() -> None:
    """Each of them failed somewhere, and only when the tool was called."""
    seen: list[Choices] = []

    @flow
    def choose() -> Flow[str]:
        seen.append((yield from ask("?", Choices)))
        return (yield from ask("Again?", str))

    t = tester(choose).start()
    assert t.asked["ask"].schema["required"] == ["color", "level", "size"]
    assert t.asked["ask"].schema["properties"]["level"]["type"] == "string"
    t.answer({"color": "b", "level": "1", "size": "extra large"}).answer("x")
    assert seen == [Choices(color=Color.DARK_BLUE, level=Level.LOW, size=Size.XL, maybe=None)] * 2
    assert seen[1].preset is Level.HIGH
    t.start().answer({"color": "Red", "level": 2, "size": "small", "maybe": "r", "preset": "1"})
    assert seen[2] == Choices(color=Color.RED, level=Level.HIGH, size=Size.S, maybe=Color.RED, preset=Level.LOW)


def test_a_signature_without_a_schema_is_refused_at_registration_and_a_form_where_it_is_made() -> None:
    """Schema errors that wait for a call are found by the people who call."""

    def opaque(color: Color, where: Callable[[], int]) -> Flow[str]:
        return (yield from ask("?", str))

    def optional(color: Color | None = None, level: Level = Level.LOW) -> Flow[str]:
        return f"{color} {level!r} " + (yield from ask("?", str))

    with pytest.raises(DefinitionError, match="signature of opaque"):
        flow(opaque)
    assert tester(flow(optional)).start(color="b", level=2).answer("x").result == "Color.DARK_BLUE <Level.HIGH: 2> x"
    for asked in (dict[str, int], Color | int, list[str], bytes | int, Person | Strict):
        with pytest.raises(DefinitionError, match="cannot be asked"):
            ask("?", asked)


class Limited(BaseModel):
    nights: Annotated[int, Field(gt=0)]
    code: Annotated[str, Field(pattern="^[A-Z]+$")] = "A"
    price: Annotated[float, Field(gt=0)] = 1
    dozen: Annotated[int, Field(multiple_of=12)] = 12


def test_limits_the_grammar_lacks_stay_off_the_wire_are_said_and_are_enforced() -> None:
    """Patterns and exclusive limits were dropped without a word, and then nobody checked them."""

    @flow
    def book() -> Flow[str]:
        return repr((yield from ask("?", Limited, attempts=15)))

    t = tester(book).start()
    assert t.asked["ask"].schema["properties"] == {
        "nights": {"type": "integer", "title": "Nights", "minimum": 1},
        "code": {"type": "string", "title": "Code", "default": "A", "description": "Must match ^[A-Z]+$."},
        "price": {"type": "number", "title": "Price", "default": 1.0, "description": "Must be more than 0."},
        "dozen": {"type": "integer", "title": "Dozen", "default": 12, "description": "Must be a multiple of 12."},
    }
    for content, reason in (
        ({"nights": 0}, "nights: must be at least 1"),
        ({"nights": 1, "code": "a1"}, "code: string should match pattern '^[A-Z]+$'"),
        ({"nights": 1, "price": 0}, "price: input should be greater than 0"),
        ({"nights": 1, "dozen": 13}, "dozen: input should be a multiple of 12"),
    ):
        t.answer(content)
        assert reason in t.message
    result = t.answer({"nights": 1, "code": "B", "price": 0.5, "dozen": 24}).result
    assert result == "Limited(nights=1, code='B', price=0.5, dozen=24)"


class Formats(BaseModel):
    small: Annotated[int, Field(json_schema_extra={"format": "int32"})]
    ratio: Annotated[float, Field(json_schema_extra={"format": "double"})]
    id: uuid.UUID
    at: datetime.time
    page: AnyUrl
    day: datetime.date
    moment: datetime.datetime
    mail: Annotated[str, Field(json_schema_extra={"format": "email"})]


def test_the_only_formats_on_the_wire_are_those_of_the_grammar() -> None:
    """A client refused a form for `format: int32`."""

    @flow
    def form() -> Flow[str]:
        value = yield from ask("?", Formats)
        return f"{value.small} {value.id.int} {value.at.hour} {value.page.host} {value.day.year} {value.moment.second}"

    t = tester(form).start()
    fields = t.asked["ask"].schema["properties"]
    assert {name: field["format"] for name, field in fields.items() if "format" in field} == {
        "page": "uri",
        "day": "date",
        "moment": "date-time",
        "mail": "email",
    }
    assert fields["id"]["description"] == "Format: uuid."
    t.answer(
        {
            "small": 3,
            "ratio": 0.5,
            "id": str(uuid.UUID(int=7)),
            "at": "09:30:00",
            "page": "https://a.example/x",
            "day": "2026-01-02",
            "moment": "2026-01-02T03:04:05Z",
            "mail": "a@b.example",
        }
    )
    assert t.result == "3 7 9 a.example 2026 5"
    with pytest.raises(DefinitionError, match="field 'a' has 'format', which the grammar lacks for integer"):
        ask("?", {"type": "object", "properties": {"a": {"type": "integer", "format": "int32"}}})


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("9007199254740993", 9007199254740993),
        ("-9007199254740993", -9007199254740993),
        (str(2**70), 2**70),
        ("-0", 0),
        ("1e2", 100),
        ("5.0", 5),
        ('"9007199254740993"', 9007199254740993),
    ],
)
def test_whole_numbers_are_exact_on_the_wire_and_through_the_token(spelled: str, value: int) -> None:
    """9007199254740993 came back as ...992."""

    async def main() -> str:
        sent = json.dumps(message("count", inputResponses={"ask": accept("HERE")})).replace('"HERE"', spelled)
        status, body = await post_text(official(count), sent)
        assert status == 200
        asked = body["result"]["inputRequests"]["ask~2"]["params"]["message"]
        assert asked == f"{value}, and the name?"
        state = body["result"]["requestState"]
        return text_of(
            await post(official(count), "count", requestState=state, inputResponses={"ask~2": accept("Ada")})
        )

    assert run(main) == f"{value} Ada"


@pytest.mark.parametrize("spelled", ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", '"NaN"', '"1e400"', '"inf"'])
@pytest.mark.parametrize(("asked", "reason"), [(int, "must be a whole number"), (float, "must be a number")])
def test_what_is_not_finite_is_asked_again(spelled: str, asked: Any, reason: str) -> None:
    """JSON has no infinity, and parsers make one of 1e400."""

    @flow
    def number() -> Flow[str]:
        return repr((yield from ask("?", asked)))

    async def main() -> tuple[int, dict[str, Any]]:
        sent = json.dumps(message("number", inputResponses={"ask": accept("HERE")})).replace('"HERE"', spelled)
        return await post_text(official(number), sent)

    status, body = run(main)
    assert status == 200
    assert body["result"]["inputRequests"]["ask"]["params"]["message"] == (
        f"?\n(The last answer was not taken: {reason}.)"
    )


@both_servers
@pytest.mark.parametrize(
    ("sent", "seen"), [(1.5, "1.5"), (5, "5.0"), ("1.5", "1.5"), (-0.25, "-0.25"), (1e-7, "1e-07")]
)
def test_a_number_is_taken_as_a_float_and_as_text_from_gateways_that_have_none(
    make: Make, sent: Any, seen: str
) -> None:
    """The protocol's JSON schema allows no fractions in an answer, its text does."""

    @flow
    def number() -> Flow[str]:
        return repr((yield from ask("?", float)))

    async def main() -> dict[str, Any]:
        return await post(make(number), "number", inputResponses={"ask": accept(sent)})

    assert text_of(run(main)) == seen


class Defaulted(BaseModel):
    count: int = 0
    share: float = 0.0
    sure: bool = False
    yes: bool = True
    note: str = ""
    color: Color = Color.DARK_BLUE
    level: Level = Level.LOW
    labels: list[Literal["bug", "docs"]] = []


@pytest.mark.parametrize("content", [{}, None, {"count": None, "note": None}], ids=str)
def test_fields_a_client_leaves_out_take_their_defaults_also_falsy_ones(content: Any) -> None:
    """Clients may leave out what has a default, and servers lost 0, false and ""."""
    seen: list[Any] = []

    @flow
    def form() -> Flow[str]:
        seen.append((yield from ask("?", Defaulted)))
        return (yield from ask("Again?", str))

    t = tester(form).start()
    fields = t.asked["ask"].schema["properties"]
    assert [field["default"] for field in fields.values()] == [0, 0.0, False, True, "", "b", "1", []]
    assert "required" not in t.asked["ask"].schema
    t.send({"ask": {"action": "accept", "content": content}}).answer("x")
    assert seen == [Defaulted()] * 2

    @flow
    def raw() -> Flow[dict[str, Any]]:
        return (yield from ask("?", {"type": "object", "properties": fields}))

    t = tester(raw).start().send({"ask": {"action": "accept", "content": content}})
    assert t.result == {name: field["default"] for name, field in fields.items()}


@pytest.mark.parametrize(
    ("asked", "value"), [(Literal["first", "second"], "first"), (Color, Color.RED), (Level, Level.LOW)], ids=str
)
def test_a_choice_that_only_looked_selected_is_asked_again_by_name(asked: Any, value: Any) -> None:
    """A client shows the first choice as selected and then does not send it."""

    Order = make_dataclass("Order", [("variant", asked)])

    @flow
    def form() -> Flow[str]:
        return repr((yield from ask("Which?", Order)).variant)

    t = tester(form).start().answer({})
    assert t.message == "Which?\n(The last answer was not taken: missing.)"
    choice = t.asked["ask"].schema["properties"]["variant"]
    assert "default" not in choice
    first = choice["enum"][0] if "enum" in choice else choice["oneOf"][0]["const"]
    assert t.answer({"variant": first}).result == repr(value)


AWKWARD = [
    "a\ud800b",
    "\udfff",
    "nul\0here",
    "\u202eright to left\u2066",
    "e\u0301 \u00e9",
    "\U0001f600",
    "\ufeff",
    "\r\n",
]


@both_servers
@pytest.mark.parametrize("value", AWKWARD, ids=ascii)
def test_awkward_text_comes_back_exactly_and_never_as_an_internal_error(make: Make, value: str) -> None:
    """A lone surrogate was accepted, and the next response could not be encoded."""

    @flow
    def echo() -> Flow[str]:
        text = yield from ask("?", str)
        return text + (yield from ask(f"After {text}?", str))

    async def main() -> list[dict[str, Any]]:
        asked = await post(make(echo), "echo", inputResponses={"ask": accept(value)})
        sent = {"requestState": asked["result"]["requestState"], "inputResponses": {"ask~2": accept("x")}}
        return [asked, await post(make(echo), "echo", **sent)]

    asked, ended = run(main)
    assert asked["result"]["inputRequests"]["ask~2"]["params"]["message"] == f"After {value}?"
    assert ended["result"]["structuredContent"] == {"result": value + "x"}
    assert text_of(ended) == value + "x"


def test_a_hundred_thousand_characters_are_asked_again_and_earlier_answers_are_kept() -> None:
    """Text of any length came through the form and then broke the state."""
    t = tester(count).start().answer(3).answer("x" * 100_000)
    assert t.message == "3, and the name?\n(The last answer was not taken: it is too long.)"
    assert t.answer("Ada").result == "3 Ada"


class Named(BaseModel):
    name: str


@both_servers
def test_an_accepted_answer_reaches_the_flow_as_its_content_and_not_as_the_whole_entry(make: Make) -> None:
    """Frameworks dropped the answers, or took action and content for the fields."""

    @flow
    def greet() -> Flow[str]:
        return (yield from ask("Name?", Named, key="user_name")).name

    async def main() -> list[dict[str, Any]]:
        answers = {"user_name": {"action": "accept", "content": {"name": "x"}}}
        asked = await post(make(greet), "greet")
        state = asked["result"]["requestState"]
        return [asked, await post(make(greet), "greet", requestState=state, inputResponses=answers)]

    asked, ended = run(main)
    assert list(asked["result"]["inputRequests"]) == ["user_name"]
    assert ended["result"]["structuredContent"] == {"result": "x"}


# ---------------------------------------------------------------------- clients, transports, modes


@flow
def open_page() -> Flow[str]:
    """Open a page."""
    yield from ask_url("Sign in there", "https://login.example/x")
    return "opened"


@both_servers
@pytest.mark.parametrize(
    ("capabilities", "form", "url"),
    [
        ({}, False, False),
        ({"elicitation": {}}, True, False),
        ({"elicitation": {"form": {}}}, True, False),
        ({"elicitation": {"url": {}}}, False, True),
        ({"elicitation": {"form": {}, "url": {}}}, True, True),
        ({"sampling": {}, "roots": {}}, False, False),
    ],
    ids=str,
)
def test_a_bare_elicitation_capability_means_forms_and_each_mode_is_declared_by_itself(
    make: Make, capabilities: dict[str, Any], form: bool, url: bool
) -> None:
    """Clients declare `elicitation: {}` and mean forms, or a URL mode and no forms."""

    @flow
    def falls_back() -> Flow[str]:
        return (yield from ask("Which?", str, if_unsupported="fallback"))

    async def main() -> list[dict[str, Any]]:
        made = make(pick, open_page, falls_back)
        return [await post(made, name, capabilities) for name in ("pick", "open_page", "falls_back")]

    forms, urls, fallback = run(main)
    for body, asked, mode in ((forms, form, "form"), (urls, url, "url")):
        if asked:
            (request,) = body["result"]["inputRequests"].values()
            assert request["params"]["mode"] == mode
        else:
            assert body["error"]["code"] == -32021
            assert body["error"]["data"] == {"requiredCapabilities": {"elicitation": {mode: {}}}}
    assert ("inputRequests" in fallback["result"]) is form
    assert form or text_of(fallback) == "fallback"


def test_a_client_without_forms_sees_the_tool_can_give_answers_as_arguments_and_is_told_why_not() -> None:
    """A server hid its tool from clients that cannot be asked, and nothing said why."""

    @flow
    def write(title: str | None = None) -> Flow[str]:
        """Write a note."""
        if title is None:
            title = yield from ask("Title?", str)
        return f"wrote {title}"

    @flow
    def explains() -> Flow[str]:
        try:
            return (yield from ask("Title?", str))
        except CapabilityMissing:
            return "this client cannot be asked; call again with title="

    async def main() -> list[dict[str, Any]]:
        made = reference(write, explains)
        listing = {**message("x", {}), "method": "tools/list"}
        return [
            await made.handle(listing),
            await post(made, "write", {}, arguments={"title": "Plans"}),
            await post(made, "write", {}),
            await post(made, "explains", {}),
            await post(made, "write", FORMS),
        ]

    listed, written, refusal, explained, asked = run(main)
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["write", "explains"]
    assert text_of(written) == "wrote Plans"
    assert refusal["error"]["message"] == (
        "this call asks something that needs the client capability elicitation.form, which is not declared"
    )
    assert text_of(explained) == "this client cannot be asked; call again with title="
    assert list(asked["result"]["inputRequests"]) == ["ask"]


URLS: Mapping[str, Any] = {"elicitation": {"url": {}}}


@both_servers
def test_a_retry_before_the_page_was_opened_offers_the_same_page_again(make: Make) -> None:
    """URL mode has no word for "still waiting", so clients come back without an answer."""

    async def main() -> None:
        asked = (await post(make(open_page), "open_page", URLS))["result"]
        unanswered: list[dict[str, Any]] = [
            {},
            {"inputResponses": {}},
            {"inputResponses": {"other": {"action": "accept"}}},
        ]
        for answers in unanswered:
            again = await post(make(open_page), "open_page", URLS, requestState=asked["requestState"], **answers)
            assert again["result"]["inputRequests"] == asked["inputRequests"]
            assert again["result"]["requestState"] == asked["requestState"]
        sent = {"requestState": asked["requestState"], "inputResponses": {"url": {"action": "accept"}}}
        assert text_of(await post(make(open_page), "open_page", URLS, **sent)) == "opened"

    run(main)


def test_polling_for_a_page_that_nobody_finishes_ends_after_as_many_rounds_as_the_flow_allows() -> None:
    """Each poll is a round, and clients have a limit of rounds."""
    polls: list[str] = []

    def is_done() -> bool:
        polls.append("poll")
        return False

    @flow
    def sign_in() -> Flow[str]:
        for _ in range(3):
            yield from ask_url("Sign in there", "https://login.example/x")
            if (yield from step(is_done)):
                return "signed in"
        return "nobody signed in; call again when it is done"

    t = tester(sign_in, capabilities=URLS).start()
    while t.asked:
        assert t.rounds < 9
        t.answer(True)
    assert t.result == "nobody signed in; call again when it is done"
    assert (t.rounds, len(polls)) == (4, 3)


@both_servers
def test_a_url_question_has_mode_message_and_url_and_no_elicitation_id(make: Make) -> None:
    """The id of older versions is gone from the protocol."""

    async def main() -> dict[str, Any]:
        return await post(make(open_page), "open_page", URLS)

    assert run(main)["result"]["inputRequests"] == {
        "url": {
            "method": "elicitation/create",
            "params": {"mode": "url", "message": "Sign in there", "url": "https://login.example/x"},
        }
    }


@both_servers
def test_no_round_asks_for_nothing_but_to_come_back(make: Make) -> None:
    """Results with state alone made clients spend all their rounds at once."""

    @flow
    def pair() -> Flow[list[Any]]:
        a, b = yield from gather(ask("A?", int, key="a"), ask("B?", int, key="b"))
        yield from step(int)
        return [a, b, (yield from ask("C?", int, key="c"))]

    async def main() -> list[list[str]]:
        asked: list[list[str]] = []
        state: dict[str, Any] = {}
        for answers in ({}, {}, {"a": accept("x")}, {"a": accept(1)}, {}, {"b": accept(2)}, {"a": accept(3)}):
            result = (await post(make(pair), "pair", **state, inputResponses=answers))["result"]
            state = {"requestState": result["requestState"]}
            asked.append(sorted(result["inputRequests"]))
        return asked

    assert run(main) == [["a", "b"], ["a", "b"], ["a", "b"], ["b"], ["b"], ["c"], ["c"]]


@pytest.mark.parametrize("characters", [1, 12_000])
def test_a_flow_behind_a_proxy_that_seals_its_state_again_goes_on(characters: int) -> None:
    """Behind a proxy a question never reached anybody, or its state did not survive a second seal."""

    @flow
    def note() -> Flow[str]:
        first = yield from ask("First?", str)
        second = yield from ask("Second?", str)
        return f"{first} {second} {(yield from ask('Third?', int))}"

    inner: list[str] = []
    proxy: MCPServer[Any] = MCPServer("proxy")

    @proxy.tool()
    async def forward(context: Context[Any, Any]) -> CallToolResult | InputRequiredResult:
        params: dict[str, Any] = {}
        if context.request_state is not None:
            assert context.request_state == inner[-1]
            answers = {
                key: answer.model_dump(mode="json", by_alias=True, exclude_none=True)
                for key, answer in (context.input_responses or {}).items()
            }
            params = {"requestState": context.request_state, "inputResponses": answers}
        result = (await post(reference(note), "note", **params))["result"]
        if result["resultType"] == "input_required":
            inner.append(result["requestState"])
            return InputRequiredResult.model_validate(result)
        return CallToolResult.model_validate(result)

    texts = noise(characters), noise(characters + 1)

    async def main() -> str:
        body = await post(proxy, "forward")
        for key, value in (("ask", texts[0]), ("ask~2", texts[1]), ("ask~3", 7)):
            outer = body["result"]["requestState"]
            assert outer != inner[-1]
            body = await post(proxy, "forward", requestState=outer, inputResponses={key: accept(value)})
        return text_of(body)

    assert run(main) == f"{texts[0]} {texts[1]} 7"
    assert len(inner) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", token) for token in inner)
    assert 2 * characters < len(inner[-1]) <= MAX_TOKEN


def test_a_question_that_nobody_answers_expires_and_holds_nothing() -> None:
    """Declines never reached the server, and a tool believed that its question was open."""
    unwound: list[str] = []

    @flow
    def holding() -> Flow[str]:
        try:
            return (yield from ask("Which?", str))
        finally:
            unwound.append("closed")

    clock = Clock()
    t = tester(holding, clock=clock).start()
    assert unwound == ["closed"]
    other = tester(holding, clock=clock).start()
    clock.advance(30 * 60)
    _, _, data = refused(t.decline)
    assert data == {"reason": "expired_request_state"}
    assert refused(lambda: other.answer("x"))[2] == data
    assert t.start().decline().failure.reason == "not_answered"


def test_errors_of_era_capability_time_and_answer_name_the_next_step() -> None:
    """ "Method not found" and its like leave people with nothing to do."""
    clock = Clock()

    @flow
    def letter() -> Flow[str]:
        return (yield from ask("Which?", Literal["a", "b"]))

    async def main() -> list[dict[str, Any]]:
        made = reference(letter, clock=clock)
        asked = await post(made, "letter")
        old = message("letter")
        old["params"]["_meta"][VERSION] = "2025-11-25"
        bodies = [await made.handle(old), await post(made, "letter", {})]
        bodies.append(await post(made, "letter", inputResponses={"ask": accept("c")}))
        clock.advance(3600)
        return [*bodies, await post(made, "letter", requestState=asked["result"]["requestState"])]

    old, missing, wrong, expired = run(main)
    assert (old["error"]["code"], old["error"]["data"]["supported"]) == (-32022, ["2026-07-28"])
    assert "needs the client capability elicitation.form" in missing["error"]["message"]
    assert "choose one of a, b" in wrong["result"]["inputRequests"]["ask"]["params"]["message"]
    assert "call again from the start" in expired["error"]["message"]


def test_a_client_of_the_older_protocol_is_told_which_version_to_speak() -> None:
    """A client that begins with the handshake of older versions must read what it needs."""
    handshake = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}},
    }

    async def main() -> dict[str, Any]:
        return await reference(pick).handle(handshake)

    error = run(main)["error"]
    assert "2026-07-28" in json.dumps(error)
