"""The artifacts of one case while they are collected: bounded, compressed, and described by their digests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from kernelviz.core import Artifact, CodeContent, CodeKind
from kernelviz.core.code import MOST_ARTIFACT_BYTES, MOST_CASE_BYTES, digest_of, packed
from kernelviz.measure.compiled_code.folder_names import FolderNames

MOST_REMEMBERED_BYTES = 64 * 2**20
"""Compressed contents that stay in memory, because the cases of a sweep share most of them. Compressing the PTX, the languages of
Triton and the cubin of one kernel takes 5 to 10 ms."""
_remembered: OrderedDict[str, CodeContent] = OrderedDict()
_remembered_bytes = 0


class Artifacts:
    """The contents of the artifacts of one case, each once, with names instead of this machine's folders."""

    def __init__(self, names: FolderNames | None = None) -> None:
        """`names`: by default those of this process's folders."""
        self._names = FolderNames() if names is None else names
        self.contents: dict[str, CodeContent] = {}
        self._bytes = 0

    def add(self, kind: CodeKind, content: str | bytes | None, name: str = "") -> tuple[Artifact, ...]:
        """The artifact; none for an empty content, or for one that would exceed the limits of an artifact or of the case."""
        raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        if not raw or len(raw) > MOST_ARTIFACT_BYTES:
            return ()
        raw = self._names.applied(kind, raw)
        digest = digest_of(raw)
        if digest not in self.contents:
            if self._bytes + len(raw) > MOST_CASE_BYTES:
                return ()
            self._bytes += len(raw)
            self.contents[digest] = _packed(digest, raw)
        return (Artifact(kind=kind, digest=digest, size_bytes=len(raw), name=name),)

    def of_kinds(self, contents: Iterable[tuple[CodeKind, str | bytes | None]]) -> tuple[Artifact, ...]:
        """The artifacts of several kinds, in the given order."""
        return tuple(artifact for kind, content in contents for artifact in self.add(kind, content))


def _packed(digest: str, raw: bytes) -> CodeContent:
    global _remembered_bytes
    known = _remembered.pop(digest, None)
    content = known or packed(raw)
    _remembered[digest] = content
    _remembered_bytes += 0 if known else len(content.zlib)
    while _remembered_bytes > MOST_REMEMBERED_BYTES:
        _remembered_bytes -= len(_remembered.popitem(last=False)[1].zlib)
    return content
