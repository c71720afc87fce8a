"""`current()`: what a flow or a step may know about its run. Everything in it is the same in every round.

Values are derived from the run id (10 bytes minted in the first round) with SHA-256 and a name, so that adding one
does not shift the others. They are secret as long as the token is, and no more: do not use them as credentials.
"""

from __future__ import annotations

import hashlib
import random
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from mrtr_flow.errors import DefinitionError, FlowError

__all__ = ("Current", "current", "running")


@dataclass
class Current:
    """The run a flow or step belongs to. `principal` is who the host says is calling, or None."""

    flow: str
    principal: str | None
    _run_id: bytes | None
    _key: str | None = None
    used: bool = False
    _counts: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    @property
    def id(self) -> str:
        """The run's id, 20 hexadecimal digits: the same in every round and every fork of one call."""
        return self._require("id").hex()

    @property
    def started_at(self) -> datetime:
        """When the first round began, in UTC, to the second."""
        return datetime.fromtimestamp(int.from_bytes(self._require("started_at")[:4], "big"), UTC)

    @property
    def idempotency_key(self) -> str:
        """Inside a step: 32 hexadecimal digits to give to the service the step calls.

        Equal when the round is sent again, and in every fork of the run; different for another step, occurrence,
        caller or arguments. Raises `FlowError` outside a step.
        """
        if self._key is None:
            raise FlowError(
                "idempotency_key is known only inside a step; read it in the function that step(...) performs"
            )
        return self._key

    def uuid4(self, name: str = "") -> UUID:
        """A UUID that replays: the n-th of its name in this flow or step."""
        return UUID(bytes=self._derive("uuid4", name)[:16], version=4)

    def rng(self, name: str = "") -> random.Random:
        """A random stream that replays: the n-th of its name in this flow or step. Not for secrets."""
        return random.Random(int.from_bytes(self._derive("rng", name), "big"))

    def in_step(self, key: str) -> Current:
        """The same run as a step sees it."""
        return Current(self.flow, self.principal, self._run_id, key)

    def _require(self, what: str) -> bytes:
        self.used = True
        if self._run_id is None:
            raise DefinitionError(
                f"{self.flow} uses current().{what} but has steps=False, which leaves out the run id; drop that option"
            )
        return self._run_id

    def _derive(self, use: str, name: str) -> bytes:
        run_id = self._require(use)
        count = self._counts[use, name] = self._counts.get((use, name), 0) + 1
        return derive(use, run_id, self._key or "", name, str(count))


def derive(use: str, run_id: bytes, *parts: str) -> bytes:
    """32 bytes for one use, of the run id and texts. No key of the ring goes in: rotation must not move them."""
    digest = hashlib.sha256(f"mrtr-flow/{use}\0".encode() + run_id)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


running: Final[ContextVar[Current | None]] = ContextVar("mrtr_flow.running", default=None)


def current() -> Current:
    """The run that the calling flow or step belongs to. Raises `FlowError` outside one."""
    run = running.get()
    if run is None:
        raise FlowError("current() was called outside a flow; call it in the flow function or in a step")
    return run
