"""A suspended generator or coroutine as an object: where it stands, what it wrongly yielded, how it is unwound."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Generator
from contextvars import Context
from types import FrameType
from typing import Any, Final, TypeAlias

from mrtr_flow import effects
from mrtr_flow.errors import EffectMisused

__all__ = ("Driven", "foreign", "place", "raised_at", "unwind")

MAX_UNWIND: Final = 32
Driven: TypeAlias = Generator[Any, Any, Any] | Coroutine[Any, Any, Any]


def unwind(flow: Driven, context: Context, name: str) -> list[str]:
    """Throw `GeneratorExit` into the flow until it ends, in this task and its own context.

    Returns the effects it yielded meanwhile, which are dropped. Raises `EffectMisused` for a flow that raises
    something else, or will not end.
    """
    dropped: list[str] = []
    state = (
        inspect.getgeneratorstate(flow) if inspect.isgenerator(flow) else inspect.getcoroutinestate(_coroutine(flow))
    )
    if state.endswith("_CREATED"):
        flow.close()
    if not state.endswith("_SUSPENDED"):
        return dropped

    def throw() -> Any:
        return flow.throw(GeneratorExit())

    for _ in range(MAX_UNWIND):
        try:
            yielded = context.run(throw)
        except (GeneratorExit, StopIteration):
            return dropped
        except BaseExceptionGroup as group:
            if group.split(GeneratorExit)[1] is None:
                return dropped
            raise EffectMisused(
                f"{name} raised {type(group).__name__} while it was unwound; do not ask inside a task group"
            ) from group
        except Exception as error:
            raise EffectMisused(
                f"{name} raised {type(error).__name__} at {raised_at(error)} while it was unwound; a `finally` around "
                "a question runs every round and must not fail"
            ) from error
        dropped.append(yielded.label if isinstance(yielded, effects.Effect) else _cancel(yielded))
    raise EffectMisused(
        f"{name} does not unwind after {MAX_UNWIND} attempts; an `except` or `finally` around a question must not ask "
        "again"
    )


def _coroutine(flow: Any) -> Coroutine[Any, Any, Any]:
    coroutine: Coroutine[Any, Any, Any] = flow
    return coroutine


def place(flow: Any) -> str:
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


def _cancel(yielded: Any) -> str:
    """Stop foreign work that has already started, as far as that can be done; returns its name."""
    cancel = getattr(yielded, "cancel", None)
    if callable(cancel):
        cancel()
    return type(yielded).__name__
