"""Eight conversations, played by flows as an author would write them: the same questions, steps and results."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client import InputRequiredRoundsExceededError
from mcp.server import MCPServer
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from mrtr_flow import Reply
from mrtr_flow.adapters.mcp import add_flows
from mrtr_flow.testing import FlowTester
from tests.corpus.data import CASES, Case
from tests.corpus.flows import FLOWS
from tests.corpus.playing import SERVER, Played, arguments_of, play, through_jsonrpc, through_mcp
from tests.corpus.world import called
from tests.helpers import KEYS, Clock, tester

BY_NAME = {case.name: case for case in CASES}
Way = Callable[[Case], Played]


def served(way: Callable[[Case], Any]) -> Way:
    return lambda case: anyio.run(way, case)


WAYS: dict[str, Way] = {"tester": play, "jsonrpc": served(through_jsonrpc), "mcp": served(through_mcp)}
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_case
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_flow_asks_does_and_returns_what_the_conversation_did(case: Case, way: Way) -> None:
    played = way(case)
    assert played.requests == [expected.requests for expected in case.rounds]
    assert [list(asked) for asked in played.requests] == [list(expected.asks) for expected in case.rounds]
    assert played.steps == case.steps  # so each ran once, in the round it ran in then
    assert played.result == case.result


@every_case
def test_tokens_are_equally_long_through_both_adapters(case: Case) -> None:
    lengths = [way(case).tokens for way in WAYS.values()]
    assert lengths[0] == lengths[1] == lengths[2]
    assert len(lengths[0]) == len(case.rounds)


def test_the_corpus_is_what_it_is_taken_for() -> None:
    assert FLOWS.keys() == BY_NAME.keys()
    assert [len(case.rounds) for case in CASES] == [1, 5, 2, 5, 25, 4, 2, 3]
    names = [name for case in CASES for steps in case.steps for name in steps]
    assert len(names) == len(set(names))  # the world finds a step's result by its name
    first = BY_NAME["release_readiness_parallel"].rounds[0]
    assert list(first.asks) != list(first.responses)  # answers come in another order than the questions


# ---------------------------------------------------------------------- what single conversations are about


def at_last_question(name: str) -> FlowTester:
    case = BY_NAME[name]
    called.clear()
    t = tester(FLOWS[name], principal=case.principal).start(**arguments_of(case))
    for played in case.rounds[:-1]:
        t.send(played.responses)
    return t


def start(name: str, **arguments: Any) -> FlowTester:
    called.clear()
    return tester(FLOWS[name]).start(**{**arguments_of(BY_NAME[name]), **arguments})


def test_the_interview_is_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="mrtr_flow"):
        play(BY_NAME["needs_interview_25"])
    assert [record.getMessage() for record in caplog.records] == [
        "needs_interview asked 8 times and asks again; common clients stop after 9 or 10 rounds: "
        "ask several questions in one gather(...)"
    ]


def test_the_interview_takes_more_rounds_than_the_official_client_plays_by_itself() -> None:
    case = BY_NAME["needs_interview_25"]
    forms = {ask["message"]: played.answers[key] for played in case.rounds for key, ask in played.asks.items()}

    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content=forms[params.message])

    async def call(**options: Any) -> Any:
        server: MCPServer[Any] = MCPServer(SERVER)
        add_flows(server, FLOWS[case.name], keys=KEYS, clock=Clock())
        async with Client(server, elicitation_callback=answer, **options) as client:
            return await client.call_tool(case.target, dict(case.arguments or {}))

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as refused:  # from the client's task group
            await call()
        assert refused.group_contains(InputRequiredRoundsExceededError)
        result = await call(input_required_max_rounds=25)
        assert isinstance(result, CallToolResult)
        assert result.structured_content == case.result["structuredContent"]

    anyio.run(main)


def test_an_approval_that_is_sent_twice_runs_the_migration_once() -> None:
    t = at_last_question("drop_columns_single_use")
    state, answers = t.state, BY_NAME["drop_columns_single_use"].rounds[-1].responses
    t.send(answers)
    assert t.result.value.schema_version == 147
    t.send(answers, state=state)  # the token replays, and the store of approvals tells
    assert t.result == Reply.error("Approval apv_7QH2 was spent before; nothing was run.")
    assert (called.count("spend_approval"), called.count("run_migration")) == (2, 1)
    first, second = (step.idempotency_key for step in t.steps if step.name == "spend_approval")
    assert first == second


def test_a_migration_stops_after_two_wrong_names() -> None:
    t = start("drop_columns_single_use").answer("shiptrack").answer("shiptrack-prod")
    text = "The name was not typed; nothing was changed."
    assert t.result == Reply.error(text)
    assert t.wire_result == {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": True}
    assert called == ["dry_run"]


def test_a_wizard_skips_the_pages_that_do_not_apply() -> None:
    t = start("provision_database_wizard")
    t.answer({"environment": "sandbox", "engine": "keyvalue", "region": "eu-north"})
    assert t.message == "Keyvalue options for routing"
    t.answer({"ttl_seconds": 60, "eviction": "oldest"})
    assert list(t.asked) == ["quote"]
    t.answer({"create": True})
    assert t.result.value.pages == 3
    assert called == ["team_profile", "price_quote", "create_cluster"]


@pytest.mark.parametrize(("roots", "taken"), [(890, True), (900, False)])
def test_a_workspace_may_be_large_and_is_not_asked_for_again(roots: int, taken: bool) -> None:
    t = start("workspace_inventory_roots")
    t.answer([{"uri": f"file:///srv/monorepo/apps/maps/maps-{n:05}", "name": f"maps-{n:05}"} for n in range(roots)])
    if taken:
        assert list(t.asked) == ["focus"]
    else:
        assert "it takes 49503 bytes of at most 49152" in t.failure.text


def test_a_statement_may_leave_payroll_out_and_come_as_a_table() -> None:
    t = start("read_statement_resource").answer({"purpose": "audit", "redaction": "none"})
    t.answer({"payroll": "omit", "format": "markdown"})
    assert "payroll" not in t.result
    assert "| refund, reference withheld |" in t.result  # the reader may not see names, whatever they choose
    assert len(t.result.splitlines()) == 16
