"""`@flow`: a function becomes a flow: name, version, signature, schemas. Whatever can be known here fails here."""

from __future__ import annotations

import ast
import hashlib
import inspect
import math
import re
import textwrap
import typing
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import suppress
from functools import cached_property, update_wrapper
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from mrtr_flow.effects import MISSING_KEYWORD
from mrtr_flow.elicitation import ask, ask_url, confirm
from mrtr_flow.engine import Identity
from mrtr_flow.errors import DefinitionError
from mrtr_flow.frames import Driven
from mrtr_flow.questions import gather
from mrtr_flow.roots import list_roots
from mrtr_flow.sampling import sample
from mrtr_flow.schema import Output, Parameters, type_hints
from mrtr_flow.seal import SEMANTICS
from mrtr_flow.steps import host_class, step

__all__ = ("DEFAULT_MAX_AGE", "DEFAULT_TTL", "Definition", "flow")

P = ParamSpec("P")
F_co = TypeVar("F_co", bound=Generator[Any, Any, Any] | Coroutine[Any, Any, Any], covariant=True)
F = TypeVar("F", bound=Generator[Any, Any, Any] | Coroutine[Any, Any, Any])

DEFAULT_TTL: Final = 30 * 60.0
DEFAULT_MAX_AGE: Final = 24 * 60 * 60.0
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)
_MAKERS: Final = {id(maker): maker.__name__ for maker in (ask, ask_url, confirm, gather, list_roots, sample, step)}


class Definition(Generic[P, F_co]):
    """A flow: the author's function and what is known about it.

    Calling it calls the function, so `yield from book(...)` inside another flow stays inline.
    `name`, `title`, `description` and `annotations` are the tool's (spec: tools/list); `ttl` (seconds) is how long a
    question may wait for its answer, `max_age` (seconds) how long a run may take in all. `examples` answers questions
    by key, for `play` and tests.
    """

    def __init__(
        self,
        fn: Callable[P, F_co],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        version: str | None = None,
        steps: bool = True,
        ttl: float = DEFAULT_TTL,
        max_age: float | None = None,
        examples: Mapping[str, Any] | None = None,
    ) -> None:
        self.fn: Final = fn
        self.name: Final = name or fn.__name__
        if not _NAME.fullmatch(self.name):
            raise DefinitionError(f"name of flow {self.name!r} is no tool name; use letters, digits, '_', '-' and '.'")
        _check_kind(fn, self.name)
        self.title: Final = title
        self.description: Final = description if description is not None else inspect.getdoc(fn) or ""
        self.annotations: Final = dict(annotations) if annotations is not None else None
        if version is not None and not (isinstance(cast("object", version), str) and version):
            raise DefinitionError(f"version of {self.name} is {version!r}; give a text such as '2', or leave it out")
        self.version: Final = version
        self.steps: Final = steps
        if not steps and max_age is not None:
            raise DefinitionError(
                f"max_age of {self.name} needs the start time that steps=False leaves out; drop one of them"
            )
        self.ttl: Final = _seconds(f"ttl of {self.name}", ttl)
        self.max_age: Final = _seconds(f"max_age of {self.name}", DEFAULT_MAX_AGE if max_age is None else max_age)
        self.examples: Final[Mapping[str, Any]] = dict(examples or {})
        _check_undriven(fn, self.name)
        update_wrapper(cast("Callable[..., Any]", self), fn)
        with suppress(_Unresolved):  # a name that is defined further down: tried again when the flow is registered
            _ = self.parameters, self.output

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> F_co:
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<flow {self.identity}>"

    @property
    def identity(self) -> Identity:
        return Identity(self.name, self.version, SEMANTICS)

    @cached_property
    def version_tag(self) -> int | None:
        """The byte that tells versions apart in a token, or None for a flow without `version=`."""
        if self.version is None:
            return None
        return hashlib.sha256(f"{self.name}\0{self.version}".encode("utf-8", "surrogatepass")).digest()[0]

    @cached_property
    def _signature(self) -> tuple[dict[str, tuple[Any, Any]], str | None, Any]:
        """Parameters by name, the host parameter's name, the result type."""
        try:
            hints = type_hints(self.fn)
        except NameError as error:
            raise _Unresolved(f"signature of {self.name} names {error.name!r}, which is not defined") from error
        fields: dict[str, tuple[Any, Any]] = {}
        host: str | None = None
        for parameter in inspect.signature(self.fn).parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise DefinitionError(
                    f"parameter {parameter.name!r} of {self.name} cannot be given by name; tool arguments are named"
                )
            annotation = hints.get(parameter.name, Any)
            if host_class(annotation):
                if host is not None:
                    raise DefinitionError(
                        f"{self.name} has two host parameters, {host!r} and {parameter.name!r}; keep one"
                    )
                host = parameter.name
                continue
            fields[parameter.name] = (annotation, ... if parameter.default is parameter.empty else parameter.default)
        return fields, host, _result(hints.get("return", Any), self.fn)

    @cached_property
    def parameters(self) -> Parameters:
        """The tool's arguments. Raises `DefinitionError` for types JSON cannot describe."""
        return Parameters(self.name, self._signature[0])

    @cached_property
    def output(self) -> Output:
        """The tool's result."""
        return Output(self._signature[2])

    @property
    def host_parameter(self) -> str | None:
        """The name of the parameter that takes the host's request context, if there is one."""
        return self._signature[1]

    def start(self, arguments: Mapping[str, Any], host: object) -> Driven:
        """A new generator or coroutine of the flow."""
        extra = {} if self.host_parameter is None else {self.host_parameter: host}
        return cast("Driven", cast("Callable[..., Any]", self.fn)(**arguments, **extra))


class _Unresolved(DefinitionError):
    pass


class _Decorator(Protocol):
    def __call__(self, fn: Callable[P, F], /) -> Definition[P, F]: ...


@overload
def flow(fn: Callable[P, F], /) -> Definition[P, F]: ...
@overload
def flow(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    annotations: Mapping[str, Any] | None = None,
    version: str | None = None,
    steps: bool = True,
    ttl: float = DEFAULT_TTL,
    max_age: float | None = None,
    examples: Mapping[str, Any] | None = None,
) -> _Decorator: ...
def flow(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a generator or `async def` function a flow. See `Definition` for the options.

    Raises `DefinitionError` for a function that cannot be one, a signature JSON cannot describe, an option out of
    range, and effects that are made without `yield from` or `await`.
    """

    def decorate(function: Callable[..., Any]) -> Definition[..., Any]:
        return Definition(function, **options)

    return decorate if fn is None else decorate(fn)


def _check_kind(fn: Any, name: str) -> None:
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


def _seconds(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 1:
        raise DefinitionError(f"{what} is {value!r}; give a finite number of seconds, 1 or more")
    return float(value)


def _result(annotation: Any, fn: Callable[..., Any]) -> Any:
    if inspect.isgeneratorfunction(fn):
        args = typing.get_args(annotation)
        origin = typing.get_origin(annotation)
        if origin is None or not issubclass(origin, Generator) or len(args) != 3:
            return Any
        annotation = args[2]
    return type(None) if annotation is None else annotation


def _check_undriven(fn: Callable[..., Any], name: str) -> None:
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
