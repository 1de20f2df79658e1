"""Why B is slower or faster than A, in text: each topic with what differs, and one sentence for a list of such cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import assert_never

from kernelviz.core import units
from kernelviz.core.code_changes import CodeSide
from kernelviz.metrics.slowdown import Slowdown
from kernelviz.metrics.slowdown_findings import (
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
    Status,
    Topic,
    TopicFacts,
    TuningNotUsed,
    Unknown,
    UnusualKernel,
)
from kernelviz.text.code_changes import SIDE_NAMES, describe_change, format_percents
from kernelviz.text.code_mechanisms import describe_favour, describe_mechanism
from kernelviz.text.differences import format_uuid
from kernelviz.text.failures import format_failure
from kernelviz.text.machine_code import format_kernel_name
from kernelviz.text.text import Text, join

MOST = 3
MOST_NAMED = 3
_MOST_OF_A_FAILURE = 200
"""Characters of a failure, which may hold a compiler's log."""
TOPIC_NAMES: dict[Topic, str] = {
    "kernels": "Kernels",
    "precondition": "Grid and fast paths",
    "spills": "Spills",
    "occupancy": "Occupancy",
    "error": "Error",
    "clock": "Clock",
    "environment": "Device and versions",
}
TOPIC_HELP: dict[Topic, str] = {
    "kernels": "Kernels of a call, their source and configuration, and the machine code's first change for the faster side.",
    "precondition": "The grid, and what a kernel can use only if addresses are aligned and sizes fit: wide accesses, tensor "
    "cores, TMA; or a refusal for such a reason.",
    "spills": "Loads from and stores to local memory: registers that do not suffice.",
    "occupancy": "Warps that a multiprocessor can hold at once.",
    "error": "The error against the float64 reference. A larger one makes nothing slower, but shows another computation.",
    "clock": "The SM clock while this case was measured, reasons of the driver to lower it, and other processes on the device.",
    "environment": "Device, driver and versions of the two runs.",
}
STATUS_SIGNS: dict[Status, str] = {"differs": "≠", "same": "=", "unknown": "?"}
_SAME: dict[Topic, str] = {
    "kernels": "kernels of the same names, and the same configuration",
    "precondition": "no technique and no width of accesses is lost",
    "spills": "no more accesses to local memory than in A",
    "occupancy": "not lower than in A",
    "error": "not larger than in A",
    "clock": "not lower than in A, and nothing slowed the device down that did not in A",
    "environment": "the same device, driver and versions",
}
_SAME_IF_FASTER: dict[Topic, str] = {
    **_SAME,
    "precondition": "no technique and no wider access is gained",
    "spills": "no fewer accesses to local memory than in A",
    "occupancy": "not higher than in A",
    "error": "not smaller than in A",
    "clock": "not higher than in A, and nothing slowed the device down in A that did not in B",
}
_UNKNOWN: dict[Unknown, str] = {
    "not_read": "machine code is read when the run has ended",
    "no_launches": "no launch was traced on a side",
    "no_machine_code": "a side has no machine code here",
    "no_occupancy": "registers, threads or shared memory of a kernel are not known",
    "no_accuracy": "a side was not compared with the reference",
    "no_clock": "the clock was not measured on a side",
    "no_time": "B has no time",
}
_NOT_KNOWN = "Nothing that is known of both sides explains it."
_ANOTHER_DEVICE = "another device"
"""In place of the topic of a case whose likeliest reason is that the two runs are of two devices."""
_PARTS: dict[EnvironmentPart, str] = {
    "device": "device",
    "card": "card (same model)",
    "driver": "driver",
    "python": "Python",
    "kernelviz": "kernelviz",
    "threads": "threads",
    "package": "",
}


def format_topic(facts: TopicFacts) -> str:
    """The topic with the sign of its status.

    >>> format_topic(TopicFacts("spills", unknown="no_machine_code"))
    '? Spills'
    """
    return f"{STATUS_SIGNS[facts.status]} {TOPIC_NAMES[facts.topic]}"


def describe_topic(facts: TopicFacts, faster: CodeSide = "a") -> Text:
    """What is known of a topic. `faster`: the faster side.

    >>> print(describe_topic(TopicFacts("error", (LargerError(1e-7, 2e-3, 0.1, 0.9),))))
    relative error 1e-07 → 0.002, largest error 0.1 → 0.9 of the bound
    >>> print(describe_topic(TopicFacts("spills", unknown="no_machine_code")))
    unknown: a side has no machine code here
    """
    if facts.status == "same":
        return Text((_SAME if faster == "a" else _SAME_IF_FASTER)[facts.topic])
    unknown = f"unknown: {_UNKNOWN[facts.unknown]}" if facts.unknown else ""
    return join(
        "; ", [*describe_findings(facts.findings), f"the rest is {unknown}" if facts.findings and unknown else unknown]
    )


def describe_slowdown(slow: Slowdown, most: int = MOST) -> Text:
    """The likeliest reasons of a slow or fast case in one sentence, and what is unknown; says so if no reason is known."""
    parts = list(describe_findings(slow.reasons))
    more = len(parts) - most
    rest = f"{more} more" if more > 0 else ""
    unknown = ", ".join(TOPIC_NAMES[topic.topic].lower() for topic in slow.unknown if not topic.findings)
    missing = f"unknown: {unknown}" if unknown else ""
    first = "" if slow.likeliest else "the reason is not known"
    return join("; ", [first, *parts[:most], rest, missing])


def describe_findings(findings: Iterable[Finding]) -> list[Text]:
    """A text for each finding; the packages of an environment in one."""
    listed = list(findings)
    packages = [f for f in listed if isinstance(f, OtherEnvironment) and f.part == "package"]
    texts = [describe_finding(f) for f in listed if f not in packages]
    return [*texts, _packages(packages)] if packages else texts


def describe_finding(finding: Finding) -> Text:
    """One finding with both sides.

    >>> print(describe_finding(OtherKernels(("row_kernel",), ("online_kernel",), same_source=True)))
    online_kernel replaced row_kernel, although the source is the same
    >>> print(describe_finding(LowerClock(1.98e9, 1.5e9, 1.001)))
    SM clock 1980 MHz → 1500 MHz (at equal clock, B would take 1.001 times as long as A)
    """
    return Text(_describe(finding))


def _describe(finding: Finding) -> str:
    match finding:
        case NoCorrectTime(failure=failure):
            return str(format_failure(failure, most=_MOST_OF_A_FAILURE))
        case OtherKernels():
            return _kernels(finding)
        case OtherMachineCode():
            return "kernels of the same names, but other machine code"
        case OtherKernelCount(a=a, b=b):
            return f"kernels per call {a} → {b}"
        case OtherSource():
            return "the source of the variant has changed"
        case OtherConfiguration(parameters=parameters):
            values = (f"{name} {_or_none(a)} → {_or_none(b)}" for name, a, b in parameters)
            return f"configuration: {', '.join(values)}"
        case TuningNotUsed(another=another, side=side):
            of = "" if side == "b" else " in A"
            return f"the tuned configuration was not used{of}, because it is for another version of the {another}"
        case UnusualKernel(kernel=kernel, usual=usual, problems=problems, side=side):
            here, elsewhere = format_kernel_name(kernel), format_kernel_name(usual)
            where = "here" if side == "b" else "here in A"
            return f"{here} runs {where}, and {elsewhere} at {units.counted(problems, 'other problem')} of the run"
        case OtherGrid():
            return _grid(finding)
        case LostInCode(change=change):
            return str(describe_change(change))
        case LowerOccupancy(a_fraction=a_fraction, b_fraction=b_fraction):
            return f"occupancy {format_percents(a_fraction, b_fraction)}"
        case LargerError():
            return _error(finding)
        case LowerClock(a_hz=a_hz, b_hz=b_hz, at_equal_clock=ratio):
            equal = "" if ratio is None else f" (at equal clock, B would take {ratio:.3f} times as long as A)"
            return f"SM clock {units.clock(a_hz)} → {units.clock(b_hz)}{equal}"
        case SlowedDown(reasons=reasons, side=side):
            other: CodeSide = "a" if side == "b" else "b"
            return f"{SIDE_NAMES[side]} was slowed down by {', '.join(reasons)}, {SIDE_NAMES[other]} was not"
        case MoreProcesses(a=a, b=b):
            return f"other processes on the device {a} → {b}"
        case OtherEnvironment(part=part, a=a, b=b):
            first, second = (str(format_uuid(v)) if v and part == "card" else v or "unknown" for v in (a, b))
            return f"{_PARTS[part]} {first} → {second}"
        case _:
            assert_never(finding)


def _kernels(finding: OtherKernels) -> str:
    old, new = (_names(names) for names in (finding.a, finding.b))
    text = f"{new} replaced {old}" if old and new else f"{new} launched too" if new else f"{old} not launched any more"
    return f"{text}, although the source is the same" if finding.same_source else text


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(format_kernel_name, names[:MOST_NAMED])) + more


def _grid(finding: OtherGrid) -> str:
    parts = []
    if finding.a_blocks != finding.b_blocks:
        parts.append(f"blocks {finding.a_blocks:,} → {finding.b_blocks:,}")
    if finding.a_threads != finding.b_threads:
        parts.append(f"threads per block {finding.a_threads:,} → {finding.b_threads:,}")
    return f"{', '.join(parts)} (of {format_kernel_name(finding.kernel)})"


def _error(finding: LargerError) -> str:
    parts = []
    if finding.a_relative is not None and finding.b_relative is not None:
        parts.append(f"relative error {finding.a_relative:.3g} → {finding.b_relative:.3g}")
    if finding.a_of_bound is not None and finding.b_of_bound is not None:
        parts.append(f"largest error {finding.a_of_bound:.3g} → {finding.b_of_bound:.3g} of the bound")
    return ", ".join(parts)


def _packages(packages: Sequence[OtherEnvironment]) -> Text:
    parts = [f"{one.name} {one.a or 'not installed'} → {one.b or 'not installed'}" for one in packages]
    more = f" and {len(parts) - MOST_NAMED} more packages" if len(parts) > MOST_NAMED else ""
    return Text(", ".join(parts[:MOST_NAMED]) + more)


def _or_none(value: int | None) -> str:
    return "none" if value is None else str(value)


def describe_topics_of(slow: Sequence[Slowdown]) -> Text:
    """Of how many of the slow (or of the fast) cases a likely reason is known, and the topics of the likeliest ones, the most
    frequent first."""
    counts = Counter(name for one in slow if (name := _name_of_likeliest(one)) is not None)
    cases = f"{units.counted(len(slow), 'case')} of B {'is' if len(slow) == 1 else 'are'}"
    verdict = "faster" if any(one.faster == "b" for one in slow) else "slower"
    if not counts:
        return Text(f"{cases} {verdict}. No likely reason is known.")
    parts = (f"{name} ({count})" for name, count in counts.most_common())
    unknown = len(slow) - counts.total()
    rest = f"; not known: {unknown}" if unknown else ""
    return Text(f"{cases} {verdict}. The likeliest reasons: {', '.join(parts)}{rest}.")


def _name_of_likeliest(slow: Slowdown) -> str | None:
    """What the likeliest reason is about; None without one."""
    likeliest = slow.likeliest
    if isinstance(likeliest, OtherEnvironment) and likeliest.part in ("device", "card"):
        return _ANOTHER_DEVICE
    topics = (facts.topic for facts in slow.topics if likeliest is not None and likeliest in facts.findings)
    return next((TOPIC_NAMES[topic].lower() for topic in topics), None)


def describe_likeliest(slow: Slowdown) -> Text:
    """A sentence about the likeliest reason of one case; without one, what differs all the same."""
    likeliest = slow.likeliest
    if likeliest is not None:
        return Text("The likeliest reason: ") + describe_finding(likeliest) + "."
    differ = [TOPIC_NAMES[facts.topic].lower() for facts in slow.topics if facts.findings]
    if not differ:
        return Text(_NOT_KNOWN)
    verdict = "faster" if slow.faster == "b" else "slower"
    if any(facts.unknown == "no_machine_code" for facts in slow.topics):
        why = f"why B is {verdict} is not known, because the machine code of a side is not here"
    else:
        why = f"none of the differences is known to make B {verdict}"
    return Text(f"What differs: {', '.join(differ)}; {why}.")


def describe_how(slow: Slowdown) -> Text:
    """How the likeliest reason helps the faster side, if it is in the machine code; else nothing."""
    likeliest = slow.likeliest
    if not isinstance(likeliest, LostInCode):
        return Text("")
    how = (describe_favour if slow.faster == "a" else describe_mechanism)(likeliest.change)
    return Text("") if how is None else how
