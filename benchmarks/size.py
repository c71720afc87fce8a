"""Characters of requestState: ours and the official SDK's, for the same ten states."""

from __future__ import annotations

import inspect
import json
import logging
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from operator import or_
from typing import Any, Final, cast

import typing_extensions

import mrtr_flow
from benchmarks import sdk
from benchmarks.states import MAX_TOKENS, NOW, Event, State, load
from mrtr_flow import Definition, Effect, Flow, ask, flow, roots, sampling, step
from mrtr_flow.form import raw_form
from mrtr_flow.journal import Journal, unpack
from mrtr_flow.packing import ANY, Packing
from mrtr_flow.seal import Binding, KeyRing
from mrtr_flow.testing import FlowTester
from mrtr_flow.wire import canonical

__all__ = ("Row", "main", "measure", "rows")

_SECRET: Final = bytes(range(32))
_MAKERS: Final = {"url": "ask_url", "sample": "sample", "roots": "list_roots"}
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_typed_dict: Final[Any] = typing_extensions.TypedDict  # the fields are computed, which type checkers do not follow


@dataclass(frozen=True)
class Row:
    """Characters for one state; None where there is nothing to measure, or not yet (`skipped` says why)."""

    state: str
    run_id: int | None
    no_run_id: int | None
    typed_step: int | None
    sdk: int
    limits: tuple[int, ...] | None
    skipped: str | None = None

    @property
    def ratio(self) -> float | None:
        """SDK / ours with run id."""
        return None if self.run_id is None else round(self.sdk / self.run_id, 1)

    @property
    def missed(self) -> bool:
        """Whether a limit is passed, or could not be measured."""
        measured = (self.run_id, self.no_run_id)
        limits = self.limits or ()
        return any(size is None or size > limit for size, limit in zip(measured, limits, strict=False))


def rows() -> Iterator[Row]:
    """Measure every state."""
    for state in load():
        lacking = [
            name
            for kind, name in _MAKERS.items()
            if not hasattr(mrtr_flow, name) and kind in {event.kind for event in state.events}
        ]
        if lacking:
            reason = f"mrtr_flow has no {', '.join(lacking)}"
            yield Row(state.name, None, None, None, sdk.characters(state), state.limits, reason)
            continue
        typed = any(event.kind == "step" and record_type(event.answer) is not None for event in state.done)
        yield Row(
            state.name,
            run_id=measure(state),
            no_run_id=None if state.has_step else measure(state, run_id=False),
            typed_step=measure(state, typed=True) if typed else None,
            sdk=sdk.characters(state),
            limits=state.limits,
        )


def measure(state: State, *, run_id: bool = True, typed: bool = False) -> int:
    """Characters of our token when the state's question is pending: a flow, played round by round up to there.

    `typed` annotates the steps with the type of their result.
    """
    return played(state, run_id=run_id, typed=typed).token_chars


def played(state: State, *, run_id: bool = True, typed: bool = False) -> FlowTester:
    """A tester that waits for the state's pending question."""
    tester = FlowTester(
        flow_of(state, run_id=run_id, typed=typed),
        clock=lambda: NOW,
        principal=state.principal,
        ring=KeyRing([("size", _SECRET)], audience=state.audience),
    )
    tester.start(**state.arguments)
    for event in state.done:
        if event.kind != "step":
            tester.send({event.key: _response(event)})
    if list(tester.asked) != [state.pending.key]:
        outcome = tester.result if tester.finished else tester.asked
        raise RuntimeError(f"state {state.name!r} is to wait for {state.pending.key!r} but came to {outcome!r}")
    return tester


@dataclass(frozen=True)
class Prepared:
    """A state as the codec meets it: its journal, and each event as (packing, value, whether in the server part)."""

    journal: Journal
    events: list[tuple[Packing, Any, bool]]


def prepared(state: State) -> Prepared:
    """Play a state and take its token apart."""
    tester = played(state)
    binding = Binding("tools/call", state.tool, canonical(state.arguments)[1], state.principal)
    payload = KeyRing([("size", _SECRET)], audience=state.audience).open(tester.state, binding, NOW).payload
    journal = Journal.decode(payload)
    parts = (iter(journal.client), iter(journal.server))
    events: list[tuple[Packing, Any, bool]] = []
    for event in state.done:
        packing = _packing(event)
        server = event.kind == "step" and not event.public
        events.append((packing, packing.unpack(unpack(next(parts[server]))), server))
    return Prepared(journal, events)


def _packing(event: Event) -> Packing:
    if event.kind == "ask":
        return raw_form(event.schema or {}).packing
    return {"sample": sampling.RESULT, "roots": roots.ROOTS}.get(event.kind, ANY)


def flow_of(state: State, *, run_id: bool, typed: bool) -> Definition[..., Any]:
    """A flow that makes the effects of a state in their order."""
    work = {event.key: _work(event, typed) for event in state.events if event.kind == "step"}

    def play(**_: Any) -> Flow[None]:
        for event in state.events:
            yield from _effect(event, work)

    takes = {name: type(value) for name, value in state.arguments.items()}
    play.__annotations__ = dict(takes)
    cast("Any", play).__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in takes.items()]
    )
    return flow(name=state.tool, steps=run_id)(play)


def record_type(value: Any) -> Any:
    """The TypedDict of a flat record, the list type of a list of them with equal names, or None for anything else."""
    records = value if isinstance(value, list) else [value]
    if not records or not all(isinstance(record, dict) and record.keys() == records[0].keys() for record in records):
        return None
    kinds = {name: tuple(dict.fromkeys(type(record[name]) for record in records)) for name in records[0]}
    if not all(_SCALARS.issuperset(kind) for kind in kinds.values()):
        return None
    record = _typed_dict("Record", {name: reduce(or_, kind) for name, kind in kinds.items()})
    return types.GenericAlias(list, record) if isinstance(value, list) else record


def _work(event: Event, typed: bool) -> Callable[[], Any]:
    def work() -> Any:
        return event.answer

    kind = record_type(event.answer) if typed else None
    work.__annotations__ = {} if kind is None else {"return": kind}
    return work


def _effect(event: Event, work: Mapping[str, Callable[[], Any]]) -> Effect[Any]:
    if event.kind == "step":
        return step(work[event.key]).options(key=event.key, public=event.public)
    if event.kind == "ask":
        return ask(event.message, event.schema or {}, key=event.key)
    make: Callable[..., Effect[Any]] = getattr(mrtr_flow, _MAKERS[event.kind])
    if event.kind == "url":
        return make(event.message, event.url, key=event.key)
    if event.kind == "sample":
        message = {"role": "user", "content": {"type": "text", "text": event.message}}
        return make([message], max_tokens=MAX_TOKENS, key=event.key)
    return make(key=event.key)


def _response(event: Event) -> Mapping[str, Any]:
    if event.kind == "ask":
        return {"action": "accept", "content": event.answer}
    return {"action": "accept"} if event.kind == "url" else cast("Mapping[str, Any]", event.answer)


_COLUMNS: Final = ("state", "run id", "no run id", "typed step", "SDK", "SDK/ours", "limit")


def _cells(row: Row) -> list[str]:
    numbers = (row.run_id, row.no_run_id, row.typed_step, row.sdk, row.ratio)
    limit = "/".join(map(str, row.limits)) + (" missed" if row.missed else " ok") if row.limits else ""
    note = f"skipped: {row.skipped}" if row.skipped else limit
    return [row.state, *("-" if number is None else str(number) for number in numbers), note]


def main(*, as_json: bool) -> int:
    """Print the table, or JSON. The exit code is 1 if a limit is missed."""
    logging.getLogger("mrtr_flow").setLevel(logging.ERROR)  # ten questions in a row deserve the warning they get
    found = list(rows())
    missed = any(row.missed for row in found)
    if as_json:
        table = [asdict(row) | {"ratio": row.ratio, "missed": row.missed} for row in found]
        print(json.dumps({"peer": sdk.NAME, "states": table}, indent=1))
        return int(missed)
    lines = [list(_COLUMNS), *map(_cells, found)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *numbers, last in lines:
        cells = [text.rjust(width) for text, width in zip(numbers, widths[1:-1], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells, last]).rstrip())
    print(
        f"\nCharacters of requestState while the last question is pending; SDK is {sdk.NAME}, its resolver state sealed"
        "\nby its own boundary. `no run id` is steps=False; `typed step` has steps that are annotated with what they"
        "\nreturn. SDK/ours compares with `run id`; limits are for `run id`/`no run id`."
    )
    return int(missed)
