"""Characters of requestState over eight whole conversations, played round by round."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from typing import Final

from tests.corpus.data import CASES, Case
from tests.corpus.playing import play

__all__ = ("Row", "main", "measure")


@dataclass(frozen=True)
class Row:
    """One conversation: rounds that ask, questions in all, and characters of its tokens."""

    flow: str
    rounds: int
    questions: int
    last: int
    largest: int
    sum: int


def measure(case: Case) -> Row:
    """Play a conversation."""
    tokens = play(case).tokens
    return Row(case.name, len(tokens), case.questions, tokens[-1], max(tokens), sum(tokens))


_COLUMNS: Final = ("flow", "rounds", "questions", "last", "largest", "sum")


def main(*, as_json: bool) -> int:
    """Print the table, or JSON. There is no limit to miss, so the exit code is 0."""
    logging.getLogger("mrtr_flow").setLevel(logging.ERROR)  # twenty-five questions deserve the warning they get
    rows = [asdict(measure(case)) for case in CASES]
    if as_json:
        print(json.dumps({"flows": rows}, indent=1))
        return 0
    lines = [list(_COLUMNS), *([str(cell) for cell in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *numbers in lines:
        cells = [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]))
    print(
        "\nCharacters of requestState, with run id: the last and the largest token of a call, and all it sent, one for"
        "\neach round that asks."
    )
    return 0
