"""Runs whose results name code, and the contents of that code, made without a compiler."""

from __future__ import annotations

import sample_runs as samples
from msgspec.structs import replace

from kernelviz.core import Artifact, CodeContent, CodeKind, CompiledCode, Run
from kernelviz.core.code import digest_of, packed

PTX = "//\n.version 9.0\n.target sm_90\n.entry add_kernel()\n{\n\tret;\n}\n"
SOURCE = "@triton.jit\ndef add_kernel(x, y):\n    pass\n"
CUBIN = b"\x7fELF\0\x01\xff not a real one"
VARIANT, MINE = "triton_block_per_row", "triton_persistent"
OWN = {"source": SOURCE.encode(), "ptx": PTX.encode(), "cubin": CUBIN}
PLUGIN = {"source": b"def secret(): ...\n", "ptx": PTX.encode() + b"// of the plug-in\n"}


def artifact(kind: CodeKind, content: bytes, name: str = "") -> Artifact:
    return Artifact(kind=kind, digest=digest_of(content), size_bytes=len(content), name=name)


def code_of(kernel: str, contents: dict[str, bytes], *, plugin: bool = False) -> CompiledCode:
    return CompiledCode(
        kernel=kernel,
        compiler="triton",
        version="3.7.1",
        arch="sm_90",
        warps=4,
        shared_bytes=0,
        plugin=plugin,
        artifacts=tuple(artifact(kind, content) for kind, content in contents.items()),  # type: ignore[arg-type]
    )


def contents(*of: dict[str, bytes]) -> tuple[CodeContent, ...]:
    """The contents, each once."""
    return tuple({digest_of(c): packed(c) for one in of for c in one.values()}.values())


def run(id: str = "with-code") -> Run:
    """Two sizes, two variants with the same code at both, one of them of a plug-in; the contents are in the document."""
    made = samples.run(op="add", sizes=[{"n": 1024}, {"n": 4096}], dtype="fp32", id=id)
    by_variant = {VARIANT: (code_of("add_kernel", OWN),), MINE: (code_of("mine", PLUGIN, plugin=True),)}
    results = tuple(replace(r, code=by_variant[r.variant]) if r.variant in by_variant else r for r in made.results)
    return replace(made, results=results, code=contents(OWN, PLUGIN))
