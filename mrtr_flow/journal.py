"""The journal of a run <-> the bytes that are sealed into a token. The only user of msgpack and zstandard.

A payload, in order; every part after the first is there only if its flag or the rule beside it says so:

    flags         1 byte    absent when 0. A payload without it starts with an array header, which is >= 0x80
    run id        10 bytes  RUN_ID: start, 4 bytes of Unix seconds big endian, and 6 random bytes
    version tag   1 byte    VERSION: first byte of SHA-256(name of the flow | 00 | version)
    retry         1 byte    RETRY: low nibble wrong answers to the pending question (not of a gather, see there),
                            high nibble questions changed
    extras        msgpack   EXTRAS: a map with small integer keys. None is defined yet, so any key is refused
    length        varint    ZIPPED: length of the client part as stored, 7 bits a byte, low first
    client part   msgpack   an array; ZIPPED: one zstd block without its frame and block header, with the dictionary
    server part   msgpack   SERVER: an array, never compressed
    checks        bytes     one byte of the chain for each event, two for the last; none without events. They are what
                            is left before the padding and the last 4 bytes, so they tell the number of events
    pending       4 bytes   the chain at the pending question
    padding       bytes     PADDED: 0x80 and zeros

Flags, from bit 0: ZIPPED, SERVER, RUN_ID, PADDED, RETRY, VERSION, EXTRAS. msgpack: text is UTF-8, lone surrogates
encoded as if they were characters; an integer beyond 64 bits is extension 1 with its decimal digits. The dictionary
is `dictionary.bin` (37,155 bytes, made by `benchmarks/dictionary.py`): beside none, ten forms take 150 instead of 163
bytes, an issue of 690 bytes 358 instead of 448, a sampled text of 4 KB 1,795 instead of 1,959; a public list of 50 rows
1,463 instead of 1,426. The frame to unzip a block with: 28 B5 2F FD 00 30, then block size << 3 | 5 in 3 bytes, low
first, then the block, with the file as a full dictionary; it may unzip to 64 KiB. Ours is always a compressed block,
and unzips to one array.

The client part holds what the client sent or may see: answers and public step results, in order. The server part
holds the other step results. Compressing those beside text a client chooses would show them through the length.
Which part the next event is in follows from the effect that replay yields, so it is not stored. The parts hold one
item for each event, and one more, last in the client part, if the pending gather has answers already. What an item
means is in `questions` and `steps`, the chain in `engine`.

Rules: every size is capped before it is decoded, and again when it is recorded, so no token is minted that cannot be
opened. Items are sliced, not decoded: the engine decodes each after it compared that item's check.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, cast

import msgpack as _msgpack  # type: ignore[import-untyped]
import zstandard

from mrtr_flow.errors import LimitExceeded, NotRecordable

__all__ = ("MAX_EVENTS", "Corrupt", "Journal", "pack", "unpack")

msgpack: Final[Any] = _msgpack  # it ships no types
ZIPPED, SERVER, RUN_ID, PADDED, RETRY, VERSION, EXTRAS = (1 << bit for bit in range(7))
MAX_PART: Final = 64 * 1024
MAX_EVENTS: Final = 256
MAX_NIBBLE: Final = 15
RUN_ID_BYTES: Final = 10
PENDING_BYTES: Final = 4
_MAX_DIGITS: Final = 400
_BIG_INT: Final = 1
DICTIONARY_SHA256: Final = "d5d26b3277eeef4cfed329ee9a2cf7bdd5b142c6479e08de97ea912330716685"
_ZIP_FROM: Final = 32
_ZIP_LEVEL: Final = 4  # with the dictionary, 6 saves 1 to 6 % and takes 2.5 to 5 times as long, at every length
_MAGICLESS: Final = zstandard.FORMAT_ZSTD1_MAGICLESS
# a magicless frame without content size starts with a descriptor of 0, a window size, and the 3-byte block header.
# The compressor writes a window that fits the content; a reader may always be told the largest, 64 KiB
_FRAME: Final = b"\x00\x30"
_COMPRESSED_LAST: Final = 0b101


class Corrupt(ValueError):
    """An authentic payload does not read: it was minted by another implementation, or by a bug."""


class _Codecs:
    """One thread's codecs: zstandard's contexts must not be shared."""

    def __init__(self) -> None:
        packer: Any = msgpack.Packer(default=_big_int, unicode_errors="surrogatepass")
        self.pack: Callable[[Any], bytes] = packer.pack
        dictionary = zstandard.ZstdCompressionDict(_dictionary())
        params = zstandard.ZstdCompressionParameters.from_level(  # pyright: ignore[reportUnknownMemberType]
            _ZIP_LEVEL,
            window_log=16,
            hash_log=16,
            chain_log=14,
            min_match=4,
            format=_MAGICLESS,
            write_content_size=False,
            write_checksum=False,
            write_dict_id=False,
        )
        self.zip = zstandard.ZstdCompressor(compression_params=params, dict_data=dictionary)
        self.unzip = zstandard.ZstdDecompressor(dictionary, format=_MAGICLESS, max_window_size=MAX_PART)


@lru_cache(maxsize=1)
def _dictionary() -> bytes:
    """The shipped dictionary, read when it is first needed. It is part of the token's format: never another one."""
    data = files("mrtr_flow").joinpath("dictionary.bin").read_bytes()
    if hashlib.sha256(data).hexdigest() != DICTIONARY_SHA256:
        raise RuntimeError("dictionary.bin of mrtr_flow is not the file it was shipped with; install the package again")
    return data


_threads: Final = threading.local()


def _codecs() -> _Codecs:
    found: _Codecs | None = getattr(_threads, "codecs", None)
    if found is None:
        found = _threads.codecs = _Codecs()
    return found


def pack(item: Any, what: str) -> bytes:
    """One event as bytes. Raises `NotRecordable` or `LimitExceeded`, naming `what`, for what would not open again."""
    try:
        data = _codecs().pack(item)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise NotRecordable(f"{what} cannot be packed: {error}; return plain values of less depth") from None
    if len(data) > MAX_PART:
        raise LimitExceeded(
            f"{what} takes {len(data)} bytes of at most {MAX_PART}; keep it elsewhere and record its name"
        )
    try:
        unpack(data)
    except Corrupt:
        raise LimitExceeded(f"{what} has too many parts, or is too deep; record less") from None
    return data


def pack_items(items: Sequence[Any]) -> list[bytes]:
    """Events that are known to open again, as bytes."""
    return [*map(_codecs().pack, items)]


def unpack(data: bytes) -> Any:
    """The item that `pack` wrote. Raises `Corrupt`."""
    try:
        return msgpack.unpackb(data, ext_hook=_ext, **_LIMITS)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise Corrupt(f"event does not unpack: {type(error).__name__}") from None


_LIMITS: Final[dict[str, Any]] = {
    "strict_map_key": False,
    "unicode_errors": "surrogatepass",
    "max_array_len": 16_384,
    "max_map_len": 4_096,
    "max_ext_len": _MAX_DIGITS,
}


def _big_int(value: Any) -> Any:
    if isinstance(value, int):
        digits = str(value).encode()
        if len(digits) <= _MAX_DIGITS:
            return msgpack.ExtType(_BIG_INT, digits)
        raise ValueError(f"an integer has {len(digits)} digits of at most {_MAX_DIGITS}")
    raise TypeError(f"a {type(value).__name__} is no JSON value")


def _ext(code: int, data: bytes) -> int:
    if code != _BIG_INT or len(data) > _MAX_DIGITS:
        raise ValueError(f"extension {code} is unknown")
    return int(data)


@dataclass
class Journal:
    """What one token carries: the ordered events by part, their checks, and what is pending."""

    client: list[bytes] = field(default_factory=list[bytes])
    server: list[bytes] = field(default_factory=list[bytes])
    checks: bytes = b""
    pending: bytes = bytes(PENDING_BYTES)
    partial: bytes | None = None
    run_id: bytes | None = None
    version: int | None = None
    wrong: int = 0
    changed: int = 0

    @property
    def events(self) -> int:
        """How many events are recorded; the partial answers of a pending gather are none."""
        return len(self.client) + len(self.server)

    def encode(self) -> bytes:
        """The payload. Raises `LimitExceeded` if a part or the number of events is past its cap."""
        if self.events > MAX_EVENTS:
            raise LimitExceeded(
                f"run has {self.events} events of at most {MAX_EVENTS}; ask several questions in one gather(...)"
            )
        client = _array(self.client + ([self.partial] if self.partial is not None else []))
        zipped = _zip(client)
        flags = ZIPPED if zipped is not None else 0
        head = bytearray()
        if self.run_id is not None:
            flags |= RUN_ID
            head += self.run_id
        if self.version is not None:
            flags |= VERSION
            head.append(self.version)
        if self.wrong or self.changed:
            flags |= RETRY
            head.append(min(self.wrong, MAX_NIBBLE) | min(self.changed, MAX_NIBBLE) << 4)
        if zipped is not None:
            head += _varint(len(zipped))
        server = b""
        if self.server:
            flags |= SERVER
            server = _array(self.server)
        return (bytes([flags]) if flags else b"") + head + (zipped or client) + server + self.checks + self.pending

    @classmethod
    def decode(cls, payload: bytes) -> Journal:
        """Read an authentic payload. Raises `Corrupt`."""
        if len(payload) > 2 * MAX_PART:
            raise Corrupt("payload is too long")
        reader = _Reader(payload)
        flags = reader.byte() if payload[:1] < b"\x80" else 0
        if flags & EXTRAS:
            raise Corrupt("payload has extras that this version does not know")
        if flags & PADDED:
            reader.strip_padding()
        run_id = reader.take(RUN_ID_BYTES) if flags & RUN_ID else None
        version = reader.byte() if flags & VERSION else None
        retry = reader.byte() if flags & RETRY else 0
        if flags & ZIPPED:
            client, end = _slices(_unzip(reader.take(reader.varint())), whole=True)
        else:
            client, end = _slices(reader.rest())
            reader.skip(end)
        server: list[bytes] = []
        if flags & SERVER:
            server, end = _slices(reader.rest())
            reader.skip(end)
        tail = reader.rest()
        if len(tail) < PENDING_BYTES:
            raise Corrupt("payload ends before the pending question")
        checks, pending = tail[:-PENDING_BYTES], tail[-PENDING_BYTES:]
        items, recorded = len(client) + len(server), max(len(checks) - 1, 0)
        if len(checks) == 1 or items - recorded not in (0, 1) or recorded > MAX_EVENTS:
            raise Corrupt(f"payload has {items} items and {len(checks)} check bytes")
        if items > recorded and not client:
            raise Corrupt("payload has a partial answer outside the client part")
        partial = client.pop() if items > recorded else None
        return cls(client, server, checks, pending, partial, run_id, version, retry & MAX_NIBBLE, retry >> 4)


class _Reader:
    """Takes a payload apart from the front, never past its end."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        data = self._data[self._at : self._at + count]
        if len(data) != count:
            raise Corrupt("payload ends early")
        self._at += count
        return data

    def skip(self, count: int) -> None:
        self._at += count

    def rest(self) -> bytes:
        """What is left, without taking it."""
        return self._data[self._at :]

    def strip_padding(self) -> None:
        body, mark, _ = self._data.rpartition(b"\x80")
        if not mark or self._data[len(body) + 1 :].strip(b"\x00"):
            raise Corrupt("payload has no end of padding")
        self._data = body

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 21:
                raise Corrupt("length is too long")


def _slices(data: bytes, *, whole: bool = False) -> tuple[list[bytes], int]:
    """The items of the array that `data` starts with, and where it ends; `whole`: at the end of `data`."""
    unpacker: Any = msgpack.Unpacker(None, max_buffer_size=2 * MAX_PART, **_LIMITS)
    skip, tell = unpacker.skip, unpacker.tell
    try:
        unpacker.feed(data)
        count = unpacker.read_array_header()
        if count > MAX_EVENTS + 1:
            raise Corrupt(f"part has {count} items of at most {MAX_EVENTS + 1}")
        items: list[bytes] = []
        start: int = tell()
        for _ in range(count):
            skip()
            end: int = tell()
            items.append(data[start:end])
            start = end
    except Corrupt:
        raise
    except (ValueError, msgpack.UnpackException) as error:
        raise Corrupt(f"part is no array: {type(error).__name__}") from None
    if whole and start != len(data):
        raise Corrupt("client part has bytes after its array")
    return items, start


def _array(items: Sequence[bytes]) -> bytes:
    packer: Any = msgpack.Packer()
    data = cast("bytes", packer.pack_array_header(len(items))) + b"".join(items)
    if len(data) > MAX_PART:
        raise LimitExceeded(
            f"run carries {len(data)} bytes of at most {MAX_PART} in one part; record less, or names of what is "
            "stored elsewhere"
        )
    return data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _zip(data: bytes) -> bytes | None:
    """One zstd block without frame and block header, or None where that is no shorter than `data` and its length."""
    if len(data) < _ZIP_FROM:
        return None
    frame = _codecs().zip.compress(data)
    block = frame[5:]
    if frame[0] or frame[2:5] != _block_header(len(block)) or len(block) + len(_varint(len(block))) >= len(data):
        return None
    return block


def _unzip(block: bytes) -> bytes:
    # the rebuilt header names no content size, so that max_output_size is kept
    try:
        return _codecs().unzip.decompress(_FRAME + _block_header(len(block)) + block, max_output_size=MAX_PART)
    except zstandard.ZstdError:
        raise Corrupt("client part does not unzip") from None


def _block_header(size: int) -> bytes:
    return (size << 3 | _COMPRESSED_LAST).to_bytes(3, "little")
