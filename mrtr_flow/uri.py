"""URI templates of resources: RFC 6570, simple expansion of single variables (`notes://{owner}/{id}`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from mrtr_flow.errors import DefinitionError

__all__ = ("UriTemplate",)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+", re.ASCII)
_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_VALUE: Final = "([A-Za-z0-9._~%-]+)"  # what simple expansion leaves unescaped, and escapes


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
        parts = _VARIABLE.split(text)
        self._pattern = re.compile("".join(re.escape(part) if at % 2 == 0 else _VALUE for at, part in enumerate(parts)))

    def __str__(self) -> str:
        return self._text

    def expand(self, values: Mapping[str, Any]) -> str:
        """The URI for these values, as text."""
        return _VARIABLE.sub(lambda found: quote(str(values[found[1]]), safe=""), self._text)

    def match(self, uri: str) -> dict[str, str] | None:
        """The values a URI gives the variables, or None."""
        found = self._pattern.fullmatch(uri)
        return None if found is None else dict(zip(self.variables, map(unquote, found.groups()), strict=True))
