"""What every host does the same: keys from the environment, one runner a flow, a round as a tool result."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from mrtr_flow import results
from mrtr_flow.calls import Call, Failed, Finished, InputRequired
from mrtr_flow.definition import Definition, ResourceDefinition
from mrtr_flow.errors import INVALID_PARAMS, DefinitionError, NotRecordable, ProtocolError
from mrtr_flow.plain import is_object
from mrtr_flow.runner import Runner
from mrtr_flow.seal import KeyRing, parse_keys

__all__ = ("KEYS_VARIABLE", "FlowHost", "Keys", "key_ring", "target_of")

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


def target_of(method: str, params: Mapping[str, Any]) -> str | None:
    """The name or URI a request names, or None. Params are not trusted."""
    target = params.get("uri" if method == "resources/read" else "name")
    return target if isinstance(target, str) else None


class FlowHost:
    """The flows a server offers, by what requests name them."""

    def __init__(self, ring: KeyRing, clock: Callable[[], float] | None) -> None:
        self.ring: Final = ring
        self._clock = clock or time.time
        self._runners: dict[tuple[str, str], Runner] = {}

    def add(self, definition: Definition[..., Any]) -> None:
        """Register a flow. Raises `DefinitionError` for a name that is taken or a signature that does not resolve."""
        if not isinstance(definition, Definition):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DefinitionError(f"{definition!r} is no flow; decorate the function with @flow")
        definition.check()
        name = str(definition.template) if isinstance(definition, ResourceDefinition) else definition.name
        if (definition.method, name) in self._runners:
            raise DefinitionError(f"flow {name!r} is registered already; give one of them another name")
        runner = Runner(definition, self.ring, clock=self._clock, entropy=os.urandom)
        self._runners[definition.method, name] = runner

    def listed(self, method: str) -> list[dict[str, Any]]:
        """The entries of the list that belongs to a method."""
        return [results.listed(runner.definition) for (of, _), runner in self._runners.items() if of == method]

    def find(self, method: str, params: Mapping[str, Any]) -> tuple[Runner, str] | None:
        """The runner a request is for and the target it names, or None."""
        target = target_of(method, params)
        if target is None:
            return None
        if method != "resources/read":
            runner = self._runners.get((method, target))
            return None if runner is None else (runner, target)
        for (of, _), runner in self._runners.items():
            if of == method and cast("ResourceDefinition[..., Any]", runner.definition).template.match(target):
                return runner, target
        return None

    async def call(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        capabilities: Mapping[str, Any],
        principal: str | None,
        host: object = None,
    ) -> dict[str, Any] | None:
        """One request as its result in wire form, or None if it is for no flow here. Raises `ProtocolError`."""
        found = self.find(method, params)
        if found is None:
            return None
        runner, target = found
        definition = runner.definition
        if method == "prompts/get" and not _texts(params.get("arguments")):
            raise ProtocolError(INVALID_PARAMS, "arguments of a prompt are not texts by name")
        call = Call(
            method=method,
            target=target,
            arguments=params.get("arguments"),
            state=params.get("requestState"),
            responses=params.get("inputResponses"),
            capabilities=capabilities,
            principal=principal,
            host=host,
        )
        ended = await runner.round(call)
        match ended:
            case InputRequired(requests, state):
                return results.input_required(requests, state)
            case Finished(value):
                try:
                    return results.complete(definition, target, value)
                except NotRecordable as error:
                    _log.error("result of %s is not of its declared type: %s", definition.label, error)
                    return results.failed(definition, runner.sorry, "flow_failed")
            case Failed(text, reason):
                return results.failed(definition, text, reason)


def _texts(arguments: Any) -> bool:
    return arguments is None or (is_object(arguments) and all(isinstance(value, str) for value in arguments.values()))
