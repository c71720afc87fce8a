"""The exceptions of mrtr_flow. Imports nothing.

Whose fault decides the branch: the author's (`DefinitionError`, `EffectMisused`, `NotRecordable`,
`LimitExceeded`, `FlowDiverged`), the client's (`InvalidToken`, `ProtocolError`), or nobody's: something the
flow may catch (`NotAnswered`, `CapabilityMissing`, `StepError`).

Texts are lower case, subject first, and end with the remedy. None of them contains an answer, a step result or
a token: they are logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

__all__ = (
    "Cancelled",
    "CapabilityMissing",
    "Declined",
    "DefinitionError",
    "EffectMisused",
    "FlowDiverged",
    "FlowError",
    "InvalidToken",
    "LimitExceeded",
    "NotAnswered",
    "NotRecordable",
    "ProtocolError",
    "StepError",
    "UnsupportedByClient",
    "WrongAnswers",
)

INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
METHOD_NOT_FOUND: Final = -32601
INVALID_REQUEST: Final = -32600
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022


class FlowError(Exception):
    """Base of every exception this package raises."""


class DefinitionError(FlowError):
    """A flow, a form or an option is wrong. Raised when it is defined or registered, or when an effect is made."""


class EffectMisused(FlowError):
    """An effect was used as a value, never driven, or something that is no effect was yielded or awaited."""


class NotRecordable(FlowError):
    """A value cannot be replayed exactly. Raised when it would be recorded; `path` names the place in it."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path: Final = path


class LimitExceeded(FlowError):
    """A run grew past a cap: effects in a round, events in a run, the size of a value, or the token."""


class FlowDiverged(FlowError):
    """Replay did not reach the place the token was minted at. Final for that token; a flow cannot catch it."""


class NotAnswered(FlowError):
    """Thrown into a flow whose question was not answered. `key` is the question's key on the wire."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key: Final = key


@final
class Declined(NotAnswered):
    """The client answered `action: "decline"`."""


@final
class Cancelled(NotAnswered):
    """The client answered `action: "cancel"`."""


@final
class CapabilityMissing(FlowError):
    """Thrown into a flow whose question the client cannot be asked (MCP: missing client capability).

    `required` is a `ClientCapabilities` object such as `{"elicitation": {"form": {}}}`.
    """

    def __init__(self, message: str, required: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.required: Final = dict(required)


@final
class StepError(FlowError):
    """Thrown into a flow whose step raised, live and replayed alike. `type` is the exception's qualified name."""

    def __init__(self, step: str, type: str, message: str) -> None:
        super().__init__(f"step {step!r} raised {type}: {message}" if message else f"step {step!r} raised {type}")
        self.step: Final = step
        self.type: Final = type
        self.message: Final = message

    def is_a(self, name: str | type[BaseException]) -> bool:
        """Whether the step raised exactly this type, given by class, name or qualified name."""
        if not isinstance(name, str):
            name = f"{name.__module__}.{name.__qualname__}".removeprefix("builtins.")
        return self.type == name or self.type.rpartition(".")[2] == name


class WrongAnswers(FlowError):
    """A question was answered wrongly as often as it may be. Ends the call; a flow cannot catch it."""


class UnsupportedByClient(FlowError):
    """The client speaks a protocol version that has no multi round-trip requests."""


class InvalidToken(FlowError):
    """A `requestState` does not verify. `reason` is for the log only; the wire error is one constant text.

    `expired` is True only for a token that is authentic and too old.
    """

    def __init__(self, reason: str, *, expired: bool = False) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.expired: Final = expired


class ProtocolError(FlowError):
    """A request that ends in a JSON-RPC error object: `code`, `message`, `data`."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code: Final = code
        self.message: Final = message
        self.data: Final = data
