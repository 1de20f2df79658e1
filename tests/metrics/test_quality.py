"""Measurement quality: always the same parts in the same order, nothing that was noticed left out, unknown said as unknown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import sample_figures as figures
import sample_runs as samples

from kernelviz.core.notes import (
    BaselineMoved,
    LaterFailure,
    NotCapturable,
    OtherKernelsInGraph,
    SlowBlocks,
    TracingCostUnknown,
)
from kernelviz.core.result import Accuracy, Block, Conditions, Failure, Figure, Result, Timing
from kernelviz.metrics.quality import Quality, quality, slow_blocks
from kernelviz.text.quality import describe_part, describe_quality, describe_quality_of, format_badge, format_level

OTHER_KERNELS = "a graph would run other kernels than an eager call: launched into the stream"
ORDER = ["samples", "interval", "caches", "clock", "throttle", "repeated", "correct", "method", "others"]
GOOD = figures.complete(samples.timed(samples.problems("add", [{"n": 4096}], "fp32")[0], "torch_eager", 0.9))


def with_cold(**changed: Any) -> Result:
    timing = GOOD.timing
    assert timing is not None
    assert timing.device_cold_s is not None
    cold = msgspec.structs.replace(timing.device_cold_s, **changed)
    return msgspec.structs.replace(GOOD, outcome=msgspec.structs.replace(timing, device_cold_s=cold))


def seen(**changed: Any) -> Result:
    now = msgspec.structs.replace(GOOD.conditions or Conditions(), **changed)
    return msgspec.structs.replace(GOOD, conditions=now)


def clocks(*hz: float | None) -> Result:
    blocks = tuple(Block(size=1, started_s=float(i), clock_hz=c) for i, c in enumerate(hz))
    return with_cold(samples=(2e-6,) * len(hz), blocks=blocks)


def found(result: Result, **how: Any) -> Quality:
    made = quality(result, **{"clock": "burst", **how})
    assert made is not None
    assert [p.name for p in made.parts][: len(ORDER)] == ORDER
    assert {p.name for p in made.parts[len(ORDER) :]} <= {"notes"}
    return made


def part(result: Result, name: str, **how: Any) -> tuple[str, str]:
    return next((str(describe_part(p)), p.level) for p in found(result, **how).parts if p.name == name)


def test_a_sound_time_says_everything_on_one_line() -> None:
    made = found(GOOD)
    assert str(describe_quality(made)) == (
        "✓ good · 480 samples in 24 blocks, 60 buffers · ±0.4 % · L2 cold · SM 1980 MHz, burst · throttle: none · "
        "correct: error 41 % of tolerance (3 seeds) · CUPTI timestamps (CUDA graph) · no other processes"
    )
    assert (made.level, made.reasons) == ("good", ())


@pytest.mark.parametrize(
    ("result", "level", "said"),
    [
        (with_cold(launch="stream"), "note", "CUPTI timestamps (stream launch)"),
        (with_cold(timer="events"), "note", "CUDA events (CUDA graph, without a tracer)"),
        (with_cold(timer="kineto"), "note", "torch.profiler timestamps (CUDA graph)"),
        (seen(other_processes=None), "note", "other processes unknown"),
        (seen(notes=(OtherKernelsInGraph(),)), "note", OTHER_KERNELS),
        (seen(event_reasons=("application clocks",)), "note", "throttle: application clocks"),
        (seen(temperature_c=None, power_w=None), "note", "throttle unknown"),
        (clocks(None, None), "note", "SM clock 1980 MHz as reported, not measured, burst"),
        (with_cold(samples=None, blocks=None), "note", "samples unknown"),
        (seen(event_reasons=("power cap",)), "note", "throttle: power cap"),
        (seen(other_processes=2), "suspect", "2 other processes"),
        (seen(event_reasons=("idle", "thermal slowdown (hardware)")), "suspect", "throttle: thermal slowdown (hardware)"),
        (with_cold(low=None, high=None), "suspect", "no interval: too few blocks"),
        (
            clocks(1.98e9, *[1.90e9] * 11),
            "suspect",
            "SM 1900–1980 MHz, burst, dropped more than 1 % in 11 of 12 blocks, which changes the time by 4.2 %",
        ),
        (
            seen(notes=(BaselineMoved(baseline_s=15.7e-3, usual_s=0.7e-3),)),
            "suspect",
            "the machine changed: the baseline took 15.7 ms during this measurement, and 700 µs before",
        ),
        (msgspec.structs.replace(GOOD, accuracy=None), "suspect", "not checked"),
    ],
)  # fmt: skip
def test_what_was_noticed_is_said_and_sets_the_level(result: Result, level: str, said: str) -> None:
    made = found(result)
    assert made.level == level
    assert said in [str(describe_part(p)) for p in made.reasons]
    assert str(describe_quality(made)).startswith(f"{format_level(made.level)} · ")
    assert str(format_badge(made)) == f"{format_level(made.level)}: {describe_part(made.reasons[0])}"


def test_a_few_slow_blocks_that_cannot_move_the_median_are_no_objection() -> None:
    """12 of 270 blocks ran 1 % slower: the median moves by less than its interval."""
    assert part(clocks(*[1.98e9] * 258, *[1.95e9] * 12), "clock") == (
        "SM 1950–1980 MHz, burst, dropped more than 1 % in 12 of 270 blocks, which changes the time by 0.00 %",
        "good",
    )


def test_the_power_cap_is_suspect_where_no_clock_was_measured() -> None:
    unseen = msgspec.structs.replace(clocks(None, None), conditions=seen(event_reasons=("power cap",)).conditions)
    assert part(unseen, "throttle")[1] == "suspect"


def test_what_does_not_touch_the_time_is_a_detail() -> None:
    """Blocks that were measured again are not part of the time, and the noise of the correction is part of the interval."""
    assert part(seen(retried_blocks=3), "repeated") == ("3 blocks repeated", "good")
    subtracted = "CUPTI timestamps (CUDA graph), 320 ns tracing overhead subtracted"
    assert part(with_cold(correction_s=3.2e-7), "method") == (subtracted, "good")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"buffers": 7}, ", 7 buffers"),
        ({"buffers": 1}, ", 1 buffer"),
        ({"buffers": None}, ""),
        ({"buffers": None, "method": None}, ""),
        ({"buffers": 7, "method": None}, ", 7 buffers"),
    ],
)
def test_places_are_told_by_their_field(said: dict[str, Any], words: str) -> None:
    assert part(with_cold(**said), "samples")[0] == f"480 samples in 24 blocks{words}"


def test_the_worst_part_sets_the_level_and_comes_first() -> None:
    made = found(msgspec.structs.replace(with_cold(launch="stream"), conditions=seen(other_processes=1).conditions))
    assert made.level == "suspect"
    assert [str(describe_part(p)) for p in made.reasons] == ["1 other process", "CUPTI timestamps (stream launch)"]


def test_the_power_cap_is_part_of_the_question_under_sustained_load() -> None:
    capped = seen(event_reasons=("power cap",))
    assert found(capped, clock="sustained").level == "note"
    slowed = clocks(1.98e9, 1.62e9, 1.62e9)
    assert part(slowed, "clock", clock="sustained") == ("SM 1620–1980 MHz, sustained", "good")
    assert part(slowed, "clock")[1] == "suspect"


@pytest.mark.parametrize(
    ("hz", "words"), [((1.98e9, 1.97e9), "SM 1975 MHz, burst"), ((1.95e9, 1.98e9), "SM 1950–1980 MHz, burst")]
)
def test_a_clock_that_moved_over_one_percent_is_shown_from_least_to_most(hz: tuple[float, ...], words: str) -> None:
    assert part(clocks(*hz), "clock") == (words, "good")


def test_slow_blocks_are_counted_against_the_first_that_has_a_clock() -> None:
    assert slow_blocks(None) == 0
    assert slow_blocks(tuple(Block(size=1, started_s=0, clock_hz=c) for c in (None, 2e9, 1.981e9, 1.979e9))) == 1


def test_a_clock_mode_that_nobody_told_is_unknown() -> None:
    assert part(GOOD, "clock", clock=None) == ("SM 1980 MHz, clock mode unknown", "note")


def test_notes_on_other_times_stand_with_those() -> None:
    noted = seen(
        notes=(
            TracingCostUnknown(figure="warm"),
            SlowBlocks(figure="warm", slow=1, blocks=30),
            SlowBlocks(slow=1, blocks=30),
            NotCapturable(figure="graph", error="it synchronises"),
            LaterFailure(figure="secondary", stage="crash", message="x"),
        )
    )
    assert found(noted).level == "good"
    assert part(noted, "notes", headline="warm") == ("the tracing overhead is unknown", "note")


def test_the_warm_time_has_a_line_of_its_own() -> None:
    assert part(GOOD, "caches", headline="warm") == ("L2 warm", "good")
    assert part(GOOD, "samples", headline="warm")[0] == "480 samples in 24 blocks, 1 buffer"
    # Only the cold series' repeats are stored.
    assert part(GOOD, "repeated", headline="warm") == ("repeated blocks unknown", "note")


def test_a_processors_time_says_what_cannot_be_known() -> None:
    on_cpu = samples.timed(samples.problems("add", [{"n": 4096}], "fp32")[0], "torch_eager", 0.9, device=samples.CPU)
    now = Conditions(sm_clock_hz=2.4e9, threads=2)
    made = found(msgspec.structs.replace(on_cpu, conditions=now))
    assert made.level == "note"
    assert str(describe_quality(made)) == (
        "◐ caveats · 480 samples in 24 blocks · ±0.2 % · caches cold · clock 2400 MHz as reported, not measured, burst · "
        "throttle unknown · correct: error 41 % of tolerance (3 seeds) · host clock · "
        "other processes unknown"
    )


@pytest.mark.parametrize("stage", ["wrong", "impossible"])
def test_a_wrong_time_is_doubtful_whatever_else_is_right(stage: Any) -> None:
    timing = GOOD.timing
    passed = stage == "impossible"
    checked = Accuracy(passed=passed, relative_l2=0.9, max_abs=3.0, worst_of_bound=0.1 if passed else 812.0, seeds=3)
    wrong = msgspec.structs.replace(GOOD, outcome=Failure(stage=stage, message="", timing=timing), accuracy=checked)
    assert part(wrong, "correct") == ("✕ wrong" if stage == "wrong" else "✕ impossibly fast", "suspect")


def test_without_a_time_there_is_nothing_to_trust() -> None:
    failed = samples.failed(GOOD.problem, "torch_eager", "compile")
    assert (quality(failed), str(describe_quality_of(failed))) == (None, "not timed")
    cold_only = msgspec.structs.replace(GOOD, outcome=Timing(device_cold_s=Figure(estimate=1e-6)))
    assert quality(cold_only, "warm") is None
    of_cold = quality(cold_only)
    assert of_cold is not None
    assert of_cold.level == "suspect"
