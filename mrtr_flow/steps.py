"""Effects the server performs once.

Events, as they are recorded: the packed result, or `{-2: [step, type, message]}` for an exception. A packed result
has no other negative key than -1 (see `packing`), so the two cannot be taken for each other.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, ParamSpec, Self, TypeGuard, TypeVar, cast, overload

from mrtr_flow.effects import Effect, created, made_at, note
from mrtr_flow.errors import DefinitionError, NotRecordable, StepError
from mrtr_flow.schema import Shape, shape_of, type_hints

__all__ = ("Step", "host_class", "is_step", "step")

R = TypeVar("R")
P = ParamSpec("P")

_FAILED: Final = -2
MAX_TEXT: Final = 1000
_HOSTS: Final = ("mcp", "fastmcp")


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
        """`key`, or the function's name. Raises `DefinitionError` for a lambda, which has none."""
        name = self.key or _function_name(self.fn)
        if name == "<lambda>":
            raise DefinitionError(f"step at {self.origin} is a lambda, which has no name; give it .options(key=...)")
        return name

    @property
    def label(self) -> str:
        return f"step({self.key or _function_name(self.fn)})"

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
        """The type of the result."""
        return shape_of(_returned(self.fn))

    @property
    def schema_digest(self) -> bytes:
        return self.shape.packing.digest

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Copies of the arguments, so that a step cannot change what the flow holds; host contexts as they are."""
        return tuple(map(_copied, self.args)), {name: _copied(value) for name, value in self.kwargs.items()}

    def pack(self, result: Any) -> Any:
        """A result as it is recorded. Raises `NotRecordable` naming the step and the path."""
        shape = self.shape
        try:
            return shape.packing.pack(shape.record(result))
        except NotRecordable as error:
            raise NotRecordable(
                f"result of {self.label} at {self.origin} cannot be recorded: {error}", error.path
            ) from error

    def failure(self, error: BaseException) -> Any:
        """An exception as it is recorded: qualified type and text, never the object.

        Only a public step's result may be compressed beside the client's words, not what an exception says: a public
        step records the type alone.
        """
        kind = type(error)
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        try:
            text = "" if self.public else str(error)[:MAX_TEXT]
        except Exception:  # a broken __str__ must not hide the failure
            text = ""
        return {_FAILED: [self.name, name, text]}

    def decode(self, recorded: Any) -> Any:
        """The value of a recorded outcome; raises the `StepError` to throw into the flow."""
        if isinstance(recorded, dict) and _FAILED in recorded:
            raise StepError(*cast("dict[int, Any]", recorded)[_FAILED])
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
    inner = inspect.unwrap(fn)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner) or getattr(fn, "is_flow", False):
        name = _function_name(fn)
        raise DefinitionError(f"step was given {name}, which asks by itself; call it with `yield from {name}(...)`")
    effect = Step[Any](fn, args, kwargs, origin=made_at())
    try:
        _ = effect.shape
    except DefinitionError as error:
        raise DefinitionError(f"result of {effect.label} at {effect.origin} cannot be recorded: {error}") from None
    note(effect)
    return effect


def _function_name(fn: Callable[..., Any]) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__name__", type(fn).__name__))


def _returned(fn: Callable[..., Any]) -> Any:
    """The type a function returns, or `Any`. Raises `DefinitionError` for a name that cannot be seen."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    if isinstance(fn, type):
        return fn
    target = fn if inspect.isroutine(fn) else getattr(fn, "__call__", fn)  # noqa: B004
    target = getattr(target, "__func__", target)
    if "return" not in getattr(target, "__annotations__", {}):
        return Any
    try:
        annotation = type_hints(target, "return")["return"]
    except NameError as error:
        raise DefinitionError(
            f"return type of {target.__name__} names {error.name!r}, which cannot be seen from its module; "
            "define it at module level"
        ) from error
    if typing.get_origin(annotation) in (Awaitable, Coroutine):
        return typing.get_args(annotation)[-1]
    return annotation


def is_step(effect: object) -> TypeGuard[Step[Any]]:
    """Whether an effect is a step."""
    return isinstance(effect, Step)


def host_class(annotation: Any) -> bool:
    """Whether a class is a host's request context (`Context` of an MCP SDK): bound by the adapter, never recorded."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Annotated, typing.Union, types.UnionType):
        return any(map(host_class, typing.get_args(annotation)))
    annotation = origin or annotation
    if not isinstance(annotation, type):
        return False
    bases = annotation.__mro__  # `Context[State]` is a class of its own, made by pydantic
    return any(base.__name__ == "Context" and base.__module__.partition(".")[0] in _HOSTS for base in bases)


def _copied(value: Any) -> Any:
    if host_class(type(value)):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # a handle (lock, socket, pool) is no value: there is nothing of it to protect
        return value
