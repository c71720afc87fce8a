"""The question a model answers: `sample` (spec: sampling/createMessage; deprecated there, and working)."""
# pyright: reportInvalidTypeVarUse=false

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Never, TypeAlias

import typing_extensions

from mrtr_flow.effects import Effect, made_at
from mrtr_flow.errors import DefinitionError, NotRecordable
from mrtr_flow.packing import compile_schema
from mrtr_flow.plain import check_plain, is_array, is_object
from mrtr_flow.questions import ATTEMPTS, LONG_ANSWER, OTHER_KIND, RAISE, Question, Raise, Wrong

__all__ = ("Sample", "Sampled", "sample")

U = typing_extensions.TypeVar("U", default=Never)
Message: TypeAlias = Mapping[str, Any]
"""A SamplingMessage: `{"role": "user" | "assistant", "content": text, block or list of blocks}`."""

_BLOCKS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("toolUseId", "content"),
}
RESULT: Final = compile_schema(
    {
        "type": "object",
        "properties": {
            "content": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "type": {"enum": list(_BLOCKS)},
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
        content = response.get("content")
        blocks = content if is_array(content) else [content]
        if not isinstance(response.get("model"), str) or response.get("role") not in ("assistant", "user"):
            return OTHER_KIND
        if not blocks or not all(_is_block(block) for block in blocks):
            return Wrong("it has no content")
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

    Raises in the flow: `CapabilityMissing`. Raises here: `DefinitionError` for messages the protocol does not allow.
    """
    params: dict[str, Any] = {"messages": _messages(messages), "maxTokens": max_tokens}
    optional = {
        "systemPrompt": system_prompt,
        "temperature": temperature,
        "stopSequences": None if stop_sequences is None else list(stop_sequences),
        "modelPreferences": model_preferences,
        "includeContext": include_context,
        "metadata": metadata,
        "tools": None if tools is None else list(tools),
        "toolChoice": None if tool_choice is None else {"mode": tool_choice},
    }
    params |= {name: value for name, value in optional.items() if value is not None}
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DefinitionError(f"max_tokens of sample is {max_tokens!r}; give a whole number, 1 or more")
    for tool in params.get("tools", ()):
        if not is_object(tool) or not isinstance(tool.get("name"), str) or not is_object(tool.get("inputSchema")):
            raise DefinitionError(
                "tools of sample hold something without name and inputSchema; give the protocol's tools"
            )
    try:
        params = json.loads(json.dumps(params))  # plain, and nobody else's
        check_plain(params)
    except (TypeError, ValueError, NotRecordable) as error:
        raise DefinitionError(f"parameters of sample are not JSON: {error}") from None
    text = json.dumps(params, sort_keys=True, separators=(",", ":"))
    return Sample(key, text, params=params, attempts=attempts, if_unsupported=if_unsupported, origin=made_at())


def _messages(messages: str | Sequence[Message]) -> list[dict[str, Any]]:
    """SamplingMessages in full, held against the protocol's rules for tool results."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    full: list[dict[str, Any]] = []
    open_uses: list[str] = []
    for number, message in enumerate(messages, start=1):
        content: Any = message.get("content") if is_object(message) else None
        if isinstance(content, str):
            content = {"type": "text", "text": content}
        blocks: list[Any] = content if is_array(content) else [content]
        if not is_object(message) or message.get("role") not in ("user", "assistant"):
            raise DefinitionError(f"message {number} of sample has no role user or assistant")
        if not blocks or not all(_is_block(block) for block in blocks):
            raise DefinitionError(f"message {number} of sample has content that is no text, block or list of blocks")
        results = [block["toolUseId"] for block in blocks if block["type"] == "tool_result"]
        if results and len(results) != len(blocks):
            raise DefinitionError(f"message {number} of sample mixes tool results with other blocks; send them alone")
        if sorted(open_uses) != sorted(results):
            raise DefinitionError(
                f"message {number} of sample must answer every tool use of the message before it, and no other"
            )
        open_uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        full.append({**message, "content": content})
    if not full or open_uses:
        raise DefinitionError("messages of sample are empty, or end with a tool use that nothing answers")
    return full


def _is_block(block: Any) -> bool:
    needs = _BLOCKS.get(block["type"]) if is_object(block) and isinstance(block.get("type"), str) else None
    return needs is not None and all(name in block for name in needs) and isinstance(block.get("text", ""), str)
