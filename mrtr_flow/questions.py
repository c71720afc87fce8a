"""Effects the client answers: what all questions share, and several of them in one round.

Each kind says how it is put to the client, how an answer is judged, and what it is worth in the flow: `elicitation`
(forms and URLs), `sampling`, `roots`.

Events, as they are recorded: an accepted answer is its packed content (an array, or a map); 0 declined, 1 cancelled,
2 capability missing, 3 consent to open a URL. A gather is an array of those, in order; nil = not answered yet, only
while it is pending; 4 not asked, because another question of the gather cannot be.

Rules: an answer is judged by its question, not by what it looks like; it is taken, or it is `Wrong` with a reason
that holds no answer. Content of a decline or cancel is ignored. Nothing but an accept is ever taken for a yes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeVar, cast, overload

from mrtr_flow.effects import Effect, made_at, note
from mrtr_flow.errors import Cancelled, CapabilityMissing, Declined, DefinitionError

__all__ = (
    "CANCELLED",
    "CONSENT",
    "DECLINED",
    "MISSING",
    "OTHER_KIND",
    "RAISE",
    "UNASKED",
    "Gather",
    "Question",
    "Raise",
    "Wrong",
    "gather",
)

T = TypeVar("T")
D = TypeVar("D")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
E = TypeVar("E")

DECLINED: Final = 0
CANCELLED: Final = 1
MISSING: Final = 2
CONSENT: Final = 3
UNASKED: Final = 4
ATTEMPTS: Final = 3
MAX_ATTEMPTS: Final = 15
LONG_ANSWER: Final = 48 * 1024


class Raise:
    """The default of `if_declined` and `if_unsupported`: raise in the flow."""


RAISE: Final = Raise()


@dataclass(frozen=True, slots=True)
class Wrong:
    """An answer that does not fit its question. `reason` is told to the person, and holds no answer."""

    reason: str


OTHER_KIND: Final = Wrong("it answers another kind of question")


@dataclass(frozen=True, eq=False)
class Question(Effect[Any]):
    """An effect the client answers. `key` is what the author gave, or None; `text` is what the answerer consents to.

    `if_declined` and `if_unsupported` are values to go on with instead of raising. `attempts` counts answers in all.
    `limit` is the bytes an answer may take, packed.
    """

    limit: ClassVar[int] = 16 * 1024
    key: str | None
    text: str
    origin: str = field(default="", repr=False, kw_only=True)
    attempts: int = field(default=ATTEMPTS, kw_only=True)
    if_declined: Any = field(default=RAISE, kw_only=True)
    if_unsupported: Any = field(default=RAISE, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.text), str) or not self.text:
            raise DefinitionError(f"message of {self.label} is {self.text!r}, not text; give the question first")
        if self.key is not None and not self.key:
            raise DefinitionError(f"key of {self.label} is empty; leave it out for the default {self.kind!r}")
        if not isinstance(cast("object", self.attempts), int) or not 1 <= self.attempts <= MAX_ATTEMPTS:
            raise DefinitionError(f"attempts of {self.label} is {self.attempts!r}; give 1 to {MAX_ATTEMPTS}")
        note(self)

    @property
    def label(self) -> str:
        return f"{self.kind}({self.key!r})" if self.key else f"{self.kind}()"

    @property
    def name(self) -> str:
        """The wire key before it is made unique in the run."""
        return self.key or self.kind

    @property
    def schema_digest(self) -> bytes:
        """Covers how a recorded answer is read."""
        return b""

    @property
    def requires(self) -> dict[str, Any]:
        """The `ClientCapabilities` the question needs (spec: MRTR, server requirement 7)."""
        raise NotImplementedError

    def request(self, reason: str | None = None) -> dict[str, Any]:
        """The entry of `inputRequests`; `reason` says why the last answer was not taken."""
        raise NotImplementedError

    def judge(self, response: Mapping[str, Any]) -> Any:
        """An entry of `inputResponses` as the item to record, or `Wrong`."""
        raise NotImplementedError

    def value(self, recorded: Any) -> Any:
        """What an accepted item is worth in the flow."""
        raise NotImplementedError

    def decode(self, recorded: Any, key: str) -> Any:
        """What any item is worth in the flow; raises what is to be thrown into it."""
        if recorded == DECLINED:
            if self.if_declined is RAISE:
                raise Declined(f"question {key!r} was declined", key)
            return self.if_declined
        if recorded == CANCELLED:
            raise Cancelled(f"question {key!r} was cancelled", key)
        if recorded == MISSING:
            if self.if_unsupported is RAISE:
                raise CapabilityMissing(
                    f"question {key!r} needs a capability the client did not declare: {json.dumps(self.requires)}",
                    self.requires,
                )
            return self.if_unsupported
        return self.value(recorded)


@dataclass(frozen=True, eq=False)
class Gather(Effect[Any]):
    """Several questions in one round, one event. Partial answers are kept; only the missing ones are asked again."""

    kind: ClassVar[str] = "gather"
    questions: tuple[Question, ...]
    origin: str = field(default="", repr=False)

    @property
    def label(self) -> str:
        return f"gather({', '.join(question.label for question in self.questions)})"


@overload
def gather(a: Effect[A], /) -> Effect[tuple[A]]: ...
@overload
def gather(a: Effect[A], b: Effect[B], /) -> Effect[tuple[A, B]]: ...
@overload
def gather(a: Effect[A], b: Effect[B], c: Effect[C], /) -> Effect[tuple[A, B, C]]: ...
@overload
def gather(a: Effect[A], b: Effect[B], c: Effect[C], d: Effect[D], /) -> Effect[tuple[A, B, C, D]]: ...
@overload
def gather(a: Effect[A], b: Effect[B], c: Effect[C], d: Effect[D], e: Effect[E], /) -> Effect[tuple[A, B, C, D, E]]: ...
@overload
def gather(
    a: Effect[T], b: Effect[T], c: Effect[T], d: Effect[T], e: Effect[T], f: Effect[T], /, *more: Effect[T]
) -> Effect[tuple[T, ...]]: ...
def gather(*effects: Effect[Any]) -> Effect[Any]:
    """Ask several questions in one round; the result is the tuple of their values in this order.

    A missing capability is raised before anybody is asked; else the first decline or cancel, in this order. Raises
    `DefinitionError` here for no question at all, for anything that is no question, for a nested gather, and for the
    same `key=` twice.
    """
    origin = made_at()
    if not effects:
        raise DefinitionError(f"gather at {origin} has no question; give one or more")
    keys: list[str] = []
    for effect in effects:
        if isinstance(effect, Gather):
            raise DefinitionError(f"gather at {origin} holds another gather; list all questions in one")
        if not isinstance(effect, Question):
            name = effect.label if isinstance(cast("object", effect), Effect) else type(effect).__name__
            raise DefinitionError(f"gather at {origin} holds {name}, not a question; gather takes ask(...) and its kin")
        if effect.key in keys:
            raise DefinitionError(f"gather at {origin} has key {effect.key!r} twice; each answer needs its own key")
        if effect.key is not None:
            keys.append(effect.key)
    result = Gather(tuple(cast("Any", effects)), origin=origin)
    note(result)
    return result
