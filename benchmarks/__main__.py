"""`python -m benchmarks NAME [--json]`: each benchmark is a module with a docstring and a `main`."""

from __future__ import annotations

import argparse
import sys
from types import ModuleType
from typing import Final

from benchmarks import corpus, seal, size

BENCHMARKS: Final[dict[str, ModuleType]] = {"size": size, "seal": seal, "corpus": corpus}


def main(argv: list[str] | None = None) -> int:
    """Run one benchmark; the exit code is 1 if it missed a limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure mrtr_flow beside its peers.")
    commands = parser.add_subparsers(dest="name", required=True)
    for name, module in BENCHMARKS.items():
        summary = (module.__doc__ or "").partition("\n")[0]
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(argv)
    code: int = BENCHMARKS[options.name].main(as_json=options.json)
    return code


if __name__ == "__main__":
    sys.exit(main())
