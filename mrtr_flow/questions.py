"""Effects the client answers.

Events, as they are recorded: an accepted answer is its packed content (an array, or a map); 0 declined, 1 cancelled,
2 capability missing. A gather is an array of those, in order; nil = not answered yet, only while it is pending.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeVar, cast, overload

from typing_extensions import TypeForm

from mrtr_flow.effects import Effect, made_at, note
from mrtr_flow.errors import Cancelled, CapabilityMissing, Declined, DefinitionError
from mrtr_flow.form import Form, form_for, raw_form

__all__ = ("CANCELLED", "DECLINED", "MISSING", "Ask", "Confirm", "Gather", "Question", "ask", "confirm", "gather")

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")

DECLINED: Final = 0
CANCELLED: Final = 1
MISSING: Final = 2
MAX_ATTEMPTS: Final = 15


@dataclass(frozen=True, eq=False)
class Question(Effect[Any]):
    """An effect the client answers. `key` is what the author gave, or None; `text` is what the person consents to."""

    key: str | None
    text: str
    origin: str = field(default="", repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.key is not None and not self.key:
            raise DefinitionError(f"key of {self.label} is empty; leave it out for the default {self.kind!r}")

    @property
    def label(self) -> str:
        return f"{self.kind}({self.key!r})" if self.key else f"{self.kind}()"

    @property
    def name(self) -> str:
        """The wire key before it is made unique in the run."""
        return self.key or self.kind

    @property
    def schema_digest(self) -> bytes:
        """Covers how the answer is read."""
        return b""

    def decode(self, recorded: Any, key: str) -> Any:
        """The value of a recorded outcome; raises what is to be thrown into the flow."""
        if recorded == DECLINED:
            raise Declined(f"question {key!r} was declined", key)
        if recorded == CANCELLED:
            raise Cancelled(f"question {key!r} was cancelled", key)
        if recorded == MISSING:
            raise CapabilityMissing(f"question {key!r} needs a capability the client did not declare", self.requires)
        return self.value(recorded)

    def value(self, recorded: Any) -> Any:
        """The value of an accepted outcome."""
        raise NotImplementedError

    @property
    def requires(self) -> dict[str, Any]:
        """The `ClientCapabilities` the question needs."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Ask(Question):
    """A form (MCP: elicitation, form mode)."""

    kind: ClassVar[str] = "ask"
    form: Form = field(kw_only=True)
    attempts: int = field(default=3, kw_only=True)

    @property
    def schema_digest(self) -> bytes:
        return self.form.digest

    @property
    def requires(self) -> dict[str, Any]:
        return {"elicitation": {"form": {}}}

    def pack(self, content: dict[str, Any]) -> Any:
        return self.form.packing.pack(content)

    def value(self, recorded: Any) -> Any:
        return self.form.decode(self.form.packing.unpack(recorded))


@dataclass(frozen=True, eq=False)
class Confirm(Ask):
    """A yes/no form: True only for accept and `ok: true`; a decline is False; a cancel raises."""

    kind: ClassVar[str] = "confirm"

    def decode(self, recorded: Any, key: str) -> Any:
        return False if recorded == DECLINED else super().decode(recorded, key)

    def value(self, recorded: Any) -> Any:
        return super().value(recorded)["ok"] is True


_CONFIRM: Final = {
    "type": "object",
    "properties": {"ok": {"type": "boolean", "title": "Confirm"}},
    "required": ["ok"],
}


@overload
def ask(
    message: str, schema: Mapping[str, Any], /, *, key: str | None = None, attempts: int = 3
) -> Effect[dict[str, Any]]: ...
@overload
def ask(message: str, type: TypeForm[T], /, *, key: str | None = None, attempts: int = 3) -> Effect[T]: ...
def ask(message: str, type: Any, /, *, key: str | None = None, attempts: int = 3) -> Effect[Any]:
    """Ask the person for a `type` in a form (spec: elicitation, form mode).

    `type` is a pydantic model, dataclass or TypedDict of flat fields; a scalar, `Literal`, `Enum`, `date`,
    `list[Literal[...]]` (wrapped in one field, `value`); or a raw JSON schema, whose answers are dicts.
    `key` goes on the wire as it is; by default `ask`, then `ask~2`. `attempts` counts answers in all before the call
    ends because they were wrong.

    Raises `Declined` or `Cancelled` in the flow; `DefinitionError` here if the form grammar lacks the type.
    """
    if not isinstance(cast("object", message), str):
        raise DefinitionError(f"message of ask is a {message.__class__.__name__}, not text; give the question first")
    if not isinstance(cast("object", attempts), int) or not 1 <= attempts <= MAX_ATTEMPTS:
        raise DefinitionError(f"attempts is {attempts!r}; give 1 to {MAX_ATTEMPTS}")
    form = raw_form(cast("Mapping[str, Any]", type)) if isinstance(type, Mapping) else form_for(type)
    effect = Ask(key, message, form=form, attempts=attempts, origin=made_at())
    note(effect)
    return effect


def confirm(message: str, /, *, key: str | None = None) -> Effect[bool]:
    """Ask for a yes. True only if the client accepts and `ok` is true; a decline is False.

    Raises `Cancelled` in the flow for a cancel.
    """
    effect = Confirm(key, message, form=raw_form(_CONFIRM), origin=made_at())
    note(effect)
    return effect


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

    The first decline or cancel, in this order, is raised. Raises `DefinitionError` here for no question at all, for
    anything that is no question, for a nested gather, and for the same `key=` twice.
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
