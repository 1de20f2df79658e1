"""Limits on how long a worker may send nothing, and how long a case may take, before the worker counts as hung."""

from dataclasses import dataclass

from kernelviz.core import Step
from kernelviz.core.reasons import Silent, TookTooLong

SLOW_STEPS: frozenset[Step] = frozenset({"binding", "compiling"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits in seconds. A step's limit starts anew with every event, a case's limit with every result.

    `start_s`: until a new worker is ready (the first one waits for the import of torch). `bind_s`: allocating and filling inputs,
    and the first call of a variant that needs no compiler. `compile_s`: compiling, which includes autotuning. `check_s`: the
    gate, whose float64 reference of a large problem is slow on a processor. `step_s`: any other step, plus the case's budget.
    `case_s`: one case outside of binding and compiling, plus its budget. `cancel_s`: how long cancelled work may continue, which
    is its current block. `end_s`: until killed processes are gone.
    """

    start_s: float = 300.0
    bind_s: float = 120.0
    compile_s: float = 300.0
    check_s: float = 120.0
    step_s: float = 30.0
    case_s: float = 120.0
    cancel_s: float = 5.0
    end_s: float = 10.0


class Deadlines:
    """The two deadlines of a unit of work, updated with its events and the time (seconds, monotonic)."""

    def __init__(self, limits: Limits, budget_s: float, now_s: float) -> None:
        self._limits = limits
        self._budget_s = budget_s
        self._step: Step | None = None
        self._at_s = now_s
        self._case = ""
        self._used_s: dict[str, float] = {}

    def event(self, step: Step | None, now_s: float, case: str = "") -> None:
        """Record an event: that case is in `step` now, or (None) it has its result. The time since the previous event counts
        for the case of the previous event, so that each of sixteen cases that are checked in sequence has its own limit."""
        if step is None:
            self._used_s.clear()
        elif self._step not in SLOW_STEPS:
            self._used_s[self._case] = self._used_s.get(self._case, 0.0) + now_s - self._at_s
        self._step, self._case = step, case
        self._at_s = now_s

    def left_s(self, now_s: float) -> float:
        """Seconds until the nearer deadline; at most 0 when one has passed."""
        silent_s = now_s - self._at_s
        step_left_s = self._step_limit_s() - silent_s
        case_left_s = self._limits.case_s + self._budget_s - self._used_s.get(self._case, 0.0) - silent_s
        return step_left_s if self._step in SLOW_STEPS else min(step_left_s, case_left_s)

    def passed(self, now_s: float) -> Silent | TookTooLong:
        """The deadline that has passed."""
        if now_s - self._at_s >= self._step_limit_s():
            return Silent(seconds=self._step_limit_s(), step=self._step)
        return TookTooLong(seconds=self._limits.case_s + self._budget_s)

    def _step_limit_s(self) -> float:
        limits = self._limits
        own_s = {"binding": limits.bind_s, "compiling": limits.compile_s, "checking": limits.check_s}
        return own_s.get(self._step or "", limits.step_s + self._budget_s)
