"""Forms in the terminal, drawn from their schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import questionary

from mrtr_flow.form import coerce
from mrtr_flow.packing import options_of
from mrtr_flow.schema import Invalid

__all__ = ("ask_arguments", "ask_question")

_OTHERS = ("decline", "cancel")


async def ask_question(request: Mapping[str, Any]) -> dict[str, Any]:
    """A person's answer to an elicitation, as the entry of `inputResponses`."""
    schema = request["params"]["requestedSchema"]
    fields = cast("Mapping[str, Mapping[str, Any]]", schema["properties"])
    names = list(fields)
    if len(names) == 1 and fields[names[0]]["type"] == "boolean":
        choice = await _select(fields[names[0]].get("title", names[0]), ["yes", "no", *_OTHERS])
        return {"action": choice} if choice in _OTHERS else {"action": "accept", "content": {names[0]: choice == "yes"}}
    action = await _select("Your answer", ["answer", *_OTHERS])
    if action in _OTHERS:
        return {"action": action}
    return {"action": "accept", "content": await _fields(schema, {})}


async def ask_arguments(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a tool that are not given yet."""
    return {**given, **await _fields(schema, given)}


async def _fields(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, field in schema["properties"].items():
        if name in given:
            continue
        value = await _field(name, field, name in schema.get("required", ()))
        if value is not None:
            content[name] = value
    return content


async def _field(name: str, field: Mapping[str, Any], required: bool) -> Any:
    label = field.get("title", name) + ("" if required else " (optional)")
    if field.get("description"):
        label = f"{label}: {field['description']}"
    default = field.get("default")
    kind = field.get("type")
    many = kind == "array"
    pairs = options_of(field["items"] if many else field) or []
    choices = [questionary.Choice(title, value, checked=many and value in (default or ())) for value, title in pairs]
    if many:
        return await questionary.checkbox(label, choices).unsafe_ask_async()
    if choices:
        if not required:
            choices.append(questionary.Choice("(leave out)", ""))
        return (await questionary.select(label, choices, default=default).unsafe_ask_async()) or None
    if kind == "boolean":
        return await questionary.confirm(label, default=bool(default)).unsafe_ask_async()

    def valid(text: str) -> bool | str:
        if not text:
            return True if not required else "needed"
        try:
            coerce(text, field) if kind in ("string", "integer", "number") else None
        except Invalid as error:
            return str(error)
        return True

    text = await questionary.text(
        label, default="" if default is None else str(default), validate=valid
    ).unsafe_ask_async()
    if not text:
        return None
    return coerce(text, field) if kind in ("integer", "number") else text


async def _select(label: str, choices: list[str]) -> str:
    return str(await questionary.select(label, choices).unsafe_ask_async())
