"""Short spellings for raw forms: what has titled choices, or limits that are known only at run time, is no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ("choice", "form", "text", "titled", "whole")


def form(required: Sequence[str], **fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required)}


def titled(**options: str) -> list[dict[str, str]]:
    """Choices by value, with their titles."""
    return [{"const": value, "title": title} for value, title in options.items()]


def choice(title: str, options: Sequence[str] | Sequence[dict[str, str]], **more: Any) -> dict[str, Any]:
    kind = "enum" if isinstance(options[0], str) else "oneOf"
    return {"type": "string", "title": title, kind: list(options), **more}


def whole(title: str, minimum: int, maximum: int, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "title": title, "minimum": minimum, "maximum": maximum, **more}


def text(title: str, most: int, least: int | None = None, **more: Any) -> dict[str, Any]:
    limits = {"maxLength": most} if least is None else {"minLength": least, "maxLength": most}
    return {"type": "string", "title": title, **limits, **more}
