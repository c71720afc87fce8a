"""What a flow returns as a tool's content, structured content and output schema (spec: tools)."""

from __future__ import annotations

import json
import types
from collections.abc import Sequence
from typing import Annotated, Any, Union, cast, get_args, get_origin

from mrtr_flow.errors import DefinitionError, NotRecordable
from mrtr_flow.plain import is_object
from mrtr_flow.reply import Reply, holds_reply, reply_of
from mrtr_flow.schema import Shape, is_object_type, tags_of, to_plain, type_name
from mrtr_flow.shapes import BLOCK_TEXTS

__all__ = ("Output",)


class Output:
    """What a flow returns, as a tool result. Scalars, lists and unions are wrapped as `{"result": ...}`."""

    def __init__(self, annotation: Any) -> None:
        self.json_schema: dict[str, Any] | None = None
        self._shape: Shape[Any] | None = None
        self._wrapped = False
        name = type_name(annotation)
        if get_origin(annotation) is Reply:
            annotation = get_args(annotation)[0]
            if _is_blocks(annotation):
                raise DefinitionError(
                    f"result type {name} has content blocks for its value, which is structured content; "
                    "return the blocks without a Reply"
                )
        if annotation is not Reply and holds_reply(annotation):
            raise DefinitionError(
                f"result type {name} has a Reply inside another type; annotate Flow[Reply[...]], put the other types "
                "inside it, and return a Reply in every case"
            )
        if annotation in (Any, Reply) or _is_blocks(annotation):
            return
        self._shape = Shape(annotation)
        schema = self._shape.json_schema("serialization")
        defs = schema.get("$defs", {})
        root = {**defs[schema["$ref"].rpartition("/")[2]], "$defs": defs} if "$ref" in schema else schema
        self._wrapped = not is_object_type(annotation) or root.get("type") != "object"
        if self._wrapped:
            schema = {key: value for key, value in schema.items() if key != "$defs"}
            root = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
            if defs:
                root["$defs"] = defs
        self.json_schema = root

    def encode(self, value: Any) -> tuple[list[dict[str, Any]], Any]:
        """`(content blocks, structured content or None)` of a CallToolResult. Raises `NotRecordable`."""
        said = isinstance(value, Reply)
        reply = reply_of(value)
        value = reply.value
        try:
            blocks = _blocks(reply.text if said else value)
        except RecursionError:
            raise NotRecordable("result is a list inside itself, or nested too deep; return a flatter one") from None
        if reply.is_error:
            return blocks, None
        if self._shape is not None:
            plain = self._shape.render(value)
            return blocks, {"result": plain} if self._wrapped else plain
        if not said or value is None:
            return blocks, None
        plain = to_plain(value, keep_none=True)  # the text does not tell it
        return blocks, plain if is_object(plain) else {"result": plain}


def _is_blocks(annotation: Any) -> bool:
    """Whether the type is an MCP content block, or a list or union of them: read by the model, not structured."""
    if get_origin(annotation) in (list, tuple, Sequence, Annotated, Union, types.UnionType):
        return any(map(_is_blocks, get_args(annotation)))
    return not BLOCK_TEXTS.keys().isdisjoint(tags_of(annotation))


def _blocks(value: Any) -> list[dict[str, Any]]:
    """The content of a tool result: text as it is, content blocks as they are, anything else as indented JSON."""
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [block for item in cast("Sequence[Any]", value) for block in _blocks(item)]
    if _is_blocks(type(value)):
        return [to_plain(value)]
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    plain = to_plain(value, keep_none=True)
    return [{"type": "text", "text": json.dumps(plain, indent=2, ensure_ascii=False)}]
