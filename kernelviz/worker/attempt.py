"""One try at some variants of a problem in one worker: who has a result, and who is to blame when it breaks."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from kernelviz.core.events import CaseDone, CaseStep, Event, Step
from kernelviz.core.problem import Problem
from kernelviz.core.reasons import NoResult, Reason
from kernelviz.core.result import Failure, Figure, Result, Stage, Timing
from kernelviz.metrics.statistics import figure_interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a try ended. `stage` is None when the session came to the end of the task by itself; `reasons` and `message` are those
    of the `Failure` that it means.

    `replace`: why this worker cannot be used for the next one, None when it can.
    `started`: False when no session could be opened at all, so that no variant is to blame.
    """

    stage: Stage | None = None
    reasons: tuple[Reason, ...] = ()
    message: str = ""
    replace: str | None = None
    started: bool = True

    @property
    def failure(self) -> Failure:
        """What it means for a case that has no result by then."""
        if not self.reasons and not self.message:
            # A worker that must be replaced says why in its own words.
            reasons = () if self.replace else (NoResult(),)
            return Failure(stage=self.stage or "crash", reasons=reasons, message=self.replace or "")
        return Failure(stage=self.stage or "crash", reasons=self.reasons, message=self.message)


def ending_of(failure: Failure, *, replace: str | None = None, started: bool = True) -> Ending:
    """The ending of a try that failed as a whole."""
    return Ending(
        stage=failure.stage, reasons=failure.reasons, message=failure.message, replace=replace, started=started
    )


@dataclass(slots=True)
class Attempt:
    """The variants of one try, and what was heard of each.

    `known`: the baseline's correct result so far. When the baseline is not among the variants, it is measured again as
    their companion, so that they share rounds with it: that adds to its result and cannot lose it.
    `moved`: the last process was replaced before anything had begun.
    """

    problem: Problem
    variants: tuple[str, ...]
    baseline: str
    known: Result | None = None
    retried: bool = False
    moved: bool = False
    steps: dict[str, Step] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    last: str | None = None

    @property
    def asked(self) -> tuple[str, ...]:
        """The variants to be measured, the companion first."""
        return (self.baseline, *self.variants) if self._companion else self.variants

    @property
    def _companion(self) -> bool:
        return self.known is not None and self.baseline not in self.variants and not self.retried

    def heard(self, event: Event) -> Event | None:
        """Take note of an event; returns it as it is to be passed on, None for what concerns the companion only."""
        match event:
            case CaseStep(case=case):
                self.steps[case.variant] = event.step
                self.last = case.variant
                return event if case.variant in self.variants else None
            case CaseDone(result=result) if result.variant not in self.variants:
                if self.known is None or result.timing is None:
                    return None
                self.known = joined(self.known, result)
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
        """Whose work may have broken the worker: while rounds run, everyone in them (their blocks alternate, and a CUDA
        error shows late); before, the one whose step began last."""
        if self.last is None:
            return []
        if self.steps[self.last] == "measuring":
            return [v for v in self.left if self.steps.get(v) == "measuring"]
        return [self.last] if self.last in self.left else []

    def conclude(self, ending: Ending) -> tuple[dict[str, Failure], list[Attempt]]:
        """The failures that are certain, and the tries that must follow. Each try settles a case or splits the rest."""
        left = self.left
        if not left:
            return {}, []
        if not ending.started or ending.stage == "cancelled":
            return dict.fromkeys(left, ending.failure), []
        if ending.stage is None and ending.replace is None:
            return dict.fromkeys(left, Failure(stage="crash", reasons=(NoResult(),))), []
        if ending.stage is None and self.done:
            return {}, [self._again(left)]  # who spoilt the worker has told its own failure
        if ending.stage is None and not (self.steps or self.moved):
            again = self._again(left)  # the process found itself unfit; another one measures the same
            again.moved, again.retried = True, self.retried
            return {}, [again]
        failure = ending.failure
        if ending.replace is None:
            return dict.fromkeys(left, failure), []  # the session refused the problem as a whole
        return self._blame(left, failure)

    def _blame(self, left: list[str], failure: Failure) -> tuple[dict[str, Failure], list[Attempt]]:
        suspects = self.suspects()
        if not suspects and not self.retried:
            # Nobody had begun: the worker died of something else (the kernel's out-of-memory killer, an administrator).
            again = self._again(left)
            again.retried, again.moved = True, self.moved
            return {}, [again]
        if not suspects:
            return dict.fromkeys(left, failure), []
        rest = [v for v in left if v not in suspects]
        following = [self._again(rest)] if rest else []
        if len(suspects) == 1:
            return {suspects[0]: failure}, following
        first = sorted(suspects, key=lambda v: v != self.baseline)
        return {}, [*(self._again([v]) for v in first), *following]

    def _again(self, variants: list[str]) -> Attempt:
        return Attempt(self.problem, tuple(variants), self.baseline)


def joined(earlier: Result, later: Result) -> Result:
    """One result of two measurements of the same case: the samples of both, in order, and the figures over all of them."""
    old, new = earlier.timing, later.timing
    if old is None or new is None:
        return later
    figures = {
        name: _joined(before, after)
        for name in ("device_cold_s", "busy_s", "again_s")
        if (before := getattr(old, name)) is not None and (after := getattr(new, name)) is not None
    }
    kept = {
        name: value for name in Timing.__struct_fields__ if (value := getattr(old, name)) and not getattr(new, name)
    }
    return msgspec.structs.replace(later, outcome=msgspec.structs.replace(new, **{**kept, **figures}))


def _joined(before: Figure, after: Figure) -> Figure:
    if not (before.samples and before.blocks and after.samples and after.blocks):
        return after
    samples, blocks = before.samples + after.samples, before.blocks + after.blocks
    interval = figure_interval(samples, blocks)
    return msgspec.structs.replace(
        after, estimate=interval.estimate, low=interval.low, high=interval.high, samples=samples, blocks=blocks
    )
