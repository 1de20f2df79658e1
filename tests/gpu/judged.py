"""What the figures of two GPU checks must show: asked by the checks themselves, and by CI of docs/gpu-figures.json.

Imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

from cases import WRONG, large_sizes, odd_sizes
from loaded_code import resources_by_cubin

from kernelviz.core.problem import Case, Problem
from kernelviz.core.result import Result
from kernelviz.metrics.ncu_agreement import NCU_FRACTION, NCU_S, unexplained_s
from kernelviz.ops import Op, catalogue

EMPTY_LAUNCH = "empty_launch"
LEAST_REGISTERS = 16
"""That a thread has on Hopper, however few its kernel needs."""


def problem_for_ncu(op: Op) -> Problem:
    """In the op's first dtype, of its large sizes the one that moves about 128 MiB: references in float64 stay quick.

    Of what moves nothing one launch: ncu takes 15 ms for each, and what has a thousand is not compared anyway.
    """

    def far(problem: Problem) -> float:
        cost = op.cost_of(problem)
        return abs(math.log2(max(1, cost.read_bytes + cost.written_bytes)) - 27)

    sizes = [{"k": 1}] if op.name == EMPTY_LAUNCH else [*large_sizes(op), *odd_sizes(op)[-1:]]
    return min((op.problem(s, "bf16" if op.name == "matmul" else op.dtypes[0]) for s in sizes), key=far)


def cases_for_ncu() -> list[Case]:
    """Every variant of every op, but those that run on processors only."""
    return [
        Case(problem=problem, variant=variant.name)
        for op in catalogue().values()
        for problem in [problem_for_ncu(op)]
        for variant in op.variants
        if variant.refuses(problem) is None and "cpu" not in variant.needs
    ]


Compared = Mapping[str, Mapping[str, Any]]
"""Case to what the session and ncu measured of it, as test_selftest records it."""

MOST_FURTHER_OFF = 0.05
"""Of all cases of one kernel, which may be further off for another reason than the clock, each for one that was measured. Kernels
of matrix products and attention run at a clock that the power limit sets, and those are a fifth of the catalogue."""
TOO_RARE = 0.01


def most_further_off(cases: int) -> int:
    """The 99 % quantile of a binomial distribution: how many of a sample may be further off if MOST_FURTHER_OFF of all are."""
    within, most = 0.0, -1
    while within < 1 - TOO_RARE:
        most += 1
        within += math.comb(cases, most) * MOST_FURTHER_OFF**most * (1 - MOST_FURTHER_OFF) ** (cases - most)
    return most


def one_kernel(compared: Compared) -> dict[str, Mapping[str, Any]]:
    """The cases whose call is one kernel, the same here and there."""
    return {k: c for k, c in compared.items() if c["kernels"] == 1 and c["same_kernels"]}


def ncu_adds_s(compared: Compared) -> float:
    """What ncu adds to an empty kernel: the median over the cases that launch one. Raises ValueError where none was compared."""
    added = [
        float(c["ncu_s"] - c["own_s"])
        for key, c in one_kernel(compared).items()
        if op_and_variant(key)[0] == EMPTY_LAUNCH
    ]
    if not added:
        raise ValueError("no empty launch was compared, so what ncu adds is unknown")
    return median(added)


def further_off(compared: Compared) -> dict[str, Mapping[str, Any]]:
    """Of the cases of one kernel, those whose times differ by more than NCU_S + 1 %, beyond what ncu adds."""
    adds_s = ncu_adds_s(compared)
    return {
        k: c
        for k, c in one_kernel(compared).items()
        if abs(c["ncu_s"] - adds_s - c["own_s"]) > NCU_S + NCU_FRACTION * c["own_s"]
    }


def further_off_at_one_clock(compared: Compared) -> list[str]:
    """Of those, the ones that are further off also after ncu's time was converted to the clock of ours."""
    adds_s = ncu_adds_s(compared)
    return [
        k
        for k, c in further_off(compared).items()
        if unexplained_s(c["own_s"], (c["own_s"],) * 2, c["own_clock_hz"], c["ncu_s"] - adds_s, c["ncu_clock_hz"])
        > NCU_S + NCU_FRACTION * c["own_s"]
    ]


def without_reason(compared: Compared) -> list[str]:
    """Of the cases that are further off, those for which none of these accounts.

    - Another clock there.
    - Our own samples' range: a time that depends on where its tensors lie.
    - Tracing shortens the call (`tracing_shortens_s`), so ours is untraced, and ncu's is apart by no more than tracing is.
    - It is not known what tracing adds to the call (`tracing_cost_unknown`: a call outside of graphs), and ours is longer by no
      greater part of it than tracing adds to any other (`tracing_adds_s`).
    - ncu itself, or a process in which the call takes another time: a third timer (`untraced_s`: events round a graph, without a
      profiler) agrees with ours, or with ours of the same process and tensors (`own_again_s`).
    """
    adds_s = ncu_adds_s(compared)
    traced = [(float(c["tracing_adds_s"]), float(c["own_s"])) for c in compared.values() if "tracing_adds_s" in c]
    part = max((added_s / (own_s + added_s) for added_s, own_s in traced), default=0.0)
    return [k for k, c in further_off(compared).items() if not _explained(c, adds_s, part)]


def _explained(case: Mapping[str, Any], adds_s: float, tracing_adds: float) -> bool:
    """`tracing_adds`: the greatest part of a traced time that tracing is known to add."""
    own_s: float = case["own_s"]
    allowed_s = NCU_S + NCU_FRACTION * own_s
    longer_s = own_s - (case["ncu_s"] - adds_s)
    if case.get("tracing_cost_unknown") and 0 <= longer_s <= tracing_adds * own_s + allowed_s:
        return True
    if "tracing_shortens_s" in case:
        return bool(abs(case["ncu_s"] - adds_s - own_s) <= case["tracing_shortens_s"] + allowed_s)
    if "untraced_s" in case and any(
        abs(case["untraced_s"] - ours_s) <= allowed_s for ours_s in (own_s, case.get("own_again_s", own_s))
    ):
        return True
    by_ncu_s = case["ncu_s"] - adds_s
    apart_s = unexplained_s(own_s, case["own_p5_p95_s"], case["own_clock_hz"], by_ncu_s, case["ncu_clock_hz"])
    return apart_s <= allowed_s


def resources_of(result: Result, read: Callable[[str], bytes | None]) -> tuple[int, list[str]]:
    """How many kernels of a case could be compared, and those whose resources by the cubin are not those by the tracer:
    registers per thread, of which the driver allocates at least LEAST_REGISTERS, and shared memory (static and dynamic) of a
    block. The tracer does not know local memory. Functions that the driver adds may need more registers.

    `read`: the content of an artifact.
    """
    compared, apart = 0, []
    traced = {kernel.name: kernel for kernel in result.kernels}
    for code in result.code or ():
        launched = traced.get(code.kernel)
        cubin = next((read(a.digest) for a in code.artifacts if a.kind == "cubin"), None)
        if launched is None or launched.registers_per_thread is None or cubin is None:
            continue
        own = resources_by_cubin(cubin, code.kernel)
        ours = (max(own.registers, LEAST_REGISTERS), own.static_shared_bytes + (code.shared_bytes or 0))
        drivers = (launched.registers_per_thread, launched.shared_memory_bytes)
        compared += 1
        added = own.external_functions and ours[0] < drivers[0] and ours[1] == drivers[1]
        if ours != drivers and not added:
            apart.append(f"{result.case.key}: {code.kernel} {ours} by the cubin, {drivers} by the driver")
    return compared, apart


def true_failure(op: str, variant: str, words: str) -> bool:
    """Is a case that failed one that cannot be solved, or is published wrong? `words`: its stage, a colon and its message.

    A size that a kernel refuses, which names the size.
    """
    return (op, variant) in WRONG or words.startswith("unavailable: size ")


def untrue_failures(op: str, failed: Mapping[str, str]) -> dict[str, str]:
    """Of the failures of an op, case to words, those that are not true ones."""
    return {k: w for k, w in failed.items() if not true_failure(op, variant_of(k), w)}


def op_and_variant(case_key: str) -> tuple[str, str]:
    """
    >>> op_and_variant("add fp32 n=4 | torch_eager")
    ('add', 'torch_eager')
    """
    return case_key.partition(" ")[0], case_key.rpartition(" | ")[2]


def variant_of(case_key: str) -> str:
    return op_and_variant(case_key)[1]


def unsolved(cases: Iterable[str], failed: Iterable[str]) -> set[str]:
    """Variants that solved none of the cases."""
    cases, failed = set(cases), set(failed)
    return {variant_of(k) for k in cases} - {variant_of(k) for k in cases - failed}
