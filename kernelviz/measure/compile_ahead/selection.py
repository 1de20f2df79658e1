"""Which cases of a run are compiled ahead, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelviz.core import UnknownName
from kernelviz.core.backends import BACKENDS
from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.measure.compile_ahead.processes import Work
from kernelviz.ops import Op, Variant, op_named

_ORDER: tuple[str | None, ...] = ("nvrtc", "triton", "nvcc")
"""By the compiler of the backend, the fastest first: NVRTC takes a median of 0.06 s for a case of the catalogue (162 cases at the
sizes of the tests), and Triton 0.09 s (81 cases), on a machine with two cores; nvcc takes a minute for templates of CUTLASS."""


def cases_to_compile(ops: Mapping[str, Op], upcoming: Sequence[UpcomingCases]) -> list[Work]:
    """The cases problem by problem, of each problem those that compile fastest first. Cases of unknown variants are left out."""
    chosen: list[Work] = []
    for cases in upcoming:
        op = op_named(cases.problem.op, ops).of(cases.problem)
        variants: list[Variant] = []
        for name in cases.variants:
            try:
                variants.append(op.variant_named(name))
            except UnknownName:
                continue
        able = [v for v in variants if compiles_without_gpu(v)]
        able.sort(key=lambda v: (v.slow_compile, _ORDER.index(BACKENDS[v.backend].compiler)))
        chosen += [(cases.problem, v.name, cases.tuned.get(v.name)) for v in able]
    return chosen


def compiles_without_gpu(variant: Variant) -> bool:
    """Whether the compiler of its kernels needs a target, but no device: Triton, NVRTC and nvcc. Inductor creates a context.

    Libraries do not count, even if their kernels are Triton's: a compiler process, which is new in each run, would have to import
    them first. On an H200's host where peft is installed, the worker waited 8 s for Liger in each run (2026-11-29).
    """
    return BACKENDS[variant.backend].compiler is not None
