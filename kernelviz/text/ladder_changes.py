"""What changed from rung to rung of a ladder, in text: the source, and the machine code."""

import shlex
from collections.abc import Mapping, Sequence

from kernelviz.core import Problem, units
from kernelviz.core.code_changes import CodeChanges, RankedChange
from kernelviz.core.code_facts import NoFactsReason
from kernelviz.core.command import launch_options
from kernelviz.metrics.code_changes import listed_changes
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.metrics.source_changes import FileChange, SourceChanges, SourceUnknown, ValueChange
from kernelviz.text.code_changes import MOST, describe_change
from kernelviz.text.code_mechanisms import describe_mechanism
from kernelviz.text.text import Text, join, sentence_case

_UNKNOWN: Mapping[SourceUnknown, str] = {
    "library": "the source is part of a library, so it is not shown",
    "not_captured": "no code was captured when this was measured, so the change of the source is unknown; measure it again",
    "not_here": "the source is not on this machine",
}
_OTHER_PARTS = "the source files are the same; the two rungs run different parts of them."
_SAME: Mapping[bool | None, str] = {
    True: "nothing: both run the same compiled code.",
    False: "the source is the same, but the compiled code is not: constants that the kernel is compiled with differ. What "
    "is recorded of them is the configuration.",
    None: "nothing: source, macros and parameters are the same.",
}
_NO_CODE: Mapping[NoFactsReason, str] = {
    "library": "the kernels come compiled with a library",
    "not_captured": "no machine code was captured when this was measured",
    "no_machine_code": "the code is for a CPU",
    "no_cubin": "only source was captured when this was measured, no machine code",
    "not_here": "the run was stored without the machine code of these kernels at this size",
    "no_tool": "nvdisasm is not installed",
    "too_large": "the machine code is larger than what is analysed",
    "unreadable": "the machine code cannot be read",
}
_MEASURE = "`{command}` on a machine with a GPU measures the ladder and stores its code"
_REMEDIES: Mapping[NoFactsReason, str] = {
    "not_captured": _MEASURE,
    "not_here": f"{_MEASURE}; or, on the machine that measured this run, write a file that has it: `kernelviz export RUN "
    "--with-code -o FILE`",
    "no_tool": "`pip install nvidia-cuda-nvdisasm` installs it",
}
"""What to do, by the reason. `command`: the one that measures the ladder."""
_MOST_VALUES, _MOST_NAMES = 6, 5
"""Macros and headers that a sentence names."""


def describe_source_changes(changes: SourceChanges | None) -> Text:
    """What changed in the source, as a sentence after a label; empty if there is nothing to compare."""
    if changes is None:
        return Text("")
    if changes.unknown is not None:
        return Text(f"{_UNKNOWN[changes.unknown]}.")
    if changes.same_source:
        return Text(
            _OTHER_PARTS if changes.same_code is None and changes.same_variant is False else _SAME[changes.same_code]
        )
    parts = [*map(_file, changes.files)]
    if not parts and changes.kernels is not None:
        parts.append(f"kernel {_names(changes.kernels[1])} in place of {_names(changes.kernels[0])}, in the same file")
    if not parts and changes.same_files:
        parts.append("the source is the same")
    if changes.macros:
        only = "only this macro differs" if len(changes.macros) == 1 else "only these macros differ"
        parts.append(f"{only if changes.same_files else 'macros'}: {_values(changes.macros)}")
        if changes.same_files and changes.same_code:
            parts.append("the compiled code is the same, so that only the launch can differ")
    if changes.parameters:
        parts.append(f"parameters: {_values(changes.parameters)}")
    if changes.included:
        parts.append(f"also includes {_names(changes.included)}")
    if changes.dropped:
        parts.append(f"no longer includes {_names(changes.dropped)}")
    return Text(f"{'; '.join(parts)}.")


def _file(change: FileChange) -> str:
    lines = (
        " (its lines are not on this machine)"
        if change.added is None or change.removed is None
        else f", {units.counted(change.added, 'line')} added and {change.removed:,} removed"
    )
    if change.kernels is not None:
        before, after = change.kernels
        where = _where(change.before, change.after)
        return (
            f"kernel {after} changed{where}{lines}"
            if before == after
            else f"kernel {after} in place of {before}{where}{lines}"
        )
    if not change.before or not change.after:
        count = change.added if change.after else change.removed
        size = "" if count is None else f" ({units.counted(count, 'line')})"
        return f"file {change.after or change.before}{size} {'is new' if change.after else 'is no longer used'}"
    what = change.after if change.before == change.after else f"{change.after} in place of {change.before}"
    return f"file {what}{lines}"


def _where(before: str, after: str) -> str:
    if not after:
        return ""
    return f" in {after}" if before == after else f" ({after} in place of {before})"


def _values(values: Sequence[ValueChange]) -> str:
    listed = [f"{v.name} {v.before or 'none'} → {v.after or 'none'}" for v in values[:_MOST_VALUES]]
    more = len(values) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def describe_code_changes(changes: CodeChanges | None) -> Text:
    """What changed in the machine code against the rung before it, as a sentence after a label; empty where it was not read."""
    if changes is None:
        return Text("")
    if changes.same_code:
        launches = [str(describe_change(one.change)) for one in changes.changes[:MOST]]
        return Text(f"{'; '.join(['both rungs run the same machine code, so only its launch can differ', *launches])}.")
    parts = [_change(one) for one in listed_changes(changes)[:MOST]]
    more = len(changes.changes) - len(parts)
    listed = join("; ", [*parts, f"{more} more" if more else ""])
    if not changes.known:
        return Text(f"unknown, because {_missing_code(changes)}.")
    if changes.faster is not None and changes.cause is None:
        why = f"the machine code does not show why this rung is {'faster' if changes.faster == 'b' else 'slower'}"
        return Text(f"{why}; what differs: {listed}." if parts else f"{why}.")
    return Text(f"{listed}." if parts else "it differs, but in none of the facts that are compared.")


def _change(one: RankedChange) -> str:
    """A change to this rung, which is B; of one that favours the slower rung, what it should do to this one."""
    against = ""
    if one.explains == "against":
        against = f", which should make it {'faster' if one.change.favours == 'b' else 'slower'}"
    return f"{describe_change(one.change)}{against}"


def describe_why(changes: CodeChanges | None) -> Text:
    """How the likeliest cause in the machine code can make the faster one of two rungs faster; empty if none is known."""
    if changes is None or changes.cause is None:
        return Text("")
    mechanism = describe_mechanism(changes.cause)
    if mechanism is None:
        return Text("")
    before = "the rung before it has the advantage. " if changes.faster == "a" else ""
    return Text(f"{before}{mechanism}")


def _missing_code(changes: CodeChanges) -> str:
    """Why the machine code of one side or of both is not known."""
    reasons = dict.fromkeys(r for r in (changes.b_missing, changes.a_missing) if r is not None)
    return " and ".join(_NO_CODE[reason] for reason in reasons) or "the machine code of one side is missing"


def measure_command(problem: Problem) -> str:
    """The command that measures the ladder at a problem."""
    return f"kernelviz ladder {problem.op} --measure {shlex.join(launch_options(problem))}"


def describe_unread_code(changes: LadderChanges, problem: Problem) -> Text:
    """Why the machine code of no rung is known, or neither source nor machine code, and what to do; empty if some is. `problem`:
    that of the ladder."""
    if changes.code_known or not changes.code:
        return Text("")
    reasons = dict.fromkeys(
        reason for one in changes.code.values() for reason in (one.a_missing, one.b_missing) if reason is not None
    )
    why = "; ".join(_NO_CODE[reason] for reason in reasons) or "no rung has machine code"
    what = "the machine code" if changes.sources_known else "source and machine code"
    remedies = [_REMEDIES[reason].format(command=measure_command(problem)) for reason in reasons if reason in _REMEDIES]
    sentences = [f"what changed in {what} is unknown: {why}", *dict.fromkeys(remedies)]
    return join(" ", [f"{sentence_case(sentence)}." for sentence in sentences])
