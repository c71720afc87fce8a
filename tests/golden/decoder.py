"""The token format read without mrtr_flow: written from the module docstrings of `seal` and `journal` alone."""

import base64
import hashlib
import json
from typing import Any

import msgpack  # type: ignore[import-untyped]
import zstandard
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ZIPPED, SERVER, RUN_ID, PADDED, RETRY, VERSION, EXTRAS = (1 << bit for bit in range(7))
FRAME = bytes.fromhex("28b52ffd 0030")  # zstd's magic number, frame header descriptor, window of 64 KiB


def decode(
    token: str,
    *,
    secret: bytes,
    audience: str,
    method: str,
    target: str,
    arguments: dict[str, Any],
    principal: str | None,
    dictionary: bytes,
) -> dict[str, Any]:
    """What the token holds. ValueError: not a token of this server, owner or request; InvalidTag: not authentic."""

    def key(use: str, size: int) -> bytes:
        info = b"\0".join([b"mrtr-flow/1", b"1", use.encode(), _utf8(audience)])
        return HKDF(SHA256(), size, salt=None, info=info).derive(secret)

    if not 38 <= len(token) <= 32_768:
        raise ValueError("length")
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != token:
        raise ValueError("base64url")
    header, sealed = raw[:7], raw[7:]
    if header[:1] != key("kid", 1):
        raise ValueError("kid")

    request = _utf8(f"{method}\0{target}")
    bound = {} if method == "resources/read" else _whole(arguments)
    canonical = json.dumps(bound, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    owner = b"\0" if principal is None else b"\1" + _utf8(principal)
    hint = key("hint", 32)
    if header[5] != hashlib.sha256(hint + owner).digest()[0]:
        raise ValueError("hint of the owner")
    if header[6] != hashlib.sha256(b"\0".join([hint, request, canonical])).digest()[0]:
        raise ValueError("hint of the request")

    payload = AESSIV(key("siv", 64)).decrypt(sealed, [header, request, canonical, owner])
    return {"expires": int.from_bytes(header[1:5], "big"), **_journal(payload, dictionary)}


def _journal(payload: bytes, dictionary: bytes) -> dict[str, Any]:
    """The parts of a payload, in their order."""
    rest = payload

    def take(size: int) -> bytes:
        nonlocal rest
        part, rest = rest[:size], rest[size:]
        return part

    flags = take(1)[0] if rest[0] < 0x80 else 0
    run_id = take(10).hex() if flags & RUN_ID else None
    version = take(1)[0] if flags & VERSION else None
    changed, wrong = divmod(take(1)[0], 16) if flags & RETRY else (0, 0)
    if flags & EXTRAS:
        raise ValueError("extras")
    if flags & ZIPPED:
        size = shift = 0
        while (byte := take(1)[0]) >= 0x80:
            size, shift = size | (byte & 0x7F) << shift, shift + 7
        client, after = _array(_unzip(take(size | byte << shift), dictionary))
        if after:
            raise ValueError("bytes after the client part")
    else:
        client, rest = _array(rest)
    server: list[Any] = []
    if flags & SERVER:
        server, rest = _array(rest)
    if flags & PADDED:
        rest, mark, zeros = rest.rpartition(b"\x80")
        if not mark or any(zeros):
            raise ValueError("padding")
    checks, pending = take(len(rest) - 4), rest
    events = len(checks) - 1 if checks else 0
    answered = len(client) + len(server) - events  # 1 if the pending gather has answers already, else 0
    if len(pending) != 4 or len(checks) == 1 or answered not in (0, 1) or answered > len(client):
        raise ValueError("items and checks do not match")
    partial = client.pop() if answered else None
    fields = {"run_id": run_id, "version": version, "wrong": wrong, "changed": changed, "client": client}
    return {**fields, "server": server, "partial": partial, "checks": checks.hex(), "pending": pending.hex()}


def _unzip(block: bytes, dictionary: bytes) -> bytes:
    frame = FRAME + (len(block) << 3 | 5).to_bytes(3, "little") + block
    zstd = zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(dictionary))
    return zstd.decompress(frame, max_output_size=65_536)


def _array(data: bytes) -> tuple[list[Any], bytes]:
    """The msgpack array at the start of the data, and what follows it."""
    unpacker = msgpack.Unpacker(
        unicode_errors="surrogatepass",
        strict_map_key=False,
        object_pairs_hook=lambda pairs: {"map": [list(pair) for pair in pairs]},
        ext_hook=lambda code, digits: {1: int}[code](digits),
    )
    unpacker.feed(data)
    items = [unpacker.unpack() for _ in range(unpacker.read_array_header())]
    return items, data[unpacker.tell() :]


def _whole(value: Any) -> Any:
    """The value with each number without a fraction as an integer."""
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
