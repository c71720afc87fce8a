"""The official conformance runner as a function. Its exit code hides warnings and skips, so its checks are read.

The runner is the npm package @modelcontextprotocol/conformance, run by the Node of the npm package `node`; `.ci/run`
installs both where `MRTR_CONFORMANCE` points, by default `.ci/cache/npm`.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SPEC = "2026-07-28"
HOME = Path(os.environ.get("MRTR_CONFORMANCE", Path(__file__).parents[2] / ".ci" / "cache" / "npm")) / "node_modules"
NODE = HOME / "node" / "bin" / "node"
RUNNER = HOME / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"


@dataclass(frozen=True)
class Report:
    """What one scenario found: how many checks succeeded, and a line for each that did not."""

    succeeded: int
    problems: list[str]


def installed() -> bool:
    return NODE.is_file() and RUNNER.is_file()


def run(scenario: str, url: str, directory: Path) -> Report:
    """Run one scenario against a server. A scenario that did not run, or checked nothing, is a problem."""
    command = [str(NODE), str(RUNNER), "server", "--url", url, "--scenario", scenario, "--spec-version", SPEC]
    done = subprocess.run(
        [*command, "-o", str(directory)],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    found = list(directory.glob(f"server-{scenario}-*/checks.json"))
    if len(found) != 1:
        return Report(0, [f"{scenario} did not run: {done.stdout[-500:]}{done.stderr[-500:]}"])
    return judge(scenario, json.loads(found[0].read_text()))


def judge(scenario: str, checks: list[dict[str, Any]]) -> Report:
    """Read a scenario's checks. Everything but SUCCESS and plain information is a problem, skips of a check aside."""
    good = [check for check in checks if check["status"] == "SUCCESS"]
    bad = [check for check in checks if check["status"] not in ("SUCCESS", "INFO", "SKIPPED")]
    problems = [f"{scenario}: {check['id']} {check['status']} {check.get('errorMessage', '')}" for check in bad]
    if not [check for check in good if check["id"] != "wire-schema-valid"]:
        problems.append(f"{scenario}: no check of its own succeeded")
    return Report(len(good), problems)
