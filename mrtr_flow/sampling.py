"""The question a model answers: `sample` (spec: sampling/createMessage; deprecated there, and working)."""
# pyright: reportInvalidTypeVarUse=false

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Never, TypeAlias, cast

import typing_extensions

from mrtr_flow.effects import Effect, made_at
from mrtr_flow.errors import DefinitionError, NotRecordable
from mrtr_flow.packing import compile_schema
from mrtr_flow.plain import check_plain, is_array, is_object
from mrtr_flow.questions import ATTEMPTS, LONG_ANSWER, OTHER_KIND, RAISE, Question, Raise, Wrong
from mrtr_flow.shapes import (
    BLOCKS,
    MESSAGE,
    ROLE,
    Check,
    is_completion,
    is_number,
    is_share,
    is_text,
    list_of,
    object_of,
    one_of,
)

__all__ = ("Sample", "Sampled", "sample")

U = typing_extensions.TypeVar("U", default=Never)
Message: TypeAlias = Mapping[str, Any]
"""A SamplingMessage: `{"role": "user" | "assistant", "content": text, block or list of blocks}`."""

RESULT: Final = compile_schema(
    {
        "type": "object",
        "properties": {
            "content": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "type": {"enum": list(BLOCKS)},
                        "text": {"type": "string"},
                        "data": {"type": "string"},
                        "mimeType": {"type": "string"},
                    },
                },
            },
            "model": {"type": "string"},
            "role": {"enum": ["assistant", "user"]},
            "stopReason": {"enum": ["endTurn", "stopSequence", "maxTokens", "toolUse"]},
        },
    }
)


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the client's model answered: content blocks as the protocol has them, the model's name, why it stopped."""

    content: tuple[dict[str, Any], ...]
    model: str
    role: str
    stop_reason: str | None

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block["text"] for block in self.content if block["type"] == "text")

    @property
    def tool_uses(self) -> tuple[dict[str, Any], ...]:
        """The blocks that ask for a tool: `id`, `name`, `input`. Answer each in a further `sample`."""
        return tuple(block for block in self.content if block["type"] == "tool_use")


@dataclass(frozen=True, eq=False)
class Sample(Question):
    """A completion by the client's model; `text` is the canonical JSON of its parameters."""

    kind: ClassVar[str] = "sample"
    limit: ClassVar[int] = LONG_ANSWER
    params: dict[str, Any] = field(kw_only=True)

    @property
    def schema_digest(self) -> bytes:
        return RESULT.digest

    @property
    def requires(self) -> dict[str, Any]:
        needs: dict[str, Any] = {}
        if "tools" in self.params or "toolChoice" in self.params:
            needs["tools"] = {}
        if self.params.get("includeContext", "none") != "none":
            needs["context"] = {}
        return {"sampling": needs}

    def request(self, reason: str | None = None) -> dict[str, Any]:
        return {"method": "sampling/createMessage", "params": self.params}

    def judge(self, response: Mapping[str, Any]) -> Any:
        if not is_completion(response):
            return OTHER_KIND
        blocks = _blocks(response)
        # what could not be sent back in a further `sample`
        fault = "it gives a tool result" if _of_type("tool_result", blocks) else _misplaced(response["role"], blocks)
        if fault is not None:
            return Wrong(fault)
        taken: dict[str, Any] = {"content": blocks, "model": response["model"], "role": response["role"]}
        if isinstance(response.get("stopReason"), str):
            taken["stopReason"] = response["stopReason"]
        return RESULT.pack(taken)

    def value(self, recorded: Any) -> Sampled:
        taken = RESULT.unpack(recorded)
        return Sampled(tuple(taken["content"]), taken["model"], taken["role"], taken.get("stopReason"))


def sample(
    messages: str | Sequence[Message],
    /,
    *,
    max_tokens: int,
    system_prompt: str | None = None,
    temperature: float | None = None,
    stop_sequences: Sequence[str] | None = None,
    model_preferences: Mapping[str, Any] | None = None,
    include_context: Literal["none", "thisServer", "allServers"] | None = None,
    metadata: Mapping[str, Any] | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: Literal["auto", "required", "none"] | None = None,
    key: str | None = None,
    attempts: int = ATTEMPTS,
    if_unsupported: U | Raise = RAISE,
) -> Effect[Sampled | U]:
    """Ask the client's model (spec: sampling/createMessage).

    `messages` is one user text, or SamplingMessages, in which a text may stand for its block. The other parameters
    are the protocol's, in its JSON forms; `tools` and `tool_choice` need the client's `sampling.tools`. A client
    cannot decline: it does not send the request again.

    Raises in the flow: `CapabilityMissing`. Raises here: `DefinitionError` for parameters the protocol does not
    allow.
    """
    given: dict[str, Any] = {
        "max_tokens": max_tokens,
        "system_prompt": system_prompt,
        "temperature": temperature,
        "stop_sequences": _as_list(stop_sequences),
        "model_preferences": model_preferences,
        "include_context": include_context,
        "metadata": metadata,
        "tools": _as_list(tools),
        "tool_choice": tool_choice,
    }
    given = {name: value for name, value in given.items() if value is not None or name == "max_tokens"}
    said = [{"role": "user", "content": messages}] if isinstance(messages, str) else _as_list(messages)
    try:  # plain, and nobody else's
        plain = json.loads(json.dumps([said, given], allow_nan=False))
        check_plain(plain)
    except (TypeError, ValueError, RecursionError, NotRecordable) as error:
        raise DefinitionError(f"parameters of sample are not JSON: {error}") from None
    said, given = plain
    params: dict[str, Any] = {"messages": _messages(said)}
    for name, value in given.items():
        wire_name, fits, remedy = _PARAMETERS[name]
        if not fits(value):  # it may be an answer, so it is not quoted
            kind = type(value).__name__
            raise DefinitionError(f"{name} of sample is a value of type {kind} that cannot be sent; give {remedy}")
        params[wire_name] = {"mode": value} if name == "tool_choice" else value
    text = json.dumps(params, sort_keys=True, separators=(",", ":"))
    return Sample(key, text, params=params, attempts=attempts, if_unsupported=if_unsupported, origin=made_at())


_PREFERENCES: Final = object_of(
    {},
    {
        "hints": list_of(object_of({}, {"name": is_text})),
        "costPriority": is_share,
        "speedPriority": is_share,
        "intelligencePriority": is_share,
    },
)
_TOOL: Final = object_of({"name": is_text, "inputSchema": object_of({"type": one_of("object")}, {})}, {})
_PARAMETERS: Final[Mapping[str, tuple[str, Check, str]]] = {
    "max_tokens": ("maxTokens", lambda value: type(value) is int and value >= 1, "a whole number, 1 or more"),
    "system_prompt": ("systemPrompt", is_text, "text"),
    "temperature": ("temperature", is_number, "a number"),
    "stop_sequences": ("stopSequences", list_of(is_text), "a list of texts"),
    "model_preferences": ("modelPreferences", _PREFERENCES, "hints, and priorities from 0 to 1"),
    "include_context": (
        "includeContext",
        one_of("none", "thisServer", "allServers"),
        "none, thisServer or allServers",
    ),
    "metadata": ("metadata", is_object, "a dict"),
    "tools": ("tools", list_of(_TOOL), "a list of the protocol's tools, each with name and inputSchema"),
    "tool_choice": ("toolChoice", one_of("auto", "required", "none"), "auto, required or none"),
}
"""By the name in Python: the name on the wire, what the protocol takes, and that in words."""


def _as_list(value: Any) -> Any:
    """A sequence as a list; a text, and what is no sequence, as it is."""
    is_list = not isinstance(value, str) and isinstance(cast("object", value), Sequence)
    return list(value) if is_list else value


def _messages(messages: Any) -> list[dict[str, Any]]:
    """SamplingMessages in full, held against the protocol's rules for tool results."""
    if not is_array(messages) or not messages:
        raise DefinitionError("messages of sample are no list with a message in it; give a text or SamplingMessages")
    full: list[dict[str, Any]] = []
    open_uses: Counter[str] = Counter()
    for number, message in enumerate(messages, start=1):
        if is_object(message) and isinstance(message.get("content"), str):
            message = {**message, "content": {"type": "text", "text": message["content"]}}
        if not is_object(message) or not ROLE(message.get("role")):
            raise DefinitionError(f"message {number} of sample has no role; give user or assistant")
        if not MESSAGE(message):
            raise DefinitionError(
                f"message {number} of sample has content the protocol does not know; give text, a block or a list of "
                "blocks"
            )
        blocks = _blocks(message)
        if fault := _misplaced(message["role"], blocks):
            raise DefinitionError(f"message {number} of sample is not allowed: {fault}")
        if open_uses != Counter(block["toolUseId"] for block in _of_type("tool_result", blocks)):
            raise DefinitionError(
                f"message {number} of sample must answer every tool use of the message before it, and no other"
            )
        open_uses = Counter(block["id"] for block in _of_type("tool_use", blocks))
        full.append(dict(message))
    if open_uses:
        raise DefinitionError("messages of sample end with a tool use that nothing answers; add its result")
    return full


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return content if is_array(content) else [content]


def _of_type(name: str, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in blocks if block["type"] == name]


def _misplaced(role: str, blocks: list[dict[str, Any]]) -> str | None:
    """Which rule for tools a message breaks."""
    uses, results = _of_type("tool_use", blocks), _of_type("tool_result", blocks)
    if uses and role == "user":
        return "a tool use must be the assistant's"
    if results and role == "assistant":
        return "a tool result must be the user's"
    if results and len(results) != len(blocks):
        return "tool results must be alone in their message"
    if len({block["id"] for block in uses}) != len(uses):
        return "each tool use must have an id of its own"
    return None
