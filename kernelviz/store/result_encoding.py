"""The encoding of results in the database: compressed JSON, because nearly all of it is samples (60 KB a case become 14)."""

import zlib

import msgspec

from kernelviz.core import Failure, Problem, Result
from kernelviz.core.reasons import StoredResultDamaged
from kernelviz.core.version_1 import upgraded

_LEVEL = 1
"""zlib's level: 0.3 ms to compress a result's 60 KB, 0.15 ms to read it; higher levels take three times as long for a tenth
less."""
_VERSION = 2
"""Version of a row's facts: 1 where notes and failures are sentences (core.version_1). Rows of version 1 contain no version."""


class Damaged(Exception):
    """The bytes of a result are not those that were written."""


class _Row(Result, frozen=True, kw_only=True):
    """A result as stored in a row."""

    version: int = _VERSION


class _Head(msgspec.Struct):
    version: int = 1


def packed(result: Result) -> bytes:
    row = _Row(**{name: getattr(result, name) for name in Result.__struct_fields__})
    return zlib.compress(msgspec.json.encode(row), _LEVEL)


def unpacked(body: bytes) -> Result:
    """The result of a body, also of an uncompressed one of an earlier version. Errors: Damaged."""
    try:
        json = plain(body)
        if msgspec.json.decode(json, type=_Head).version == 1:
            return msgspec.convert(upgraded(msgspec.json.decode(json)), Result)
        return msgspec.json.decode(json, type=Result)
    except (zlib.error, msgspec.MsgspecError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise Damaged from error


def damaged(problem: Problem, variant: str) -> Result:
    """What stands for a stored result of that case that cannot be read."""
    return Result(
        problem=problem, variant=variant, outcome=Failure(stage="unavailable", reasons=(StoredResultDamaged(),))
    )


def plain(body: bytes) -> bytes:
    """The JSON of a body. JSON begins with a brace; a compressed body never does.

    >>> plain(b"{}"), plain(zlib.compress(b"{}"))
    (b'{}', b'{}')
    """
    return body if body[:1] == b"{" else zlib.decompress(body)
