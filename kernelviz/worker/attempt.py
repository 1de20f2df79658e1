"""One try at some variants of a problem in one worker: who has a result, and who is to blame when it breaks."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from kernelviz.core.events import CaseDone, CaseStep, Event, Step
from kernelviz.core.problem import Problem
from kernelviz.core.result import Failure, Figure, Result, Stage, Timing

NO_RESULT = "the measuring session ended this problem without a result for the variant"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a try ended. `stage` is None when the session came to the end of the task by itself.

    `replace`: why this worker cannot be used for the next one, None when it can.
    `started`: False when no session could be opened at all, so that no variant is to blame.
    """

    stage: Stage | None = None
    message: str = ""
    replace: str | None = None
    started: bool = True


@dataclass(slots=True)
class Attempt:
    """The variants of one try, and what was heard of each."""

    problem: Problem
    variants: tuple[str, ...]
    first_round: int = 0
    retried: bool = False
    steps: dict[str, Step] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    last: str | None = None
    next_round: int = 0

    def heard(self, event: Event) -> Event:
        """Take note of an event; returns it as it is to be passed on (rounds numbered from `first_round`)."""
        match event:
            case CaseStep():
                self.steps[event.case.variant] = event.step
                self.last = event.case.variant
                return event
            case CaseDone():
                self.done.add(event.result.variant)
                moved = renumbered(event.result, self.first_round)
                self.next_round = max(self.next_round, last_round(moved) + 1)
                return event if moved is event.result else CaseDone(result=moved)
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
        return [self.last] if self.last not in self.done else []

    def conclude(self, ending: Ending) -> tuple[dict[str, Failure], list[Attempt]]:
        """The failures that are certain, and the tries that must follow. Each try settles a case or splits the rest."""
        left = self.left
        if not left:
            return {}, []
        if not ending.started or ending.stage == "cancelled":
            failure = Failure(stage=ending.stage or "crash", message=ending.message)
            return dict.fromkeys(left, failure), []
        if ending.stage is None and ending.replace is None:
            return dict.fromkeys(left, Failure(stage="crash", message=NO_RESULT)), []
        if ending.stage is None and self.done:
            return {}, [self._again(left)]  # who spoilt the worker has told its own failure
        failure = Failure(stage=ending.stage or "crash", message=ending.message or ending.replace or NO_RESULT)
        if ending.replace is None:
            return dict.fromkeys(left, failure), []  # the session refused the problem as a whole
        return self._blame(left, failure)

    def _blame(self, left: list[str], failure: Failure) -> tuple[dict[str, Failure], list[Attempt]]:
        suspects = self.suspects()
        if not suspects and not self.retried:
            # Nobody had begun: the worker died of something else (the kernel's out-of-memory killer, an administrator).
            again = self._again(left)
            again.retried = True
            return {}, [again]
        if not suspects:
            return dict.fromkeys(left, failure), []
        rest = [v for v in left if v not in suspects]
        following = [self._again(rest)] if rest else []
        if len(suspects) == 1:
            return {suspects[0]: failure}, following
        return {}, [*(self._again([v]) for v in suspects), *following]

    def _again(self, variants: list[str]) -> Attempt:
        return Attempt(self.problem, tuple(variants))


def last_round(result: Result) -> int:
    """The highest round number in the result, -1 when it has none."""
    return max((b.round for f in _figures(result).values() for b in f.blocks or () if b.round is not None), default=-1)


def renumbered(result: Result, first: int) -> Result:
    """The result with `first` added to its round numbers.

    Equal numbers mean "measured in the same round". A new session counts from 0 again, so what it measured must not look
    as if it had shared rounds with what an earlier one did.
    """
    if first == 0:
        return result
    figures = {name: _moved(figure, first) for name, figure in _figures(result).items() if figure.blocks}
    outcome = result.outcome
    if not isinstance(outcome, Failure):
        return msgspec.structs.replace(result, outcome=msgspec.structs.replace(outcome, **figures))
    if outcome.timing is None:
        return result
    timing = msgspec.structs.replace(outcome.timing, **figures)
    return msgspec.structs.replace(result, outcome=msgspec.structs.replace(outcome, timing=timing))


def _moved(figure: Figure, first: int) -> Figure:
    blocks = tuple(
        b if b.round is None else msgspec.structs.replace(b, round=b.round + first) for b in figure.blocks or ()
    )
    return msgspec.structs.replace(figure, blocks=blocks)


def _figures(result: Result) -> dict[str, Figure]:
    timing = result.outcome.timing if isinstance(result.outcome, Failure) else result.outcome
    if timing is None:
        return {}
    named = {name: getattr(timing, name) for name in Timing.__struct_fields__}
    return {name: value for name, value in named.items() if isinstance(value, Figure)}
