"""What compilers made of a case: a description of each kernel, and the artifacts (source, PTX, cubin, …) by their digests.

A result names artifacts by SHA-256. Their contents are stored once for each digest: in a folder beside the database, and in
documents on request. Contents may come from a file of somebody else, so they are data: bounded, verified, never run or parsed.
"""

import hashlib
import zlib
from collections.abc import Iterable
from typing import Literal

import msgspec

from kernelviz.core.problem import Struct

Compiler = Literal["triton", "nvrtc", "nvcc", "inductor", "c++"]
CodeKind = Literal["source", "ttir", "ttgir", "ptx", "cubin"]
"""The kinds of artifacts, from what a person wrote to what the device runs. ``ttir`` and ``ttgir``: Triton's own languages."""

MOST_ARTIFACT_BYTES = 8 * 2**20
"""A larger artifact is neither stored nor read. The largest of the catalogue, the PTX of a long unrolled row, has 0.3 MB."""
MOST_CASE_BYTES = 24 * 2**20
"""All artifacts of a case take at most this, unpacked. A message of the worker has at most 64 MiB."""
MOST_KERNELS = 64
"""Most descriptions of one case. A graph of torch.compile has a few kernels."""
_LEVEL = 6
DIGEST_CHARACTERS = 64


class CodeError(Exception):
    """The bytes of an artifact are not those that its digest names, or unpack to more than MOST_ARTIFACT_BYTES."""


class Artifact(Struct, frozen=True, kw_only=True):
    """One artifact of a kernel. `digest`: SHA-256 (hex) of its content. `name`: of the file, for a source."""

    kind: CodeKind
    digest: str
    size_bytes: int
    name: str = ""


class CompiledCode(Struct, frozen=True, kw_only=True):
    """What a compiler made: one kernel of Triton or NVRTC, one library of nvcc, one graph of inductor, or one C++ extension.

    `kernel`: its name. `version`: of the compiler. `arch`: the architecture that it was compiled for, for example ``sm_90``.
    `warps`: per block (Triton). `shared_bytes`: dynamic shared memory of a block. `defines`: macros (NVRTC, nvcc). `plugin`:
    whether a user's own file declares the variant; such code is exported only when that is asked for. Unknown facts are None.
    """

    kernel: str
    compiler: Compiler
    version: str | None = None
    arch: str | None = None
    warps: int | None = None
    shared_bytes: int | None = None
    defines: dict[str, str] = {}
    plugin: bool = False
    artifacts: tuple[Artifact, ...] = ()


class CodeContent(Struct, frozen=True, kw_only=True):
    """The content of an artifact, compressed by zlib."""

    digest: str
    zlib: bytes


def digest_of(content: bytes) -> str:
    """SHA-256 (hex) of an artifact's content."""
    return hashlib.sha256(content).hexdigest()


def packed(content: bytes) -> CodeContent:
    """The content compressed, with its digest."""
    return CodeContent(digest=digest_of(content), zlib=zlib.compress(content, _LEVEL))


def unpacked(content: CodeContent, most_bytes: int = MOST_ARTIFACT_BYTES) -> bytes:
    """The bytes of an artifact. Errors: CodeError if they are damaged, too many, or not those of the digest.

    >>> unpacked(packed(b"int main() {}"))
    b'int main() {}'
    """
    reader = zlib.decompressobj()
    try:
        raw = reader.decompress(content.zlib, most_bytes + 1)
    except zlib.error as error:
        raise CodeError(f"its content cannot be unpacked ({error})") from None
    if len(raw) > most_bytes:
        raise CodeError(f"its content has more than {most_bytes:,} bytes")
    if not reader.eof or reader.unused_data:
        raise CodeError("its content is cut off, or something follows it")
    if digest_of(raw) != content.digest:
        raise CodeError("its content is not what its digest names")
    return raw


def is_digest(text: str) -> bool:
    """Whether the text is a SHA-256 as 64 lower-case hexadecimal digits, so that it can name a file.

    >>> is_digest("0" * 64), is_digest("../" + "0" * 61), is_digest("A" * 64)
    (True, False, False)
    """
    return len(text) == DIGEST_CHARACTERS and all(c in "0123456789abcdef" for c in text)


def digests(codes: Iterable[CompiledCode] | msgspec.UnsetType) -> tuple[str, ...]:
    """The digests of all artifacts, each once, in order.

    >>> digests(msgspec.UNSET)
    ()
    """
    if isinstance(codes, msgspec.UnsetType):
        return ()
    return tuple(dict.fromkeys(a.digest for code in codes for a in code.artifacts))
