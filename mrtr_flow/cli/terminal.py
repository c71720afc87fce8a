"""Forms in the terminal, drawn from their schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import questionary

from mrtr_flow.form import coerce
from mrtr_flow.packing import options_of
from mrtr_flow.schema import Invalid

__all__ = ("ask_arguments", "ask_question")

_OTHERS = ("decline", "cancel")
_SCALARS = ("string", "integer", "number")


async def ask_question(request: Mapping[str, Any]) -> dict[str, Any]:
    """A person's answer to any question, as the entry of `inputResponses`; also in place of model and client."""
    params = request.get("params", {})
    if request["method"] == "sampling/createMessage":
        text = str(await questionary.text("What the model says").unsafe_ask_async())
        return {
            "role": "assistant",
            "model": "a person",
            "content": {"type": "text", "text": text},
            "stopReason": "endTurn",
        }
    if request["method"] == "roots/list":
        text = str(await questionary.text("Roots, as URIs with spaces between").unsafe_ask_async())
        return {"roots": [{"uri": uri} for uri in text.split()]}
    if params.get("mode") == "url":
        return {
            "action": {"open it": "accept"}.get(
                choice := await _select("Open this page?", ["open it", *_OTHERS]), choice
            )
        }
    schema = params["requestedSchema"]
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
    pairs = options_of(field.get("items", {}) if kind == "array" else field) or []
    many = kind == "array" and bool(pairs)
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
            return "needed" if required else True
        try:
            _value(text, field)
        except Invalid as error:
            return str(error)
        return True

    if kind not in _SCALARS:
        label = f"{label}, as JSON"
    shown = "" if default is None else default if isinstance(default, str) else json.dumps(default)
    text = await questionary.text(label, default=shown, validate=valid).unsafe_ask_async()
    return _value(text, field) if text else None


def _value(text: str, field: Mapping[str, Any]) -> Any:
    """What was typed, as a value of the field: scalars by the form's rules, anything else as JSON. Raises `Invalid`."""
    if field.get("type") in _SCALARS:
        return coerce(text, field)
    try:
        return json.loads(text)
    except ValueError:
        raise Invalid("is not JSON") from None


async def _select(label: str, choices: list[str]) -> str:
    return str(await questionary.select(label, choices).unsafe_ask_async())
