"""Tables of docs/kernels.md about list B of the memory-bound ops, which tests/gpu/list_a.py measured."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "gpu"), str(HERE / "ops")]

import msgspec  # noqa: E402
import read_list  # noqa: E402
from read_list import LEVEL, WORST, Line, Shares  # noqa: E402

from kernelviz.core import units  # noqa: E402
from kernelviz.core.counters import CaseCounters, KernelCounters  # noqa: E402
from kernelviz.metrics.counters import WAITING, CallCounters  # noqa: E402
from kernelviz.metrics.library_comparison import MOST_SLOWER  # noqa: E402
from kernelviz.text.counters import STALL_NAMES  # noqa: E402
from kernelviz.text.roofs import format_bytes  # noqa: E402
from kernelviz.text.sizes import format_problem  # noqa: E402

FIRST, AGAIN = (HERE.parent / "docs" / f"h200-memory-list-b{name}.jsonl.gz" for name in ("", "-again"))
COUNTERS = FIRST.with_name("h200-memory-list-b-counters.json")
"""Hardware counters of the fastest own variant and the fastest library, where own is slower (`kernelviz counters --json`)."""
TARGETS = {"mean": 1.25, "level": 0.97, "least": WORST, "near": 0.95, "least auto": WORST}
"""What is claimed: at least so much."""
LARGE_BYTES = 10**6
"""The rate of fewer bytes says nothing."""


def lists() -> tuple[list[Line], list[Line]]:
    """The list as it was measured, and with the problems that were measured again."""
    first = read_list.read(FIRST)
    return first, read_list.replaced(first, read_list.read(AGAIN))


def _share(count: int, of: int) -> str:
    return f"{count} of {of} ({units.percent(count / of)})"


def summary() -> str:
    """What is claimed, and what was found, first and with what was measured again."""
    near = f"within {units.percent(MOST_SLOWER - 1, 0)} of the best own variant"
    rows: dict[str, tuple[str, Callable[[Shares], str]]] = {
        "time of the best library / best own variant, geometric mean": (
            f"≥ {TARGETS['mean']}",
            lambda of: f"{of.mean_ratio:.2f}",
        ),
        "the same, median": ("–", lambda of: f"{of.median_ratio:.2f}"),
        "the same, the lowest": (f"≥ {TARGETS['least']}", lambda of: f"{of.least_ratio:.2f}"),
        f"the same, at least {LEVEL}, or not called slower by the rule for verdicts": (
            f"≥ {units.percent(TARGETS['level'], 0)}",
            lambda of: _share(of.level, of.compared),
        ),
        f"the same, at least {LEVEL}, whatever the verdict": ("–", lambda of: _share(of.at_least, of.compared)),
        "time of the best library / `kernelviz.best`, geometric mean": ("–", lambda of: f"{of.auto_mean:.2f}"),
        f"`kernelviz.best` {near}": (
            f"≥ {units.percent(TARGETS['near'], 0)}",
            lambda of: _share(of.near, of.chosen),
        ),
        "best own variant / `kernelviz.best`, the lowest": (
            f"≥ {TARGETS['least auto']}",
            lambda of: f"{of.least_auto_ratio:.2f}",
        ),
        f"the rule's first variant alone {near}": ("–", lambda of: _share(of.near_rule, of.ruled)),
    }
    both = [Shares.of(lines) for lines in lists()]
    heading = ["| | target | first | with those measured again |", "|---|--:|--:|--:|"]
    return "\n".join(
        [*heading, *(f"| {name} | {asked} | {' | '.join(map(told, both))} |" for name, (asked, told) in rows.items())]
    )


def misses() -> str:
    """Each problem with a ratio below LEVEL, or in which `kernelviz.best` misses by more than 3 %, the lowest ratio first."""
    _, lines = lists()
    missed = [line for line in lines if line.missed or (line.ratio is not None and line.ratio < LEVEL)]
    rows = [
        f"| {format_problem(line.problem)} | {_cells(line)} |"
        for line in sorted(missed, key=lambda line: line.ratio or 0.0)
    ]
    heading = [
        "| problem | best library | best own | library / own | verdict on own | `kernelviz.best` |",
        "|---|--:|--:|--:|---|--:|",
    ]
    return "\n".join([*heading, *rows])


def counted() -> list[CaseCounters]:
    """The hardware counters of the losses, the own variant of each problem first."""
    return msgspec.json.decode(COUNTERS.read_bytes(), type=list[CaseCounters])


def reasons() -> str:
    """What ncu counted in each loss: a line for each kernel of the fastest own variant and of the fastest library."""
    heading = [
        "| problem | kernel | time by ncu | device memory | sectors a load | sectors a store | a warp waits longest |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    rows = [
        f"| {format_problem(case.problem)} | `{case.variant}`: `{kernel.kernel}` | {_counted(kernel)} |"
        for case in counted()
        for kernel in case.counters.kernels
    ]
    return "\n".join([*heading, *rows])


def _counted(kernel: KernelCounters) -> str:
    call = CallCounters((kernel,))
    duration_s, moved = call.duration_s or math.nan, call.dram_bytes or 0
    loads, stores = call.load_sectors_per_request, call.store_sectors_per_request
    rate = f", {moved / duration_s / 1e12:.2f} TB/s" if moved >= LARGE_BYTES else ""
    waits = {reason: cycles for reason, cycles in kernel.stalls.items() if reason in WAITING}
    longest = sorted(waits, key=lambda reason: -waits[reason])[:2]
    waiting = ", ".join(f"{STALL_NAMES[reason]} {waits[reason]:.1f}" for reason in longest)
    return f"{units.seconds(duration_s)} | {format_bytes(moved)}{rate} | {_sectors(loads)} | {_sectors(stores)} | {waiting}"


def _sectors(count: float | None) -> str:
    return "–" if count is None else f"{count:.1f}"


def _cells(line: Line) -> str:
    ratio = "–" if line.ratio is None else f"{line.ratio:.2f}"
    auto_s = line.own_s.get(line.auto or "")
    auto = "no time" if auto_s is None else f"`{line.auto}` {units.seconds(auto_s)}"
    return " | ".join((fastest(line.library_s), fastest(line.own_s), ratio, line.verdict or "–", auto))


def fastest(times_s: Mapping[str, float]) -> str:
    name = min(times_s, key=lambda one: times_s[one], default=None)
    return "no time" if name is None else f"`{name}` {units.seconds(times_s[name])}"
