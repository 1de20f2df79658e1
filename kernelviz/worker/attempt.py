"""One attempt to measure variants of a problem in one worker: which have a result, and which to blame when the worker breaks."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from kernelviz.core import CaseDone, CaseStep, Event, Failure, Figure, Problem, Result, Step
from kernelviz.core.merge import merge_timings
from kernelviz.core.reasons import NoResult
from kernelviz.metrics.statistics import figure_interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How an attempt ended. `failure` is None when the session finished the work by itself.

    `replace`: why this worker cannot be used for the next request, None when it can.
    `started`: False when no session could be opened, so that no variant is to blame.
    """

    failure: Failure | None = None
    replace: str | None = None
    started: bool = True

    @property
    def case_failure(self) -> Failure:
        """The failure of a case that has no result when the attempt ends."""
        # `replace` explains the failure when the worker must be replaced.
        reasons = () if self.replace else (NoResult(),)
        return self.failure or Failure(stage="crash", reasons=reasons, message=self.replace or "")


@dataclass(slots=True)
class Attempt:
    """The variants of one attempt, and the events that the worker sent about each.

    `known`: the baseline's correct result so far; `before`: that when the attempt began. When the baseline is not among the
    variants, it is measured again with them, so that they share rounds with it: this adds to its result and cannot remove it.
    `moved`: the last process was replaced before any variant had begun.
    """

    problem: Problem
    variants: tuple[str, ...]
    baseline: str
    known: Result | None = None
    before: Result | None = None
    retried: bool = False
    moved: bool = False
    steps: dict[str, Step] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    last: str | None = None

    @property
    def measured_variants(self) -> tuple[str, ...]:
        """The variants to measure; the baseline first where it only accompanies them."""
        accompanied = self.known is not None and self.baseline not in self.variants and not self.retried
        return (self.baseline, *self.variants) if accompanied else self.variants

    def heard(self, event: Event) -> Event | None:
        """Record an event. Return the event to pass on, or None where it concerns only the accompanying baseline."""
        match event:
            case CaseStep(case=case):
                self.steps[case.variant] = event.step
                self.last = case.variant
                return event if case.variant in self.variants else None
            case CaseDone(result=result) if result.variant not in self.variants:
                if self.known is None or result.timing is None:
                    return None
                # The worker sends the baseline's whole result of this attempt each time that rounds were added to it.
                self.before = self.before or self.known
                self.known = merge_results(self.before, result)
                return CaseDone(result=self.known)
            case CaseDone(result=result):
                self.done.add(result.variant)
                if result.variant == self.baseline and result.timing is not None:
                    self.known = result
                return event
            case _:
                return event

    @property
    def left(self) -> list[str]:
        return [v for v in self.variants if v not in self.done]

    def suspects(self) -> list[str]:
        """The variants that may have broken the worker: while rounds run, all variants in them (their blocks alternate, and
        CUDA reports errors asynchronously); before the rounds, the variant whose step began last."""
        if self.last is None:
            return []
        if self.steps[self.last] == "measuring":
            return [v for v in self.left if self.steps.get(v) == "measuring"]
        return [self.last] if self.last in self.left else []

    def conclude(self, ending: Ending) -> tuple[dict[str, Failure], list[Attempt]]:
        """The failures that are certain, and the attempts that must follow. Each attempt decides a case or splits the rest."""
        left = self.left
        if not left:
            return {}, []
        failure = ending.case_failure
        if not ending.started or failure.stage == "cancelled" or ending.replace is None:
            return dict.fromkeys(left, failure), []  # `replace` is None: the session refused the problem as a whole
        if ending.failure is None and self.done:
            return {}, [self._again(left)]  # the variant that spoilt the worker has reported its own failure
        if ending.failure is None and not (self.steps or self.moved):
            # The process reported itself unfit; another process measures the same variants.
            return {}, [self._again(left, moved=True, retried=self.retried)]
        suspects = self.suspects()
        if not suspects and not self.retried:
            # No variant had begun: something else ended the worker (the kernel's out-of-memory killer, an administrator).
            return {}, [self._again(left, moved=self.moved, retried=True)]
        if not suspects:
            return dict.fromkeys(left, failure), []
        rest = [v for v in left if v not in suspects]
        following = [self._again(rest)] if rest else []
        if len(suspects) == 1:
            return {suspects[0]: failure}, following
        baseline_first = sorted(suspects, key=lambda v: v != self.baseline)
        return {}, [*(self._again([v]) for v in baseline_first), *following]

    def _again(self, variants: list[str], *, moved: bool = False, retried: bool = False) -> Attempt:
        return Attempt(self.problem, tuple(variants), self.baseline, moved=moved, retried=retried)


def merge_results(earlier: Result, later: Result) -> Result:
    """Merge two measurements of one case: the samples of both in order, and the figures computed over all samples."""
    old, new = earlier.timing, later.timing
    if old is None or new is None:
        return later
    figures = {
        name: merge_figures(before, after)
        for name in ("device_cold_s", "busy_s", "again_s")
        if (before := getattr(old, name)) is not None and (after := getattr(new, name)) is not None
    }
    return msgspec.structs.replace(later, outcome=msgspec.structs.replace(merge_timings(old, new), **figures))


def merge_figures(before: Figure, after: Figure) -> Figure:
    if not (before.samples and before.blocks and after.samples and after.blocks):
        return after
    samples, blocks = before.samples + after.samples, before.blocks + after.blocks
    interval = figure_interval(samples, blocks)
    return msgspec.structs.replace(
        after, estimate=interval.estimate, low=interval.low, high=interval.high, samples=samples, blocks=blocks
    )
