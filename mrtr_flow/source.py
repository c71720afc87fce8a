"""What a flow's function tells before it runs: what kind it is, and which effects its source does not drive."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from mrtr_flow.effects import MISSING_KEYWORD
from mrtr_flow.elicitation import ask, ask_url, confirm
from mrtr_flow.errors import DefinitionError
from mrtr_flow.questions import gather
from mrtr_flow.roots import list_roots
from mrtr_flow.sampling import sample
from mrtr_flow.steps import step

__all__ = ("check_kind", "check_undriven")

_MAKERS: Final = {id(maker): maker.__name__ for maker in (ask, ask_url, confirm, gather, list_roots, sample, step)}


def check_kind(fn: Any, name: str) -> None:
    """Raise `DefinitionError` for a function that is neither a generator nor a coroutine function."""
    if inspect.isasyncgenfunction(fn):
        raise DefinitionError(
            f"{name} is an `async def` with `yield`; write `async def` with `await ask(...)`, "
            "or `def` with `yield from ask(...)`"
        )
    if not inspect.isgeneratorfunction(fn) and not inspect.iscoroutinefunction(fn):
        raise DefinitionError(
            f"{name} is no generator and no `async def`: a flow asks with `yield from` or `await`; "
            "register it as a plain tool"
        )


def check_undriven(fn: Callable[..., Any], name: str) -> None:
    """Refuse effects that the source makes and provably does not drive: alone on a line, in a condition, returned."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return  # no source (a REPL, a frozen app): the engine reports them when the flow completes
    scope: Mapping[str, Any] = getattr(fn, "__globals__", {})
    for node in ast.walk(tree):
        places: list[ast.expr | None] = []
        if isinstance(node, ast.Expr | ast.Return):
            places.append(node.value)
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            places.append(node.test)
        elif isinstance(node, ast.BoolOp):
            places.extend(node.values)
        elif isinstance(node, ast.UnaryOp):
            places.append(node.operand)
        elif isinstance(node, ast.Compare):
            places.extend((node.left, *node.comparators))
        elif isinstance(node, ast.FormattedValue):
            places.append(node.value)
        for place in places:
            maker = _maker(place, scope)
            if maker is not None:
                line = fn.__code__.co_firstlineno + cast("ast.expr", place).lineno - 1
                raise DefinitionError(f"{maker}(...) on line {line} of {name} is not driven: {MISSING_KEYWORD}")


def _maker(node: ast.expr | None, scope: Mapping[str, Any]) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr == "options":
        return _maker(called.value, scope)
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        target = getattr(scope.get(called.value.id), called.attr, None)
    elif isinstance(called, ast.Name):
        target = scope.get(called.id)
    else:
        return None
    return _MAKERS.get(id(target))
