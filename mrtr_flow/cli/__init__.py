"""The `mrtr-flow` command. Its libraries come with the extra `cli` and are loaded only here."""

from __future__ import annotations

import sys

__all__ = ("main",)


def main() -> None:
    """Run the command line; says what to install where the extra is missing."""
    try:
        from mrtr_flow.cli.app import app
    except ModuleNotFoundError as error:
        sys.exit(f"mrtr-flow needs {error.name}, which is not installed; run: pip install 'mrtr-flow[cli]'")
    app()
