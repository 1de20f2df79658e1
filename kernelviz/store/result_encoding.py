"""Results as the database holds them: JSON, packed, since nearly all of it is samples (60 KB a case of an H200 become 14)."""

from __future__ import annotations

import zlib

import msgspec

from kernelviz.core.result import Result

_LEVEL = 1
"""0.3 ms for a result's 60 KB, and 0.15 to read it back; higher levels take three times as long for a tenth less."""
_RESULT = msgspec.json.Decoder(Result)


def packed(result: Result) -> bytes:
    return zlib.compress(msgspec.json.encode(result), _LEVEL)


def unpacked(body: bytes) -> Result:
    """The result of a body, also of one that an earlier version stored plainly."""
    return _RESULT.decode(plain(body))


def plain(body: bytes) -> bytes:
    """Its JSON, which begins with a brace; what is packed never does.

    >>> plain(b"{}"), plain(zlib.compress(b"{}"))
    (b'{}', b'{}')
    """
    return body if body[:1] == b"{" else zlib.decompress(body)
