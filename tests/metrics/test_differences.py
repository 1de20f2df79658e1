"""What differs between two runs is said, each thing once, what stops verdicts first."""

from __future__ import annotations

from typing import Any

import compared_runs as runs
import msgspec
import pytest

from kernelviz.core.result import Conditions
from kernelviz.formats import shipped_runs
from kernelviz.metrics.comparison import compare
from kernelviz.text.differences import differences


def said(change: dict[str, Any]) -> list[str]:
    return [str(d.line) for d in differences(compare(runs.before(), runs.after(**change)))]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": {"clock": "sustained"}}, "clock mode: burst in A, sustained in B (no verdict)"),
        ({"figure": {"timer": "events"}}, "timer: CUPTI timestamps in A, CUDA events in B (no verdict)"),
        ({"figure": {"launch": "stream"}}, "launched: in a graph in A, into the stream in B (no verdict)"),
        ({"method": {"budget_s": 5.0}}, "device time a case, at most: 1 s in A, 5 s in B"),
        ({"device": {"name": "NVIDIA H100"}}, "device: NVIDIA H200 in A, NVIDIA H100 in B"),
        ({"device": {"uuid": "GPU-22222222-1"}}, "card (same model): GPU-00000000… in A, GPU-22222222… in B"),
        ({"device": {"driver": None}}, "driver: 580.159 in A, unknown in B"),
        ({"device": {"multiprocessors": 16}}, "multiprocessors: 132 in A, 16 in B"),
        ({"versions": {"torch": "2.14.0"}}, "torch: 2.13.0 in A, 2.14.0 in B"),
        ({"versions": {"cutlass": "4"}}, "cutlass: unknown in A, 4 in B"),
    ],
)
def test_each_is_said_and_nothing_else(change: dict[str, Any], words: str) -> None:
    assert said(change) == [words]


def test_equal_runs_differ_in_nothing() -> None:
    assert said({}) == []
    run = shipped_runs.load("h200-add")
    inside = compare(run, run, variant_a="torch_eager", variant_b="cuda_vec16")
    assert differences(inside) == ()


def test_what_stops_verdicts_comes_first() -> None:
    found = said({"device": {"driver": "600"}, "versions": {"torch": "3"}, "method": {"clock": "sustained"}})
    assert [words.endswith("(no verdict)") for words in found] == [True, False, False]


def test_conditions_while_measuring_are_part_of_it() -> None:
    b = runs.after()
    slow = Conditions(event_reasons=("power cap", "idle"), other_processes=2)
    results = []
    for r in b.results:
        assert r.timing is not None
        cold = r.timing.device_cold_s
        assert cold is not None
        blocks = tuple(msgspec.structs.replace(block, clock_hz=1.6e9) for block in cold.blocks or ())
        timing = msgspec.structs.replace(r.timing, device_cold_s=msgspec.structs.replace(cold, blocks=blocks))
        results.append(msgspec.structs.replace(r, outcome=timing, conditions=slow))
    found = differences(compare(runs.before(), msgspec.structs.replace(b, results=tuple(results))))
    assert [str(d.line) for d in found] == [
        "SM clock, median: 1980 MHz in A, 1600 MHz in B",
        "slowed down by: nothing in A, power cap in B",
        "other processes: 0 in A, 2 in B",
    ]
