"""A payload <-> the token in `requestState`: encrypted, authenticated, bound. The only user of cryptography.

    token  = base64url without padding ( header 7 | SIV 16 | ciphertext )
    header = kid 1 | exp 4, Unix seconds big endian | hint of the owner 1 | hint of the request 1
    AEAD   = AES-256-SIV (RFC 5297) with a 64-byte key and four components of associated data, not joined:
             header, request, arguments, owner
    request   = method 00 target, in UTF-8: "tools/call" or "prompts/get" and the name, "resources/read" and the URI
    arguments = JSON as Python's json.dumps writes it with sorted keys and no white space: names by code point,
                everything beyond ASCII as \\uxxxx in lower case, floats as their repr. A float without a fraction is
                an integer, all its digits written. {} if there are none, and for resources
    owner     = 00 for nobody, else 01 and the principal in UTF-8
    keys   = HKDF-SHA256(secret, no salt, info = "mrtr-flow/1" 00 semantics 00 use 00 audience), where semantics is a
             decimal number, now 1, audience is the server's name in UTF-8, and use is one of "siv" for 64 bytes,
             "hint" for 32 and "kid" for 1
    hints  = first byte of SHA-256(hint key | owner), first byte of SHA-256(hint key | 00 | request | 00 | arguments)

What the ciphertext holds is in `journal`. 00 and 01 are bytes, | joins. A surrogate is encoded in UTF-8 as if it were a
character, also one of a pair that JSON escaped in two. A token has expired when now >= exp.

Everything a token is bound to is associated data, so it costs nothing on the wire. Hints are read only after a token
failed, to name the reason in the log. The kid names key, format, semantics number and audience at once: a token of
another server is an unknown kid.

Rules of `open`, cheapest first: type, length (38 to 32,768 characters), kid, strict base64url (no other characters, no
padding, no second spelling of the same bytes), AEAD, and only then expiry. Whatever does not verify raises
`InvalidToken`, whose reason is for the log; on the wire all are one text (spec: MRTR, server requirements 4 and 5).
There is no nonce, so nothing can be reused: equal state and second give the equal token.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mrtr_flow.errors import DefinitionError, InvalidToken, LimitExceeded

__all__ = ("MAX_TOKEN", "SEMANTICS", "Binding", "KeyRing", "Opened", "parse_keys")

SEMANTICS: Final = 1
"""The number of the replay semantics that tokens are minted for. Openers know this one and the one before it."""

MAX_TOKEN: Final = 32_768
MIN_KEY: Final = 32
_KNOWN_SEMANTICS: Final = (SEMANTICS,)
_HEADER: Final = 7
_TAG: Final = 16
_MIN_TOKEN: Final = 38
_FORMAT: Final = b"mrtr-flow/1"


@dataclass(frozen=True, slots=True)
class Binding:
    """The request a token belongs to: method, target (name or URI), canonical arguments, principal (None: nobody)."""

    method: str
    target: str
    arguments: bytes
    principal: str | None

    @property
    def request(self) -> bytes:
        return _text(self.method) + b"\0" + _text(self.target)

    @property
    def owner(self) -> bytes:
        return b"\0" if self.principal is None else b"\1" + _text(self.principal)


@dataclass(frozen=True, slots=True)
class Opened:
    """An authentic token: its payload, and when it expires (Unix seconds)."""

    payload: bytes
    expires: int


class _Keys:
    """The subkeys of one secret for one semantics number and audience."""

    def __init__(self, label: str, secret: bytes, semantics: int, audience: str) -> None:
        def derive(use: bytes, length: int) -> bytes:
            info = b"\0".join((_FORMAT, str(semantics).encode(), use, _text(audience)))
            return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(secret)

        self.label = label
        self.kid = derive(b"kid", 1)
        self.siv = AESSIV(derive(b"siv", 64))
        self._hint = derive(b"hint", 32)

    def hints(self, owner: bytes, request: bytes, arguments: bytes) -> bytes:
        about = b"\0".join((self._hint, request, arguments))
        return hashlib.sha256(self._hint + owner).digest()[:1] + hashlib.sha256(about).digest()[:1]


class KeyRing:
    """The secrets of one server: the first seals, all open.

    `keys` are `(label, secret)` pairs; labels are for logs. `audience` is the server's name: tokens of another one are
    refused though the secret is shared. `ephemeral` says that the keys live only as long as this process.
    Raises `DefinitionError` for no key, short keys and duplicates.
    """

    def __init__(self, keys: Sequence[tuple[str, bytes]], *, audience: str, ephemeral: bool = False) -> None:
        if not keys:
            raise DefinitionError("key ring is empty; give one key of 32 random bytes or more")
        seen: set[bytes] = set()
        for label, secret in keys:
            if len(secret) < MIN_KEY:
                raise DefinitionError(
                    f"key {label!r} has {len(secret)} bytes of at least {MIN_KEY}; make one with keygen"
                )
            if len(set(secret)) < MIN_KEY // 4:
                raise DefinitionError(f"key {label!r} is not random; make one with keygen")
            if secret in seen:
                raise DefinitionError(f"key {label!r} is in the ring twice; keep one")
            seen.add(secret)
        self.audience: Final = audience
        self.ephemeral: Final = ephemeral
        self._all = [_Keys(label, secret, number, audience) for number in _KNOWN_SEMANTICS for label, secret in keys]
        self._first = self._all[0]

    def seal(self, payload: bytes, binding: Binding, expires: int) -> str:
        """The token of `payload`, good until `expires` (Unix seconds).

        Raises `LimitExceeded` past 32,768 characters.
        """
        keys = self._first
        request, arguments, owner = binding.request, binding.arguments, binding.owner
        header = keys.kid + expires.to_bytes(4, "big") + keys.hints(owner, request, arguments)
        sealed = keys.siv.encrypt(payload, [header, request, arguments, owner])
        text = binascii.b2a_base64(header + sealed, newline=False).rstrip(b"=")
        token = text.replace(b"+", b"-").replace(b"/", b"_").decode()  # faster than a translation
        if len(token) > MAX_TOKEN:
            raise LimitExceeded(f"token has {len(token)} characters of at most {MAX_TOKEN}")
        return token

    def open(self, token: object, binding: Binding, now: float) -> Opened:
        """The payload of an authentic, live token for this request. Raises `InvalidToken`."""
        if not isinstance(token, str):
            raise InvalidToken("not text")
        if not _MIN_TOKEN <= len(token) <= MAX_TOKEN:
            raise InvalidToken("length")
        kid = _first_byte(token)
        candidates = [keys for keys in self._all if keys.kid == kid]
        if not candidates:
            remedy = "; keys were made for this process alone: set MRTR_KEYS" if self.ephemeral else ""
            raise InvalidToken(f"unknown key, or a token of another server{remedy}")
        raw = _decode(token)
        header, sealed = raw[:_HEADER], raw[_HEADER:]
        request, arguments, owner = binding.request, binding.arguments, binding.owner
        for keys in candidates:
            try:
                payload = keys.siv.decrypt(sealed, [header, request, arguments, owner])
            except InvalidTag:
                continue
            expires = int.from_bytes(header[1:5], "big")
            if now >= expires:
                raise InvalidToken("expired", expired=True)
            return Opened(payload, expires)
        raise InvalidToken(_reason(header[5:7], [keys.hints(owner, request, arguments) for keys in candidates]))


def _reason(found: bytes, expected: Iterable[bytes]) -> str:
    """What a failed token's hints say, for the log. A forged hint can mislead the log, nothing else."""
    for hints in expected:
        if hints[0] != found[0] and hints[1] == found[1]:
            return "principal differs"
        if hints[1] != found[1] and hints[0] == found[0]:
            return "request differs"
    return "tampered"


def parse_keys(text: str) -> list[tuple[str, bytes]]:
    """Keys as `label:base64url,label:base64url`, as in `MRTR_KEYS`. Raises `DefinitionError`, never quoting a key."""
    keys: list[tuple[str, bytes]] = []
    for position, item in enumerate((part.strip() for part in text.split(",") if part.strip()), start=1):
        label, colon, encoded = item.partition(":")
        if not colon or not label:
            raise DefinitionError(f"key {position} has no label; write label:base64url")
        try:
            keys.append((label, _decode(encoded.rstrip("="))))
        except InvalidToken:
            raise DefinitionError(f"key {label!r} is not base64url; make one with keygen") from None
    return keys


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


_FROM_URL: Final = bytes.maketrans(b"-_+/=", b"+/!!!")  # what is plain base64's own becomes what it refuses
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_VALUES: Final = {character: value for value, character in enumerate(_ALPHABET)}
_PADDING: Final = (b"", b"", b"==", b"=")


def _first_byte(text: str) -> bytes:
    try:
        return bytes([_VALUES[text[0]] << 2 | _VALUES[text[1]] >> 4])
    except KeyError:
        raise InvalidToken("not base64url") from None


def _decode(text: str) -> bytes:
    """Strict base64url: its own alphabet, no padding, and no second spelling of the same bytes."""
    spare = len(text) % 4
    if spare and (spare == 1 or _VALUES.get(text[-1], 1) & (0b1111 if spare == 2 else 0b11)):
        raise InvalidToken("not canonical base64url")  # bits of the last character that belong to no byte
    try:
        return binascii.a2b_base64(text.encode("ascii").translate(_FROM_URL) + _PADDING[spare], strict_mode=True)
    except ValueError:
        raise InvalidToken("not base64url") from None
