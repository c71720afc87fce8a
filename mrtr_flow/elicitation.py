"""Questions a person answers: `ask`, `confirm`, `ask_url` (spec: elicitation)."""
# the defaults of D and U are what an argument that is left out stands for
# pyright: reportInvalidTypeVarUse=false

from __future__ import annotations

import builtins
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Never, TypeVar, cast, overload
from urllib.parse import SplitResult, urlsplit

import typing_extensions
from typing_extensions import TypeForm

from mrtr_flow.effects import Effect, made_at
from mrtr_flow.errors import DefinitionError
from mrtr_flow.form import Form, form_for, raw_form
from mrtr_flow.plain import fresh
from mrtr_flow.questions import ATTEMPTS, CANCELLED, CONSENT, DECLINED, OTHER_KIND, RAISE, Question, Raise, Wrong
from mrtr_flow.schema import Invalid

__all__ = ("Ask", "AskUrl", "Confirm", "ask", "ask_url", "confirm")

T = TypeVar("T")
D = typing_extensions.TypeVar("D", default=Never)
U = typing_extensions.TypeVar("U", default=Never)


class _Elicitation(Question):
    """What a person answers with accept, decline or cancel (spec: elicitation, response actions)."""

    def judge(self, response: Mapping[str, Any]) -> Any:
        action = response.get("action")
        if action == "decline":
            return DECLINED
        if action == "cancel":
            return CANCELLED
        return self.accept(response.get("content")) if action == "accept" else OTHER_KIND

    @abstractmethod
    def accept(self, content: Any) -> Any:
        """The item for an accept with this content, or `Wrong`."""

    def _elicit(self, reason: str | None, **params: Any) -> dict[str, Any]:
        message = self.text if reason is None else f"{self.text}\n(The last answer was not taken: {reason}.)"
        return {"method": "elicitation/create", "params": {"message": message, **params}}


@dataclass(frozen=True, eq=False)
class Ask(_Elicitation):
    """A form (spec: elicitation, form mode)."""

    kind: ClassVar[str] = "ask"
    form: Form = field(kw_only=True)

    @property
    def schema_digest(self) -> bytes:
        return self.form.digest

    @property
    def requires(self) -> dict[str, Any]:
        return {"elicitation": {"form": {}}}

    def request(self, reason: str | None = None) -> dict[str, Any]:
        return self._elicit(reason, mode="form", requestedSchema=fresh(self.form.schema))

    def accept(self, content: Any) -> Any:
        try:
            return self.form.packing.pack(self.form.accept(content))
        except Invalid as error:
            return Wrong(str(error))

    def value(self, recorded: Any) -> Any:
        return self.form.decode(self.form.packing.unpack(recorded))


@dataclass(frozen=True, eq=False)
class Confirm(Ask):
    """A yes/no form: True only for accept and `ok: true`."""

    kind: ClassVar[str] = "confirm"

    def value(self, recorded: Any) -> Any:
        return super().value(recorded)["ok"] is True


_CONFIRM: Final = {
    "type": "object",
    "properties": {"ok": {"type": "boolean", "title": "Confirm"}},
    "required": ["ok"],
}


@overload
def ask(
    message: str, schema: Mapping[str, Any], /, *, key: str | None = None, attempts: int = ATTEMPTS
) -> Effect[dict[str, Any]]: ...
@overload
def ask(message: str, type: TypeForm[T], /, *, key: str | None = None, attempts: int = ATTEMPTS) -> Effect[T]: ...
@overload
def ask(
    message: str,
    schema: Mapping[str, Any],
    /,
    *,
    key: str | None = None,
    if_declined: D | Raise = ...,
    if_unsupported: U | Raise = ...,
    attempts: int = ATTEMPTS,
) -> Effect[dict[str, Any] | D | U]: ...
@overload
def ask(
    message: str,
    type: TypeForm[T],
    /,
    *,
    key: str | None = None,
    if_declined: D | Raise = ...,
    if_unsupported: U | Raise = ...,
    attempts: int = ATTEMPTS,
) -> Effect[T | D | U]: ...
def ask(
    message: str,
    type: Any,
    /,
    *,
    key: str | None = None,
    if_declined: Any = RAISE,
    if_unsupported: Any = RAISE,
    attempts: int = ATTEMPTS,
) -> Effect[Any]:
    """Ask the person for a `type` in a form (spec: elicitation, form mode).

    `type` is a pydantic model, dataclass or TypedDict of flat fields; a scalar, `Literal`, `Enum`, `date`,
    `list[Literal[...]]` (wrapped in one field, `value`); or a raw JSON schema, whose answers are dicts.
    `key` goes on the wire as it is; by default `ask`, then `ask~2`. `attempts` counts answers in all before the call
    ends because they were wrong. `if_declined` and `if_unsupported` are results to go on with.

    Raises in the flow: `Declined`, `Cancelled`, `CapabilityMissing`. Raises here: `DefinitionError`, if the form
    grammar lacks the type.
    """
    origin = made_at()
    if not isinstance(type, Mapping) and not _is_type(type):  # an answer may be, and is not quoted
        name = builtins.type(type).__name__
        raise DefinitionError(f"type asked at {origin} is a value of type {name}; give a type, or a form as a dict")
    try:
        form = raw_form(cast("Mapping[str, Any]", type)) if isinstance(type, Mapping) else form_for(type)
    except DefinitionError as error:
        raise DefinitionError(f"{error} (asked at {origin})") from error.__cause__
    return Ask(
        key,
        message,
        form=form,
        attempts=attempts,
        if_declined=if_declined,
        if_unsupported=if_unsupported,
        origin=origin,
    )


def _is_type(value: object) -> bool:
    """Whether a value can be an annotation: a class, None, or what typing has for them (`list[str]`, `int | None`)."""
    return (
        value is None or isinstance(value, type) or type(value).__module__ in ("types", "typing", "typing_extensions")
    )


def confirm(message: str, /, *, key: str | None = None, if_unsupported: U | Raise = RAISE) -> Effect[bool | U]:
    """Ask for a yes. True only if the client accepts and `ok` is true; a decline is False.

    Raises in the flow: `Cancelled`, `CapabilityMissing`.
    """
    return Confirm(
        key, message, form=raw_form(_CONFIRM), if_declined=False, if_unsupported=if_unsupported, origin=made_at()
    )


_URL: Final = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+", re.ASCII)
"""What RFC 3986 has in a URI."""


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # an open bracket, a port out of range
        return None
    return parts


@dataclass(frozen=True, eq=False)
class AskUrl(_Elicitation):
    """A page to open (spec: elicitation, URL mode)."""

    kind: ClassVar[str] = "url"
    url: str = field(kw_only=True)

    def __post_init__(self) -> None:
        # none of the texts quotes the url: a query may hold an answer or a secret
        place = f"url of {self.label} at {self.origin}"
        if not isinstance(cast("object", self.url), str):
            raise DefinitionError(f"{place} is of type {type(self.url).__name__}; give https://host/path as text")
        if not _URL.fullmatch(self.url):
            raise DefinitionError(f"{place} has characters no address has; quote them as urllib.parse.quote does")
        parts = _split(self.url)
        if parts is None or parts.scheme not in ("https", "http") or not parts.hostname:
            raise DefinitionError(f"{place} is no web address; give https://host/path")
        if parts.username is not None or parts.password is not None:
            raise DefinitionError(f"{place} holds credentials; a page must sign in by itself")
        super().__post_init__()

    @property
    def schema_digest(self) -> bytes:
        return self.url.encode()

    @property
    def requires(self) -> dict[str, Any]:
        return {"elicitation": {"url": {}}}

    def request(self, reason: str | None = None) -> dict[str, Any]:
        return self._elicit(reason, mode="url", url=self.url)

    def accept(self, content: Any) -> Any:
        return CONSENT

    def value(self, recorded: Any) -> None:
        if recorded != CONSENT:
            raise ValueError("recorded answer is no consent")


def ask_url(
    message: str,
    url: str,
    /,
    *,
    key: str | None = None,
    if_declined: D | Raise = RAISE,
    if_unsupported: U | Raise = RAISE,
) -> Effect[D | U | None]:
    """Ask the person to open a page (spec: elicitation, URL mode).

    The answer is consent to open it, not that anything was done there: find out with a step, a bounded number of
    times. Secrets are typed in on such a page, never in a form. `url` carries nothing that signs anybody in.

    Raises in the flow: `Declined`, `Cancelled`, `CapabilityMissing`. Raises here: `DefinitionError` for what is no
    web address.
    """
    return AskUrl(key, message, url=url, if_declined=if_declined, if_unsupported=if_unsupported, origin=made_at())
