"""Compile the kernels of one case as its bind and its first call would, without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kernelviz.core import Problem
from kernelviz.measure.compile_ahead.messages import CompileWork, DeviceFacts
from kernelviz.measure.compile_ahead.nvcc_loader import CompileOnlyNvcc
from kernelviz.measure.compile_ahead.nvrtc_compile import compile_into_cache
from kernelviz.measure.compile_ahead.nvrtc_driver import CompileOnlyNvrtc
from kernelviz.measure.compile_ahead.stand_in import gpu_of, stand_ins
from kernelviz.measure.session.binding import configured
from kernelviz.ops import Op, Variant, op_named, refresh
from kernelviz.ops.kernels import nvcc, nvrtc


class CaseCompiler:
    """Compiles cases for one GPU in this process, which must not have a GPU of its own and is of no other use from then on."""

    def __init__(self, facts: DeviceFacts) -> None:
        self._facts = facts
        self._kernels: list[str] = []
        multiprocessors = int(facts.torch_properties.get("multi_processor_count", 1))
        nvrtc.active = CompileOnlyNvrtc(f"sm_{facts.arch}", multiprocessors, self._compiled, compile_into_cache)
        nvcc.active = CompileOnlyNvcc(f"sm_{facts.arch}", self._compiled)
        self._set_triton_driver()
        self._replace_tensor_maps()

    def _set_triton_driver(self) -> None:
        try:
            import triton
        except ImportError:
            return
        from kernelviz.measure.compile_ahead.triton_driver import CompileOnlyDriver

        facts = self._facts
        runtime: Any = triton.runtime
        runtime.driver.set_active(
            CompileOnlyDriver(facts.arch, facts.triton_properties, self._compiled, warp_size=facts.warp_size)
        )

    def _replace_tensor_maps(self) -> None:
        """Make empty tensor maps for TMA. The CUDA driver makes them, which must not be loaded here, and no kernel depends on
        what they hold when it is compiled."""
        with suppress(ImportError):
            from cuda.bindings import driver

            success, nothing = driver.CUresult.CUDA_SUCCESS, driver.CUtensorMap()
            driver.cuTensorMapEncodeTiled = lambda *arguments: (success, nothing)

    def _compiled(self, name: str, cubin: bytes, shared_bytes: int) -> None:
        self._kernels.append(name)

    def compile(self, op: Op, variant: Variant, problem: Problem) -> tuple[str, ...]:
        """The names of the kernels that the case uses; they are in the caches on disk now.

        `op` and `variant` are those of the problem's direction. Raises whatever the variant raises, also because it needs to
        know something that only a GPU knows.
        """
        self._kernels.clear()
        with gpu_of(self._facts):
            launch = variant.bind(*stand_ins(op.inputs, problem), **variant.keywords(problem))
            refresh(launch)
            launch()
        return tuple(self._kernels)

    def compile_work(self, ops: Mapping[str, Op], work: CompileWork) -> tuple[str, ...]:
        """As `compile`, for the variant that the worker binds. Errors: also UnknownName, BadField."""
        op = op_named(work.problem.op, ops).of(work.problem)
        variant = configured(op, work.variant, {} if work.tuned is None else {work.variant: work.tuned})
        return self.compile(op, variant, work.problem)
