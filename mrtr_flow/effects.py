"""What a flow may yield: a frozen value that says what is wanted.

An effect is typed as a generator and an awaitable of its result, so `yield from ask(...)` and `await ask(...)` infer
the exact type; at run time it is a plain value whose one `__iter__`/`__await__` yields it. Using it as a value (in a
condition, a comparison, a format) raises `EffectMisused`: the `yield from` or `await` was forgotten.

What an effect's outcome looks like in the journal is in `questions` and `steps`, its bytes are in `journal`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NoReturn, TypeAlias, TypeVar

from mrtr_flow.errors import EffectMisused

__all__ = ("MISSING_KEYWORD", "Effect", "Flow", "created", "made_at", "note")

R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)

MISSING_KEYWORD: Final = "missing `yield from` or `await` before it"
_MAKERS: Final = frozenset(
    {
        "mrtr_flow.effects",
        "mrtr_flow.elicitation",
        "mrtr_flow.questions",
        "mrtr_flow.roots",
        "mrtr_flow.sampling",
        "mrtr_flow.steps",
    }
)

created: Final[ContextVar[list[Effect[Any]] | None]] = ContextVar("mrtr_flow.created", default=None)
"""The effects made inside the running flow, so that the engine can tell which were never driven."""

if TYPE_CHECKING:

    class Effect(Generator[Any, Any, T_co], Awaitable[T_co]):
        """What a flow yields; `yield from effect` and `await effect` give a `T`."""

        kind: ClassVar[str]
        origin: str

        def send(self, value: Any, /) -> Any: ...
        def throw(self, *args: Any) -> Any: ...
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
            raise EffectMisused(f"{self.label} made at {self.origin} is used as a value: {MISSING_KEYWORD}")

        __bool__ = __eq__ = __ne__ = __format__ = __lt__ = __le__ = __gt__ = __ge__ = _misused
        __hash__ = object.__hash__


Flow: TypeAlias = Generator[Effect[Any], Any, R]
"""The annotation of a generator flow that returns an `R`."""


def note(effect: Effect[Any]) -> None:
    """Remember an effect that was just made."""
    effects = created.get()
    if effects is not None:
        effects.append(effect)


def made_at() -> str:
    """`file:line` of the code that makes an effect: the first frame outside the modules that offer them."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_globals.get("__name__") in _MAKERS and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
