"""Runs whose results name code, and the contents of that code, made without a compiler."""

from __future__ import annotations

import lzma
from pathlib import Path

import sample_runs as samples
from msgspec.structs import replace

from kernelviz.core import Artifact, CodeContent, CodeKind, CompiledCode, Run
from kernelviz.core.code import digest_of, packed
from kernelviz.ops import catalogue

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


CUBINS = Path(__file__).parent / "machine_code" / "cubins"
ARITHMETIC = {
    "cuda_scalar": "arithmetic_scalar",
    "cuda_vec16": "arithmetic_vec16",
    "triton_block": "arithmetic_vectors",
}
"""Kernels of a committed cubin, by the variants that have them in `run_with_cubins`. Of these, `cuda_vec16` declares 16-byte
accesses. The third kernel has them, too, but the variant does not declare it."""


def cubin(name: str) -> bytes:
    """A committed cubin of tests/machine_code."""
    return lzma.decompress((CUBINS / f"{name}.cubin.xz").read_bytes())


def run_with_cubins(id: str = "with-cubins", *, with_contents: bool = True) -> Run:
    """Two sizes of `add` on an H200: three variants with a real cubin, the baseline and torch.compile without code."""
    content = cubin("arithmetic-sm_90")
    sizes = [{"n": 2**20}, {"n": 2**24}]
    shares = {"torch_eager": 0.6, "torch_compile": 0.9, **dict.fromkeys(ARITHMETIC, 0.9)}
    made = samples.run(op="add", sizes=sizes, dtype="fp32", id=id, shares=shares)
    variants = {v.name: v for v in catalogue()["add"].variants}
    results = []
    for result in made.results:
        variant = variants[result.variant]
        digest = variant.source_digest()
        if result.variant in ARITHMETIC:
            name = ARITHMETIC[result.variant]
            code = replace(code_of(name, {"cubin": content}), warps=None, compiler="nvrtc")
            blocks = result.problem.sizes["n"] // (256 if name == "arithmetic_scalar" else 1024)
            kernel = replace(result.kernels[0], name=name, grid=(blocks, 1, 1), shared_memory_bytes=0)
            result = replace(result, code=(code,), kernels=(kernel,))
        results.append(replace(result, backend=variant.backend, source_digest=digest))
    return replace(made, results=tuple(results), code=(packed(content),) if with_contents else ())
