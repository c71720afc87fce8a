"""MRTR as plain dicts (spec 2026-07-28: multi round-trip requests): no SDK, no I/O.

`inputResponses`, capabilities, canonical arguments and the error table. What a single question looks like is in
`questions`, what a result looks like in `results`. An entry of `inputResponses` that fits no shape of the schema is
-32602 for the whole request; one that fits the schema and not its question is wrong, and the question is asked again
with the reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from mrtr_flow.errors import INVALID_PARAMS, MISSING_CAPABILITY, ProtocolError
from mrtr_flow.plain import MAX_DEPTH, is_array, is_object
from mrtr_flow.shapes import is_completion, is_root

__all__ = (
    "canonical",
    "declared",
    "missing_capability",
    "responses_of",
)

PROTOCOL_VERSION: Final = "2026-07-28"
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_SERVER: Final = "io.modelcontextprotocol/serverInfo"
MAX_ARGUMENTS: Final = 1024 * 1024
_ACTIONS: Final = ("accept", "decline", "cancel")


# ---------------------------------------------------------------------- requests


def canonical(arguments: Any) -> tuple[dict[str, Any], bytes]:
    """A copy of a request's arguments as JSON values, and the bytes a token is bound to.

    Absent is `{}`; 1.0 and -0.0 are 1 and 0; key order and escapes do not matter; 1, true and "1" differ. Raises
    `ProtocolError` -32602 for what is no JSON object, not finite, over 1 MiB, or over 64 levels deep.
    """
    if arguments is None:
        arguments = {}
    if not is_object(arguments):
        raise ProtocolError(INVALID_PARAMS, "arguments are not an object")
    copy: dict[str, Any] = _canonical(arguments, 0)
    try:
        data = _encode(copy).encode()
    except ValueError:  # an integer with more digits than Python converts
        raise ProtocolError(INVALID_PARAMS, "arguments hold a number that is too long") from None
    if len(data) > MAX_ARGUMENTS:
        raise ProtocolError(INVALID_PARAMS, f"arguments take {len(data)} bytes of at most {MAX_ARGUMENTS}")
    return copy, data


_encode: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _canonical(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if depth > MAX_DEPTH:
        raise ProtocolError(INVALID_PARAMS, f"arguments are nested more than {MAX_DEPTH} levels deep")
    if is_object(value):
        return {_name(key): _canonical(item, depth + 1) for key, item in value.items()}
    if is_array(value):
        return [_canonical(item, depth + 1) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ProtocolError(INVALID_PARAMS, "arguments hold a number that is not finite")
        return int(value) if value.is_integer() else value
    raise ProtocolError(INVALID_PARAMS, f"arguments hold a {type(value).__name__}, which is no JSON value")


def _name(key: Any) -> str:
    if not isinstance(key, str):
        raise ProtocolError(INVALID_PARAMS, "arguments hold a name that is not text")
    return key


def responses_of(responses: Any) -> dict[str, Mapping[str, Any]]:
    """The entries of `inputResponses`. Raises `ProtocolError` -32602 for an entry that is none of the schema's."""
    if responses is None:
        return {}
    if not is_object(responses):
        raise ProtocolError(INVALID_PARAMS, "inputResponses is not an object")
    for entry in responses.values():
        if is_object(entry) and isinstance(entry.get("action"), str) and entry["action"] not in _ACTIONS:
            raise ProtocolError(INVALID_PARAMS, f"inputResponses holds an action that is none of {', '.join(_ACTIONS)}")
        if not is_object(entry) or not _known_shape(entry):
            raise ProtocolError(INVALID_PARAMS, "inputResponses holds an entry that is no answer of the schema")
    return dict(responses)


def _known_shape(entry: Mapping[str, Any]) -> bool:
    content = entry.get("content")
    if entry.get("action") in _ACTIONS:
        return content is None or (is_object(content) and all(map(_known_value, content.values())))
    roots = entry.get("roots")
    if is_array(roots):
        return all(map(is_root, roots))
    return is_completion(entry)


def _known_value(value: Any) -> bool:
    if is_array(value):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int | float)


def declared(capabilities: Mapping[str, Any], required: Mapping[str, Any]) -> bool:
    """Whether a request's client capabilities cover what a question requires. `elicitation: {}` means forms only."""
    for name, needs in required.items():
        have: Any = capabilities.get(name)
        if not is_object(have):
            return False
        offered: Mapping[str, Any] = have or ({"form": {}} if name == "elicitation" else {})
        if any(not is_object(offered.get(need)) for need in needs):
            return False
    return True


# ---------------------------------------------------------------------- errors


def invalid_state() -> ProtocolError:
    """The one answer to every `requestState` that does not verify; why is in the log only."""
    return ProtocolError(INVALID_PARAMS, "Invalid or expired requestState", {"reason": "invalid_request_state"})


def expired_state() -> ProtocolError:
    """The answer to an authentic `requestState` that is too old."""
    return ProtocolError(
        INVALID_PARAMS,
        "The question waited too long for its answer, so this call has expired; call again from the start",
        {"reason": "expired_request_state"},
    )


def missing_capability(required: Mapping[str, Any]) -> ProtocolError:
    """The client cannot be asked what the call needs (spec: basic, error codes)."""
    names = ", ".join(".".join((name, need)) for name, needs in required.items() for need in needs or ("*",))
    return ProtocolError(
        MISSING_CAPABILITY,
        f"this call asks something that needs the client capability {names.replace('.*', '')}, which is not declared",
        {"requiredCapabilities": dict(required)},
    )
