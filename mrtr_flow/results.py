"""What flows look like in lists, and what they return as results, in wire form (spec: tools, prompts, resources)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, cast

from mrtr_flow.definition import Definition, ResourceDefinition
from mrtr_flow.errors import INTERNAL_ERROR, INVALID_PARAMS, NotRecordable, ProtocolError
from mrtr_flow.plain import fresh, is_array, is_object
from mrtr_flow.reply import Reply, reply_of
from mrtr_flow.schema import to_plain
from mrtr_flow.shapes import BLOCK_TEXTS

__all__ = ("PRIVATE", "complete", "failed", "input_required", "listed", "tool_error")

PRIVATE: Final[Mapping[str, Any]] = {"ttlMs": 0, "cacheScope": "private"}
"""The cache hints of what depends on answers (spec: caching)."""

# a failure of the host's own making; every other reason lies with the request
_OURS: Final = ("flow_failed", "step_failed")


def listed(definition: Definition[..., Any]) -> dict[str, Any]:
    """A flow as an entry of `tools/list`, `prompts/list` or `resources/templates/list`."""
    entry: dict[str, Any] = {"name": definition.name, "description": definition.description}
    if definition.title is not None:
        entry["title"] = definition.title
    if isinstance(definition, ResourceDefinition):
        return {"uriTemplate": str(definition.template), **entry, "mimeType": definition.mime_type}
    schema = fresh(definition.parameters.json_schema)
    if definition.method == "prompts/get":
        required = schema.get("required", ())
        entry["arguments"] = [{"name": name, "required": name in required} for name in schema["properties"]]
        return entry
    entry["inputSchema"] = schema
    if definition.output.json_schema is not None:
        entry["outputSchema"] = fresh(definition.output.json_schema)
    if definition.annotations is not None:
        entry["annotations"] = definition.annotations
    return entry


def input_required(requests: Mapping[str, Any], state: str) -> dict[str, Any]:
    """An InputRequiredResult."""
    return {"resultType": "input_required", "inputRequests": dict(requests), "requestState": state}


def complete(definition: Definition[..., Any], target: str, value: Any) -> dict[str, Any]:
    """A returned value as the complete result of its method. Raises `NotRecordable` if it is none."""
    if definition.method != "tools/call" and isinstance(value, Reply):
        raise NotRecordable(
            f"{definition.name} returned a Reply, which is for tools; return its value alone, or raise if it failed"
        )
    if isinstance(definition, ResourceDefinition):
        return {"resultType": "complete", "contents": [_content(definition, target, value)], **PRIVATE}
    if definition.method == "prompts/get":
        messages = list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]
        result = {"resultType": "complete", "messages": [_message(to_plain(message)) for message in messages]}
        return {**result, "description": definition.description} if definition.description else result
    content, structured = definition.output.encode(value)
    answer: dict[str, Any] = {"resultType": "complete", "content": content, "isError": reply_of(value).is_error}
    return answer if structured is None else {**answer, "structuredContent": structured}


def failed(definition: Definition[..., Any], text: str, reason: str) -> dict[str, Any]:
    """A failed call. A tool has a result for that, which the model can read (spec: tools, error handling).

    Prompts and resources have none: raises `ProtocolError` with `data.reason`.
    """
    if definition.method == "tools/call":
        return tool_error(text)
    raise ProtocolError(INTERNAL_ERROR if reason in _OURS else INVALID_PARAMS, text, {"reason": reason})


def tool_error(text: str) -> dict[str, Any]:
    """A CallToolResult that says what went wrong."""
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": True}


def _message(value: Any) -> dict[str, Any]:
    """A PromptMessage from text, a content block, or a message."""
    role: Any = "user"
    if is_object(value) and "role" in value:
        role, value = value["role"], value.get("content")
    if isinstance(value, str):
        value = {"type": "text", "text": value}
    if role not in ("user", "assistant") or not is_object(value):
        raise NotRecordable("a prompt returned something that is no text, content block or message with a role")
    _check_block(value)
    return {"role": role, "content": value}


def _check_block(block: Mapping[str, Any]) -> None:
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in BLOCK_TEXTS:
        raise NotRecordable(
            f"a prompt returned a content block with another type than {', '.join(BLOCK_TEXTS)}; use one"
        )
    holder = block.get("resource") if kind == "resource" else block
    texts = {name for name, item in holder.items() if isinstance(item, str)} if is_object(holder) else set[str]()
    lacks = [need for need in BLOCK_TEXTS[kind] if texts.isdisjoint(need.split(" or "))]
    if lacks:
        place = "a resource block whose resource has" if kind == "resource" else f"a content block of type {kind} with"
        raise NotRecordable(f"a prompt returned {place} no {' and no '.join(lacks)}; give it as text")


def _content(definition: ResourceDefinition[..., Any], uri: str, value: Any) -> dict[str, Any]:
    """A ResourceContents from text, bytes, or a value that is sent as JSON."""
    entry = {"uri": uri, "mimeType": definition.mime_type}
    if isinstance(value, bytes):
        return {**entry, "blob": base64.b64encode(value).decode()}
    if not isinstance(value, str):
        plain = to_plain(value)
        if not is_object(plain) and not is_array(plain):
            raise NotRecordable(
                f"a resource returned a {type(value).__name__}, which is no text, bytes, object or list"
            )
        value = json.dumps(plain, ensure_ascii=False)
    return {**entry, "text": value}
