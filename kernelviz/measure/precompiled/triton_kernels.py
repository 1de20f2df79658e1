"""Collect the kernels that Triton compiles, and replace kernels that it compiles by others.

Triton compiles in `JITFunction._do_compile` and keeps what it compiled in `JITFunction.device_caches`, in 3.6 and 3.7. A
replacement has caches of its own, so that the same function runs with both codes in one process.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kernelviz.core.errors import BadField
from kernelviz.machine_code.cubin import read_cubin
from kernelviz.measure.precompiled.kernels import PrecompiledKernel
from kernelviz.measure.precompiled.specialisation import specialisation

_METADATA = (
    "shared",
    "num_warps",
    "num_ctas",
    "global_scratch_size",
    "global_scratch_align",
    "profile_scratch_size",
    "profile_scratch_align",
    "tmem_size",
    "tensordesc_meta",
)
"""What the launcher reads from a compiled kernel, besides the types of its arguments."""


@contextmanager
def collected() -> Iterator[dict[str, PrecompiledKernel]]:
    """The kernels that Triton compiles, or reads from its cache, meanwhile, by their specialisation."""
    from triton.runtime.jit import JITFunction

    kernels: dict[str, PrecompiledKernel] = {}
    original = JITFunction._do_compile

    def compiled(
        function: Any, key: Any, signature: Any, device: Any, constants: Any, options: Any, attributes: Any, warmup: Any
    ) -> Any:
        kernel = original(function, key, signature, device, constants, options, attributes, warmup)
        if kernel is not None:
            digest = specialisation(function, signature, constants, attributes, options)
            kernels[digest] = _precompiled(kernel, digest)
        return kernel

    JITFunction._do_compile = compiled
    try:
        yield kernels
    finally:
        JITFunction._do_compile = original


def _precompiled(kernel: Any, digest: str) -> PrecompiledKernel:
    metadata = kernel.metadata
    return PrecompiledKernel(
        specialisation=digest,
        kernel=str(metadata.name),
        version=str(metadata.triton_version),
        arch=int(metadata.target.arch),
        metadata={name: getattr(metadata, name, None) for name in _METADATA},
        ptx=str(kernel.asm["ptx"]),
        cubin=bytes(kernel.asm["cubin"]),
    )


class Replacement:
    """Kernels that replace what Triton compiles while `in_use`."""

    def __init__(self, kernels: Mapping[str, PrecompiledKernel]) -> None:
        self._kernels = kernels
        self._caches: dict[int, tuple[Any, Any]] = {}
        """Own caches by the function's identity, with the function, so that the identity stays its own."""

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Triton's functions run with the kernels of this replacement meanwhile. Errors: BadField from a function whose kernel
        is not among them."""
        from triton.runtime.jit import JITFunction

        run, compile_native = JITFunction.run, JITFunction._do_compile

        def run_replaced(function: Any, *arguments: Any, **keywords: Any) -> Any:
            native = function.device_caches
            own = self._caches.setdefault(id(function), (function, defaultdict(function.create_binder)))
            function.device_caches = own[1]
            try:
                return run(function, *arguments, **keywords)
            finally:
                function.device_caches = native

        def compile_replaced(
            function: Any,
            key: Any,
            signature: Any,
            device: Any,
            constants: Any,
            options: Any,
            attributes: Any,
            warmup: Any,
        ) -> Any:
            digest = specialisation(function, signature, constants, attributes, options)
            kernel = compile_native(function, key, signature, device, constants, options, attributes, warmup)
            if kernel is not None:
                self._replace(kernel, self._kernels.get(digest))
            return kernel

        JITFunction.run, JITFunction._do_compile = run_replaced, compile_replaced
        try:
            yield
        finally:
            JITFunction.run, JITFunction._do_compile = run, compile_native

    def _replace(self, kernel: Any, other: PrecompiledKernel | None) -> None:
        """Put the other code into a compiled kernel that is not loaded yet."""
        name = str(kernel.metadata.name)
        if other is None:
            raise BadField(
                "plug-in",
                name,
                "the file holds no machine code for this kernel at this size and number format, or its source has changed since: "
                "write it again with `kernelviz compile`, with the same sizes",
            )
        if other.arch != kernel.metadata.target.arch:
            raise BadField(
                "plug-in", name, f"it was compiled for sm_{other.arch}; compile it for a run of this GPU (--for)"
            )
        here, there = (_parameters(cubin, name) for cubin in (bytes(kernel.asm["cubin"]), other.cubin))
        if here != there:
            raise BadField("plug-in", name, f"it takes {there} bytes of parameters, and this Triton passes {here}")
        known = {key: value for key, value in other.metadata.items() if hasattr(kernel.metadata, key)}
        kernel.metadata = kernel.metadata._replace(**known, triton_version=other.version)
        kernel.packed_metadata = (kernel.metadata.num_warps, kernel.metadata.num_ctas, kernel.metadata.shared)
        kernel.kernel = other.cubin
        for kind in ("ttir", "ttgir", "llir", "source"):
            kernel.asm.pop(kind, None)
        kernel.asm["ptx"], kernel.asm["cubin"] = other.ptx, other.cubin


def _parameters(cubin: bytes, name: str) -> int | None:
    """Bytes of parameters of a kernel."""
    return next((kernel.parameter_bytes for kernel in read_cubin(cubin).kernels if kernel.name == name), None)
