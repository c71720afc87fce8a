"""Replay: drives one flow against a journal. No I/O, no clock, no event loop, no logger.

Give it what happened, ask what is next:

    engine.advance() -> Perform(step) | Asking(question) | Returned(value) | Raised(error)
    engine.record(item) records the outcome of what `advance` gave, so that the next `advance` goes on

Rules:

- Chain: h0 = hash of semantics number, flow, version, stage and the schema of the arguments; h_i = hash of h_(i-1)
  and the identity of effect i: kind, key or step name, occurrence of that name, digest of the packing schema, text.
  The journal holds one byte of each answered h_i, two of the last, four of the pending one. Each is compared before
  its item is decoded. A hash is SHA-256 of the hash before (nothing for h0) and the parts as UTF-8, each behind its
  length in 8 bytes, big endian; digests are parts in hexadecimal.
- Frontier gate: `advance` gives out nothing until the whole journal is consumed and the pending question was reached.
  Everything else before that (a step, a return, an exception, a decode error, another byte) is `FlowDiverged`. One
  exception: all bytes match and only the pending question is another one; then it is asked anew (`changed`).
- Live = replayed: what a flow receives is always decoded from the recorded bytes.
- The flow runs in its own contextvars context. Suspension is a yield; whoever drives the engine unwinds the flow at
  once (`unwinding`), in the same task, however the round ends.
- Divergence and misuse are raised outside the flow; its `except` cannot swallow them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Generator, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from mrtr_flow.effects import MISSING_KEYWORD, Effect, created
from mrtr_flow.errors import (
    CapabilityMissing,
    DefinitionError,
    EffectMisused,
    FlowDiverged,
    LimitExceeded,
    NotAnswered,
    StepError,
)
from mrtr_flow.frames import Driven, Unwound, foreign, place, raised_at, unwind
from mrtr_flow.journal import MAX_EVENTS, MAX_PART, Journal, pack, unpack
from mrtr_flow.questions import Gather, Question, answered, unanswered, wrong_answers
from mrtr_flow.steps import Step, is_step

__all__ = ("Asking", "Engine", "Identity", "Perform", "Raised", "Returned")


@dataclass(frozen=True, slots=True)
class Identity:
    """The flow an engine drives: `label` for errors; name, version, semantics number and argument schema for h0."""

    label: str
    name: str
    version: str | None
    semantics: int
    arguments: bytes

    def __str__(self) -> str:
        return self.label

    @property
    def origin(self) -> bytes:
        """h0 of the chain."""
        version = "" if self.version is None else f"={self.version}"
        return _hash(b"", "flow", str(self.semantics), self.name, version, "", self.arguments.hex())


@dataclass(frozen=True, slots=True)
class Perform:
    """A step to perform, and which occurrence of its name it is."""

    step: Step[Any]
    occurrence: int


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions to ask, by wire key; `recorded` holds their items, None where unanswered, `wrong` how often each was
    answered wrongly. `pending`: they were asked in the round this token is from."""

    effect: Question | Gather
    questions: dict[str, Question]
    recorded: list[Any]
    wrong: list[int]
    pending: bool


@dataclass(frozen=True, slots=True)
class Returned:
    """The flow returned."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The flow raised at the frontier: its own exception, or an outcome it did not catch."""

    error: BaseException


Outcome: TypeAlias = Perform | Asking | Returned | Raised


@dataclass(slots=True)
class _Turn:
    """One effect the flow yielded and that has no outcome yet."""

    effect: Effect[Any]
    keys: tuple[str, ...]
    occurrence: int
    link: bytes


class Engine:
    """One run of one flow in one round. `journal` is None in a fresh run."""

    def __init__(
        self, identity: Identity, start: Callable[[], Driven], journal: Journal | None, context: Context
    ) -> None:
        self.identity: Final = identity
        self.changed = False
        self._context = context
        self._made: list[Effect[Any]] = []
        context.run(created.set, self._made)
        self._driven: list[Effect[Any]] = []
        self._old = journal
        self._frontier = journal is None
        self._new = Journal()  # while replaying it is as far as the old one is consumed
        self._chain = [identity.origin]
        self._occurrences: dict[tuple[str, str], int] = {}
        self._keys: set[str] = set()
        self._size = 0
        self._largest = (0, "nothing")
        self.asked = 0
        self._turn: _Turn | None = None
        self._resume: Callable[[], Any] | None = None
        self._flow: Driven = context.run(start)

    # ------------------------------------------------------------------ outcomes

    def advance(self) -> Outcome:
        """Drive the flow to the next thing that is not in the journal.

        Raises `FlowDiverged`, `EffectMisused`, `DefinitionError` or `LimitExceeded`. Whatever comes of it, the engine
        must be unwound at the end (`unwinding`).
        """
        resume = self._resume or (lambda: self._flow.send(None))
        while True:
            try:
                effect = self._context.run(resume)
            except StopIteration as stop:
                return self._ended(Returned(stop.value))
            except (EffectMisused, DefinitionError):
                raise
            except BaseException as error:
                return self._ended(Raised(error))
            self._turn = turn = self._identify(effect)
            if not self._frontier:
                outcome = self._replay(turn)
                if outcome is not None:
                    return outcome
                resume = cast("Callable[[], Any]", self._resume)
                continue
            return self._live(turn, None)

    def _ended(self, outcome: Returned | Raised) -> Outcome:
        if not self._frontier:
            old = cast("Journal", self._old)
            if isinstance(outcome, Raised) and not isinstance(outcome.error, Exception):
                raise outcome.error
            did = "returned" if isinstance(outcome, Returned) else f"raised {type(outcome.error).__name__}"
            where = "" if isinstance(outcome, Returned) else f" at {raised_at(outcome.error)}"
            cause = outcome.error if isinstance(outcome, Raised) else None
            raise self._diverged(old, f"{did}{where}") from cause
        if isinstance(outcome, Returned):
            self._check_driven(outcome.value)
        return outcome

    def _check_driven(self, value: Any) -> None:
        if isinstance(value, Effect):
            raise EffectMisused(f"{value.label} made at {value.origin} was returned: {MISSING_KEYWORD}")
        if inspect.isgenerator(value) or inspect.iscoroutine(value):
            cast("Any", value).close()
            raise EffectMisused(f"{self.identity} returned {value.__qualname__}() undriven: {MISSING_KEYWORD}")
        driven = set(map(id, self._driven))
        for effect in self._made:
            if id(effect) not in driven:
                raise EffectMisused(f"{effect.label} made at {effect.origin} was never driven: {MISSING_KEYWORD}")

    # ------------------------------------------------------------------ identity

    def _identify(self, yielded: Any) -> _Turn:
        if not isinstance(yielded, Effect):
            raise EffectMisused(f"{self.identity} {foreign(yielded)}, at {self.where()}")
        effect = cast("Any", yielded)
        self._driven.append(effect)
        if is_step(effect):
            occurrence = self._occurrence("step", effect.name)
            kind = "step public" if effect.public else "step"
            link = self._link(kind, effect.name, str(occurrence), effect.schema_digest.hex(), "")
            return _Turn(effect, (), occurrence, link)
        questions: tuple[Question, ...] = (effect,)
        if isinstance(effect, Gather):
            questions = effect.questions
            self._driven.extend(questions)
        named = {id(question): self._wire_key(question) for question in questions if question.key is not None}
        keys = tuple(named.get(id(question)) or self._wire_key(question) for question in questions)
        parts: list[str] = [effect.kind, str(len(questions))]
        for question, key in zip(questions, keys, strict=True):
            parts += [question.kind, key, question.schema_digest.hex(), question.text]
        return _Turn(effect, keys, 1, self._link(*parts))

    def _occurrence(self, kind: str, name: str) -> int:
        count = self._occurrences[kind, name] = self._occurrences.get((kind, name), 0) + 1
        return count

    def _wire_key(self, question: Question) -> str:
        """The key itself, or the first free `key~2`, `key~3`: unique in the run."""
        while True:
            count = self._occurrence("question", question.name)
            key = question.name if count == 1 else f"{question.name}~{count}"
            if key not in self._keys:
                self._keys.add(key)
                return key

    def _link(self, *parts: str) -> bytes:
        return _hash(self._chain[-1], *parts)

    # ------------------------------------------------------------------ replay

    def _replay(self, turn: _Turn) -> Outcome | None:
        old = cast("Journal", self._old)
        at, last = self._new.events, old.events - 1
        if at > last:
            self._frontier = True
            if not isinstance(turn.effect, Question | Gather):
                raise self._diverged(old, f"{turn.effect.label} at {self.where()}")
            if turn.link[:4] == old.pending:
                return self._live(turn, old)
            self.changed = True
            return self._live(turn, None)
        checked = 2 if at == last else 1
        if turn.link[:checked] != old.checks[at : at + checked]:
            raise self._diverged(old, f"{turn.effect.label} at {self.where()}")
        part, position = _part(old, turn.effect), len(_part(self._new, turn.effect))
        if position == len(part):
            raise self._diverged(old, f"{turn.effect.label} at {self.where()}")
        try:
            self._deliver(turn, part[position])
        except Exception as error:  # a validator of the author's may raise anything; all of it means: does not read
            raise self._diverged(
                old, f"{turn.effect.label} at {self.where()}, which cannot read what was recorded"
            ) from error
        return None

    def _live(self, turn: _Turn, pending: Journal | None) -> Outcome:
        effect = turn.effect
        if self._new.events == MAX_EVENTS:
            raise LimitExceeded(
                f"{self.identity} has {MAX_EVENTS} events, the most a run may have, and goes on with {effect.label} at "
                f"{self.where()}; ask several questions in one gather(...), and do more in one step"
            )
        if is_step(effect):
            return Perform(effect, turn.occurrence)
        again = pending is not None
        if isinstance(effect, Gather):
            partial: list[Any] = [None] * len(turn.keys)
            if pending is not None and pending.partial is not None:
                partial = unpack(pending.partial)
            questions = dict(zip(turn.keys, effect.questions, strict=True))
            return Asking(effect, questions, [*map(answered, partial)], [*map(wrong_answers, partial)], again)
        question = cast("Question", effect)
        return Asking(question, {turn.keys[0]: question}, [None], [0 if pending is None else pending.wrong], again)

    # ------------------------------------------------------------------ recording

    def record(self, item: Any) -> None:
        """Record the outcome of what `advance` gave last, as the effect packs it.

        Raises `NotRecordable` or `LimitExceeded`, or what decoding raises if the effect packed what it cannot read.
        """
        turn = cast("_Turn", self._turn)
        what = f"outcome of {turn.effect.label} at {turn.effect.origin}"
        data = pack(item, what)
        self._size += len(data)
        if self._size > MAX_PART:
            raise LimitExceeded(
                f"{what} takes the run to {self._size} bytes of at most {MAX_PART}; record less, or names of what is "
                "stored elsewhere"
            )
        self._largest = max(self._largest, (len(data), what))
        self._deliver(turn, data)

    def _deliver(self, turn: _Turn, data: bytes) -> None:
        """Take one item into the new journal and set up how the flow goes on with it."""
        item = unpack(data)
        effect = turn.effect
        self.asked += not is_step(effect)
        value: Any = None
        thrown: BaseException | None = None
        try:
            if isinstance(effect, Gather):
                value = effect.decode(item, turn.keys)
            elif isinstance(effect, Question):
                value = effect.decode(item, turn.keys[0])
            else:
                value = cast("Step[Any]", effect).decode(item)
        except _THROWN as error:
            thrown = error
        _part(self._new, effect).append(data)
        self._chain.append(turn.link)
        self._turn = None
        if thrown is None:
            self._resume = lambda: self._flow.send(value)
        else:
            self.throw(thrown)

    def throw(self, error: BaseException) -> None:
        """Go on by throwing `error` into the flow, recording nothing (a cancellation)."""
        self._resume = lambda: self._flow.throw(error)

    def suspend(self, recorded: Sequence[Any] = (None,), wrong: Sequence[int] = (0,)) -> Journal:
        """The journal with the questions pending that `advance` gave last.

        `recorded` are their items, None where unanswered, and `wrong` how often each was answered wrongly.
        """
        turn = cast("_Turn", self._turn)
        journal = self._new
        links = self._chain[1:]
        journal.checks = b"".join(link[:1] for link in links[:-1]) + (links[-1][:2] if links else b"")
        journal.pending = turn.link[:4]
        if not isinstance(turn.effect, Gather):
            journal.wrong = wrong[0]
            return journal
        partial = [unanswered(count) if item is None else item for item, count in zip(recorded, wrong, strict=True)]
        if any(item is not None for item in partial):
            journal.partial = pack(partial, f"partial answers to {turn.effect.label}")
        return journal

    def unwinding(self) -> Generator[Any, Any, Unwound]:
        """Unwind the flow now, in this task and its own context. See `frames.unwind`."""
        return unwind(self._flow, self._context, str(self.identity))

    @property
    def largest(self) -> str:
        """Which outcome recorded in this round takes most."""
        return self._largest[1]

    def where(self) -> str:
        """`file:line in flow > helper`, the place the flow is suspended at."""
        return place(self._flow)

    # ------------------------------------------------------------------ errors

    def _diverged(self, old: Journal, now: str) -> FlowDiverged:
        new = self._new
        if new.events == old.events:
            position = f"the pending question, after {old.events} events"
            recorded = "a question to the client"
        else:
            position = f"event {new.events + 1} of {old.events}"
            recorded = (
                "an answer or a public step result"
                if len(new.server) == len(old.server)
                else "a step result"
                if len(new.client) == len(old.client)
                else "an answer or a step result"
            )
        return FlowDiverged(
            f"{self.identity} diverged at {position}: recorded {recorded} (its text is not in the token), the code "
            f"now yields {now}; give the changed flow a new version=, or, if nothing was deployed, look before that "
            "line for sets, time, random and globals, and put them into a step"
        )


_THROWN: Final = (NotAnswered, CapabilityMissing, StepError)
"""Outcomes that are thrown into the flow; anything else that decoding raises is an error."""


def _part(journal: Journal, effect: Effect[Any]) -> list[bytes]:
    """The part of a journal an effect's outcome is in."""
    return journal.server if is_step(effect) and not effect.public else journal.client


def _hash(before: bytes, *parts: str) -> bytes:
    digest = hashlib.sha256(before)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()
