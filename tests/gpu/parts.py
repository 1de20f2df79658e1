"""The named parts of the GPU suite: what each asks, how long it may take, and how many processes run its tests.

    python -m pytest tests/gpu --part smoke

Every GPU test belongs to exactly one part, by the marker ``part``; conftest.py refuses a test without one. Imports no torch.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

REPORT = Path(__file__).parents[2] / "docs" / "gpu-report.json"

TOTAL_LIMIT_S = 25 * 60
"""All parts together on one card."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """`limit_s`: no test begins later than this after the first. `processes`: how many run the tests; 0: pytest's own process
    alone, which every part needs that judges times."""

    summary: str
    limit_s: float
    processes: int = 0


PARTS: dict[str, Part] = {
    # Its tests wait for starts of workers and for compilers, not for the GPU, and none judges a time: 550 s of them.
    "smoke": Part(
        summary="a run by the command line and by the page, variants that crash, hang, cheat or are wrong",
        limit_s=180,
        processes=10,
    ),
    "kernels": Part(
        summary="every variant is right in every format, at odd and large sizes, called and replayed (fp16 and bf16 share sizes)",
        limit_s=480,
        processes=min(24, max(4, (os.cpu_count() or 16) - 2)),
    ),
    # A worker keeps more than a third of the memory (graphs and cached blocks of a sweep). Two processes on an H100 were slower
    # than one (34 ops in 262 s, 38 in 287 s), because large references and slow kernels fill the GPU, and ran out of memory.
    # 460 s for 55 ops on an H100 after the part kernels, 515 s with empty caches of the compilers, all cases by ncu.
    "one_click": Part(
        summary="every variant with the defaults of the Bench page, and the same cases by ncu", limit_s=480
    ),
    "timing": Part(
        summary="the timing method, fresh processes, the roofs, what limits a kernel, hardware counters", limit_s=480
    ),
    "instrument": Part(
        summary="the other figures, energy, live mode; page, monitor and compilers beside a measurement",
        limit_s=480,
    ),
    "product": Part(
        summary="soak through the worker, tuning, inspections, the first result of a cold run", limit_s=480
    ),
    "selftest": Part(summary="all checks of `kernelviz selftest`", limit_s=480),
    "untrusted": Part(summary="the judge moves no time", limit_s=480),
}


def pytest_command(*options: str) -> list[str]:
    """The command that asks pytest about the GPU suite, for a process in the folder of the checkout."""
    return [sys.executable, "-m", "pytest", "tests/gpu", "-q", "-p", "no:cacheprovider", *options]


def part(name: str) -> pytest.MarkDecorator:
    """The marker of a test (or, as `pytestmark`, of a file of tests) that belongs to this part."""
    if name not in PARTS:
        raise ValueError(f"no part {name!r} of the GPU suite; there are {', '.join(PARTS)}")
    return pytest.mark.part(name)


def part_of(item: pytest.Item) -> str:
    """The part that a collected test belongs to. Raises pytest.UsageError where it names none, or more than one."""
    names = [str(marker.args[0]) for marker in item.iter_markers("part")]
    if len(names) != 1 or names[0] not in PARTS:
        found = ", ".join(names) or "none"
        raise pytest.UsageError(
            f"{item.nodeid} belongs to the parts: {found}; mark it with exactly one of {', '.join(PARTS)} (tests/gpu/parts.py)"
        )
    return names[0]


def seconds_before(part: str, report: Path = REPORT) -> dict[str, float]:
    """How long each test of a part took, by its name, according to the committed report; empty where there is none, and without
    the tests that had not ended with their part."""
    parts = json.loads(report.read_text()).get("parts", {}) if report.is_file() else {}
    tests: Mapping[str, Mapping[str, Any]] = parts.get(part, {}).get("tests", {})
    return {test: told["seconds"] for test, told in tests.items() if "seconds" in told}


class Named(Protocol):
    """A test that was collected."""

    @property
    def nodeid(self) -> str: ...


Test = TypeVar("Test", bound=Named)


def stretches(tests: Sequence[Test], seconds: Mapping[str, float], processes: int) -> list[Test]:
    """The order in which no process has all the long tests.

    xdist's "worksteal" gives each process one stretch of the list, and a process that is ready takes tests from the end of
    another's stretch. So each stretch begins with its longest tests. Tests that never ran come first. Stretches have equal
    lengths; where that is not possible, the last ones are longer by one, as with xdist.
    """
    longest_first = sorted(tests, key=lambda test: -seconds.get(test.nodeid, math.inf))
    return [test for process in reversed(range(processes)) for test in longest_first[process::processes]]
