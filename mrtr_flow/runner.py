"""One round of one flow: open the token, replay, perform steps, judge answers, seal. The only place where layers meet.

The runner owns nothing between rounds. The clock, random bytes and keys are passed in; it runs on asyncio and trio.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

import anyio
import anyio.to_thread

from mrtr_flow import wire
from mrtr_flow.context import Current, derive, running
from mrtr_flow.definition import Definition
from mrtr_flow.engine import Asking, Engine, Perform, Raised, Returned
from mrtr_flow.errors import (
    CapabilityMissing,
    DefinitionError,
    FlowDiverged,
    FlowError,
    InvalidToken,
    NotAnswered,
    ProtocolError,
    StepError,
)
from mrtr_flow.journal import Corrupt, Journal
from mrtr_flow.questions import MISSING, Gather, Wrong
from mrtr_flow.schema import Invalid
from mrtr_flow.seal import Binding, KeyRing

__all__ = ("Call", "Failed", "Finished", "InputRequired", "Runner")

MAX_CHANGED: Final = 4
WARN_ROUNDS: Final = 8
_log = logging.getLogger("mrtr_flow")


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as it came: nothing in it is trusted. `host` is what the flow's host parameter receives."""

    method: str
    target: str
    arguments: Any
    state: Any = None
    responses: Any = None
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    principal: str | None = None
    host: Any = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The flow returned `value`."""

    value: Any


@dataclass(frozen=True, slots=True)
class InputRequired:
    """The flow asks: `requests` is `inputRequests`, `state` the token."""

    requests: dict[str, Any]
    state: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The call ends without a result, with a text for the model and a slug for the program."""

    text: str
    reason: str


Round: TypeAlias = Finished | InputRequired | Failed


class Runner:
    """Runs the rounds of one flow. `clock` gives Unix seconds, `entropy` that many random bytes.

    `on_step` is told the name and the idempotency key of each step before it is performed (not when it replays).
    """

    def __init__(
        self,
        definition: Definition[..., Any],
        ring: KeyRing,
        *,
        clock: Callable[[], float],
        entropy: Callable[[int], bytes],
        on_step: Callable[[str, str], None] | None = None,
    ) -> None:
        self.definition: Final = definition
        self.on_step: Final = on_step
        self._ring = ring
        self._clock = clock
        self._entropy = entropy

    async def round(self, call: Call) -> Round:
        """Answer one request.

        Raises `ProtocolError` for what the protocol answers with an error object: a state that does not verify,
        arguments or answers outside the schema, a missing capability.
        """
        arguments, canonical = wire.canonical(call.arguments)
        responses = wire.responses_of(call.responses)
        binding = Binding(call.method, call.target, canonical, call.principal)
        now = self._clock()
        journal = None if call.state is None else self._open(call.state, binding, now)
        if journal is not None and journal.version != self.definition.version_tag:
            return self._other_version()
        try:
            decoded = self.definition.parameters.decode(self.definition.given(call.target, arguments))
        except Invalid as error:
            return Failed(f"arguments of {self.definition.name} are not valid: {error}", "invalid_arguments")
        run_id = self._entropy(6) if journal is None else journal.run_id
        if journal is None:
            run_id = int(now).to_bytes(4, "big") + (run_id or b"") if self.definition.steps else None
        run = _Run(self, call, binding, responses, now, journal, run_id, decoded)
        try:
            return await run.drive()
        except ProtocolError:
            raise
        except FlowDiverged as error:
            _log.error("%s", error, exc_info=error.__cause__)
            return Failed(
                f"{self.definition.name} was changed while this call was under way, so it cannot go on; "
                "call it again from the start",
                "flow_changed",
            )
        except FlowError as error:
            _log.error("%s failed: %s", self.definition.identity, error, exc_info=error.__cause__)
            return Failed(f"{self.definition.failure} {self.definition.name}", "flow_failed")

    def _open(self, state: Any, binding: Binding, now: float) -> Journal:
        try:
            journal = Journal.decode(self._ring.open(state, binding, now).payload)
        except InvalidToken as error:
            hint = "; its key is gone with its process: set MRTR_KEYS" if self._ring.ephemeral else ""
            _log.warning("requestState of %s refused: %s%s", self.definition.identity, error.reason, hint)
            raise (wire.expired_state() if error.expired else wire.invalid_state()) from None
        except Corrupt as error:
            _log.error("requestState of %s is authentic and does not read: %s", self.definition.identity, error)
            raise wire.invalid_state() from None
        if (journal.run_id is None) is self.definition.steps:
            _log.warning("requestState of %s refused: steps= was changed", self.definition.identity)
            raise wire.invalid_state()
        if journal.run_id is not None and now >= int.from_bytes(journal.run_id[:4], "big") + self.definition.max_age:
            _log.warning("requestState of %s refused: the run is older than max_age", self.definition.identity)
            raise wire.expired_state()
        return journal

    def _other_version(self) -> Failed:
        known = "without version=" if self.definition.version is None else f"version {self.definition.version!r}"
        _log.error(
            "%s: a call of an unknown version arrived; this process knows the flow %s", self.definition.name, known
        )
        return Failed(
            f"this call of {self.definition.name} was started by another version of it; this server knows the one "
            f"{known}; call it again from the start",
            "unknown_version",
        )

    def seal(self, journal: Journal, binding: Binding, now: float) -> str:
        """The token for a journal: good for ttl from now, and not beyond max_age."""
        expires = now + self.definition.ttl
        if journal.run_id is not None:
            expires = min(expires, int.from_bytes(journal.run_id[:4], "big") + self.definition.max_age)
        return self._ring.seal(journal.encode(), binding, int(expires))


class _Run:
    """The state of one round."""

    def __init__(
        self,
        runner: Runner,
        call: Call,
        binding: Binding,
        responses: dict[str, Mapping[str, Any]],
        now: float,
        journal: Journal | None,
        run_id: bytes | None,
        arguments: dict[str, Any],
    ) -> None:
        self._runner = runner
        self._definition = runner.definition
        self._call = call
        self._binding = binding
        self._responses = responses
        self._now = now
        self._journal = journal
        self._run_id = run_id
        self._current = Current(self._definition.name, call.principal, run_id)
        context = copy_context()
        context.run(running.set, self._current)
        self._engine = Engine(
            self._definition.identity, partial(self._definition.start, arguments, call.host), journal, context
        )
        self._worked = False
        self._answered = False

    async def drive(self) -> Round:
        while True:
            outcome = self._engine.advance()
            match outcome:
                case Perform():
                    await self._perform(outcome)
                case Asking():
                    ended = self._ask(outcome)
                    if ended is not None:
                        return ended
                case Returned(value):
                    return Finished(value)
                case Raised(error):
                    return self._raised(error)

    # ------------------------------------------------------------------ steps

    async def _perform(self, perform: Perform) -> None:
        step = perform.step
        if self._run_id is None:
            self._engine.close()
            raise DefinitionError(
                f"{self._definition.name} performs {step.label} but has steps=False; drop that option"
            )
        self._worked = True
        key = derive(
            "idempotency",
            self._run_id,
            self._binding.owner.hex(),
            self._binding.request.hex(),
            self._binding.arguments.hex(),
            "0",
            "",
            step.name,
            str(perform.occurrence),
        ).hex()[:32]
        if self._runner.on_step is not None:
            self._runner.on_step(step.name, key)
        args, kwargs = step.arguments()
        scope = running.set(self._current.in_step(key))
        try:
            if inspect.iscoroutinefunction(step.fn):
                result = await step.fn(*args, **kwargs)
            else:
                result = await anyio.to_thread.run_sync(partial(step.fn, *args, **kwargs))
                if inspect.isawaitable(result):
                    result = await result
        except Exception as error:
            _log.info("%s of %s raised %s", step.label, self._definition.identity, type(error).__name__)
            item = step.failure(error)
        except BaseException as error:
            self._cancelled(step.label, error)
            raise
        else:
            item = step.pack(result)
        finally:
            running.reset(scope)
        self._engine.record(item)

    def _cancelled(self, label: str, error: BaseException) -> None:
        """Throw a cancellation into the flow once; only that same one may come out of it."""
        self._engine.throw(error)
        outcome = self._engine.advance()
        if isinstance(outcome, Raised) and outcome.error is error:
            return
        self._engine.close()
        raise FlowError(
            f"{self._definition.identity} went on after {label} was cancelled; let the cancellation through, and do "
            "not put a timeout or cancel scope around a step"
        ) from error

    # ------------------------------------------------------------------ questions

    def _ask(self, asking: Asking) -> Round | None:
        """Take the answers this round brought, if they are for these questions. None: all are answered, go on."""
        wrong: dict[str, str] = {}
        recorded = list(asking.recorded)
        taken = False
        if asking.pending or self._first_of_fresh_run():
            for index, (key, question) in enumerate(asking.questions.items()):
                if recorded[index] is not None or key not in self._responses:
                    continue
                item = question.judge(self._responses[key])
                if isinstance(item, Wrong):
                    wrong[key] = item.reason
                else:
                    recorded[index] = item
                    taken = True
        self._answered = True
        for index, question in enumerate(asking.questions.values()):
            if recorded[index] is None and not wire.declared(self._call.capabilities, question.requires):
                recorded[index] = MISSING
                taken = True
        if None not in recorded:
            self._engine.record(recorded if isinstance(asking.effect, Gather) else recorded[0])
            return None
        return self._suspend(asking, recorded, wrong, taken)

    def _first_of_fresh_run(self) -> bool:
        """Answers without state count only where they cannot skip anything, nor depend on this round alone."""
        return self._journal is None and not (self._answered or self._worked or self._current.used)

    def _suspend(self, asking: Asking, recorded: list[Any], wrong: Mapping[str, str], taken: bool) -> Round:
        old = self._journal
        before = old.wrong if old is not None and asking.pending else 0
        count = before + (1 if wrong else 0)
        for key, reason in wrong.items():
            question = asking.questions[key]
            if count >= question.attempts:
                self._engine.close()
                return Failed(
                    f"question {key!r} of {self._definition.name} was answered wrongly {count} times, so the call "
                    f"ended; the last answer was not taken: {reason}",
                    "wrong_answers",
                )
        changed = (old.changed if old is not None else 0) + (1 if self._engine.changed else 0)
        if changed > MAX_CHANGED:
            self._engine.close()
            raise FlowDiverged(
                f"{self._definition.identity} asked another question than before {changed} times in one run; its text "
                "depends on more than arguments and answers, or two versions are serving"
            )
        requests = {
            key: question.request(wrong.get(key))
            for (key, question), item in zip(asking.questions.items(), recorded, strict=True)
            if item is None
        }
        journal = self._engine.suspend(recorded)
        if asking.pending and not taken and not wrong:
            return InputRequired(requests, self._call.state)  # nothing happened: the same question, the same token
        journal.run_id, journal.version = self._run_id, self._definition.version_tag
        journal.wrong, journal.changed = count, changed
        rounds = journal.events + 1
        if rounds > WARN_ROUNDS:
            _log.warning(
                "%s has %d events and asks again; common clients stop after 9 or 10 rounds: "
                "ask several questions in one gather(...)",
                self._definition.identity,
                journal.events,
            )
        return InputRequired(requests, self._runner.seal(journal, self._binding, self._now))

    # ------------------------------------------------------------------ ends

    def _raised(self, error: BaseException) -> Round:
        name = self._definition.name
        match error:
            case NotAnswered():
                return Failed(f"{error}, so {name} stopped without a result", "not_answered")
            case CapabilityMissing():
                raise wire.missing_capability(error.required) from None
            case StepError():
                _log.error("%s ended: step %r raised %s", self._definition.identity, error.step, error.type)
                return Failed(f"{self._definition.failure} {name}: step {error.step!r} failed", "step_failed")
            case Exception():
                _log.error("%s raised %s", self._definition.identity, type(error).__name__, exc_info=error)
                return Failed(f"{self._definition.failure} {name}", "flow_failed")
            case _:
                raise error
