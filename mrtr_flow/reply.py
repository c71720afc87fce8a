"""A tool result with words of its own: `return Reply(order, "Ordered.")`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, get_args, get_origin

__all__ = ("Reply", "holds_reply", "reply_of")

T = TypeVar("T")


@dataclass(frozen=True)  # no slots: with them, 3.11 cannot make a Reply[Order](...)
class Reply(Generic[T]):
    """What a tool returns when the text for the model is not the value itself; annotate the flow `Flow[Reply[Order]]`.

    `value` is the structured content and makes the output schema, if its type is given; `text` is the content.
    `is_error` tells the model that the tool failed (spec: tools, error handling); then there is no structured content,
    and `value` is left out.
    """

    value: T | None
    text: str
    is_error: bool = False

    @classmethod
    def error(cls, text: str) -> Reply[T]:
        """A failure that the model can read and act on."""
        return cls(None, text, is_error=True)


def reply_of(value: Any) -> Reply[Any]:
    """What a flow returned, as a reply whose text is empty if it gave none of its own."""
    return cast("Any", value) if isinstance(value, Reply) else Reply(value, "")


def holds_reply(annotation: Any) -> bool:
    """Whether a type is a `Reply`, or one is anywhere inside it."""
    return annotation is Reply or get_origin(annotation) is Reply or any(map(holds_reply, get_args(annotation)))
