"""Use case: which of the first variants of a rule is fastest on this very GPU, by a short run, which is stored and used again.

A rule knows sizes and the card. What it cannot know, such as the cost of a boundary between two kernels at just these sizes, a
measurement of the first few variants tells: they contain the fastest own variant more often than the first one is it
(docs/kernels.md, "Thousands of random problems").
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from kernelviz.bench.availability import only_in_worker
from kernelviz.bench.bench import Bench
from kernelviz.bench.best import Best, is_here
from kernelviz.bench.trends import Wanted
from kernelviz.core import BadField, KernelvizError, Method, Plan
from kernelviz.core.events import RunEnded
from kernelviz.core.unmeasured import Unmeasured
from kernelviz.ops import Variant

CANDIDATES = 5
"""How many of the variants that a rule names are measured, the best first."""
METHOD = Method(budget_s=0.1, half_width=0.005, ratio_half_width=0.005, seeds=1, early_stop=1.2)
"""The cold device time to 0.5 %. Outputs are checked for one fill of the inputs. What is 1.2 times as slow gets one block."""
MOST_WAIT_S = 330.0
"""Without any event of the run for so long, it is cancelled, and the rule decides: longer than one compilation may take."""


@dataclass(frozen=True, slots=True)
class MeasuredChoice:
    """Cold device times in seconds of the right own variants of one run, the fastest first. `at`: when the run was begun.
    `configurations`: those of tunable variants in that run."""

    run_id: str
    at: str
    seconds: Mapping[str, float]
    configurations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The variants in the order in which a user should get them. `measured`: the times that decide, or `reason`: why the rule
    does."""

    best: Best
    measured: MeasuredChoice | None = None
    reason: Unmeasured | None = None


_tried: set[tuple[str, str]] = set()
"""Devices and problems that this process could not measure. Else each call would wait again for what fails again."""


def candidates_of(best: Best) -> tuple[str, ...]:
    """The names of the variants that are measured."""
    return tuple(variant.name for variant in _comparable(best)[:CANDIDATES])


def _comparable(best: Best) -> list[Variant]:
    """Without variants that change inputs which the rule's first variant leaves as they are, and those that only a worker has,
    because nothing else can bind them."""
    return [v for v in best.variants if {*v.mutates} <= {*best.variant.mutates} and not only_in_worker(v)]


def stored_choice(bench: Bench, best: Best) -> MeasuredChoice | None:
    """By the newest finished run on this device in which each candidate had its present source and was right or wrong
    (`Trends.together`). A run of more variants, for example by the Bench page, counts with all of its own variants. None where
    there is no such run, or none of them was right."""
    if not is_here(bench, best.device):
        return None
    op = bench.ops()[best.problem.op].of(best.problem)
    wanted = Wanted(
        problem=best.problem,
        digests={v.name: op.variant_named(v.name).source_digest() for v in _comparable(best)},
        least=candidates_of(best),
    )
    newest = bench.trends.together(best.device, wanted)
    if newest is None or not newest.seconds:
        return None
    in_order = dict(sorted(newest.seconds.items(), key=lambda named: named[1]))
    return MeasuredChoice(newest.run_id, newest.at, in_order, newest.configurations)


def chosen(bench: Bench, best: Best, *, measure: bool = False, owner: str = "") -> Chosen:
    """The variants in the order of a stored measurement, or of one that is made now if `measure`, where there is one; otherwise
    in that of the rule. An interrupt cancels the run and is raised again. Errors: BadField for a measurement on a device of
    another machine; those of a run that cannot begin, such as StoreError and DeviceError."""
    known = stored_choice(bench, best)
    if known is not None:
        return Chosen(in_measured_order(best, known), known)
    if not measure:
        return Chosen(best, reason="not_asked")
    if not is_here(bench, best.device):
        raise BadField("device", best.device.name, "it is not a GPU of this machine, so nothing can be measured on it")
    if len(candidates_of(best)) < 2:
        return Chosen(best, reason="one_candidate")
    attempt = (best.device.uuid, best.problem.key)
    if attempt in _tried:
        return Chosen(best, reason="tried_before")
    _tried.add(attempt)
    finished = _measured(bench, best, owner)
    known = stored_choice(bench, best)
    if known is None:
        return Chosen(best, reason="none_right" if finished else "not_finished")
    _tried.discard(attempt)
    return Chosen(in_measured_order(best, known), known)


def _measured(bench: Bench, best: Best, owner: str) -> bool:
    """Measure the candidates on the device now, and wait for it; whether the run finished."""
    names = candidates_of(best)
    plan = Plan(problems=(best.problem,), variants=names, baseline=names[0], device=best.device.id)
    run_id = bench.run(plan, METHOD, owner=owner)
    try:
        for _, event in bench.follow(run_id, timeout_s=MOST_WAIT_S):
            if isinstance(event, RunEnded):
                return event.status == "finished"
    except BaseException:
        with suppress(KernelvizError):  # the interrupt counts, not that the run cannot be cancelled
            bench.cancel(run_id)
        raise
    bench.cancel(run_id)  # nothing was heard
    return False


def in_measured_order(best: Best, known: MeasuredChoice) -> Best:
    """The right variants of the run, the fastest first, then those that are no candidates, in the order of the rule. A candidate
    without a right result is left out."""
    by_name = {variant.name: variant for variant in best.variants}
    measured = tuple(by_name[name] for name in known.seconds)
    rest = {*by_name} - {*known.seconds} - {*candidates_of(best)}
    return replace(best, variants=(*measured, *(variant for variant in best.variants if variant.name in rest)))
