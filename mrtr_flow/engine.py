"""Replay: drives one flow against a journal. No I/O, no clock, no event loop, no logger.

Give it what happened, ask what is next:

    engine.advance() -> Perform(step) | Asking(question) | Returned(value) | Raised(error)
    engine.record(item) records the outcome of what `advance` gave, so that the next `advance` goes on

Rules:

- Chain: h0 = hash of semantics number, flow, version and stage; h_i = hash of h_(i-1) and the identity of effect i:
  kind, key or step name, occurrence of that name, digest of the packing schema, text. The journal holds one byte of
  each answered h_i, two of the last, four of the pending one. Each is compared before its item is decoded.
- Frontier gate: `advance` gives out nothing until the whole journal is consumed and the pending question was reached.
  Everything else before that (a step, a return, an exception, a decode error, another byte) is `FlowDiverged`. One
  exception: all bytes match and only the pending question is another one; then it is asked anew (`changed`).
- Live = replayed: what a flow receives is always decoded from the recorded bytes.
- The flow runs in its own contextvars context. Suspension is a yield; `close` unwinds it at once, in the same task.
- Divergence and misuse are raised outside the flow, after it was unwound; its `except` cannot swallow them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
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
from mrtr_flow.frames import Driven, foreign, place, raised_at, unwind
from mrtr_flow.journal import Journal, pack, unpack
from mrtr_flow.questions import Gather, Question
from mrtr_flow.steps import Step, is_step

__all__ = ("Asking", "Engine", "Identity", "Perform", "Raised", "Returned")

MAX_EFFECTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Identity:
    """The flow an engine drives, as errors and the chain name it."""

    name: str
    version: str | None
    semantics: int

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}@{self.version}"

    @property
    def origin(self) -> bytes:
        """h0 of the chain."""
        return _hash(
            b"", "flow", str(self.semantics), self.name, "" if self.version is None else f"={self.version}", ""
        )


@dataclass(frozen=True, slots=True)
class Perform:
    """A step to perform, and which occurrence of its name it is."""

    step: Step[Any]
    occurrence: int


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions to ask, by wire key; `recorded` holds their items, None where unanswered. `pending`: they were asked
    in the round this token is from."""

    effect: Question | Gather
    questions: dict[str, Question]
    recorded: list[Any]
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


@dataclass(slots=True)
class _Replay:
    """The journal being consumed."""

    journal: Journal
    at: int = 0
    client: int = 0
    server: int = 0


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
        self._driven: set[int] = set()
        self._old = _Replay(journal) if journal is not None else None
        self._frontier = journal is None
        self._new = Journal()
        self._chain = [identity.origin]
        self._occurrences: dict[tuple[str, str], int] = {}
        self._keys: set[str] = set()
        self._count = 0
        self._turn: _Turn | None = None
        self._resume: Callable[[], Any] | None = None
        self._flow: Driven = context.run(start)

    # ------------------------------------------------------------------ outcomes

    def advance(self) -> Outcome:
        """Drive the flow to the next thing that is not in the journal.

        Raises `FlowDiverged`, `EffectMisused`, `DefinitionError` (a key used twice) or `LimitExceeded`; the flow is
        unwound by then.
        """
        try:
            return self._advance()
        except BaseException:
            self.close()
            raise

    def _advance(self) -> Outcome:
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
            return self._live(turn, None, pending=False)

    def _ended(self, outcome: Returned | Raised) -> Outcome:
        if not self._frontier:
            old = cast("_Replay", self._old)
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
        for effect in self._made:
            if id(effect) not in self._driven:
                raise EffectMisused(f"{effect.label} made at {effect.origin} was never driven: {MISSING_KEYWORD}")

    # ------------------------------------------------------------------ identity

    def _identify(self, yielded: Any) -> _Turn:
        self._count += 1
        if self._count > MAX_EFFECTS:
            raise LimitExceeded(
                f"{self.identity} yielded more than {MAX_EFFECTS} effects in a round, at {self._where()}; "
                "is there a loop without end?"
            )
        if not isinstance(yielded, Effect):
            raise EffectMisused(f"{self.identity} {foreign(yielded)}, at {self._where()}")
        effect = cast("Any", yielded)
        self._driven.add(id(effect))
        members: tuple[Any, ...] = ()
        if isinstance(effect, Gather):
            members = effect.questions
            self._driven.update(map(id, members))
        elif isinstance(effect, Question):
            members = (effect,)
        if is_step(effect):
            occurrence = self._occurrence("step", effect.name)
            kind = "step public" if effect.public else "step"
            link = self._link(kind, effect.name, str(occurrence), effect.schema_digest.hex(), "")
            return _Turn(effect, (), occurrence, link)
        parts: list[str] = [effect.kind, str(len(members))]
        keys: list[str] = []
        for question in cast("tuple[Question, ...]", members):
            key = self._wire_key(question)
            keys.append(key)
            parts += [question.kind, key, question.schema_digest.hex(), question.text]
        return _Turn(effect, tuple(keys), 1, self._link(*parts))

    def _occurrence(self, kind: str, name: str) -> int:
        count = self._occurrences[kind, name] = self._occurrences.get((kind, name), 0) + 1
        return count

    def _wire_key(self, question: Question) -> str:
        """The key itself, or the first free `key~2`, `key~3`: unique in the run."""
        count = self._occurrence("question", question.name)
        key = question.name if count == 1 else f"{question.name}~{count}"
        while key in self._keys:
            count = self._occurrence("question", question.name)
            key = f"{question.name}~{count}"
        self._keys.add(key)
        return key

    def _link(self, *parts: str) -> bytes:
        return _hash(self._chain[-1], *parts)

    # ------------------------------------------------------------------ replay

    def _replay(self, turn: _Turn) -> Outcome | None:
        old = cast("_Replay", self._old)
        total = old.journal.events
        if old.at == total:
            self._frontier = True
            if not isinstance(turn.effect, Question | Gather):
                raise self._diverged(old, f"{turn.effect.label} at {self._where()}")
            if turn.link[:4] == old.journal.pending:
                return self._live(turn, old.journal.partial, pending=True)
            self.changed = True
            return self._live(turn, None, pending=False)
        last = old.at == total - 1
        if turn.link[: 2 if last else 1] != old.journal.checks[old.at : old.at + (2 if last else 1)]:
            raise self._diverged(old, f"{turn.effect.label} at {self._where()}")
        part, position = (
            (old.journal.server, old.server) if _server_side(turn.effect) else (old.journal.client, old.client)
        )
        if position == len(part):
            raise self._diverged(old, f"{turn.effect.label} at {self._where()}")
        try:
            self._deliver(turn, part[position])
        except Exception as error:  # a validator of the author's may raise anything; all of it means: does not read
            raise self._diverged(
                old, f"{turn.effect.label} at {self._where()}, which cannot read what was recorded"
            ) from error
        old.at += 1
        if _server_side(turn.effect):
            old.server += 1
        else:
            old.client += 1
        return None

    def _live(self, turn: _Turn, partial: bytes | None, *, pending: bool) -> Outcome:
        effect = turn.effect
        if is_step(effect):
            return Perform(effect, turn.occurrence)
        if isinstance(effect, Gather):
            recorded = cast("list[Any]", unpack(partial)) if partial is not None else [None] * len(turn.keys)
            return Asking(effect, dict(zip(turn.keys, effect.questions, strict=True)), recorded, pending)
        question = cast("Question", effect)
        return Asking(question, {turn.keys[0]: question}, [None], pending)

    # ------------------------------------------------------------------ recording

    def record(self, item: Any) -> None:
        """Record the outcome of what `advance` gave last, as the effect packs it.

        Raises `NotRecordable` or `LimitExceeded`, or what decoding raises if the effect packed what it cannot read.
        """
        turn = cast("_Turn", self._turn)
        try:
            self._deliver(turn, pack(item, f"outcome of {turn.effect.label} at {turn.effect.origin}"))
        except BaseException:
            self.close()
            raise

    def _deliver(self, turn: _Turn, data: bytes) -> None:
        """Take one item into the new journal and set up how the flow goes on with it."""
        item = unpack(data)
        effect = turn.effect
        value: Any = None
        thrown: BaseException | None = None
        try:
            if isinstance(effect, Gather):
                value = tuple(
                    question.decode(part, key)
                    for question, part, key in zip(effect.questions, item, turn.keys, strict=True)
                )
            elif isinstance(effect, Question):
                value = effect.decode(item, turn.keys[0])
            else:
                value = cast("Step[Any]", effect).decode(item)
        except _THROWN as error:
            thrown = error
        (self._new.server if _server_side(effect) else self._new.client).append(data)
        self._chain.append(turn.link)
        self._turn = None
        if thrown is None:
            self._resume = lambda: self._flow.send(value)
        else:
            self.throw(thrown)

    def throw(self, error: BaseException) -> None:
        """Go on by throwing `error` into the flow, recording nothing (a cancellation)."""
        self._resume = lambda: self._flow.throw(error)

    def suspend(self, recorded: list[Any] | None = None) -> Journal:
        """Stop at the questions `advance` gave last: the journal with them pending. The flow is unwound.

        `recorded` are the items of a gather, None where unanswered; they are kept if any is answered.
        """
        turn = cast("_Turn", self._turn)
        self.close()
        journal = self._new
        links = self._chain[1:]
        journal.checks = b"".join(link[:1] for link in links[:-1]) + (links[-1][:2] if links else b"")
        journal.pending = turn.link[:4]
        if recorded is not None and isinstance(turn.effect, Gather) and any(item is not None for item in recorded):
            journal.partial = pack(recorded, f"partial answers to {turn.effect.label}")
        return journal

    def close(self) -> list[str]:
        """Unwind the flow now, in this task and its own context; returns the effects it yielded meanwhile.

        Raises `EffectMisused` for a flow that will not stop.
        """
        return unwind(self._flow, self._context, str(self.identity))

    # ------------------------------------------------------------------ errors

    def _where(self) -> str:
        """`file:line in flow > helper`, the place the flow is suspended at."""
        return place(self._flow)

    def _diverged(self, old: _Replay, now: str) -> FlowDiverged:
        journal, total = old.journal, old.journal.events
        if old.at == total:
            position = f"the pending question, after {total} events"
            recorded = "a question to the client"
        else:
            position = f"event {old.at + 1} of {total}"
            left_client, left_server = len(journal.client) - old.client, len(journal.server) - old.server
            recorded = (
                "an answer or a public step result"
                if not left_server
                else "a step result"
                if not left_client
                else "an answer or a step result"
            )
        return FlowDiverged(
            f"{self.identity} diverged at {position}: recorded {recorded} (its text is not in the token), the code "
            f"now yields {now}; give the changed flow a new version=, or, if nothing was deployed, look before that "
            "line for sets, time, random and globals, and put them into a step"
        )


_THROWN: Final = (NotAnswered, CapabilityMissing, StepError)
"""Outcomes that are thrown into the flow; anything else that decoding raises is an error."""


def _server_side(effect: Effect[Any]) -> bool:
    return is_step(effect) and not effect.public


def _hash(before: bytes, *parts: str) -> bytes:
    digest = hashlib.sha256(before)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()
