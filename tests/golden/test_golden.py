"""The token format is fixed: tokens written once are made again byte for byte, and read without mrtr_flow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mrtr_flow
from tests.golden.decoder import decode
from tests.golden.make import FILE, vectors

GOLDEN: list[dict[str, Any]] = json.loads(FILE.read_text())
DICTIONARY = (Path(mrtr_flow.__file__).parent / "dictionary.bin").read_bytes()
GIVEN = ("audience", "method", "target", "arguments", "principal")


def test_every_golden_token_is_made_again_byte_for_byte() -> None:
    assert json.loads(json.dumps(list(vectors()))) == GOLDEN


@pytest.mark.parametrize("golden", GOLDEN, ids=[golden["name"] for golden in GOLDEN])
def test_a_decoder_written_from_the_documented_format_alone_reads_every_golden_token(golden: dict[str, Any]) -> None:
    given = {name: golden[name] for name in GIVEN}
    opened = decode(golden["token"], secret=bytes.fromhex(golden["secret"]), dictionary=DICTIONARY, **given)
    assert opened == {name: golden[name] for name in opened}
    assert {*golden} == {*opened, *GIVEN, "name", "secret", "token"}
