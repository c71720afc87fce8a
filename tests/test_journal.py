"""The payload: what is there and what is refused."""

from __future__ import annotations

import pytest

from mrtr_flow.errors import LimitExceeded, NotRecordable
from mrtr_flow.journal import EXTRAS, MAX_PART, Corrupt, Journal, pack, unpack


def test_an_empty_journal_is_an_array_header_and_the_pending_question() -> None:
    assert Journal(pending=b"abcd").encode() == b"\x90abcd"


def test_every_part_is_there_only_when_it_is_needed() -> None:
    journal = Journal(
        client=[pack(["x" * 60], "x"), pack(0, "x")],
        server=[pack({"a": 2**70}, "x")],
        checks=b"1234",
        pending=b"abcd",
        partial=pack([None, [1]], "x"),
        run_id=b"0123456789",
        version=7,
        wrong=2,
        changed=3,
    )
    assert Journal.decode(journal.encode()) == journal


def test_padding_is_stripped() -> None:
    plain = Journal(pending=b"abcd")
    assert Journal.decode(b"\x08" + plain.encode() + b"\x80\x00\x00") == plain


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x90",
        b"\x90abc",
        bytes([EXTRAS]) + b"\x81\x01\x01\x90abcd",
        bytes([EXTRAS]) + b"\x80\x90abcd",
        b"\x91\x90abcd" + b"xxxx",
        b"\x90x" + b"abcd",
        b"\x01\x05\x90abcd",
        b"\x01\xff\xff\xff\xff\xff" + b"abcd",
        b"\x04short",
        b"\x08\x90abcd\x00\x00",
        b"\xdd\xff\xff\xff\xff" + b"abcd",
        b"\x90" + b"x" * (3 * MAX_PART),
        b"\x02\x90\x91\x01abcd",
    ],
)
def test_a_payload_that_does_not_read_is_corrupt_and_nothing_else(payload: bytes) -> None:
    with pytest.raises(Corrupt):
        Journal.decode(payload)


def test_a_bomb_is_refused_when_it_is_unzipped() -> None:
    import zstandard

    params = zstandard.ZstdCompressionParameters.from_level(
        3, window_log=17, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=False
    )
    block = zstandard.ZstdCompressor(compression_params=params).compress(b"\x00" * 120_000)[5:]
    assert len(block) < 100
    with pytest.raises(Corrupt, match="unzip"):
        Journal.decode(b"\x01" + bytes([len(block)]) + block + b"abcd")


def test_what_could_not_be_opened_is_refused_when_it_is_recorded() -> None:
    deep: object = []
    for _ in range(2000):
        deep = [deep]
    with pytest.raises(NotRecordable, match="the thing"):
        pack(deep, "the thing")
    with pytest.raises(NotRecordable, match="digits"):
        pack(10**500, "the thing")
    with pytest.raises(LimitExceeded, match="the thing"):
        pack("x" * MAX_PART, "the thing")
    with pytest.raises(LimitExceeded, match="one part"):
        Journal(client=[pack("x" * 40_000, "x")] * 2).encode()


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**399, 2**63, -(2**63), "\ud800", "\x00", 1.5, True, None])
def test_awkward_values_are_exact(value: object) -> None:
    again = unpack(pack(value, "x"))
    assert again == value
    assert type(again) is type(value)
