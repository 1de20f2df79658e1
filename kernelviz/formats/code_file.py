"""The code of recorded runs in a file of its own for each op (`OP.kvc`): what compilers made for one card is mostly the same for
another one of its architecture, and together it is packed to a fraction."""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Mapping

import msgspec

from kernelviz.core import DocumentError
from kernelviz.core.code import digest_of

ENDING = ".kvc"
_MAGIC = b"KVC1"


class Head(msgspec.Struct, frozen=True):
    """`runs`: ids of the runs whose results name these contents. `contents`: SHA-256 (hex) and bytes of each, in order."""

    runs: tuple[str, ...]
    contents: tuple[tuple[str, int], ...]

    @property
    def digests(self) -> frozenset[str]:
        return frozenset(digest for digest, _ in self.contents)


def encode(contents: Mapping[str, bytes], runs: Iterable[str]) -> bytes:
    """The file. `contents`: by digest; what is alike is packed best side by side. Equal arguments give equal files."""
    head = Head(runs=tuple(runs), contents=tuple((digest, len(content)) for digest, content in contents.items()))
    packed = lzma.compress(msgspec.json.encode(head))
    return _MAGIC + len(packed).to_bytes(4, "little") + packed + lzma.compress(b"".join(contents.values()))


def head_of(data: bytes) -> Head:
    """What the file holds, without unpacking it. Errors: DocumentError."""
    return _parts(data)[0]


def contents_of(data: bytes) -> dict[str, bytes]:
    """The contents by digest. Errors: DocumentError, also if one is not what its digest names."""
    head, packed = _parts(data)
    return unpacked_together(packed, head.contents)


def unpacked_together(packed: bytes, sizes: Iterable[tuple[str, int]]) -> dict[str, bytes]:
    """Contents that were packed side by side, by digest. `sizes`: digest (SHA-256, hex) and bytes of each, in order.

    Errors: DocumentError, also if one is not what its digest names.
    """
    try:
        together = lzma.decompress(packed)
    except (lzma.LZMAError, EOFError) as error:
        raise DocumentError(f"its code cannot be unpacked ({error})") from None
    contents, start = dict[str, bytes](), 0
    for digest, size in sizes:
        contents[digest] = together[start : start + size]
        start += size
        if digest_of(contents[digest]) != digest:
            raise DocumentError("its code is not what its digests name")
    return contents


def _parts(data: bytes) -> tuple[Head, bytes]:
    """The head and the packed contents. Errors: DocumentError."""
    if data[:4] != _MAGIC:
        raise DocumentError("this is no file of recorded code of kernelviz")
    end = 8 + int.from_bytes(data[4:8], "little")
    try:
        return msgspec.json.decode(lzma.decompress(data[8:end]), type=Head), data[end:]
    except (lzma.LZMAError, msgspec.MsgspecError, EOFError) as error:
        raise DocumentError(f"it cannot be unpacked ({error})") from None
