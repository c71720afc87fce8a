"""`@flow`: a function becomes a tool, a prompt or a resource: name, version, signature, schemas.

Whatever can be known here fails here.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import typing
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import suppress
from functools import cached_property, update_wrapper
from typing import Any, ClassVar, Final, Generic, ParamSpec, Protocol, TypedDict, TypeVar, cast, overload

from typing_extensions import Unpack

from mrtr_flow.engine import Identity
from mrtr_flow.errors import DefinitionError, FlowError
from mrtr_flow.frames import Driven
from mrtr_flow.grammar import resolve
from mrtr_flow.output import Output
from mrtr_flow.reply import holds_reply
from mrtr_flow.schema import Parameters, type_hints, type_name
from mrtr_flow.seal import SEMANTICS
from mrtr_flow.source import check_kind, check_undriven
from mrtr_flow.steps import host_class
from mrtr_flow.uri import MAX_URI, UriTemplate

__all__ = (
    "DEFAULT_MAX_AGE",
    "DEFAULT_TTL",
    "Definition",
    "Options",
    "PromptDefinition",
    "ResourceDefinition",
    "ToolOptions",
    "flow",
)

P = ParamSpec("P")
F_co = TypeVar("F_co", bound=Generator[Any, Any, Any] | Coroutine[Any, Any, Any], covariant=True)
F = TypeVar("F", bound=Generator[Any, Any, Any] | Coroutine[Any, Any, Any])

DEFAULT_TTL: Final = 30 * 60.0
MAX_SECONDS: Final = 366 * 24 * 60 * 60
DEFAULT_MAX_AGE: Final = 24 * 60 * 60.0
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)


class Options(TypedDict, total=False):
    """What a flow may be told about itself. `name`, `title` and `description` are listed to clients.

    `version` tells calls that are under way from calls of other code. `steps=False` leaves the run id out of the
    token (14 characters) and with it steps, `current().id` and what is drawn from it. `ttl` (seconds, default 30
    minutes) is how long a question may wait for its answer, `max_age` (seconds, default 24 hours) how long a run may
    take in all. `examples` gives arguments by name and answers by key, for `play` and tests.
    """

    name: str
    title: str
    description: str
    version: str
    steps: bool
    ttl: float
    max_age: float
    examples: Mapping[str, Any]


class ToolOptions(Options, total=False):
    """`annotations` are the tool's (spec: tools/list)."""

    annotations: Mapping[str, Any]


class Definition(Generic[P, F_co]):
    """A flow that is a tool: the author's function and what is known about it. See `Options`.

    Calling it calls the function, so `yield from book(...)` inside another flow stays inline.
    """

    is_flow: ClassVar[bool] = True
    method: ClassVar[str] = "tools/call"
    failure: ClassVar[str] = "Error executing tool"

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
        own_name = str(name or getattr(fn, "__name__", type(fn).__name__))
        check_kind(fn, own_name)
        update_wrapper(cast("Callable[..., Any]", self), fn, updated=())
        self.fn: Final = fn
        self.name: Final = own_name
        if not _NAME.fullmatch(self.name):
            raise DefinitionError(f"name of flow {self.name!r} is no tool name; use letters, digits, '_', '-' and '.'")
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
        check_undriven(fn, self.name)
        with suppress(_Unresolved):  # a name that is defined further down: tried again when the flow is registered
            self.check()

    def check(self) -> None:
        """Build all that is built once. Raises `DefinitionError`."""
        _ = self.parameters, self.output

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> F_co:
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<flow {self.label}>"

    @property
    def label(self) -> str:
        """`name` or `name@version`, for logs."""
        return self.name if self.version is None else f"{self.name}@{self.version}"

    @cached_property
    def identity(self) -> Identity:
        """What the chain of a run starts from."""
        return Identity(self.label, self.name, self.version, SEMANTICS, self.parameters.digest)

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
            if parameter.name == "self":
                raise DefinitionError(f"{self.name} is a method; a flow is a function, since each round starts it anew")
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

    def _no_reply(self, instead: str) -> None:
        if holds_reply(self._signature[2]):
            raise DefinitionError(f"result of {self.name} is a Reply, which only a tool can give; return {instead}")

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

    def target(self, arguments: Mapping[str, Any]) -> str:
        """What a request for this flow names: the tool's or prompt's name, or the resource's URI."""
        return self.name

    def sent(self, arguments: Any) -> Any:
        """What counts of a request's `arguments`; a token is bound to it."""
        return arguments

    def given(self, target: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments a request gives the flow."""
        return arguments

    def start(self, arguments: Mapping[str, Any], host: object) -> Driven:
        """A new generator or coroutine of the flow."""
        extra = {} if self.host_parameter is None else {self.host_parameter: host}
        return cast("Driven", cast("Callable[..., Any]", self.fn)(**arguments, **extra))


class _Unresolved(DefinitionError):
    pass


class PromptDefinition(Definition[P, F_co]):
    """A flow that is a prompt (spec: prompts/get). Its arguments are text on the wire; it returns messages."""

    method: ClassVar[str] = "prompts/get"
    failure: ClassVar[str] = "Error getting prompt"

    def check(self) -> None:
        self._no_reply("texts or messages")
        schema = self.parameters.json_schema
        for name, field in schema["properties"].items():
            if not _takes_text(field, schema.get("$defs", {})):
                raise DefinitionError(
                    f"parameter {name!r} of prompt {self.name} is no text on the wire; use a scalar type"
                )


def _takes_text(field: Mapping[str, Any], defs: Mapping[str, Any]) -> bool:
    """Whether a field, or one of its alternatives, is read from a text. Null is not: no text is null."""
    field = resolve(field, defs)
    alternatives = field.get("anyOf") or field.get("oneOf")
    if alternatives:
        return any(_takes_text(alternative, defs) for alternative in alternatives)
    return field.get("type") not in ("object", "array", "null")


class ResourceDefinition(Definition[P, F_co]):
    """A flow that reads a resource (spec: resources/read), by a URI template whose variables are its parameters."""

    method: ClassVar[str] = "resources/read"
    failure: ClassVar[str] = "Error reading resource"

    def __init__(self, fn: Callable[P, F_co], template: str, mime_type: str, **options: Unpack[Options]) -> None:
        self.template: Final = UriTemplate(template)
        self.mime_type: Final = mime_type
        super().__init__(fn, **options)

    def check(self) -> None:
        self._no_reply("text, bytes or a value")
        names = set(self.parameters.json_schema["properties"])
        if names != set(self.template.variables):
            raise DefinitionError(
                f"parameters of resource {self.name} are {', '.join(sorted(names)) or 'none'}, the variables of "
                f"{self.template} are {', '.join(self.template.variables)}; make them the same"
            )

    def target(self, arguments: Mapping[str, Any]) -> str:
        """Raises `FlowError` for arguments that the URI would not give back."""
        meant = {name: str(arguments[name]) for name in self.template.variables}
        uri = self.template.expand(meant)
        if len(uri) > MAX_URI:
            raise FlowError(f"uri of {self.name} has {len(uri)} characters of at most {MAX_URI}; give shorter values")
        read = self.template.match(uri)
        if read != meant:
            raise FlowError(
                f"uri {uri!r} of {self.name} is read as {read or 'no values'}, not as {meant}; give values that are "
                f"not empty, lead out of no directory and do not hold what separates them in {self.template}"
            )
        return uri

    def sent(self, arguments: Any) -> None:
        """Nothing: a URI says it all."""

    def given(self, target: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.template.match(target) or {}


class _ToolDecorator(Protocol):
    def __call__(self, fn: Callable[P, F], /) -> Definition[P, F]: ...


class _PromptDecorator(Protocol):
    def __call__(self, fn: Callable[P, F], /) -> PromptDefinition[P, F]: ...


class _ResourceDecorator(Protocol):
    def __call__(self, fn: Callable[P, F], /) -> ResourceDefinition[P, F]: ...


class _FlowDecorator:
    """Make a generator or `async def` function a flow: `@flow` a tool, `@flow.prompt`, `@flow.resource("notes://{id}")`.

    Each takes the options of `Options`. Raises `DefinitionError` for a function that cannot be one, a signature JSON
    cannot describe, an option out of range, and effects that are made without `yield from` or `await`.
    """

    @overload
    def __call__(self, fn: Callable[P, F], /) -> Definition[P, F]: ...
    @overload
    def __call__(self, **options: Unpack[ToolOptions]) -> _ToolDecorator: ...
    def __call__(self, fn: Callable[..., Any] | None = None, **options: Any) -> Any:
        """A tool."""

        def decorate(function: Callable[..., Any]) -> Definition[..., Any]:
            return Definition(function, **options)

        return decorate if fn is None else decorate(fn)

    @overload
    def prompt(self, fn: Callable[P, F], /) -> PromptDefinition[P, F]: ...
    @overload
    def prompt(self, **options: Unpack[Options]) -> _PromptDecorator: ...
    def prompt(self, fn: Callable[..., Any] | None = None, **options: Any) -> Any:
        """A prompt: returns text, a message, or a list of them (spec: prompts/get)."""

        def decorate(function: Callable[..., Any]) -> PromptDefinition[..., Any]:
            return PromptDefinition(function, **options)

        return decorate if fn is None else decorate(fn)

    def resource(
        self, template: str, /, *, mime_type: str = "text/plain", **options: Unpack[Options]
    ) -> _ResourceDecorator:
        """A resource by URI template, `{name}` for each parameter: returns text, bytes, or a value sent as JSON."""
        if not isinstance(cast("object", template), str):
            raise DefinitionError('@flow.resource has no URI template; write @flow.resource("notes://{id}")')

        def decorate(function: Any) -> Any:
            return ResourceDefinition(function, template, mime_type, **options)

        return decorate


flow: Final = _FlowDecorator()


def _seconds(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MAX_SECONDS:
        raise DefinitionError(f"{what} is {value!r}; give a number of seconds, from 1 to {MAX_SECONDS} (a year)")
    return float(value)


def _result(annotation: Any, fn: Callable[..., Any]) -> Any:
    if inspect.isgeneratorfunction(fn):
        args = typing.get_args(annotation)
        origin = typing.get_origin(annotation)
        if origin is None or not issubclass(origin, Generator) or len(args) != 3:
            return Any
        annotation = args[2]
    elif typing.get_origin(annotation) is Generator:
        result = type_name(typing.get_args(annotation)[2])
        raise DefinitionError(f"{fn.__name__} is async and annotated -> Flow[{result}]; annotate it -> {result}")
    return type(None) if annotation is None else annotation
