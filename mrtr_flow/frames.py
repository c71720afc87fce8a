"""A suspended generator or coroutine as an object: where it stands, what it wrongly yielded, how it is unwound."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any, Final, TypeAlias

from mrtr_flow import effects

__all__ = ("Driven", "Unwound", "foreign", "place", "raised_at", "unwind")

MAX_UNWIND: Final = 32
Driven: TypeAlias = Generator[Any, Any, Any] | Coroutine[Any, Any, Any]


@dataclass
class Unwound:
    """How a flow ended when it was unwound: the effects it yielded, which were dropped, and what is wrong with it."""

    dropped: list[str] = field(default_factory=list[str])
    fault: str | None = None


def unwind(flow: Driven, context: Context, name: str) -> Generator[Any, Any, Unwound]:
    """Throw `GeneratorExit` into the flow until it ends, in this task and its own context.

    A flow may await something else on its way out (a task group that closes). Left alone, that would break the event
    loop, so it is yielded to the caller, who hands it to the loop; and then it is a fault: it would happen in every
    round. Other faults: the flow raises something else, returns, or does not end.
    """
    unwound = Unwound()
    state = _generator_state(flow) if inspect.isgenerator(flow) else inspect.getcoroutinestate(_coroutine(flow))
    if state.endswith("_CREATED"):
        flow.close()
    if not state.endswith("_SUSPENDED"):
        return unwound
    leave: Callable[[], Any] = lambda: flow.throw(GeneratorExit())  # noqa: E731
    resume = leave
    for _ in range(MAX_UNWIND):
        try:
            yielded = context.run(resume)
        except GeneratorExit:
            return unwound
        except StopIteration:
            unwound.fault = f"{name} returned while it was unwound; an `except` around a question must let it pass"
            return unwound
        except BaseExceptionGroup:
            unwound.fault = f"{name} {_GROUP}"
            return unwound
        except Exception as error:  # the author's `finally` may raise anything
            unwound.fault = f"{name} raised {type(error).__name__} at {raised_at(error)} {_FAILS}"
            return unwound
        if isinstance(yielded, effects.Effect):
            unwound.dropped.append(yielded.label)
            resume = leave
            continue
        unwound.fault = f"{name} {_GROUP}"
        try:
            value = yield yielded
        except BaseException as error:
            resume = partial(flow.throw, error)
        else:
            resume = partial(flow.send, value)
    unwound.fault = f"{name} {_STAYS}"
    return unwound


_GROUP: Final = (
    "asks inside a task group, or an `async with` that awaits when it is left, which would happen in every round; "
    "ask before it or after it"
)
_FAILS: Final = "while it was unwound; a `finally` around a question runs every round and must not fail"
_STAYS: Final = (
    f"does not unwind after {MAX_UNWIND} attempts; an `except` or `finally` around a question must not ask again"
)


def _generator_state(flow: Any) -> str:
    return inspect.getgeneratorstate(flow)


def _coroutine(flow: Any) -> Coroutine[Any, Any, Any]:
    coroutine: Coroutine[Any, Any, Any] = flow
    return coroutine


def place(flow: Any) -> str:
    """Where a flow is suspended: `file:line in flow > helper`."""
    names: list[str] = []
    place = "an unknown line"
    while flow is not None:
        frame: FrameType | None = getattr(flow, "gi_frame", None) or getattr(flow, "cr_frame", None)
        if frame is None or frame.f_globals.get("__name__") == effects.__name__:
            break
        place = f"{_file(frame.f_code.co_filename)}:{frame.f_lineno}"
        names.append(frame.f_code.co_name)
        flow = getattr(flow, "gi_yieldfrom", None) or getattr(flow, "cr_await", None)
    return f"{place} in {' > '.join(names)}" if names else place


def raised_at(error: BaseException) -> str:
    """`file:line` of the innermost frame an exception came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "an unknown line" if trace is None else f"{_file(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"


def _file(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def foreign(yielded: Any) -> str:
    """What a flow did that is no effect, and the remedy."""
    if inspect.isgenerator(yielded) or inspect.iscoroutine(yielded):
        name = yielded.__qualname__
        yielded.close()
        return f"yielded {name}() itself: call a helper with `yield from {name}(...)` or `await {name}(...)`"
    if inspect.isfunction(yielded) or inspect.ismethod(yielded):
        return f"yielded the function {yielded.__qualname__}: write `yield from step({yielded.__name__}, ...)`"
    kind = f"{type(yielded).__module__}.{type(yielded).__qualname__}".removeprefix("builtins.")
    if (
        hasattr(yielded, "_asyncio_future_blocking")
        or yielded is None
        or kind.startswith(("trio.", "asyncio.", "anyio."))
    ):
        _cancel(yielded)
        return (
            f"awaited {kind}, which only an event loop can answer: put the work into `await step(...)`, "
            "and several questions into `await gather(ask(...), ask(...))`"
        )
    return f"yielded a {kind}: a flow yields effects such as ask(...) and step(...)"


def _cancel(yielded: Any) -> None:
    """Stop foreign work that has already started, as far as that can be done."""
    cancel = getattr(yielded, "cancel", None)
    if callable(cancel):
        cancel()
