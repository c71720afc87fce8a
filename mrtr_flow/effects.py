"""What a flow may yield: frozen values that say what is wanted, and know how their outcome is packed and decoded.

An effect is typed as a generator and an awaitable of its result, so `yield from ask(...)` and `await ask(...)` infer
the exact type; at run time it is a plain value whose one `__iter__`/`__await__` yields it. Using it as a value (in a
condition, a comparison, a format) raises `EffectMisused`: the `yield from` or `await` was forgotten.

Events, as they are recorded (see `journal` for the bytes):

- question: accepted = packed content (an array, or a map) · 0 declined · 1 cancelled · 2 capability missing
- gather: an array of those, in order; nil = not answered yet, only while the gather is pending
- step: the packed result · `{-2: [step, type, message]}` for an exception
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import sys
import typing
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NoReturn, ParamSpec, TypeAlias, TypeVar, cast, overload

from typing_extensions import Self, TypeForm

from mrtr_flow.errors import CapabilityMissing, Cancelled, Declined, DefinitionError, EffectMisused, FlowError, NotRecordable, StepError
from mrtr_flow.form import Form, form_for, raw_form
from mrtr_flow.schema import Shape, check_plain

__all__ = (
    "CANCELLED", "DECLINED", "MISSING", "Ask", "Confirm", "Effect", "Flow", "Gather", "Question", "Step", "ask", "confirm", "created", "gather", "host_class", "step",
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")

MAKERS: Final = frozenset({"ask", "confirm", "gather", "step"})
"""The functions that make effects, by name."""

DECLINED: Final = 0
CANCELLED: Final = 1
MISSING: Final = 2
STEP_FAILED: Final = -2
MAX_ATTEMPTS: Final = 15

created: Final[ContextVar[list[Effect[Any]] | None]] = ContextVar("mrtr_flow.created", default=None)
"""The effects made inside the running flow, so that the engine can tell which were never driven."""

if TYPE_CHECKING:

    class Effect(Generator[Any, Any, T_co], Awaitable[T_co]):
        """What a flow yields; `yield from effect` and `await effect` give a `T`."""

        kind: ClassVar[str]
        origin: str

        def send(self, value: Any, /) -> Any: ...
        def throw(self, *args: Any) -> Any: ...  # type: ignore[override]
        def __await__(self) -> Generator[Any, Any, T_co]: ...
        @property
        def label(self) -> str: ...
        def __hash__(self) -> int: ...

else:

    class Effect(Generic[T_co]):
        __slots__ = ()
        kind = "effect"

        def __class_getitem__(cls, item):
            return cls

        def __iter__(self):
            return (yield self)

        __await__ = __iter__

        def _misused(self, *_: object) -> NoReturn:
            raise EffectMisused(
                f"{self.label} made at {self.origin} is used as a value: missing `yield from` or `await` before it"
            )

        __bool__ = __eq__ = __ne__ = __format__ = __lt__ = __le__ = __gt__ = __ge__ = _misused
        __hash__ = object.__hash__


Flow: TypeAlias = Generator[Effect[Any], Any, R]
"""The annotation of a generator flow that returns an `R`."""


def _note(effect: Effect[Any]) -> None:
    effects = created.get()
    if effects is not None:
        effects.append(effect)


def _origin() -> str:
    """`file:line` of the code that made the effect: the first frame outside this module."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") == __name__ and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"


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
def ask(message: str, schema: Mapping[str, Any], /, *, key: str | None = None, attempts: int = 3) -> Effect[dict[str, Any]]: ...
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
    effect = Ask(key, message, form=form, attempts=attempts, origin=_origin())
    _note(effect)
    return effect


def confirm(message: str, /, *, key: str | None = None) -> Effect[bool]:
    """Ask for a yes. True only if the client accepts and `ok` is true; a decline is False; a cancel raises `Cancelled`."""
    effect = Confirm(key, message, form=raw_form(_CONFIRM), origin=_origin())
    _note(effect)
    return effect


@dataclass(frozen=True, eq=False)
class Step(Effect[R]):
    """Work the server performs once, in the order of the flow; its result travels in the token."""

    kind: ClassVar[str] = "step"
    fn: Callable[..., Any] = field(repr=False)
    args: tuple[Any, ...] = field(repr=False)
    kwargs: Mapping[str, Any] = field(repr=False)
    key: str | None = None
    public: bool = False
    origin: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        return self.key or getattr(self.fn, "__name__", type(self.fn).__name__)

    @property
    def label(self) -> str:
        return f"step({self.name})"

    def options(self, *, key: str | None = None, public: bool | None = None) -> Self:
        """The same step with another name in the journal (`key`), or with a result the client may see (`public`).

        A public result is compressed beside the client's own values; others never are, since their length would leak.
        """
        if key is not None and not key:
            raise DefinitionError(f"key of {self.label} is empty; leave it out for the function's name")
        changed = replace(self, key=key or self.key, public=self.public if public is None else public)
        effects = created.get()
        if effects is not None:
            effects[:] = [changed if effect is self else effect for effect in effects]
        return changed

    @property
    def shape(self) -> Shape[Any]:
        return _result_shape(self.fn)

    @property
    def schema_digest(self) -> bytes:
        return self.shape.packing.digest

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Copies of the arguments, so that a step cannot change what the flow holds. Host contexts are passed as they are."""
        return tuple(map(_copied, self.args)), {name: _copied(value) for name, value in self.kwargs.items()}

    def pack(self, result: Any) -> Any:
        """A result as it is recorded. Raises `NotRecordable` naming the step and the path."""
        shape = self.shape
        try:
            return shape.packing.pack(shape.record(result))
        except NotRecordable as error:
            raise NotRecordable(f"result of {self.label} at {self.origin} cannot be recorded: {error}", error.path) from error

    def failure(self, error: BaseException) -> Any:
        """An exception as it is recorded: qualified type and text, never the object."""
        kind = type(error)
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        try:
            text = str(error)
        except Exception:  # a broken __str__ must not hide the failure
            text = ""
        return {STEP_FAILED: [self.name, name, text]}

    def decode(self, recorded: Any) -> Any:
        """The value of a recorded outcome; raises the `StepError` to throw into the flow."""
        if isinstance(recorded, dict) and STEP_FAILED in recorded:
            raise StepError(*cast("dict[int, Any]", recorded)[STEP_FAILED])
        return self.shape.decode(self.shape.packing.unpack(recorded))


@overload
def step(fn: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> Step[R]: ...
@overload
def step(fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Step[R]: ...
def step(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Step[Any]:
    """Perform `fn(*args, **kwargs)` once and replay its result in later rounds.

    A sync function runs in a worker thread, an async one is awaited. The result must survive a round trip by the
    function's return type (un-annotated: JSON values). An exception reaches the flow as `StepError`. A step runs at
    least once, and never again once the token that records it reached the client.

    Raises `DefinitionError` here if `fn` cannot be a step.
    """
    if not callable(cast("object", fn)):
        raise DefinitionError(f"step was given a {type(fn).__name__}, not a function; write step(fn, arguments)")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise DefinitionError(f"step was given the generator {fn.__name__}; a helper that asks is called with `yield from`")
    effect = Step[Any](fn, args, kwargs, origin=_origin())
    _result_shape(fn)
    _note(effect)
    return effect


@lru_cache(maxsize=1024)
def _result_shape(fn: Callable[..., Any]) -> Shape[Any]:
    target = fn if inspect.isroutine(fn) else getattr(fn, "__call__", fn)  # noqa: B004
    try:
        hints = typing.get_type_hints(getattr(target, "__func__", target), include_extras=True)
    except (NameError, TypeError, AttributeError):
        hints = {}
    annotation = hints.get("return", Any)
    return Shape(type(None) if annotation is None else annotation)


def host_class(annotation: Any) -> bool:
    """Whether a class is a host's request context (`Context` of an MCP SDK): bound by the adapter, never recorded."""
    annotation = typing.get_origin(annotation) or annotation
    if not isinstance(annotation, type) or annotation.__name__ != "Context":
        return False
    return annotation.__module__.partition(".")[0] in ("mcp", "fastmcp")


def _copied(value: Any) -> Any:
    if host_class(type(value)):
        return value
    try:
        return copy.deepcopy(value)
    except TypeError:  # a handle (lock, socket, pool) is no value: there is nothing of it to protect
        return value


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
def gather(*effects: Effect[T]) -> Effect[tuple[T, ...]]: ...
def gather(*effects: Effect[Any]) -> Effect[Any]:
    """Ask several questions in one round; the result is the tuple of their values in this order.

    The first decline or cancel, in this order, is raised. Raises `DefinitionError` here for no question at all, for
    anything that is no question, for a nested gather, and for the same `key=` twice.
    """
    origin = _origin()
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
    _note(result)
    return result
