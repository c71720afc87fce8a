"""What `import mrtr_flow` offers, and what it costs."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

import mrtr_flow

PACKAGE: Final = Path(mrtr_flow.__file__).parent

COMMANDS: Final = frozenset({"mrtr_flow.cli.__main__"})
"""Importing it runs the command line."""

MODULES: Final = sorted(
    {"mrtr_flow", *(found.name for found in pkgutil.walk_packages([str(PACKAGE)], "mrtr_flow."))} - COMMANDS
)

OPTIONAL: Final = frozenset(
    {"mcp", "mcp_types", "fastmcp", "typer", "rich", "questionary", "uvicorn", "starlette", "transitions"}
)
"""What the extras install: the core loads none of it."""

IMPORT: Final = """
import json, sys
import pydantic

adapters = 0
original = pydantic.TypeAdapter.__init__

def counted(self, *args, **kwargs):
    global adapters
    adapters += 1
    original(self, *args, **kwargs)

def models(base):
    return {found for kind in base.__subclasses__() for found in {kind, *models(kind)}}

pydantic.TypeAdapter.__init__ = counted
before = models(pydantic.BaseModel)
import mrtr_flow
names = sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in models(pydantic.BaseModel) - before)
print(json.dumps({"loaded": sorted(sys.modules), "models": names, "adapters": adapters}))
"""


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("mrtr_flow"):
            raise
        pytest.skip(f"{name} needs {error.name}, which is not installed")


@lru_cache
def _after_import() -> dict[str, Any]:
    """What a fresh interpreter holds after `import mrtr_flow`."""
    ended = subprocess.run(
        [sys.executable, "-c", IMPORT], cwd=PACKAGE.parent, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("name", MODULES)
def test_every_name_in_all_exists_and_is_named_once(name: str) -> None:
    module = _imported(name)
    offered = list(getattr(module, "__all__", ()))
    assert [item for item in offered if not hasattr(module, item)] == []
    assert [item for item, count in Counter(offered).items() if count > 1] == []


@pytest.mark.parametrize("name", MODULES)
def test_every_module_with_public_functions_or_classes_says_which_it_offers(name: str) -> None:
    module = _imported(name)
    tree = ast.parse(Path(str(module.__file__)).read_text())
    public = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    assert not public or hasattr(module, "__all__")


def test_all_is_exactly_what_the_package_imports() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    imported = [
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    assert sorted(name for name in imported if not name.startswith("_")) == sorted(mrtr_flow.__all__)


def test_no_public_name_is_hidden_by_a_module_of_the_same_name() -> None:
    """A module that shares its name with an exported function would hide it, or be hidden by it."""
    for name in MODULES:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    assert [name for name in mrtr_flow.__all__ if isinstance(getattr(mrtr_flow, name), ModuleType)] == []


def test_import_loads_nothing_of_the_extras() -> None:
    loaded = {name.partition(".")[0] for name in _after_import()["loaded"]}
    assert sorted(loaded & OPTIONAL) == []


def test_import_builds_no_pydantic_model_and_no_type_adapter() -> None:
    assert _after_import()["models"] == []
    assert _after_import()["adapters"] == 0


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
