"""URI templates of resources: RFC 6570, simple expansion of single variables (`notes://{owner}/{id}`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from mrtr_flow.errors import DefinitionError

__all__ = ("MAX_URI", "UriTemplate")

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+", re.ASCII)
_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_VALUE = re.compile(r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+", re.ASCII)  # what simple expansion makes
_ROOTED = re.compile(r"[/\\]|[A-Za-z]:", re.ASCII)
MAX_URI: Final = 65_536


class UriTemplate:
    """A template with one or more `{name}`. Raises `DefinitionError` for what is no such template."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self.variables: Final = tuple(_VARIABLE.findall(text))
        literals = _VARIABLE.sub("", text)
        if not _SCHEME.fullmatch(text) or "{" in literals or "}" in literals:
            raise DefinitionError(f"uri template {text!r} is none; write scheme://path/{{name}}")
        if not self.variables:
            raise DefinitionError(
                f"uri template {text!r} has no {{name}}; hosts give a fixed resource no context to ask with"
            )
        if len(set(self.variables)) != len(self.variables):
            raise DefinitionError(f"uri template {text!r} has a variable twice; give each its own name")
        self._literals: Final = _VARIABLE.split(text)[::2]
        if "" in self._literals[1:-1]:
            raise DefinitionError(
                f"uri template {text!r} has variables with nothing between them; separate them, as in {{a}}/{{b}}"
            )

    def __str__(self) -> str:
        return self._text

    def expand(self, values: Mapping[str, str]) -> str:
        """The URI for these values. What UTF-8 cannot hold becomes `?`."""
        return _VARIABLE.sub(lambda found: quote(values[found[1]], safe="", errors="replace"), self._text)

    def match(self, uri: str) -> dict[str, str] | None:
        """The values a URI gives the variables, or None: also for values that are unsafe as paths.

        One scan from the end, as the official SDK's: linear for any URI, and earlier variables take the most.
        """
        first, *between, last = self._literals
        if len(uri) > MAX_URI or not uri.startswith(first) or not uri.endswith(last):
            return None
        end = len(uri) - len(last)
        found: list[str] = []
        for literal in reversed(between):
            at = uri.rfind(literal, len(first), end)
            if at == -1:
                return None
            found.append(uri[at + len(literal) : end])
            end = at
        found.append(uri[len(first) : end])
        values = [value for value in map(_decoded, reversed(found)) if value is not None]
        return dict(zip(self.variables, values, strict=True)) if len(values) == len(found) else None


def _decoded(value: str) -> str | None:
    """A value without its escapes, or None for what is none, or leads out of a directory (as the official SDK)."""
    if not _VALUE.fullmatch(value):
        return None
    try:
        text = unquote(value, errors="strict")
    except UnicodeDecodeError:
        return None
    unsafe = "\0" in text or _ROOTED.match(text) or ".." in text.replace("\\", "/").split("/")
    return None if unsafe else text
