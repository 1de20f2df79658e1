"""Inspections as the measuring process would make them, made without torch: a right case, one with wrong columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import get_args

from kernelviz.core.inspection import (
    OCTAVES,
    Element,
    ErrorCounts,
    ErrorMap,
    Histogram,
    Inspection,
    MemoryMoment,
    MemoryState,
    OutputErrors,
    TensorFacts,
)
from kernelviz.core.problem import Problem
from kernelviz.core.run import Device, Environment
from kernelviz.ops import catalogue

DEVICE = Device(id="cuda:0", kind="cuda", name="NVIDIA H200", uuid="GPU-00000000-0000-0000-0000-000000000001")
WHERE = Environment(
    device=DEVICE, host="h", platform="Linux", python="3.11", kernelviz="0.1.0", versions={"torch": "2.13.0"}
)
PROBLEM = Problem(op="rmsnorm", sizes={"m": 200, "n": 4096}, dtype="bf16")
WRONG_SHARE = 1 / 16
"""Of the last axis: the end of it is wrong, its last quarter never written."""


def right(
    problem: Problem = PROBLEM, variant: str = "triton_persistent", environment: Environment | None = None
) -> Inspection:
    return _made(problem, variant, environment, wrong=False)


def wrong_tile(
    problem: Problem = PROBLEM, variant: str = "triton_persistent", environment: Environment | None = None
) -> Inspection:
    return _made(problem, variant, environment, wrong=True)


def _made(problem: Problem, variant: str, environment: Environment | None, *, wrong: bool) -> Inspection:
    op = catalogue()[problem.op]
    spec = op.outputs[0]
    shape = spec.shape(problem.sizes)
    found = _errors(spec.name, spec.axes, shape, wrong=wrong)
    tensors = [
        *(_tensor(t.name, "input", problem, t.shape(problem.sizes)) for t in op.inputs),
        _tensor(spec.name, "output", problem, shape, unwritten=found.unwritten),
    ]
    said = f"leaves output unwritten: {found.unwritten} elements were never written" if wrong else ""
    return Inspection(
        problem=problem,
        variant=variant,
        environment=environment or WHERE,
        created_at="2026-11-21T12:00:00.000+00:00",
        passed=not wrong,
        message=said,
        rule=op.rule,
        seed=2 if wrong else 0,
        seeds=3,
        call="timed",
        tensors=tuple(tensors),
        errors=(found,),
        source_digest="0123456789abcdef",
        memory=tuple(_memory((environment or WHERE).device)),
    )


def _memory(device: Device) -> Iterator[MemoryState]:
    """As of a call that allocates 2 MiB when it is bound. torch counts memory on GPUs only."""
    known = device.kind == "cuda"
    for number, moment in enumerate(get_args(MemoryMoment)):
        allocated_bytes = 2**30 + (2**21 if number else 0)
        yield MemoryState(
            moment=moment,
            allocated_bytes=allocated_bytes if known else None,
            reserved_bytes=2**31 if known else None,
        )


def _tensor(name: str, role: str, problem: Problem, shape: tuple[int, ...], unwritten: int = 0) -> TensorFacts:
    elements = math.prod(shape)
    strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    counts = [0] * 64
    counts[31] = elements - unwritten
    return TensorFacts(
        name=name,
        role=role,  # type: ignore[arg-type]
        dtype=problem.dtype,
        shape=shape,
        strides=strides,
        size_bytes=elements * (4 if problem.dtype == "fp32" else 2),
        device="cuda:0",
        alignment_bytes=512,
        contiguous=True,
        nan=unwritten,
        positive_infinity=0,
        negative_infinity=0,
        zeros=1,
        minimum=-4.25,
        maximum=4.5,
        mean=0.001,
        deviation=1.0,
        histogram=Histogram(low=-4.25, high=4.5, counts=tuple(counts)),
        unwritten=unwritten if role == "output" else None,
    )


def _errors(name: str, axes: tuple[str, ...], shape: tuple[int, ...], *, wrong: bool) -> OutputErrors:
    width, rows = shape[-1], math.prod(shape[:-1])
    bad = max(2, int(width * WRONG_SHARE)) if wrong else 0
    lost = max(1, bad // 4) if wrong else 0
    first = tuple([0] * (len(shape) - 1) + [width - bad])
    last = tuple(s - 1 for s in shape)
    octaves = [0] * (2 * OCTAVES + 2)
    octaves[OCTAVES] = rows * (width - bad)
    octaves[OCTAVES + 4] = rows * (bad - lost)
    worst = [
        Element(index=last, got="NaN", expected=0.5, error=None, allowed=0.001, share=None, unwritten=True),
        Element(index=first, got=0.25, expected=0.2375, error=0.0125, allowed=0.001, share=12.5),
    ]
    fine = Element(index=tuple(0 for _ in shape), got=0.25, expected=0.2495, error=0.0005, allowed=0.001, share=0.5)
    return OutputErrors(
        name=name,
        axes=axes,
        shape=shape,
        wrong=rows * bad,
        not_finite=rows * lost,
        unwritten=rows * lost,
        max_abs=0.0125 if wrong else 0.0005,
        max_relative=0.05 if wrong else 0.002,
        relative_l2=0.01 if wrong else 0.001,
        worst_of_bound=None if wrong else 0.5,
        worst=tuple(worst if wrong else [fine]),
        map=_map(shape, bad, lost),
        counts=ErrorCounts(exact=0, octaves=tuple(octaves), beyond=rows * lost),
        first_wrong=first if wrong else None,
        last_wrong=last if wrong else None,
    )


def _map(shape: tuple[int, ...], bad: int, lost: int) -> ErrorMap:
    wraps = len(shape) < 2
    high, wide = (1, _block(shape[-1], 64 * 64)) if wraps else (_block(shape[-2], 64), _block(shape[-1], 64))
    across = -(-shape[-1] // wide)
    down = 1 if wraps else -(-shape[-2] // high)
    shares: list[float | None] = []
    wrong, unwritten = [], []
    for row in range(down):
        tall = 1 if wraps else min(high, shape[-2] - row * high)
        for column in range(across):
            begin, end = column * wide, min((column + 1) * wide, shape[-1])
            lacking = max(0, end - max(begin, shape[-1] - lost))
            off = max(0, end - max(begin, shape[-1] - bad))
            shares.append(None if lacking else 12.5 if off else 0.5)
            wrong.append(off * tall)
            unwritten.append(lacking * tall)
    columns = min(64, across) if wraps else across
    return ErrorMap(
        rows=-(-across // columns) if wraps else down,
        columns=columns,
        block=(high, wide),
        wraps=wraps,
        shares=tuple(shares),
        wrong=tuple(wrong),
        unwritten=tuple(unwritten),
    )


def _block(size: int, cells: int) -> int:
    return 1 << max(0, math.ceil(math.log2(size / cells)))
