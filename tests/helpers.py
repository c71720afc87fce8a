"""What several test modules share: a clock that stands still, keys, and two versions of a flow on one ring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mrtr_flow import Definition, flow
from mrtr_flow.seal import KeyRing
from mrtr_flow.testing import FlowTester

KEYS = "test:" + "q1JX3p0aX7cYwzN8k3mFhT2vL5uB9eRgDsQxWyZaKcE"
OTHER_KEYS = "other:" + "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZmdoaWo"
START = 1_790_000_000


class Clock:
    """Unix seconds that move only when told."""

    def __init__(self) -> None:
        self.now: float = START

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def ring(audience: str = "test") -> KeyRing:
    return KeyRing([("test", bytes(range(32)))], audience=audience)


def tester(definition: Definition[..., Any], **options: Any) -> FlowTester:
    """A tester on a standing clock and fixed keys."""
    return FlowTester(definition, **{"clock": Clock(), "ring": ring(), **options})


def named(name: str, body: Callable[..., Any], **options: Any) -> Definition[..., Any]:
    """A version of a flow: another body under the same name, as after a deployment."""
    return flow(name=name, **options)(body)
