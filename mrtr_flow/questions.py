"""Effects the client answers: what all questions share, and several of them in one round.

Each kind says how it is put to the client, how an answer is judged, and what it is worth in the flow: `elicitation`
(forms and URLs), `sampling`, `roots`.

Events, as they are recorded: an accepted answer is its packed content (an array, or a map); 0 declined, 1 cancelled,
2 capability missing, 3 consent to open a URL. A gather is an array of those, in order; 4 not asked, because another
question of the gather cannot be. While it is pending, nil is not answered yet, -n not either, after n wrong answers.

Rules: an answer is judged by its question, not by what it looks like; it is taken, or it is `Wrong` with a reason
that holds no answer. Content of a decline or cancel is ignored. Nothing but an accept is ever taken for a yes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
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
    "answered",
    "gather",
    "unanswered",
    "wrong_answers",
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
MAX_QUOTED: Final = 64


class Raise:
    """The default of `if_declined` and `if_unsupported`: raise in the flow."""


RAISE: Final = Raise()


@dataclass(frozen=True, slots=True)
class Wrong:
    """An answer that does not fit its question. `reason` is told to the person, and holds no answer."""

    reason: str


def _fault_of_text(value: object) -> str | None:
    """What keeps a value from being a text that goes on the wire, without the value."""
    if not isinstance(value, str):
        return f"of type {type(value).__name__}, not text"
    return None if value else "empty"


def _quoted(key: object) -> str:
    """A key as error texts show it: short printable text as it is, of another its length."""
    if not isinstance(key, str) or not key:
        return ""
    return repr(key) if len(key) <= MAX_QUOTED and key.isprintable() else f"<{len(key)} characters>"


OTHER_KIND: Final = Wrong("it answers another kind of question")


@dataclass(frozen=True, eq=False)
class Question(Effect[Any], ABC):
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
        # these texts are logged, and any of the values may be an answer: they name its type
        if fault := _fault_of_text(self.text):
            raise DefinitionError(f"message of {self.label} is {fault}; give the question first")
        if self.key is not None and (fault := _fault_of_text(self.key)):
            raise DefinitionError(f"key of {self.label} is {fault}; leave it out for the default {self.kind!r}")
        if not isinstance(cast("object", self.attempts), int) or isinstance(self.attempts, bool):
            raise DefinitionError(
                f"attempts of {self.label} is of type {type(self.attempts).__name__}; give 1 to {MAX_ATTEMPTS}"
            )
        if not 1 <= self.attempts <= MAX_ATTEMPTS:
            raise DefinitionError(f"attempts of {self.label} is out of range; give 1 to {MAX_ATTEMPTS}")
        note(self)

    @property
    def label(self) -> str:
        return f"{self.kind}({_quoted(self.key)})"

    @property
    def name(self) -> str:
        """The wire key before it is made unique in the run."""
        return self.key or self.kind

    @property
    def schema_digest(self) -> bytes:
        """Covers how a recorded answer is read."""
        return b""

    @property
    @abstractmethod
    def requires(self) -> dict[str, Any]:
        """The `ClientCapabilities` the question needs (spec: MRTR, server requirement 7)."""

    @abstractmethod
    def request(self, reason: str | None = None) -> dict[str, Any]:
        """The entry of `inputRequests`; `reason` says why the last answer was not taken."""

    @abstractmethod
    def judge(self, response: Mapping[str, Any]) -> Any:
        """An entry of `inputResponses` as the item to record, or `Wrong`."""

    @abstractmethod
    def value(self, recorded: Any) -> Any:
        """What an accepted item is worth in the flow."""

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
                raise _unsupported({key: self})
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

    def decode(self, items: Sequence[Any], keys: Sequence[str]) -> tuple[Any, ...]:
        """What the items are worth in the flow; raises what is to be thrown into it.

        A missing capability comes before what others declined: it is why nobody was asked.
        """
        every = list(zip(self.questions, items, keys, strict=True))
        lacking = {
            key: question for question, item, key in every if item == MISSING and question.if_unsupported is RAISE
        }
        if lacking:
            raise _unsupported(lacking)
        return tuple(question.decode(item, key) for question, item, key in every)


def _unsupported(lacking: Mapping[str, Question]) -> CapabilityMissing:
    required: dict[str, dict[str, Any]] = {}
    for question in lacking.values():
        for name, needs in question.requires.items():
            required.setdefault(name, {}).update(needs)
    keys = ", ".join(map(repr, lacking))
    return CapabilityMissing(
        f"client does not declare {json.dumps(required)}, which {keys} cannot do without", required
    )


def answered(item: Any) -> Any:
    """An item of a pending gather, None if it waits for an answer."""
    return None if wrong_answers(item) else item


def wrong_answers(item: Any) -> int:
    """How often the question of an item was answered wrongly."""
    return -item if isinstance(item, int) and item < 0 else 0


def unanswered(wrong: int) -> int | None:
    """The item of a question that waits, after so many wrong answers."""
    return -wrong or None


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
            raise DefinitionError(
                f"gather at {origin} has key {_quoted(effect.key)} twice; each answer needs its own key"
            )
        if effect.key is not None:
            keys.append(effect.key)
    result = Gather(tuple(cast("Any", effects)), origin=origin)
    note(result)
    return result
