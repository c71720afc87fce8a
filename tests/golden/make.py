"""The golden tokens: flows played with fixed keys, clock and random bytes. `python -m tests.golden.make` writes them.

They are written once for a format. When this changes the file, tokens that are under way break: then the format has
another number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from mrtr_flow import Declined, Flow, StepError, ask, ask_url, confirm, flow, gather, list_roots, sample, step
from mrtr_flow.journal import Journal, unpack
from mrtr_flow.seal import Binding, KeyRing
from mrtr_flow.testing import FlowTester
from mrtr_flow.wire import canonical

FILE = Path(__file__).parent / "vectors.json"
SECRET = bytes(range(1, 33))
AUDIENCE = "golden-é"
START = 1_790_000_000


class Trip(BaseModel):
    to: str
    day: Literal["mon", "tue", "wed"]
    nights: int
    note: str = ""


class Quote(BaseModel):
    fare: int
    currency: str
    rebate: float | None = None


def quote() -> Quote:
    return Quote(fare=420, currency="EUR")


def secret() -> dict[str, Any]:
    return {"token": "not for the client", "big": 2**70, "list": [1, None, True, 1.5]}


def refuse() -> None:
    raise ValueError("no")


@flow(steps=False)
def first() -> Flow[str]:
    return (yield from ask("First?", str))


@flow
def with_run_id(n: float, name: str) -> Flow[str]:
    return (yield from ask(f"{name} {n}?", str))


@flow
def with_data(data: dict[str, Any]) -> Flow[str]:
    return (yield from ask(f"{len(data)}?", str))


@flow.prompt
def drafted(about: str) -> Flow[str]:
    return (yield from ask(f"What about {about}?", str))


@flow.resource("golden://{year}", name="ledger")
def ledger(year: int) -> Flow[str]:
    return (yield from ask(f"Which page of {year}?", str))


@flow(version="2")
def answered() -> Flow[str]:
    trip = yield from ask("Where to?", Trip, key="trip")
    number = yield from ask("How many?", int)
    text = yield from ask("Say something.", str)
    when = yield from ask("When?", {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}})
    return f"{trip}{number}{text}{when}{(yield from confirm('Sure?'))}"


@flow
def worked() -> Flow[str]:
    seen = [str((yield from step(quote).options(public=True))), str((yield from step(secret)))]
    try:
        yield from step(refuse)
    except StepError as error:
        seen.append(str(error))
    return "".join(seen) + (yield from ask("Go on?", str))


@flow
def refused() -> Flow[str]:
    first_ = yield from ask("One?", str, if_declined=None)
    with suppress(Declined):
        yield from ask_url("Two?", "https://example.com/two")
    yield from ask_url("Three?", "https://example.com/three")
    second = yield from sample("Four?", max_tokens=5, if_unsupported=None)
    return f"{first_}{second}{(yield from ask('Five?', str))}"


@flow
def together() -> Flow[str]:
    a, b, c, d = yield from gather(ask("A?", str, key="a"), sample("B?", max_tokens=9), list_roots(), confirm("D?"))
    return f"{a}{b}{c}{d}"


@flow(version="v3")
def mixed() -> Flow[str]:
    text = yield from ask("Say.", str)
    token = (yield from step(secret))["token"]
    a, b = yield from gather(ask("A?", int, key="a"), ask("B?", int, key="b"))
    return f"{text}{token}{a}{b}"


PROSE = "The export stops after one thousand rows since the last release, and the customers are waiting for it. "


@flow
def long() -> Flow[str]:
    text = ""
    for n in range(3):
        text += yield from ask(f"{n}?", str)
    return text


def vectors() -> Iterator[dict[str, Any]]:
    """Each golden token with everything needed to open it, and what is in it."""
    yield vector("first question, no run id", play(first))
    yield vector("run id, arguments, principal", play(with_run_id, {"n": 2.0, "name": "Zoë \ud800"}, principal="ada"))
    t = play(answered)
    t.answer({"to": "Rome", "day": "tue", "nights": 3}).answer(2**70).answer("a\ud800b").answer("2026-12-31")
    yield vector("answers of many kinds, a version", t)
    yield vector("steps: public, private, failed", play(worked))
    t = play(refused, capabilities={"elicitation": {"form": {}, "url": {}}}).decline().decline()
    yield vector("declined, consent, capability missing", t.send({"url~2": {"action": "accept"}}))
    t = play(together).answer(roots=["file:///a"], a="x")
    yield vector("partial answers", t)
    yield vector("wrong answers", t.answer(confirm="perhaps"))
    t = play(mixed).answer(", ".join(f"{n * n:x}" for n in range(900, 1000))).answer(b=2)
    yield vector("compressed beside a step, partial, wrong, a version", t.answer(a="x"))
    names = {"\U0001f600": 1e300, "\uffff": "\n\x7f/", "b": 0.1, "a": {"z": -0.0, "y": [1e-7, None, True]}}
    yield vector("arguments of all kinds", play(with_data, {"data": names}))
    yield vector("a prompt", play(drafted, {"about": "it"}))
    yield vector("a resource", play(ledger, {"year": 2025}))
    yield vector("compressed", play(long).answer(PROSE * 3).answer(PROSE + "Please advise."))


def play(definition: Any, arguments: dict[str, Any] | None = None, **options: Any) -> FlowTester:
    ring = KeyRing([("golden", SECRET)], audience=AUDIENCE)
    tester = FlowTester(definition, clock=lambda: START, ring=ring, entropy=lambda size: b"\x5a" * size, **options)
    return tester.start(**(arguments or {}))


def vector(name: str, tester: FlowTester) -> dict[str, Any]:
    method = tester.definition.method
    arguments = tester.definition.sent(tester.arguments) or {}
    target = tester.definition.target(tester.arguments)
    binding = Binding(method, target, canonical(arguments)[1], tester.principal)
    opened = KeyRing([("golden", SECRET)], audience=AUDIENCE).open(tester.state, binding, START)
    journal = Journal.decode(opened.payload)
    return {
        "name": name,
        "secret": SECRET.hex(),
        "audience": AUDIENCE,
        "method": method,
        "target": target,
        "arguments": arguments,
        "principal": tester.principal,
        "token": tester.state,
        "expires": opened.expires,
        "run_id": journal.run_id.hex() if journal.run_id else None,
        "version": journal.version,
        "wrong": journal.wrong,
        "changed": journal.changed,
        "client": [shown(unpack(item)) for item in journal.client],
        "server": [shown(unpack(item)) for item in journal.server],
        "partial": None if journal.partial is None else shown(unpack(journal.partial)),
        "checks": journal.checks.hex(),
        "pending": journal.pending.hex(),
    }


def shown(item: Any) -> Any:
    """An item as JSON has it: a map, whose keys may be numbers, as `{"map": [[key, value], ...]}`."""
    if isinstance(item, dict):
        return {"map": [[key, shown(value)] for key, value in item.items()]}
    return [shown(part) for part in item] if isinstance(item, list) else item


if __name__ == "__main__":
    FILE.write_text(json.dumps(list(vectors()), indent=1) + "\n")
