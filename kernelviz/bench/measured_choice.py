"""Use case: which of the first variants of a rule is fastest on this very GPU, by a short run, which is stored and used again.

A rule knows sizes and the card. What it cannot know, such as the cost of a boundary between two kernels at just these sizes, a
measurement of the first few variants tells: they contain the fastest own variant more often than the first one is it
(docs/kernels.md, "How well auto chooses").
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelviz.bench.bench import Bench
from kernelviz.bench.best import Best
from kernelviz.core import LIVING, BadField, Method, Plan
from kernelviz.ops import Variant

CANDIDATES = 5
"""How many of the variants that a rule names are measured, the best first."""
METHOD = Method(budget_s=0.1, half_width=0.005, ratio_half_width=0.005, seeds=1, early_stop=1.2)
"""The cold device time to 0.5 %. Outputs are checked for one fill of the inputs. What is 1.2 times as slow gets one block."""
MOST_WAIT_S = 90.0
"""Without any event of the run for so long, it is cancelled, and the rule decides."""


@dataclass(frozen=True, slots=True)
class MeasuredChoice:
    """Cold device times in seconds of the right own variants of one run, the fastest first. `at`: when the run was begun."""

    run_id: str
    at: str
    seconds: Mapping[str, float]


def candidates_of(best: Best) -> tuple[str, ...]:
    """The names of the variants that are measured."""
    return tuple(variant.name for variant in _comparable(best)[:CANDIDATES])


def _comparable(best: Best) -> list[Variant]:
    """Without variants that change inputs which the rule's first variant leaves as they are."""
    return [variant for variant in best.variants if {*variant.mutates} <= {*best.variant.mutates}]


def stored_choice(bench: Bench, best: Best) -> MeasuredChoice | None:
    """By the newest stored run on this device that has the problem and all candidates, with their sources as they are now. A run
    of more variants, for example by the Bench page, counts with all of its own variants. None where there is no such run, or none
    of them was right."""
    if all(best.device != here for here in bench.devices()):
        return None
    digests = {variant.name: variant.source_digest() for variant in _comparable(best)}
    newest = bench.trends.together(best.device.id, best.problem, digests, least=candidates_of(best))
    if newest is None:
        return None
    run_id, at, times_s = newest
    return MeasuredChoice(run_id, at, dict(sorted(times_s.items(), key=lambda named: named[1])))


def measure_choice(bench: Bench, best: Best, *, owner: str = "") -> MeasuredChoice | None:
    """Measure the candidates on the device now, and wait for it. None if none of them was right, or nothing was heard for
    MOST_WAIT_S. An interrupt cancels the run and is raised again. Errors: BadField for a device of another machine."""
    if all(best.device != here for here in bench.devices()):
        raise BadField("device", best.device.name, "it is not a GPU of this machine, so nothing can be measured on it")
    names = candidates_of(best)
    plan = Plan(problems=(best.problem,), variants=names, baseline=names[0], device=best.device.id)
    run_id = bench.run(plan, METHOD, owner=owner)
    try:
        for _ in bench.follow(run_id, timeout_s=MOST_WAIT_S):
            pass
    finally:
        if bench.load(run_id).status in LIVING:
            bench.cancel(run_id)
    return stored_choice(bench, best)


def chosen(bench: Bench, best: Best, *, measure: bool = False, owner: str = "") -> tuple[Best, MeasuredChoice | None]:
    """The variants in the order of a stored measurement, or of one that is made now if `measure`, where there is one; otherwise
    in that of the rule. One candidate alone is not measured."""
    known = stored_choice(bench, best)
    if known is None and measure and len(candidates_of(best)) > 1:
        known = measure_choice(bench, best, owner=owner)
    return (best, None) if known is None else (in_measured_order(best, known), known)


def in_measured_order(best: Best, known: MeasuredChoice) -> Best:
    """The right variants of the run, the fastest first, then those that are no candidates, in the order of the rule. A candidate
    without a right result is left out."""
    by_name = {variant.name: variant for variant in best.variants}
    measured = tuple(by_name[name] for name in known.seconds)
    rest = {*by_name} - {*known.seconds} - {*candidates_of(best)}
    return replace(best, variants=(*measured, *(variant for variant in best.variants if variant.name in rest)))
