"""Checks that every cheat is refused by its name, without harm to the honest call beside it."""

import torch

from kernelviz.core import Failure, Problem, Timing
from kernelviz.core.cheats import cheat_of
from kernelviz.core.reasons import (
    CachedOutput,
    Cheating,
    LowerPrecision,
    MutatedInput,
    OtherStream,
    PersistingL2,
    Recompiled,
    Stale,
    Unwritten,
)
from kernelviz.hardware.discovery import missing
from kernelviz.measure.selftest import planted
from kernelviz.measure.selftest.workbench import Finding, NotHere, Probe, Workbench
from kernelviz.measure.timing.kernels import persisting_bytes
from kernelviz.ops import Variant
from kernelviz.text.cheats import NAMES
from kernelviz.text.failures import describe_failure

_ADD = Problem(op="add", sizes={"n": 2**20}, dtype="fp32")
_SMALL_ADD = Problem(op="add", sizes={"n": 2**16}, dtype="fp32")
_MATMUL = Problem(op="matmul", sizes={"m": 512, "n": 512, "k": 512}, dtype="fp32", compute="ieee")


def _refused(
    name: str, variant: Variant, cheat: type[Cheating], *also: type[Cheating], problem: Problem = _ADD
) -> Probe:
    """A check that the first reason against this planted variant is this cheat, or one of `also`, which also applies."""

    def make(at: Workbench) -> Finding:
        lacks = missing(variant.needs, at.device)
        if lacks is not None:
            raise NotHere(lacks)
        try:
            results = at.results(problem, (variant,), "torch_eager")
        finally:
            if cheat is PersistingL2:
                torch.cuda.synchronize()
                persisting_bytes()  # resets the limit to 0
        honest, outcome = results["torch_eager"].outcome, results[variant.name].outcome
        if not isinstance(honest, Timing):
            return Finding(0.0, {}, False, f"the honest call beside it failed: {describe_failure(honest)}")
        if not isinstance(outcome, Failure):
            return Finding(0.0, {}, False, "it was not refused")
        named = bool(outcome.reasons) and isinstance(outcome.reasons[0], (cheat, *also))
        return Finding(float(named), {}, named, str(describe_failure(outcome)))

    question = f"Is a call refused that {NAMES[cheat_of(cheat)]}?"
    return Probe(f"cheat_{name}", question, make, 1.0, "count", at_most=False)


def _everywhere(problem: Problem) -> tuple[Probe, ...]:
    """The cheats that are also possible on a processor."""
    return (
        _refused("copied_output", planted.copied_output, CachedOutput, Stale, problem=problem),
        _refused("mutated_input", planted.mutated_input, MutatedInput, problem=problem),
        _refused("unwritten", planted.unwritten, Unwritten, problem=problem),
        _refused("stale", planted.stale, Stale, problem=problem),
        _refused("lower_precision", planted.through_bf16, LowerPrecision, problem=problem),
    )


CPU = (
    # No tracer shows that a call did nothing; the poison is then still in its output.
    _refused("cached_output", planted.cached_output, CachedOutput, Unwritten, problem=_SMALL_ADD),
    *_everywhere(_SMALL_ADD),
)
CUDA = (
    _refused("other_stream", planted.other_stream, OtherStream),
    _refused("other_thread", planted.other_thread, OtherStream),
    _refused("cached_output", planted.cached_output, CachedOutput),
    *_everywhere(_ADD),
    _refused("tf32", planted.through_tf32, LowerPrecision, problem=_MATMUL),
    _refused("recompiled", planted.recompiled, Recompiled),
    _refused("persisting_l2", planted.persisting_l2, PersistingL2),
)
