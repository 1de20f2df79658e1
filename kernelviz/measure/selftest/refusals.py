"""Is every cheat refused, by its name, without harm to the honest call beside it?"""

from __future__ import annotations

import torch

from kernelviz.core import cheats
from kernelviz.core.problem import Problem
from kernelviz.core.result import Failure, Timing
from kernelviz.hardware.discovery import missing
from kernelviz.measure.selftest import planted
from kernelviz.measure.selftest.workbench import Found, Probe, Workbench
from kernelviz.measure.timing.kernels import persisting_bytes
from kernelviz.ops import Variant

_ADD = Problem(op="add", sizes={"n": 2**20}, dtype="fp32")
_SMALL_ADD = Problem(op="add", sizes={"n": 2**16}, dtype="fp32")
_MATMUL = Problem(op="matmul", sizes={"m": 512, "n": 512, "k": 512}, dtype="fp32", compute="ieee")


def _refused(name: str, variant: Variant, cheat: str, *also: str, problem: Problem = _ADD) -> Probe:
    """A check that this planted variant's failure begins with the cheat's name, or with one that is as true of it."""

    def make(at: Workbench) -> Found:
        lacks = missing(variant.needs, at.device)
        if lacks is not None:
            at.not_here(lacks)
        try:
            results = at.results(problem, (variant,), "torch_eager")
        finally:
            if cheat == cheats.PERSISTING_L2:
                torch.cuda.synchronize()
                persisting_bytes()  # and it is 0 again
        honest, outcome = results["torch_eager"].outcome, results[variant.name].outcome
        if not isinstance(honest, Timing):
            return Found(0.0, {}, False, f"the honest call beside it failed: {honest.message}")
        if not isinstance(outcome, Failure):
            return Found(0.0, {}, False, "it was not refused")
        named = outcome.message.startswith((cheat, *also))
        return Found(float(named), {}, named, outcome.message)

    return Probe(f"cheat_{name}", f"Is a call refused that {cheat}?", make, 1.0, "count", at_most=False)


def _everywhere(problem: Problem) -> tuple[Probe, ...]:
    """The cheats that a processor knows too."""
    return (
        _refused("copied_output", planted.copied_output, cheats.CACHED_OUTPUT, cheats.STALE, problem=problem),
        _refused("mutated_input", planted.mutated_input, cheats.MUTATED_INPUT, problem=problem),
        _refused("unwritten", planted.unwritten, cheats.UNWRITTEN, problem=problem),
        _refused("stale", planted.stale, cheats.STALE, problem=problem),
        _refused("lower_precision", planted.through_bf16, cheats.LOWER_PRECISION, problem=problem),
    )


CPU = (
    # No tracer sees that a call did nothing; what was put into its output before is then still there.
    _refused("cached_output", planted.cached_output, cheats.CACHED_OUTPUT, cheats.UNWRITTEN, problem=_SMALL_ADD),
    *_everywhere(_SMALL_ADD),
)
CUDA = (
    _refused("other_stream", planted.other_stream, cheats.OTHER_STREAM),
    _refused("other_thread", planted.other_thread, cheats.OTHER_STREAM),
    _refused("cached_output", planted.cached_output, cheats.CACHED_OUTPUT),
    *_everywhere(_ADD),
    _refused("tf32", planted.through_tf32, cheats.LOWER_PRECISION, problem=_MATMUL),
    _refused("recompiled", planted.recompiled, cheats.RECOMPILED),
    _refused("persisting_l2", planted.persisting_l2, cheats.PERSISTING_L2),
)
