"""Why B is faster than A: the reasons for which A is slower than B (`metrics/slowdown.py`), told from A to B.

Both directions have one rule, so that they cannot disagree: the comparison is turned round, and each finding is turned back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

import msgspec

from kernelviz.core.code_changes import CodeChanges
from kernelviz.metrics.code_changes import OTHER_SIDE, mirrored
from kernelviz.metrics.comparison import Comparison, Pair, PairKind
from kernelviz.metrics.slowdown import Slowdown, slowdown
from kernelviz.metrics.slowdown_findings import (
    Finding,
    LargerError,
    LostInCode,
    LowerClock,
    LowerOccupancy,
    MoreProcesses,
    NoCorrectTime,
    OtherConfiguration,
    OtherEnvironment,
    OtherGrid,
    OtherKernelCount,
    OtherKernels,
    OtherMachineCode,
    OtherSource,
    SlowedDown,
    TuningNotUsed,
    UnusualKernel,
)

_OTHER_KIND: dict[PairKind, PairKind] = {"faster": "slower", "slower": "faster"}


def is_faster(pair: Pair) -> bool:
    """Whether B is faster by the rule of verdicts."""
    return pair.kind == "faster"


def speedup(comparison: Comparison, pair: Pair, changes: CodeChanges | None = None) -> Slowdown:
    """What can make B faster in this pair, which is what can make A slower. `changes`: those of its machine code from A to B, if
    it was read."""
    back = slowdown(_turned_comparison(comparison), _turned_pair(pair), None if changes is None else _turned(changes))
    topics = tuple(replace(topic, findings=tuple(map(_turned_finding, topic.findings))) for topic in back.topics)
    return Slowdown(pair, topics, changes, faster="b")


def _turned_comparison(comparison: Comparison) -> Comparison:
    return replace(
        comparison,
        a=comparison.b,
        b=comparison.a,
        variant_a=comparison.variant_b,
        variant_b=comparison.variant_a,
        only_a=comparison.only_b,
        only_b=comparison.only_a,
    )


def _turned_pair(pair: Pair) -> Pair:
    kind = _OTHER_KIND.get(pair.kind, pair.kind)
    ratio = None if pair.ratio is None else pair.ratio.inverse()
    return replace(pair, before=pair.after, after=pair.before, kind=kind, ratio=ratio)


def _turned(changes: CodeChanges) -> CodeChanges:
    return CodeChanges(
        changes=tuple(msgspec.structs.replace(one, change=mirrored(one.change)) for one in changes.changes),
        faster=None if changes.faster is None else OTHER_SIDE[changes.faster],
        same_code=changes.same_code,
        a_missing=changes.b_missing,
        b_missing=changes.a_missing,
        a_kernel=changes.b_kernel,
        b_kernel=changes.a_kernel,
        a_library_kernel=changes.b_library_kernel,
        b_library_kernel=changes.a_library_kernel,
    )


def _turned_finding(finding: Finding) -> Finding:
    """The same finding told from the other side."""
    match finding:
        case NoCorrectTime() | OtherMachineCode() | OtherSource():
            return finding
        case OtherKernels() | OtherKernelCount() | MoreProcesses() | OtherEnvironment():
            return replace(finding, a=finding.b, b=finding.a)  # type: ignore[arg-type]
        case OtherConfiguration(parameters=parameters):
            return OtherConfiguration(tuple((name, second, first) for name, first, second in parameters))
        case TuningNotUsed() | UnusualKernel() | SlowedDown():
            return replace(finding, side=OTHER_SIDE[finding.side])
        case OtherGrid():
            b = (finding.b_blocks, finding.b_threads)
            return OtherGrid(finding.kernel, b[0], finding.a_blocks, b[1], finding.a_threads)
        case LostInCode(change=change):
            return LostInCode(mirrored(change))
        case LowerOccupancy():
            return LowerOccupancy(finding.b_fraction, finding.a_fraction)
        case LargerError():
            return LargerError(finding.b_relative, finding.a_relative, finding.b_of_bound, finding.a_of_bound)
        case LowerClock(at_equal_clock=ratio):
            return LowerClock(finding.b_hz, finding.a_hz, 1 / ratio if ratio else None)
        case _:
            assert_never(finding)
