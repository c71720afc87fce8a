"""What a flow's function tells before it runs: what kind it is, and which effects its source does not drive."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

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
    """Raise `DefinitionError` for effects that are made and provably not driven.

    Those are: alone on a line, in a condition, a comparison, a format or an assertion, returned, or given to a step.
    """
    inner = inspect.unwrap(fn)
    try:
        lines, start = inspect.getsourcelines(inner)
        indented = lines[0][:1].isspace()
        tree = ast.parse(("if 1:\n" if indented else "") + "".join(lines))
    except (OSError, TypeError, SyntaxError, ValueError):
        return  # no source (a REPL, a frozen app): the engine reports them when the flow completes
    before = start - (2 if indented else 1)
    own = {*inner.__code__.co_varnames, *inner.__code__.co_cellvars}
    scope = {key: value for key, value in inner.__globals__.items() if key not in own}
    function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    for node in _inside(function):
        for place in _undriven_places(node, scope):
            maker = _maker(place, scope)
            if maker is not None:
                line = before + place.lineno
                raise DefinitionError(f"{maker}(...) on line {line} of {name} is not driven: {MISSING_KEYWORD}")


def _inside(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes inside it: what they return is theirs."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _inside(child)


def _undriven_places(node: ast.AST, scope: Mapping[str, Any]) -> Iterator[ast.expr]:
    if isinstance(node, ast.Expr | ast.Return | ast.FormattedValue) and node.value is not None:
        yield node.value
    elif isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        yield from _truth(node.test)
    elif isinstance(node, ast.UnaryOp):
        yield from _truth(node.operand)
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.Call) and _maker(node, scope) == "step":
        yield from (*node.args, *(keyword.value for keyword in node.keywords))


def _truth(node: ast.expr) -> Iterator[ast.expr]:
    """What is asked for its truth in a condition."""
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _truth(value)
    else:
        yield node


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
