"""Checks of the code in a document from elsewhere: everything is bounded, and each content is what its digest names."""

from kernelviz.core import Artifact, CompiledCode, DocumentError, Run
from kernelviz.core.code import MOST_ARTIFACT_BYTES, MOST_KERNELS, CodeError, is_digest, unpacked

MOST_BYTES = 128 * 2**20
"""The contents of a document take at most this, unpacked. Each is unpacked by itself, so at most one is in memory."""
MOST_ARTIFACTS = 128
"""Most artifacts of one kernel. A CUDA C++ file has up to ten headers."""
MOST_DEFINES = 200
MOST_TEXT = 2_000
"""Characters of a kernel's name, of a file's name, of a version and of a macro: C++ types in names are long."""


def check_code(run: Run) -> None:
    """Errors: DocumentError with the path of the first field that cannot be used."""
    sizes: dict[str, int] = {}
    for i, result in enumerate(run.results):
        codes = result.code or ()
        _at_most(len(codes), MOST_KERNELS, "descriptions of compiled code", f"$.results[{i}].code")
        for j, code in enumerate(codes):
            _check_description(code, f"$.results[{i}].code[{j}]", sizes)
    seen: set[str] = set()
    left = MOST_BYTES
    for i, content in enumerate(run.code or ()):
        path = f"$.code[{i}]"
        if content.digest not in sizes:
            raise DocumentError("no result names this content", path=f"{path}.digest")
        if content.digest in seen:
            raise DocumentError("this content is in the document twice", path=f"{path}.digest")
        seen.add(content.digest)
        try:
            size = len(unpacked(content))
        except CodeError as error:
            raise DocumentError(str(error), path=f"{path}.zlib") from None
        if size != sizes[content.digest]:
            stated = sizes[content.digest]
            raise DocumentError(f"it has {size:,} bytes, and a result states {stated:,}", path=f"{path}.zlib")
        left -= size
        if left < 0:
            raise DocumentError(f"its code has more than {MOST_BYTES:,} bytes; at most that is read", path="$.code")


def _check_description(code: CompiledCode, path: str, sizes: dict[str, int]) -> None:
    _at_most(len(code.artifacts), MOST_ARTIFACTS, "artifacts", f"{path}.artifacts")
    _at_most(len(code.defines), MOST_DEFINES, "macros", f"{path}.defines")
    texts = (code.kernel, code.version or "", code.arch or "", *code.defines, *code.defines.values())
    _at_most(max(map(len, texts)), MOST_TEXT, "characters in a text", path)
    for name in ("warps", "shared_bytes"):
        number = getattr(code, name)
        if number is not None and not 0 <= number <= 2**31:
            raise DocumentError(f"{str(number)[:40]} is outside 0 to {2**31}", path=f"{path}.{name}")
    for k, artifact in enumerate(code.artifacts):
        _check_artifact(artifact, f"{path}.artifacts[{k}]", sizes)


def _check_artifact(artifact: Artifact, path: str, sizes: dict[str, int]) -> None:
    _at_most(len(artifact.name), MOST_TEXT, "characters in a text", f"{path}.name")
    if not is_digest(artifact.digest):
        raise DocumentError("a digest is a SHA-256 as 64 lower-case hexadecimal digits", path=f"{path}.digest")
    if not 0 < artifact.size_bytes <= MOST_ARTIFACT_BYTES:
        number = str(artifact.size_bytes)[:40]
        raise DocumentError(f"{number} is outside 1 to {MOST_ARTIFACT_BYTES}", path=f"{path}.size_bytes")
    if sizes.setdefault(artifact.digest, artifact.size_bytes) != artifact.size_bytes:
        raise DocumentError("the same content has another size elsewhere", path=f"{path}.size_bytes")


def _at_most(count: int, most: int, what: str, path: str) -> None:
    if count > most:
        raise DocumentError(f"{count:,} {what}; at most {most:,} are read", path=path)
