"""One round of one flow: open the token, replay, perform steps, judge answers, seal. The only place where layers meet.

The runner owns nothing between rounds. The clock, random bytes and keys are passed in; it runs on asyncio and trio.

Logs name flows, questions, steps, places and exception types. What an exception says may hold an answer, so it is
logged at debug level only.
"""

from __future__ import annotations

import inspect
import logging
import types
from collections.abc import Callable, Collection, Generator, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any, Final

import anyio.to_thread

from mrtr_flow import wire
from mrtr_flow.calls import Call, Failed, Finished, InputRequired, Round
from mrtr_flow.context import Current, derive, running
from mrtr_flow.definition import Definition
from mrtr_flow.engine import Asking, Engine, Perform, Raised, Returned
from mrtr_flow.errors import (
    CapabilityMissing,
    DefinitionError,
    EffectMisused,
    FlowDiverged,
    FlowError,
    InvalidToken,
    LimitExceeded,
    NotAnswered,
    NotRecordable,
    ProtocolError,
    StepError,
)
from mrtr_flow.frames import Unwound, raised_at
from mrtr_flow.journal import Corrupt, Journal, pack
from mrtr_flow.questions import MISSING, RAISE, UNASKED, Gather, Question, Wrong
from mrtr_flow.schema import Invalid
from mrtr_flow.seal import Binding, KeyRing

__all__ = ("Runner",)

MAX_CHANGED: Final = 4
WARN_ROUNDS: Final = 8
_log = logging.getLogger("mrtr_flow")


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
        arguments or answers outside the schema, a missing capability. Every other error of the flow is `Failed`.
        """
        definition = self.definition
        arguments, canonical = wire.canonical(definition.sent(call.arguments))
        responses = wire.responses_of(call.responses)
        binding = Binding(call.method, call.target, canonical, call.principal)
        now = self._clock()
        journal = None if call.state is None else self._open(call.state, binding, now)
        if journal is not None and journal.version != definition.version_tag:
            return self._other_version()
        try:
            decoded = definition.parameters.decode(definition.given(call.target, arguments))
            return await _Run(self, call, binding, responses, now, journal, decoded).drive()
        except Invalid as error:
            return Failed(f"arguments of {definition.name} are not valid: {error}", "invalid_arguments")
        except ProtocolError:
            raise
        except FlowDiverged as error:
            text = f"{definition.name} was changed while this call was under way, so it cannot go on"
            return self.fail(str(error), f"{text}; call it again from the start", "flow_changed", error)
        except LimitExceeded as error:
            text = f"{definition.name} carries more answers and results than its state can hold, so it ended"
            return self.fail(f"{definition.label}: {error}", text, "too_large", error)
        except FlowError as error:
            return self.fail(f"{definition.label}: {error}", self.sorry, "flow_failed", error)
        except Exception as error:  # an author's type, default or validator may raise anything: no client sees it
            told = f"{definition.label} failed: {type(error).__name__} at {raised_at(error)}"
            return self.fail(told, self.sorry, "flow_failed", error)

    @property
    def sorry(self) -> str:
        """What a client is told about an error of the author's: nothing of it."""
        return f"{self.definition.failure} {self.definition.name}"

    def fail(self, log: str, text: str, reason: str, cause: BaseException) -> Failed:
        """End a call for a reason that is in the log, not in the answer."""
        _log.error("%s", log)
        _log.debug("%s ended because of this", self.definition.label, exc_info=cause)
        return Failed(text, reason, cause)

    def _open(self, state: Any, binding: Binding, now: float) -> Journal:
        label = self.definition.label
        try:
            journal = Journal.decode(self._ring.open(state, binding, now).payload)
        except InvalidToken as error:
            _log.warning("requestState of %s refused: %s", label, error.reason)
            raise (wire.expired_state() if error.expired else wire.invalid_state()) from None
        except Corrupt as error:
            _log.error("requestState of %s is authentic and does not read: %s", label, error)
            raise wire.invalid_state() from None
        if (journal.run_id is None) is self.definition.steps:
            _log.warning("requestState of %s refused: steps= was changed", label)
            raise wire.invalid_state()
        if journal.run_id is not None and now >= _started(journal.run_id) + self.definition.max_age:
            _log.warning("requestState of %s refused: the run is older than max_age", label)
            raise wire.expired_state()
        return journal

    def _other_version(self) -> Failed:
        name, version = self.definition.name, self.definition.version
        known = "without version=" if version is None else f"version {version!r}"
        _log.error("%s: a call of an unknown version arrived; this process knows the flow %s", name, known)
        return Failed(
            f"this call of {name} was started by another version of it; this server knows the one {known}; "
            "call it again from the start",
            "unknown_version",
        )

    def new_run_id(self, now: float) -> bytes | None:
        """Start, 4 bytes of Unix seconds, and 6 random bytes; None for a flow with steps=False."""
        return int(now).to_bytes(4, "big") + self._entropy(6) if self.definition.steps else None

    def seal(self, journal: Journal, binding: Binding, now: float) -> str:
        """The token for a journal: good for ttl from now, and not beyond max_age."""
        expires = now + self.definition.ttl
        if journal.run_id is not None:
            expires = min(expires, _started(journal.run_id) + self.definition.max_age)
        return self._ring.seal(journal.encode(), binding, int(expires))


class _Run:
    """The state of one round."""

    def __init__(
        self,
        runner: Runner,
        call: Call,
        binding: Binding,
        responses: Mapping[str, Mapping[str, Any]],
        now: float,
        journal: Journal | None,
        arguments: Mapping[str, Any],
    ) -> None:
        self._runner = runner
        self._definition = definition = runner.definition
        self._call = call
        self._binding = binding
        self._responses = responses
        self._now = now
        self._journal = journal
        self._run_id = runner.new_run_id(now) if journal is None else journal.run_id
        self._current = Current(definition.name, call.principal, self._run_id)
        self._worked = False
        self._answered = False
        self._failure: BaseException | None = None
        context = copy_context()
        context.run(running.set, self._current)
        start = partial(definition.start, arguments, call.host)
        self._engine = Engine(definition.identity, start, journal, context)

    async def drive(self) -> Round:
        """Drive the flow to the end of the round, and unwind it, however the round ends."""
        try:
            ended = await self._drive()
        except BaseException:
            await _unwinding(self._engine.unwinding())
            raise
        unwound = await _unwinding(self._engine.unwinding())
        if unwound.fault is not None and isinstance(ended, InputRequired):
            raise EffectMisused(unwound.fault)
        for label in unwound.dropped:
            _log.warning("%s yields %s while it is unwound, which is dropped", self._definition.label, label)
        return ended

    async def _drive(self) -> Round:
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
        step, definition = perform.step, self._definition
        if self._run_id is None:
            raise DefinitionError(f"{definition.name} performs {step.label} but has steps=False; drop that option")
        self._worked = True
        bound = self._binding
        scope = (bound.owner.hex(), bound.request.hex(), bound.arguments.hex(), "0", "", step.name)
        key = derive("idempotency", self._run_id, *scope, str(perform.occurrence)).hex()[:32]
        if self._runner.on_step is not None:
            self._runner.on_step(step.name, key)
        args, kwargs = step.arguments()
        reset = running.set(self._current.in_step(key))
        try:
            if inspect.iscoroutinefunction(step.fn):
                result = await step.fn(*args, **kwargs)
            else:
                result = await anyio.to_thread.run_sync(partial(step.fn, *args, **kwargs))
                if inspect.isawaitable(result):
                    result = await result
        except Exception as error:  # whatever a step raises is its outcome, and is recorded
            _log.info("%s of %s raised %s at %s", step.label, definition.label, type(error).__name__, raised_at(error))
            self._failure = error
            item = step.failure(error)
        except BaseException as error:
            self._cancelled(step.label, error)
            raise
        else:
            item = step.pack(result)
        finally:
            running.reset(reset)
        self._engine.record(item)

    def _cancelled(self, label: str, error: BaseException) -> None:
        """Throw a cancellation into the flow once, so that it can clean up; it goes on in any case."""
        self._engine.throw(error)
        outcome = self._engine.advance()
        if not (isinstance(outcome, Raised) and outcome.error is error):
            _log.error(
                "%s went on after %s was cancelled; let the cancellation through, and do not put a timeout or cancel "
                "scope around a step",
                self._definition.label,
                label,
            )

    # ------------------------------------------------------------------ questions

    def _ask(self, asking: Asking) -> Round | None:
        """Take the answers this round brought, if they are for these questions. None: all are answered, go on."""
        wrong: dict[str, str] = {}
        recorded = list(asking.recorded)
        askable = {key for key, question in asking.questions.items() if self._declares(question)}
        if asking.pending or self._first_of_fresh_run():
            for index, (key, question) in enumerate(asking.questions.items()):
                if recorded[index] is None and key in self._responses and key in askable:
                    item = _judge(question, self._responses[key])
                    if isinstance(item, Wrong):
                        wrong[key] = item.reason
                    else:
                        recorded[index] = item
        self._answered = True
        settled = _settled(asking.questions, recorded, askable)
        if None not in settled:
            self._engine.record(settled if isinstance(asking.effect, Gather) else settled[0])
            return None
        return self._suspend(asking, recorded, wrong, askable)

    def _declares(self, question: Question) -> bool:
        return wire.declared(self._call.capabilities, question.requires)

    def _first_of_fresh_run(self) -> bool:
        """Answers without state count only where they cannot skip anything, nor depend on this round alone."""
        return self._journal is None and not (self._answered or self._worked or self._current.used)

    def _suspend(
        self, asking: Asking, recorded: list[Any], wrong: Mapping[str, str], askable: Collection[str]
    ) -> Round:
        old, definition = self._journal, self._definition
        counts = [before + (key in wrong) for key, before in zip(asking.questions, asking.wrong, strict=True)]
        for (key, question), count in zip(asking.questions.items(), counts, strict=True):
            if (reason := wrong.get(key)) is not None and count >= question.attempts:
                times = "once" if count == 1 else f"{count} times"
                return Failed(
                    f"question {key!r} of {definition.name} was answered wrongly {times}, so the call ended; "
                    f"the last answer was not taken: {reason}",
                    "wrong_answers",
                )
        changed = 0 if old is None else old.changed
        if self._engine.changed:
            changed += 1
            named = f"{', '.join(asking.questions)} at {self._engine.where()}"
            _log.warning("%s asks another question than before: %s", definition.label, named)
            if changed > MAX_CHANGED:
                return self._changed_too_often(named)
        requests = {
            key: question.request(wrong.get(key))
            for (key, question), item in zip(asking.questions.items(), recorded, strict=True)
            if item is None and key in askable
        }
        if asking.pending and recorded == asking.recorded and not wrong:
            return InputRequired(requests, self._call.state)  # nothing happened: the same question, the same token
        journal = self._engine.suspend(recorded, counts)
        journal.run_id, journal.version, journal.changed = self._run_id, definition.version_tag, changed
        if self._engine.asked == WARN_ROUNDS and not asking.pending:
            _log.warning(
                "%s asked %d times and asks again; common clients stop after 9 or 10 rounds: "
                "ask several questions in one gather(...)",
                definition.label,
                self._engine.asked,
            )
        try:
            return InputRequired(requests, self._runner.seal(journal, self._binding, self._now))
        except LimitExceeded as error:
            raise LimitExceeded(
                f"{error}; most of it is the {self._engine.largest}: record less, or names of what is stored elsewhere"
            ) from None

    def _changed_too_often(self, named: str) -> Failed:
        definition = self._definition
        error = FlowDiverged(
            f"{definition.label} asked another question than before {MAX_CHANGED + 1} times in one run: {named}; its "
            "text depends on more than arguments and answers (put time and chance into a step), or two versions are "
            "serving"
        )
        text = f"{definition.name} asked another question each time, so it cannot go on; call it again from the start"
        return self._runner.fail(str(error), text, "question_changed", error)

    # ------------------------------------------------------------------ ends

    def _raised(self, error: BaseException) -> Round:
        definition, runner = self._definition, self._runner
        match error:
            case NotAnswered():
                return Failed(f"{error}, so {definition.name} stopped without a result", "not_answered", error)
            case CapabilityMissing():
                raise wire.missing_capability(error.required) from None
            case StepError():
                cause = self._failure or error
                told = f"{definition.label} ended: step {error.step!r} raised {error.type} at {raised_at(cause)}"
                return runner.fail(told, f"{runner.sorry}: step {error.step!r} failed", "step_failed", cause)
            case Exception():
                told = f"{definition.label} raised {type(error).__name__} at {raised_at(error)}"
                return runner.fail(told, runner.sorry, "flow_failed", error)
            case _:
                raise error


def _settled(questions: Mapping[str, Question], recorded: list[Any], askable: Collection[str]) -> list[Any]:
    """The items with what this request's capabilities settle: what it does not declare cannot be asked.

    If the flow has no other way, nobody is asked the rest of a gather in vain.
    """
    unasked = {key for key, item in zip(questions, recorded, strict=True) if item is None}
    missing = unasked - set(askable)
    vain = any(questions[key].if_unsupported is RAISE for key in missing)
    open_item = UNASKED if vain else None
    return [
        MISSING if key in missing else open_item if item is None else item
        for key, item in zip(questions, recorded, strict=True)
    ]


def _judge(question: Question, response: Mapping[str, Any]) -> Any:
    """A client's answer as the item to record, or `Wrong`: for its kind, its form, or its length."""
    item = question.judge(response)
    if isinstance(item, Wrong):
        return item
    try:
        size = len(pack(item, "answer"))
    except (LimitExceeded, NotRecordable):
        return Wrong("it is too long")
    return item if size <= question.limit else Wrong(f"it takes {size} bytes of at most {question.limit}")


@types.coroutine
def _unwinding(unwinding: Generator[Any, Any, Unwound]) -> Generator[Any, Any, Unwound]:
    """Hand what a flow awaits on its way out to the event loop."""
    return (yield from unwinding)


def _started(run_id: bytes) -> int:
    return int.from_bytes(run_id[:4], "big")
