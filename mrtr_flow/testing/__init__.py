"""Test flows without a server: every round through the real seal, a new runner, and a real replay."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from anyio.from_thread import start_blocking_portal

from mrtr_flow import results
from mrtr_flow.calls import Call, Failed, Finished, InputRequired, Round
from mrtr_flow.definition import Definition
from mrtr_flow.errors import FlowError, ProtocolError
from mrtr_flow.plain import is_array, is_object
from mrtr_flow.runner import Runner
from mrtr_flow.schema import to_plain
from mrtr_flow.seal import KeyRing

__all__ = ("Asked", "FlowTester", "PerformedStep", "ProtocolError", "answer_to", "asked_by")

ALL_CAPABILITIES: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}


@dataclass(frozen=True)
class Asked:
    """One question as the client sees it: method, message and form schema (both may be empty), all parameters."""

    method: str
    message: str
    schema: Mapping[str, Any]
    params: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class PerformedStep:
    """One step that was performed, not replayed, and the idempotency key it saw."""

    name: str
    idempotency_key: str


def _content(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """The content of an accepted form: a mapping or model as it is, anything else as the form's only field."""
    value = to_plain(value)
    if is_object(value):
        return dict(value)
    fields = list(cast("Mapping[str, Any]", schema.get("properties", {})))
    if len(fields) != 1:
        raise FlowError(f"form has the fields {', '.join(fields)}; answer with a mapping of them")
    return {fields[0]: value}


def answer_to(asked: Asked, value: Any) -> dict[str, Any]:
    """An entry of `inputResponses` that accepts: a form's content, any value for a URL, text or a full result for a
    sample, URIs or a full result for roots."""
    value = to_plain(value)
    if asked.method == "sampling/createMessage":
        text = {
            "role": "assistant",
            "model": "test",
            "content": {"type": "text", "text": value},
            "stopReason": "endTurn",
        }
        if not isinstance(value, str) and not is_object(value):
            raise FlowError("a sample is answered with a text, or a full result")
        return text if isinstance(value, str) else dict(value)
    if asked.method == "roots/list":
        if is_array(value):
            return {"roots": [{"uri": root} if isinstance(root, str) else root for root in value]}
        if not is_object(value):
            raise FlowError("roots are answered with a list of URIs, or a full result")
        return dict(value)
    return {"action": "accept", "content": _content(asked.schema, value)} if asked.schema else {"action": "accept"}


def asked_by(request: Mapping[str, Any]) -> Asked:
    """An entry of `inputRequests` as a tester shows it."""
    params = request.get("params", {})
    return Asked(request["method"], params.get("message", ""), params.get("requestedSchema", {}), params)


class FlowTester:
    """Plays a flow as a client does.

        t = FlowTester(book)
        t.start(flight="LH 1")
        t.answer(3)
        assert t.result == "Row 3"

    `clock` gives Unix seconds (default: the real one), `principal` is who calls, `capabilities` what the client
    declares (default: everything), `backend` the event loop, `entropy` gives that many random bytes. Each round has a
    new runner, and what goes over the wire is turned to JSON and back.
    """

    def __init__(
        self,
        definition: Definition[..., Any],
        *,
        clock: Callable[[], float] = time.time,
        principal: str | None = None,
        capabilities: Mapping[str, Any] = ALL_CAPABILITIES,
        backend: str = "asyncio",
        ring: KeyRing | None = None,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.definition = definition
        self.principal = principal
        self.capabilities = dict(capabilities)
        self.steps: Final[list[PerformedStep]] = []
        """The steps performed so far, in order, over all rounds."""
        self.rounds = 0
        """How many requests were sent."""
        self.state: str | None = None
        """The token of the last question."""
        self.asked: dict[str, Asked] = {}
        """The questions that wait for an answer, by wire key."""
        self._clock = clock
        self._backend = backend
        self._entropy = entropy
        self._ring = ring or KeyRing([("test", os.urandom(32))], audience="test")
        self.arguments: Any = None
        """The arguments of the call."""
        self._ended: Finished | Failed | None = None

    def start(self, **arguments: Any) -> FlowTester:
        """Send the first request, with these arguments as JSON values."""
        self.state, self.arguments, self._ended = None, to_plain(arguments), None
        return self.send()

    def answer(self, *value: Any, **by_key: Any) -> FlowTester:
        """Accept: the only question with a value, or several by key.

        A mapping is a form's content, anything else the value of its only field. Keys that are no Python names are
        given as one mapping: `answer(**{"ask~2": 5})`.
        """
        if value:
            by_key[self._only()] = value[0]
        return self.send({key: self._accept(key, item) for key, item in by_key.items()})

    def _accept(self, key: str, value: Any) -> dict[str, Any]:
        if key not in self.asked:
            raise FlowError(f"question {key!r} does not wait for an answer; {self._waiting()}")
        return answer_to(self.asked[key], value)

    def decline(self, key: str | None = None) -> FlowTester:
        """Decline a question (default: the only one)."""
        return self.send({key or self._only(): {"action": "decline"}})

    def cancel(self, key: str | None = None) -> FlowTester:
        """Cancel a question (default: the only one)."""
        return self.send({key or self._only(): {"action": "cancel"}})

    def send(self, responses: Any = None, *, state: Any = ..., arguments: Any = ...) -> FlowTester:
        """Send one request as it is, by default with the last token. Raises `ProtocolError` as a host would answer it.

        After that error the tester is where it was before.
        """
        given = self.arguments if arguments is ... else arguments
        call = Call(
            method=self.definition.method,
            target=self.definition.target(given or {}),
            arguments=json.loads(json.dumps(given)),
            state=self.state if state is ... else state,
            responses=json.loads(json.dumps(responses)),
            capabilities=self.capabilities,
            principal=self.principal,
        )
        self.rounds += 1
        ended = self._round(call)
        if isinstance(ended, InputRequired):
            requests = cast("dict[str, Any]", json.loads(json.dumps(ended.requests)))
            self.state, self._ended = ended.state, None
            self.asked = {key: asked_by(request) for key, request in requests.items()}
        else:
            self.asked, self._ended = {}, ended
        return self

    def _round(self, call: Call) -> Round:
        def note(name: str, key: str) -> None:
            self.steps.append(PerformedStep(name, key))

        runner = Runner(self.definition, self._ring, clock=self._clock, entropy=self._entropy, on_step=note)
        with start_blocking_portal(self._backend) as portal:
            return portal.call(runner.round, call)

    def _only(self) -> str:
        if len(self.asked) != 1:
            raise FlowError(f"there is no one question to answer; {self._waiting()}") from self._cause
        return next(iter(self.asked))

    def _waiting(self) -> str:
        if self.asked:
            keys = ", ".join(f"{key!r}: ..." for key in self.asked)
            return f"those that wait are answered by key: answer(**{{{keys}}})"
        if self._ended is None:
            return f"{self.definition.name} waits for its start"
        return f"{self.definition.name} has ended: {getattr(self._ended, 'text', 'it returned')}{self._why}"

    @property
    def _cause(self) -> BaseException | None:
        return self._ended.cause if isinstance(self._ended, Failed) else None

    @property
    def _why(self) -> str:
        return "" if self._cause is None else f" ({type(self._cause).__name__}: {self._cause})"

    @property
    def message(self) -> str:
        """The text of the only question that waits."""
        return self.asked[self._only()].message

    @property
    def token_chars(self) -> int:
        """Characters of the last token."""
        return len(self.state or "")

    @property
    def finished(self) -> bool:
        """Whether the call has ended, with a result or a failure."""
        return self._ended is not None

    @property
    def result(self) -> Any:
        """What the flow returned. Raises `FlowError` if it has not, with the questions that wait or the failure."""
        if isinstance(self._ended, Finished):
            return self._ended.value
        if isinstance(self._ended, Failed):
            raise FlowError(f"{self.definition.name} failed: {self._ended.text}{self._why}") from self._cause
        raise FlowError(f"{self.definition.name} has no result yet; {self._waiting()}")

    @property
    def failure(self) -> Failed:
        """How the call failed. Raises `FlowError` if it did not."""
        if not isinstance(self._ended, Failed):
            raise FlowError(f"{self.definition.name} did not fail; {self._waiting()}")
        return self._ended

    @property
    def wire_result(self) -> dict[str, Any]:
        """The end of the call in wire form. Raises `ProtocolError` where the protocol has no result for a failure."""
        if isinstance(self._ended, Failed):
            return results.failed(self.definition, self._ended.text, self._ended.reason)
        return results.complete(self.definition, self.definition.target(self.arguments), self.result)
