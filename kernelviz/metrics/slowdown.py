"""Why B is slower than A, by what is known of both: kernels, preconditions, spills, occupancy, error, clock and environment.

A topic is checked by facts alone. It **differs** in a way that can make B slower, is the **same** (or differs in B's favour), or
is **unknown**. That a topic differs does not prove that it is the reason. `kernelviz.text.slowdown` has the text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from kernelviz.core import IDLE, Failure, Result, Run
from kernelviz.core.code_changes import (
    AccessWidthChange,
    CodeChange,
    CodeChanges,
    CopiesChange,
    KernelCountChange,
    OccupancyChange,
    SpillsChange,
    TechniqueChange,
    TensorChange,
    WarpRolesChange,
)
from kernelviz.core.notes import StaleTuning
from kernelviz.metrics.code_comparison import longest_kernel
from kernelviz.metrics.comparability import NO_CODE, one_run
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.equal_clock import equal_clock
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.occupancy import occupancy
from kernelviz.metrics.quality import CLOCK_MOVED
from kernelviz.metrics.roofline import intense
from kernelviz.metrics.slowdown_findings import (
    TOPICS,
    EnvironmentPart,
    Finding,
    LargerError,
    LostInCode,
    LowerClock,
    LowerOccupancy,
    MoreProcesses,
    NoCorrectTime,
    OtherConfiguration,
    OtherEnvironment,
    OtherGrid,
    OtherKernelCount,
    OtherKernels,
    OtherMachineCode,
    OtherSource,
    SlowedDown,
    Topic,
    TopicFacts,
    TuningNotUsed,
    Unknown,
    UnusualKernel,
)

ERROR_GREW = 1.1
"""Times the error of A from which the error of B is called larger. The seeds of the inputs are the same, so equal code has equal
errors; another order of additions changes the largest error by some percent."""
_HALF, _WHOLE = 0.5, 0.9
"""The share of a slow-down that a lower clock has to explain, to be a reason at all and to be the first one."""
_NO_REASON = 10
_LIBRARIES = ("torch", "library")


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A pair whose B is slower, or has no correct time. `topics`: all of them, in the order of `TOPICS`. `changes`: those of the
    machine code; None if it was not read."""

    pair: Pair
    topics: tuple[TopicFacts, ...]
    changes: CodeChanges | None = None

    @property
    def reasons(self) -> tuple[Finding, ...]:
        """The findings of all topics, those first that explain a slow case by themselves."""
        findings = [finding for topic in self.topics for finding in topic.findings]
        return tuple(sorted(findings, key=lambda one: _rank(one, self.pair, self.changes)))

    @property
    def likeliest(self) -> Finding | None:
        """The likeliest reason; None if nothing that differs can be the reason of most of the difference."""
        first = next(iter(self.reasons), None)
        return None if first is None or _rank(first, self.pair, self.changes) == _NO_REASON else first

    @property
    def unknown(self) -> tuple[TopicFacts, ...]:
        """The topics of which something is unknown."""
        return tuple(topic for topic in self.topics if topic.unknown)


def is_slower(pair: Pair) -> bool:
    """Whether B is slower by the rule of verdicts, or has no correct time although A has one."""
    return pair.broken or pair.kind == "slower"


def slowdown(comparison: Comparison, pair: Pair, changes: CodeChanges | None = None) -> Slowdown:
    """What can make B slower in this pair. `changes`: those of its machine code from A to B, if it was read."""
    if isinstance(pair.after.outcome, Failure):
        topics = tuple(
            TopicFacts(topic, (NoCorrectTime(pair.after.outcome),))
            if topic == _topic_of(pair.after.outcome)
            else _environment(comparison)
            if topic == "environment"
            else TopicFacts(topic, unknown="no_time")
            for topic in TOPICS
        )
        return Slowdown(pair, topics, changes)
    return Slowdown(
        pair,
        (
            _kernels(pair, changes),
            _precondition(comparison, pair, changes),
            _spills(changes),
            _occupancy(comparison, pair, changes),
            _error(pair),
            _clock(comparison, pair),
            _environment(comparison),
        ),
        changes,
    )


def _topic_of(failure: Failure) -> Topic:
    return "error" if failure.stage in ("wrong", "impossible") else "precondition"


def _rank(finding: Finding, pair: Pair, changes: CodeChanges | None) -> int:
    match finding:
        case NoCorrectTime():
            return 0
        case LowerClock() if intense(pair.after.cost) and clock_share(finding, pair) >= _WHOLE:
            return 1
        case LostInCode(change=change) if changes is not None and change == changes.cause:
            return 2
        case LostInCode(change=change) if not _can_explain(change, changes):
            return _NO_REASON  # as the page Code and the ladder say it
        case LostInCode(change=SpillsChange()):
            return 3
        case OtherKernels() | OtherGrid() if pair.before.variant != pair.after.variant:
            return _NO_REASON  # two variants launch other kernels, with other grids, by design
        case OtherKernels() | OtherKernelCount() | UnusualKernel():
            return 4
        case LostInCode():
            return 5
        case OtherSource() | OtherConfiguration() | TuningNotUsed():
            return 6
        case LowerOccupancy() | OtherGrid():
            return 7
        case LowerClock() if clock_share(finding, pair) < _HALF:
            return _NO_REASON
        case LowerClock() | SlowedDown() | MoreProcesses():
            return 8
        case OtherEnvironment():
            return 9
        case OtherMachineCode() | LargerError():
            return _NO_REASON  # they make nothing slower, but show that something else is computed


def _can_explain(change: CodeChange, changes: CodeChanges | None) -> bool:
    """Whether the machine code lets a change be a reason of the difference."""
    return any(one.change == change and one.explains == "can" for one in (changes.changes if changes else ()))


def clock_share(clock: LowerClock, pair: Pair) -> float:
    """The share of a slow-down that a lower clock explains if the time is inversely proportional to it, as a ratio of logarithms.

    The time of a kernel that computes is. Memory has a clock of its own.
    """
    slower = pair.ratio.estimate if pair.ratio is not None else 1.0
    return math.log(clock.a_hz / clock.b_hz) / math.log(slower) if slower > 1 else 0.0


def _kernels(pair: Pair, changes: CodeChanges | None) -> TopicFacts:
    a, b = pair.before, pair.after
    findings: list[Finding] = []
    same_variant = a.variant == b.variant
    same_source = a.source_digest == b.source_digest if a.source_digest and b.source_digest and same_variant else None
    if a.kernels and b.kernels:
        first, second = Counter(k.name for k in a.kernels), Counter(k.name for k in b.kernels)
        if first.keys() != second.keys():
            only = tuple(first.keys() - second.keys()), tuple(second.keys() - first.keys())
            findings.append(OtherKernels(tuple(sorted(only[0])), tuple(sorted(only[1])), same_source))
        elif changes is not None and changes.known and not changes.same_code:
            findings.append(OtherMachineCode())
        if len(b.kernels) > len(a.kernels):
            findings.append(OtherKernelCount(len(a.kernels), len(b.kernels)))
    if same_source is False:
        findings.append(OtherSource())
    if same_variant and a.configuration != b.configuration:
        values = a.configuration or {}, b.configuration or {}
        names = dict.fromkeys((*values[0], *values[1]))
        parameters = tuple(
            (name, values[0].get(name), values[1].get(name))
            for name in names
            if values[0].get(name) != values[1].get(name)
        )
        findings.append(OtherConfiguration(parameters))
    stale = {note.another for note in _notes(b) if isinstance(note, StaleTuning)}
    stale -= {note.another for note in _notes(a) if isinstance(note, StaleTuning)}
    findings += [TuningNotUsed(another) for another in sorted(stale)]
    cause = changes.cause if changes is not None else None
    elsewhere = isinstance(cause, SpillsChange | OccupancyChange | KernelCountChange)
    if cause is not None and not _is_precondition(cause) and not elsewhere:
        findings.append(LostInCode(cause))
    return TopicFacts("kernels", tuple(findings), None if a.kernels and b.kernels else "no_launches")


def _notes(result: Result) -> Sequence[object]:
    return result.conditions.notes if result.conditions else ()


def _precondition(comparison: Comparison, pair: Pair, changes: CodeChanges | None) -> TopicFacts:
    findings: list[Finding] = [*_unusual_kernel(comparison.b, pair.after), *_other_grids(pair)]
    findings += [LostInCode(change) for change in _against(changes) if _is_precondition(change)]
    return TopicFacts("precondition", tuple(findings), _code_unknown(changes))


def _is_precondition(change: CodeChange) -> bool:
    """Whether it is something that needs aligned addresses or sizes that are fitting multiples."""
    if isinstance(change, AccessWidthChange):
        return change.space == "global"
    return isinstance(change, TensorChange | CopiesChange | TechniqueChange | WarpRolesChange)


def _against(changes: CodeChanges | None) -> Iterator[CodeChange]:
    """The changes of the machine code in A's favour."""
    for one in changes.changes if changes is not None else ():
        if one.change.favours == "a":
            yield one.change


def _code_unknown(changes: CodeChanges | None) -> Unknown | None:
    """Why the machine code is not known on both sides; None if it is."""
    return "not_read" if changes is None else None if changes.known else "no_machine_code"


def _unusual_kernel(run: Run, result: Result) -> Iterator[Finding]:
    """A library chooses its kernels by size, so that none of them is unusual."""
    here = longest_kernel(result)
    if here is None or result.backend in _LIBRARIES:
        return
    mains = [longest_kernel(r) for r in run.results if r.variant == result.variant and r.problem != result.problem]
    names = Counter(kernel.name for kernel in mains if kernel is not None)
    if not names:
        return
    usual, problems = names.most_common(1)[0]
    if usual != here.name and here.name not in names and problems >= 2:
        yield UnusualKernel(here.name, usual, problems)


def _other_grids(pair: Pair) -> Iterator[Finding]:
    first, second = longest_kernel(pair.before), longest_kernel(pair.after)
    if first is None or second is None or first.name != second.name:
        return
    if not (first.grid and second.grid and first.block and second.block):
        return
    sizes = prod(first.grid), prod(second.grid), prod(first.block), prod(second.block)
    if sizes[0] != sizes[1] or sizes[2] != sizes[3]:
        yield OtherGrid(first.name, *sizes)


def _spills(changes: CodeChanges | None) -> TopicFacts:
    appeared = tuple(LostInCode(c) for c in _against(changes) if isinstance(c, SpillsChange))
    return TopicFacts("spills", appeared, _code_unknown(changes))


def _occupancy(comparison: Comparison, pair: Pair, changes: CodeChanges | None) -> TopicFacts:
    fell = tuple(LostInCode(c) for c in _against(changes) if isinstance(c, OccupancyChange))
    if fell:
        return TopicFacts("occupancy", fell)
    runs = comparison.a, comparison.b
    mains = longest_kernel(pair.before), longest_kernel(pair.after)
    resident = [
        None if kernel is None else occupancy(kernel, run.environment.device)
        for kernel, run in zip(mains, runs, strict=True)
    ]
    if resident[0] is None or resident[1] is None:
        return TopicFacts("occupancy", unknown="no_occupancy")
    lower = resident[1].fraction < resident[0].fraction and _code_unknown(changes) is not None
    fractions = resident[0].fraction, resident[1].fraction
    return TopicFacts("occupancy", (LowerOccupancy(*fractions),) if lower else ())


def _error(pair: Pair) -> TopicFacts:
    a, b = pair.before.accuracy, pair.after.accuracy
    if a is None or b is None:
        return TopicFacts("error", unknown="no_accuracy")
    values = (a.relative_l2, b.relative_l2), (a.worst_of_bound, b.worst_of_bound)
    known = [(first, second) for first, second in values if first is not None and second is not None]
    if not known:
        return TopicFacts("error", unknown="no_accuracy")
    if any(second > ERROR_GREW * first for first, second in known):
        return TopicFacts("error", (LargerError(*values[0], *values[1]),))
    return TopicFacts("error")


def _clock(comparison: Comparison, pair: Pair) -> TopicFacts:
    findings: list[Finding] = []
    a_hz, b_hz = (clock_hz(r, comparison.headline) for r in (pair.before, pair.after))
    if a_hz and b_hz and b_hz < a_hz * (1 - CLOCK_MOVED):
        findings.append(LowerClock(a_hz, b_hz, equal_clock(pair, comparison).ratio))
    before, after = pair.before.conditions, pair.after.conditions
    if before is not None and after is not None:
        slowed = sorted(set(after.event_reasons) - set(before.event_reasons) - {IDLE})
        if slowed:
            findings.append(SlowedDown(tuple(slowed)))
        processes = before.other_processes, after.other_processes
        if processes[0] is not None and processes[1] is not None and processes[1] > processes[0]:
            findings.append(MoreProcesses(processes[0], processes[1]))
    return TopicFacts("clock", tuple(findings), None if a_hz and b_hz else "no_clock")


def clock_hz(result: Result, headline: Headline) -> float | None:
    """The median SM clock of the blocks of a time; None without a clock counter."""
    figure = figure_of(result.timing, headline)
    clocks = [b.clock_hz for b in (figure.blocks if figure else None) or () if b.clock_hz]
    return float(np.median(clocks)) if clocks else None


def _environment(comparison: Comparison) -> TopicFacts:
    if one_run(comparison.a, comparison.b):
        return TopicFacts("environment")
    a, b = comparison.a.environment, comparison.b.environment
    parts: list[tuple[EnvironmentPart, str, object, object]] = [("device", "", a.device.name, b.device.name)]
    if a.device.name == b.device.name:
        parts.append(("card", "", a.device.uuid, b.device.uuid))
    parts.append(("driver", "", a.device.driver, b.device.driver))
    packages = sorted({*a.versions, *b.versions} - set(NO_CODE))
    parts += [("package", name, a.versions.get(name), b.versions.get(name)) for name in packages]
    parts += [("kernelviz", "", a.kernelviz, b.kernelviz), ("python", "", a.python, b.python)]
    parts.append(("threads", "", a.threads, b.threads))
    return TopicFacts(
        "environment",
        tuple(
            OtherEnvironment(part, name, _stated(first), _stated(second))
            for part, name, first, second in parts
            if first != second
        ),
    )


def _stated(value: object) -> str | None:
    return None if value in (None, "") else str(value)
