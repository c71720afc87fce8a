"""Flows from a file: `FILE` or `FILE:FLOW`."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from mrtr_flow.definition import Definition
from mrtr_flow.errors import FlowError

__all__ = ("FileError", "flows_in", "one_flow", "split")


class FileError(FlowError):
    """A file that is not there, does not import, or holds no such flow."""


def split(target: str) -> tuple[Path, str | None]:
    """`FILE[:FLOW]` as path and flow name. Raises `FileError` if the file is not there."""
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py"):
        path, name = target, ""
    file = Path(path)
    if not file.is_file():
        raise FileError(f"file {path!r} is not there; give the path of a Python file with @flow functions")
    return file, name or None


def flows_in(file: Path) -> list[Definition[..., Any]]:
    """The flows a file defines, in order. Imports the file. Raises `FileError` if there is none."""
    directory = str(file.resolve().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    module_name = f"flows_of_{file.stem}"  # a name of its own: a file may be called like a library
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise FileError(f"file {str(file)!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except Exception as error:  # the file is the author's, and may raise anything
        raise FileError(f"file {str(file)!r} does not import:\n{_own_frames(error)}") from None
    values: list[Any] = list(vars(module).values())
    found: list[Definition[..., Any]] = [
        value for value in values if isinstance(value, Definition) and value.fn.__module__ == module_name
    ]
    if not found:
        raise FileError(f"file {str(file)!r} defines no flow (what it imports does not count); use @flow in it")
    return found


def one_flow(target: str) -> tuple[Path, Definition[..., Any]]:
    """The flow `FILE:FLOW` names, or the only one in `FILE`. Raises `FileError` naming the flows there are."""
    file, name = split(target)
    found = flows_in(file)
    if name is None and len(found) == 1:
        return file, found[0]
    match = next((item for item in found if item.name == name), None)
    if match is None:
        names = "".join(f"\n  {file}:{item.name}" for item in found)
        which = f"has {len(found)} flows" if name is None else f"has no flow {name!r}"
        raise FileError(f"file {str(file)!r} {which}; choose one:{names}")
    return file, match


def _own_frames(error: Exception) -> str:
    """A traceback without the frames that led to the file."""
    trace = traceback.TracebackException.from_exception(error)
    own = [
        frame
        for frame in trace.stack
        if "mrtr_flow" not in Path(frame.filename).parts and "importlib" not in frame.filename
    ]
    trace.stack = traceback.StackSummary.from_list(own)
    return "".join(trace.format(chain=False)).rstrip()
