"""Graphs of torch.compile: the code that inductor generated for each (Triton or C++ inside a Python module), and its kernels."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from kernelviz.core import CodeKind, CompiledCode
from kernelviz.measure.compiled_code import triton_kernels
from kernelviz.measure.compiled_code.artifacts import Artifacts
from kernelviz.measure.compiled_code.triton_kernels import replace_method

_KERNEL = re.compile(r"^(\w+) = async_compile\.\w+\(", re.MULTILINE)
_HASH = re.compile(r"[0-9a-f]{64}")


class InductorGraphs:
    """See `capture.Watcher`. A graph is seen when it is called, whether or not it was compiled before.

    Its Triton kernels are seen when inductor's launcher runs them. A kernel that is launched without Triton's own launcher keeps
    no artifacts in memory; they are then read from Triton's cache by the kernel's hash.
    """

    def __init__(self) -> None:
        self._graphs: list[Any] = []
        self._kernels: list[Any] = []
        self._in_bind: tuple[list[Any], list[Any]] = ([], [])
        self._installed: set[str] = set()

    def install(self, undo: ExitStack) -> None:
        for module, owner, method, after in (
            ("torch._inductor.output_code", "CompiledFxGraph", "__call__", self._called),
            ("torch._inductor.runtime.triton_heuristics", "CachingAutotuner", "run", self._launched),
        ):
            loaded = sys.modules.get(module)
            if loaded is not None and hasattr(loaded, owner) and owner not in self._installed:
                self._installed.add(owner)
                replace_method(getattr(loaded, owner), method, after, undo)

    def _called(self, graph: Any, result: object) -> None:
        self._graphs.append(graph)

    def _launched(self, tuner: Any, result: object) -> None:
        self._kernels.append(tuner)

    def bound(self) -> None:
        self._in_bind = self._graphs, self._kernels
        self._graphs, self._kernels = [], []

    def codes(self, artifacts: Artifacts) -> Sequence[CompiledCode]:
        graphs, tuners = (self._graphs, self._kernels) if self._graphs or self._kernels else self._in_bind
        codes = [_graph_code(graph, artifacts) for graph in {id(g): g for g in graphs}.values()]
        for tuner in {id(t): t for t in tuners}.values():
            code = _kernel_code(tuner, artifacts)
            if code is not None:
                codes.append(code)
        return codes


def _graph_code(graph: Any, artifacts: Artifacts) -> CompiledCode:
    import torch

    source = getattr(graph, "source_code", None)
    text = source if isinstance(source, str) else ""
    names = _KERNEL.findall(text)
    return CompiledCode(
        kernel=", ".join(names) or "graph",
        compiler="inductor",
        version=str(torch.__version__),
        artifacts=artifacts.add("source", text),
    )


def _kernel_code(tuner: Any, artifacts: Artifacts) -> CompiledCode | None:
    """The description of the Triton kernel that inductor's launcher chose."""
    launchers = getattr(tuner, "launchers", None) or (None,)
    binary = getattr(launchers[0], "bin", None)
    if binary is not None and hasattr(binary, "asm") and hasattr(binary, "metadata"):
        return triton_kernels.code_of(binary, None, artifacts)
    static = _static_kernel(tuner, launchers[0])
    name, kernel_hash = getattr(static, "name", None), getattr(static, "hash", None)
    if not isinstance(name, str) or not isinstance(kernel_hash, str) or not _HASH.fullmatch(kernel_hash):
        return None
    files = triton_kernels.files_in_cache(kernel_hash, name)
    kinds: tuple[CodeKind, ...] = triton_kernels.KINDS
    return CompiledCode(
        kernel=name,
        compiler="triton",
        version=triton_kernels.version(),
        arch=triton_kernels.arch_of(_Target(getattr(tuner, "device_props", None))),
        warps=getattr(static, "num_warps", None),
        shared_bytes=getattr(static, "shared", None),
        artifacts=artifacts.of_kinds((kind, files.get(kind)) for kind in kinds),
    )


def _static_kernel(tuner: Any, launcher: Any) -> Any:
    """The kernel of a launcher that is not Triton's own, of those that were compiled to choose from; None if it is not among
    them."""
    results = [result for result in getattr(tuner, "compile_results", ()) if hasattr(result, "kernel")]
    config = getattr(launcher, "config", None)
    if len(results) > 1:
        results = [result for result in results if config is not None and getattr(result, "config", None) is config]
    return results[0].kernel if results else None


class _Target:
    """The device of inductor's launcher, with the names that Triton's targets have."""

    def __init__(self, device: Any) -> None:
        self.backend, self.arch = getattr(device, "type", None), getattr(device, "cc", None)
