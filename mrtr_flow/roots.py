"""The question for the client's directories and files: `list_roots` (spec: roots; deprecated there, and working)."""
# pyright: reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Never

import typing_extensions

from mrtr_flow.effects import Effect, made_at
from mrtr_flow.packing import compile_schema
from mrtr_flow.plain import is_array
from mrtr_flow.questions import LONG_ANSWER, OTHER_KIND, RAISE, Question, Raise, Wrong
from mrtr_flow.shapes import is_root

__all__ = ("ListRoots", "Root", "list_roots")

U = typing_extensions.TypeVar("U", default=Never)


@dataclass(frozen=True, slots=True)
class Root:
    """A directory or file the client offers: a URI of any scheme, and perhaps a name."""

    uri: str
    name: str | None = None


ROOTS: Final = compile_schema(
    {
        "type": "array",
        "items": {"type": "object", "properties": {"uri": {"type": "string"}, "name": {"type": "string"}}},
    }
)


@dataclass(frozen=True, eq=False)
class ListRoots(Question):
    """The client's roots."""

    kind: ClassVar[str] = "roots"
    limit: ClassVar[int] = LONG_ANSWER

    @property
    def schema_digest(self) -> bytes:
        return ROOTS.digest

    @property
    def requires(self) -> dict[str, Any]:
        return {"roots": {}}

    def request(self, reason: str | None = None) -> dict[str, Any]:
        return {"method": "roots/list"}

    def judge(self, response: Mapping[str, Any]) -> Any:
        roots = response.get("roots")
        if not is_array(roots):
            return OTHER_KIND
        if not all(map(is_root, roots)):
            return Wrong("a root has no uri")
        names = [{name: root[name] for name in ("uri", "name") if isinstance(root.get(name), str)} for root in roots]
        return ROOTS.pack(names)

    def value(self, recorded: Any) -> list[Root]:
        return [Root(root["uri"], root.get("name")) for root in ROOTS.unpack(recorded)]


def list_roots(*, key: str | None = None, if_unsupported: U | Raise = RAISE) -> Effect[list[Root] | U]:
    """Ask the client for its roots (spec: roots/list).

    Raises in the flow: `CapabilityMissing`.
    """
    # a client's roots do not change because they are asked for again
    return ListRoots(key, "roots/list", attempts=1, if_unsupported=if_unsupported, origin=made_at())
