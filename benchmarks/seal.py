"""Seal and open time: ours and the official SDK's, for the same ten states, in turn in one run.

Seal is: pack every event of the state (an answer by its form, a step's result by its type), the journal, the binding
to the request, compression, AEAD, text. Open is all of it back, to the values the packings give. The SDK's is its
resolver state as JSON, its envelope and its codec; the questions' schemas and digests are made before, on both sides.
"""

from __future__ import annotations

import json
import logging
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks import sdk
from benchmarks.size import prepared
from benchmarks.states import NOW, State, load
from mrtr_flow.journal import Journal, pack_items, unpack
from mrtr_flow.seal import Binding, KeyRing
from mrtr_flow.wire import canonical

__all__ = ("main",)

ROUNDS: Final = 61
REPEAT: Final = 40
LIMIT: Final = 1.2


@dataclass(frozen=True)
class Timing:
    """Microseconds of one state (fastest tenth), and how many times as fast as the SDK's ours is (median of rounds)."""

    state: str
    seal: float
    sdk_seal: float
    seal_ratio: float
    open: float
    sdk_open: float
    open_ratio: float

    @property
    def missed(self) -> bool:
        return self.seal_ratio < LIMIT or self.open_ratio < LIMIT


def ours(state: State) -> tuple[Callable[[], str], Callable[[], list[Any]]]:
    """Seal and open of a state as our runner does it."""
    made = prepared(state)
    ring = KeyRing([("seal", bytes(range(32)))], audience=state.audience)
    head = made.journal

    def binding() -> Binding:
        return Binding("tools/call", state.tool, canonical(state.arguments)[1], state.principal)

    def seal() -> str:
        items = pack_items([packing.pack(value) for packing, value, _ in made.events])
        parts: tuple[list[bytes], list[bytes]] = ([], [])
        for item, (_, _, server) in zip(items, made.events, strict=True):
            parts[server].append(item)
        journal = Journal(parts[0], parts[1], head.checks, head.pending, None, head.run_id, head.version)
        return ring.seal(journal.encode(), binding(), int(NOW) + 1800)

    token = seal()

    def open_() -> list[Any]:
        journal = Journal.decode(ring.open(token, binding(), NOW).payload)
        parts = (iter(journal.client), iter(journal.server))
        return [packing.unpack(unpack(next(parts[server]))) for packing, _, server in made.events]

    assert open_() == [value for _, value, _ in made.events]
    return seal, open_


def measure(state: State) -> Timing:
    """Time ours and the SDK's in turn."""
    (our_seal, our_open), (sdk_seal, sdk_open) = ours(state), sdk.codec(state)
    columns: list[list[float]] = [[], [], [], []]
    for _ in range(ROUNDS):
        for column, call in zip(columns, (our_seal, sdk_seal, our_open, sdk_open), strict=True):
            started = time.perf_counter()
            for _ in range(REPEAT):
                call()
            column.append((time.perf_counter() - started) / REPEAT * 1e6)
    fast = [round(statistics.quantiles(column, n=10)[0], 1) for column in columns]
    ratios = [
        round(statistics.median(theirs / own for own, theirs in zip(columns[at], columns[at + 1], strict=True)), 2)
        for at in (0, 2)
    ]
    return Timing(state.name, fast[0], fast[1], ratios[0], fast[2], fast[3], ratios[1])


def main(*, as_json: bool) -> int:
    """Print the table, or JSON. The exit code is 1 if ours is less than 1.2 times as fast anywhere."""
    logging.getLogger("mrtr_flow").setLevel(logging.ERROR)
    found = [measure(state) for state in load()]
    if as_json:
        print(json.dumps({"peer": sdk.NAME, "states": [asdict(row) for row in found]}, indent=1))
        return int(any(row.missed for row in found))
    print(f"{'state':26}  {'seal':>6} {'SDK':>6} {'ratio':>6}   {'open':>6} {'SDK':>6} {'ratio':>6}")
    for row in found:
        seal = f"{row.seal:6.1f} {row.sdk_seal:6.1f} {row.seal_ratio:6.2f}"
        opened = f"{row.open:6.1f} {row.sdk_open:6.1f} {row.open_ratio:6.2f}"
        print(f"{row.state:26}  {seal}   {opened}{'  missed' if row.missed else ''}")
    print(f"\nMicroseconds (fastest tenth of {ROUNDS} rounds), and {sdk.NAME} / ours (median of the rounds' ratios).")
    return int(any(row.missed for row in found))
