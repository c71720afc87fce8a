"""The package is a stack: every module has its place, imports go down, and libraries, clocks and loops stay where
they belong. Read from the source, so that imports under `TYPE_CHECKING` count too."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

PACKAGE: Final = "mrtr_flow"
ROOT: Final = Path(__file__).resolve().parent.parent / PACKAGE

ORDER: Final = (
    "errors",
    "plain",
    "shapes",
    "packing",
    "fidelity",
    "schema",
    "reply",
    "output",
    "grammar",
    "form",
    "effects",
    "questions",
    "elicitation",
    "sampling",
    "roots",
    "steps",
    "journal",
    "seal",
    "frames",
    "engine",
    "uri",
    "source",
    "definition",
    "wire",
    "results",
    "context",
    "calls",
    "runner",
    "stores",
    "adapters",
    "adapters.hosting",
    "adapters.jsonrpc",
    "adapters.mcp",
    "adapters.fastmcp",
    "testing",
    "cli.files",
    "cli.terminal",
    "cli.playing",
    "cli.serving",
    "cli.app",
    "cli",
    "cli.__main__",
)
"""Every module, lowest first. A new module needs its place here. `mrtr_flow` itself is on top of all and not listed."""

PLANNED: Final = frozenset({"stores", "adapters.fastmcp"})
"""Places that are kept for modules which need not exist yet."""

SHARED_BY_ADAPTERS: Final = "adapters.hosting"

USERS: Final[Mapping[str, tuple[str, ...]]] = {
    "pydantic": ("schema",),
    "pydantic_core": ("schema",),
    "msgpack": ("journal",),
    "zstandard": ("journal",),
    "cryptography": ("seal",),
    "transitions": ("machine",),
    "mcp": ("adapters.mcp", "cli"),
    "mcp_types": ("adapters.mcp", "cli"),
    "fastmcp": ("adapters.fastmcp",),
    "typer": ("cli",),
    "rich": ("cli",),
    "questionary": ("cli",),
    "uvicorn": ("cli",),
    "anyio": ("runner", "testing", "cli"),
    "typing_extensions": ORDER,
}
"""The only modules (and what is in them) that may import a library. A library that is not here may not be imported."""

IMPURE: Final = frozenset(
    {"time", "asyncio", "anyio", "trio", "logging", "random", "os", "secrets", "socket", "threading"}
)
IMPURE_BUT: Final = {("journal", "threading")}
"""zstandard's contexts must not be shared between threads, so the journal keeps them in a `threading.local`."""

NOW: Final = frozenset({"now", "utcnow", "today"})
MAX_LINES: Final = 450


@dataclass(frozen=True)
class Import:
    """One imported module, by its full name. `inline`: it is not imported when the importing module is."""

    line: int
    target: str
    inline: bool

    @property
    def library(self) -> str:
        return self.target.partition(".")[0]

    @property
    def ours(self) -> str | None:
        """The name in `ORDER` (empty for the package itself), or None for a module of another library."""
        return self.target.removeprefix(PACKAGE).lstrip(".") if self.library == PACKAGE else None


@dataclass(frozen=True)
class Module:
    """One source file. `name` is as in `ORDER`."""

    name: str
    path: Path
    source: str = field(repr=False)
    tree: ast.Module = field(repr=False)
    imports: tuple[Import, ...] = field(repr=False)

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT.parent)}:{line}"


def _paths() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


PATHS: Final = _paths()


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported, and those under `if TYPE_CHECKING`."""
    for statement in tree.body:
        yield statement
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            yield from statement.body


def _targets(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    """The modules a statement imports: `from mrtr_flow import wire` is the module, `... import ask` the package."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    for alias in node.names:
        module = f"{source}.{alias.name}"
        yield module if module.removeprefix(f"{PACKAGE}.") in PATHS else source


def _imports(name: str, path: Path, tree: ast.Module) -> Iterator[Import]:
    top = set(map(id, _top_level(tree)))
    package = f"{PACKAGE}.{name}" if path.stem == "__init__" else f"{PACKAGE}.{name}".rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for target in dict.fromkeys(_targets(node, package)):
                yield Import(node.lineno, target, id(node) not in top)


def _module(name: str) -> Module:
    path = PATHS[name]
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    return Module(name, path, source, tree, tuple(_imports(name, path, tree)))


def _is_in(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")


MODULES: Final = tuple(_module(name) for name in PATHS if name)
BELOW_CONTEXT: Final = ORDER[: ORDER.index("context")]


def _each(is_meant: Callable[[str], bool]) -> pytest.MarkDecorator:
    chosen = [module for module in MODULES if is_meant(module.name)]
    return pytest.mark.parametrize("module", chosen, ids=[module.name for module in chosen])


every_module = _each(lambda name: True)


def _faults(module: Module, is_fault: Callable[[Import], bool]) -> list[str]:
    return [f"{module.at(item.line)} imports {item.target}" for item in module.imports if is_fault(item)]


def test_every_module_has_a_place_in_the_order() -> None:
    names = {module.name for module in MODULES}
    assert sorted(names - set(ORDER)) == []
    assert sorted(set(ORDER) - PLANNED - names) == []
    assert len(set(ORDER)) == len(ORDER)


@every_module
def test_imports_inside_the_package_go_down(module: Module) -> None:
    below = ORDER[: ORDER.index(module.name)]
    assert _faults(module, lambda item: item.ours is not None and item.ours not in below) == []


@_each(lambda name: _is_in(name, "adapters"))
def test_adapters_share_only_what_every_host_does(module: Module) -> None:
    allowed = (None, SHARED_BY_ADAPTERS)
    assert _faults(module, lambda item: item.ours not in allowed and _is_in(str(item.ours), "adapters")) == []


@every_module
def test_a_library_is_imported_only_where_it_belongs(module: Module) -> None:
    def is_astray(item: Import) -> bool:
        known = item.library == PACKAGE or item.library in sys.stdlib_module_names
        return not known and not any(_is_in(module.name, user) for user in USERS.get(item.library, ()))

    assert _faults(module, is_astray) == []


@_each(lambda name: name in BELOW_CONTEXT)
def test_below_context_there_is_no_clock_no_chance_no_loop_and_no_log(module: Module) -> None:
    assert _faults(module, lambda item: item.library in IMPURE and (module.name, item.library) not in IMPURE_BUT) == []
    calls = [
        f"{module.at(node.lineno)} calls {ast.unparse(node)}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NOW
    ]
    assert calls == []


@_each(lambda name: not _is_in(name, "cli"))
def test_imports_are_at_the_top_except_in_the_command(module: Module) -> None:
    """The command's libraries load late: it starts fast, and says what to install where they are missing.

    `journal` reads the file it ships with through importlib.
    """
    loader = "importlib" if module.name != "journal" else "no loader"
    assert _faults(module, lambda item: item.inline or item.library == loader) == []
    assert "__import__" not in module.source


@every_module
def test_a_module_holds_one_idea(module: Module) -> None:
    lines = len(module.source.splitlines())
    assert lines <= MAX_LINES, f"{module.at(1)} has {lines} lines: it holds two ideas"
