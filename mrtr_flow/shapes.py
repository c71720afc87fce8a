"""Shapes of the protocol's schema, as far as it demands them: content blocks, messages, roots (spec: schema)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from mrtr_flow.plain import is_array, is_object

__all__ = (
    "BLOCKS",
    "BLOCK_TEXTS",
    "MESSAGE",
    "ROLE",
    "Check",
    "is_completion",
    "is_number",
    "is_root",
    "is_share",
    "is_text",
    "list_of",
    "object_of",
    "one_of",
)

Check: TypeAlias = Callable[[Any], bool]


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1


def one_of(*values: str) -> Check:
    return lambda value: isinstance(value, str) and value in values


def either(first: Check, second: Check) -> Check:
    return lambda value: first(value) or second(value)


def list_of(check: Check) -> Check:
    return lambda value: is_array(value) and all(map(check, value))


def object_of(needs: Mapping[str, Check], may: Mapping[str, Check]) -> Check:
    """Objects with the members `needs`; those of `may` can be absent or null, and others are ignored."""

    def check(value: Any) -> bool:
        return (
            is_object(value)
            and all(name in value and fits(value[name]) for name, fits in needs.items())
            and all(value.get(name) is None or fits(value[name]) for name, fits in may.items())
        )

    return check


def block_of(kinds: Mapping[str, Check]) -> Check:
    return lambda value: (
        is_object(value) and isinstance(kind := value.get("type"), str) and kind in kinds and kinds[kind](value)
    )


BLOCK_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("uri", "text or blob"),
}
"""The texts a content block of each type must have; those of a resource are its `resource`'s."""

ROLE: Final = one_of("user", "assistant")
_ANNOTATIONS: Final = object_of({}, {"audience": list_of(ROLE), "priority": is_share, "lastModified": is_text})
_ANY_BLOCK: Final[Mapping[str, Check]] = {"_meta": is_object, "annotations": _ANNOTATIONS}
_FLAT: Final[Mapping[str, Check]] = {
    kind: object_of(dict.fromkeys(texts, is_text), _ANY_BLOCK)
    for kind, texts in BLOCK_TEXTS.items()
    if kind != "resource"
}
_RESOURCE: Final = either(
    object_of({"uri": is_text, "text": is_text}, {"mimeType": is_text}),
    object_of({"uri": is_text, "blob": is_text}, {"mimeType": is_text}),
)
_RESULT_BLOCK: Final = block_of({**_FLAT, "resource": object_of({"resource": _RESOURCE}, _ANY_BLOCK)})
BLOCKS: Final[Mapping[str, Check]] = {
    **{kind: _FLAT[kind] for kind in ("text", "image", "audio")},
    "tool_use": object_of({"id": is_text, "name": is_text, "input": is_object}, {"_meta": is_object}),
    "tool_result": object_of(
        {"toolUseId": is_text, "content": list_of(_RESULT_BLOCK)},
        {"_meta": is_object, "isError": lambda value: isinstance(value, bool)},
    ),
}
_CONTENT: Final = either(block_of(BLOCKS), list_of(block_of(BLOCKS)))
MESSAGE: Final = object_of({"role": ROLE, "content": _CONTENT}, {"_meta": is_object})
is_completion: Final = object_of({"role": ROLE, "content": _CONTENT, "model": is_text}, {"stopReason": is_text})
"""Whether a client's answer is a CreateMessageResult of the schema."""
is_root: Final = object_of({"uri": is_text}, {"name": is_text})
"""Whether a client's value is a Root of the schema."""
