"""Progress of a run on stderr: live bars in a terminal, one line for each case elsewhere."""

from typing import Self

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from kernelviz.bench import Bench
from kernelviz.cli import console
from kernelviz.core import (
    Case,
    CaseDone,
    CaseStep,
    CheckDone,
    CompiledAhead,
    CountersDone,
    DeviceBusy,
    Event,
    Failure,
    InspectionDone,
    Plan,
    Problem,
    Result,
    Roof,
    RoofDone,
    RunEnded,
    RunQueued,
    TimelineDone,
    Timing,
    WorkerStarting,
)
from kernelviz.metrics.figures import figure_of
from kernelviz.text import (
    describe_check,
    describe_failure,
    describe_queue_position,
    format_roof_name,
    format_roof_value,
    format_time,
)
from kernelviz.text.events import describe_compiled
from kernelviz.text.failures import format_stage, has_description
from kernelviz.text.report import typed_sizes


class Reporter:
    """Prints the events of one run, or, without a plan, of a calibration, a selftest or an inspection."""

    def __init__(self, plan: Plan | None) -> None:
        self._console = console.err()
        self._live = self._console.is_terminal
        self._done: dict[str, str] = {}
        self._further: set[str] = set()
        """The problems whose other times have begun to come."""
        self._total = len(plan.cases()) if plan is not None else 0
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._live,
            transient=True,
        )
        self._whole = self._bars.add_task("starting", total=self._total or None, count="")
        self._steps: dict[str, TaskID] = {}
        self._compiled = ""

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def say(self, text: str) -> None:
        """Print a line that is not overwritten."""
        self._console.print(text)

    def show(self, event: Event) -> None:
        """Print one event."""
        match event:
            case RunQueued(ahead=ahead):
                self._state(str(describe_queue_position(event)), keep=ahead > 0)
            case DeviceBusy(holder=holder):
                self._state(f"waiting for the device: {holder} holds it", keep=True)
            case WorkerStarting(reason=reason):
                self._state(f"starting the measuring process ({reason})", keep=True)
            case CaseStep():
                self._step(event)
            case CompiledAhead():
                self._compiled = str(describe_compiled(event))
                self._state(f"measuring, {self._compiled}", keep=event.compiled == event.total)
            case CaseDone(result=result):
                self._finished(result)
            case RoofDone(roof=roof):
                self.say(format_roof(roof))
            case CheckDone(check=check):
                self.say(f"{check.name}: {describe_check(check)}")
            case TimelineDone(timeline=timeline):
                self.say(f"timeline: recorded {len(timeline.counted)} iterations of {timeline.case}")
            case InspectionDone():
                self._state("the case was inspected")
            case CountersDone(case=case):
                self._state(f"ncu has ended for {format_case(case)}")
            case RunEnded(status=status, message=message) if message or status != "finished":
                self.say(f"{status}: {message}" if message else status)

    def _state(self, text: str, *, keep: bool = False) -> None:
        self._bars.update(self._whole, description=text)
        if keep and not self._live:
            self.say(text)

    def _step(self, event: CaseStep) -> None:
        self._state(", ".join(filter(None, ("measuring", self._compiled))))
        key, text = event.case.key, f"  {event.step} {format_case(event.case)}"
        problem = event.case.problem
        if key in self._done and event.step == "measuring" and not self._live and problem.key not in self._further:
            self._further.add(problem.key)
            self.say(f"{'':>4} other times of {format_problem(problem)}")
        if key not in self._steps:
            self._steps[key] = self._bars.add_task(text, total=1.0, count="")
        self._bars.update(self._steps[key], description=text, completed=event.fraction or 0.0)

    def _finished(self, result: Result) -> None:
        key = result.case.key
        if key in self._steps:
            self._bars.remove_task(self._steps.pop(key))
        outcome = describe_outcome(result)
        before = self._done.get(key)
        self._done[key] = outcome
        self._bars.update(self._whole, completed=len(self._done), count=f"{len(self._done)}/{self._total} cases")
        # In a terminal, the bar shows the progress and the table follows at the end, so only failures get a line.
        # The time of a case that is measured further gets a line of its own, so that the last one is that of the table.
        if isinstance(result.outcome, Failure) or (before != outcome and not self._live):
            more = "" if before is None else " (measured further)"
            self.say(f"{len(self._done):>4}/{self._total} {format_case(result.case)}: {outcome}{more}")


def follow_run(bench: Bench, run_id: str, plan: Plan | None = None) -> None:
    """Print the events of a run (or, without a plan, of a selftest or an inspection) until it ends.

    The first Ctrl-C cancels the run, the second one leaves at once.
    """
    last_sequence, cancelled = 0, False
    with Reporter(plan) as reporter:
        while True:
            try:
                for sequence, event in bench.follow(run_id, last_sequence):
                    last_sequence = sequence
                    reporter.show(event)
                return
            except KeyboardInterrupt:
                if cancelled:
                    raise
                cancelled = True
                reporter.say(
                    "cancelling after the current block; results so far are kept (Ctrl-C again leaves at once)"
                )
                bench.cancel(run_id)


def format_case(case: Case) -> str:
    """A case on one line.

    >>> from kernelviz.core.problem import Problem
    >>> format_case(Case(problem=Problem(op="add", sizes={"n": 1024}, dtype="fp32"), variant="torch_eager"))
    'add fp32 n=2^10, torch_eager'
    """
    return f"{format_problem(case.problem)}, {case.variant}"


def format_problem(problem: Problem) -> str:
    """A problem on one line.

    >>> format_problem(Problem(op="add", sizes={"n": 1024}, dtype="fp32"))
    'add fp32 n=2^10'
    """
    backward = " backward" if problem.direction == "backward" else ""
    return f"{problem.op} {problem.precision}{backward} {typed_sizes(problem)}"


def describe_outcome(result: Result) -> str:
    """The time of a case, or the reason why it has none."""
    match result.outcome:
        case Timing():
            return str(format_time(figure_of(result.outcome, "cold")))
        case Failure() as failure:
            reason = f": {describe_failure(failure)}" if has_description(failure) else ""
            return f"✕ {format_stage(failure)}{reason}"


def format_roof(roof: Roof) -> str:
    """A roof on one line.

    >>> format_roof(Roof(name="copy", bandwidth_bytes_per_s=4.28e12))
    'copy: 4280 GB/s'
    >>> format_roof(Roof(name="matmul", precision="bf16", rate_flop_per_s=798e12))
    'matmul bf16: 798.0 TFLOP/s'
    """
    return f"{format_roof_name(roof)}: {format_roof_value(roof)}"
