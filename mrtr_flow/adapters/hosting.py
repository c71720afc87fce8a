"""What every host does the same: keys from the environment, one runner a flow, a round as a tool result."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from mrtr_flow import wire
from mrtr_flow.definition import Definition
from mrtr_flow.errors import DefinitionError, NotRecordable
from mrtr_flow.runner import Call, Failed, Finished, InputRequired, Runner
from mrtr_flow.seal import KeyRing, parse_keys

__all__ = ("KEYS_VARIABLE", "Keys", "ToolHost", "key_ring")

KEYS_VARIABLE: Final = "MRTR_KEYS"
_log = logging.getLogger("mrtr_flow")
Keys = Sequence[tuple[str, bytes]] | str


def key_ring(keys: Keys | None, audience: str) -> KeyRing:
    """The ring of `keys`, or of `MRTR_KEYS`, or of one random key that lives as long as this process.

    `keys` are `(label, secret)` pairs, or text as in the variable: `label:base64url,...`, the first seals.
    Raises `DefinitionError` for keys that are no keys, and for keys without an audience.
    """
    if keys is None:
        keys = os.environ.get(KEYS_VARIABLE) or None
    if keys is None:
        return KeyRing([("ephemeral", os.urandom(32))], audience=audience, ephemeral=True)
    if not audience:
        raise DefinitionError(
            "server has keys but no name; name it, or give audience=, so that it refuses other servers' tokens"
        )
    return KeyRing(parse_keys(keys) if isinstance(keys, str) else keys, audience=audience)


class ToolHost:
    """The flows a server offers as tools, by name."""

    def __init__(self, ring: KeyRing, clock: Callable[[], float] | None) -> None:
        self.ring: Final = ring
        self._clock = clock or time.time
        self._runners: dict[str, Runner] = {}

    def add(self, definition: Definition[..., Any]) -> None:
        """Register a flow. Raises `DefinitionError` for a name that is taken or a signature that does not resolve."""
        if not isinstance(definition, Definition):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DefinitionError(f"{definition!r} is no flow; decorate the function with @flow")
        if definition.name in self._runners:
            raise DefinitionError(f"flow {definition.name!r} is registered already; give one of them another name=")
        wire.tool(definition)
        self._runners[definition.name] = Runner(definition, self.ring, clock=self._clock, entropy=os.urandom)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._runners

    def tools(self) -> list[dict[str, Any]]:
        """The entries of `tools/list`."""
        return [wire.tool(runner.definition) for runner in self._runners.values()]

    async def call(self, call: Call) -> dict[str, Any]:
        """One `tools/call` as its result. Raises `ProtocolError`."""
        runner = self._runners[call.target]
        ended = await runner.round(call)
        match ended:
            case InputRequired(requests, state):
                return wire.input_required(requests, state)
            case Finished(value):
                try:
                    return wire.tool_result(runner.definition, value)
                except NotRecordable as error:
                    _log.error("result of %s is not of its declared type: %s", runner.definition.identity, error)
                    return wire.tool_error(f"Error executing tool {call.target}")
            case Failed(text, _):
                return wire.tool_error(text)
