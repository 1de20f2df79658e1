"""The result of a case that could not be measured: the facts that need no device, and the failure."""

from __future__ import annotations

from kernelviz.core import timestamps
from kernelviz.core.configuration import base_name, parted
from kernelviz.core.problem import Problem
from kernelviz.core.result import Failure, Result
from kernelviz.ops.catalog.op import Op


def failed(op: Op | None, problem: Problem, variant: str, failure: Failure) -> Result:
    """The result of a case that failed before or outside of its measurement. `op`: None if only a plug-in knows it."""
    known = next((v for v in op.of(problem).variants if v.name == base_name(variant)), None) if op else None
    configuration = parted(variant)[1] if known else None
    return Result(
        problem=problem,
        variant=variant,
        outcome=failure,
        cost=op.cost_of(problem) if op else None,
        backend=known.backend if known else None,
        source_digest=known.source_digest() if known else None,
        configuration=configuration,
        measured_at=timestamps.now("seconds"),
    )
