"""The trust line: always the same parts in the same order, nothing that was noticed left out, unknown said as unknown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import sample_figures as figures
import sample_runs as samples

from kernelviz.core.result import Accuracy, Block, Conditions, Failure, Figure, Result, Timing
from kernelviz.metrics.quality import LEVELS, Trust, slow_blocks, trust, trust_words

ORDER = ["samples", "interval", "L2", "clock", "throttle", "repeated", "correct", "method", "others"]
SOUND = figures.complete(samples.timed(samples.problems("add", [{"n": 4096}], "fp32")[0], "torch_eager", 0.9))


def with_cold(**changed: Any) -> Result:
    timing = SOUND.timing
    assert timing is not None
    assert timing.device_cold_s is not None
    cold = msgspec.structs.replace(timing.device_cold_s, **changed)
    return msgspec.structs.replace(SOUND, outcome=msgspec.structs.replace(timing, device_cold_s=cold))


def seen(**changed: Any) -> Result:
    now = msgspec.structs.replace(SOUND.conditions or Conditions(), **changed)
    return msgspec.structs.replace(SOUND, conditions=now)


def clocks(*hz: float | None) -> Result:
    blocks = tuple(Block(size=1, started_s=float(i), clock_hz=c) for i, c in enumerate(hz))
    return with_cold(samples=(2e-6,) * len(hz), blocks=blocks)


def found(result: Result, **how: Any) -> Trust:
    made = trust(result, **{"clock": "burst", **how})
    assert made is not None
    assert [p.name for p in made.parts][: len(ORDER)] == ORDER
    assert {p.name for p in made.parts[len(ORDER) :]} <= {"notes"}
    return made


def part(result: Result, name: str, **how: Any) -> tuple[str, str]:
    return next((p.words, p.level) for p in found(result, **how).parts if p.name == name)


def test_a_sound_time_says_everything_on_one_line() -> None:
    made = found(SOUND)
    assert made.line == (
        "✓ sound · 480 samples in 24 blocks at 60 places · ±0.2 % · L2 cold · SM 1980 MHz, burst · throttle: none · "
        "no block repeated · correct: 41 % of bound, 3 seeds · CUPTI stamps in graph · other processes 0"
    )
    assert (made.level, made.reasons) == ("sound", ())


@pytest.mark.parametrize(
    ("result", "level", "said"),
    [
        (seen(retried_blocks=3), "noticed", "3 blocks repeated"),
        (seen(retried_blocks=1), "noticed", "1 block repeated"),
        (with_cold(launch="stream"), "noticed", "CUPTI stamps in stream"),
        (with_cold(timer="events"), "noticed", "events in graph (fallback)"),
        (with_cold(timer="kineto"), "noticed", "torch.profiler stamps in graph"),
        (with_cold(correction_s=3.2e-7), "noticed", "CUPTI stamps in graph, corrected by 320 ns"),
        (seen(other_processes=None), "noticed", "other processes unknown"),
        (seen(notes=("a graph would\nrun other kernels",)), "noticed", "a graph would run other kernels"),
        (seen(event_reasons=("application clocks",)), "noticed", "throttle: application clocks"),
        (seen(temperature_c=None, power_w=None), "noticed", "throttle unknown"),
        (clocks(None, None), "noticed", "SM clock 1980 MHz as reported, not measured, burst"),
        (with_cold(samples=None, blocks=None), "noticed", "samples unknown"),
        (seen(other_processes=2), "doubtful", "other processes 2"),
        (seen(event_reasons=("power cap",)), "doubtful", "throttle: power cap"),
        (seen(event_reasons=("idle", "thermal slowdown (hardware)")), "doubtful", "throttle: thermal slowdown (hardware)"),
        (with_cold(low=None, high=None), "doubtful", "no interval: too few blocks"),
        (clocks(1.98e9, 1.98e9, 1.90e9), "doubtful", "SM 1900–1980 MHz, burst, 1 of 3 blocks over 1 % under the first clock"),
        (msgspec.structs.replace(SOUND, accuracy=None), "doubtful", "not checked"),
    ],
)  # fmt: skip
def test_what_was_noticed_is_said_and_sets_the_level(result: Result, level: str, said: str) -> None:
    made = found(result)
    assert made.level == level
    assert said in [p.words for p in made.reasons]
    assert made.line.startswith(f"{LEVELS[made.level]} {level} · ")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"buffers": 7}, "at 7 places"),
        ({"buffers": 1}, "at 1 place"),
        ({"buffers": None}, "at 60 places"),
        (
            {"buffers": None, "method": "CUPTI kernel stamps, L2 flushed by reading before each of 12 calls"},
            "at 1 place",
        ),
        ({"buffers": None, "method": None}, ""),
        ({"buffers": 7, "method": None}, "at 7 places"),
    ],
)
def test_places_are_told_by_their_field_and_by_the_words_of_documents_without(said: dict[str, Any], words: str) -> None:
    assert part(with_cold(**said), "samples")[0] == f"480 samples in 24 blocks {words}".rstrip()


def test_the_worst_part_sets_the_level_and_comes_first() -> None:
    made = found(seen(retried_blocks=2, other_processes=1))
    assert made.level == "doubtful"
    assert [p.words for p in made.reasons] == ["other processes 1", "2 blocks repeated"]


def test_the_power_cap_is_part_of_the_question_under_sustained_load() -> None:
    capped = seen(event_reasons=("power cap",))
    assert found(capped, clock="sustained").level == "noticed"
    slowed = clocks(1.98e9, 1.62e9)
    assert part(slowed, "clock", clock="sustained") == ("SM 1620–1980 MHz, sustained", "sound")
    assert part(slowed, "clock")[1] == "doubtful"


@pytest.mark.parametrize(
    ("hz", "words"), [((1.98e9, 1.97e9), "SM 1975 MHz, burst"), ((1.95e9, 1.98e9), "SM 1950–1980 MHz, burst")]
)
def test_a_clock_that_moved_over_one_percent_is_shown_from_least_to_most(hz: tuple[float, ...], words: str) -> None:
    assert part(clocks(*hz), "clock") == (words, "sound")


def test_slow_blocks_are_counted_against_the_first_that_has_a_clock() -> None:
    assert slow_blocks(None) == 0
    assert slow_blocks(tuple(Block(size=1, started_s=0, clock_hz=c) for c in (None, 2e9, 1.981e9, 1.979e9))) == 1


def test_a_clock_mode_that_nobody_told_is_unknown() -> None:
    assert part(SOUND, "clock", clock=None) == ("SM 1980 MHz, clock mode unknown", "noticed")


def test_notes_on_other_times_stand_with_those() -> None:
    noted = seen(
        notes=("warm: launched into the stream", "graph of one call: it synchronises", "other figures: crash: x")
    )
    assert found(noted).level == "sound"
    assert part(noted, "notes", headline="warm") == ("launched into the stream", "noticed")


def test_the_warm_time_has_a_line_of_its_own() -> None:
    assert part(SOUND, "L2", headline="warm") == ("L2 warm", "sound")
    assert part(SOUND, "samples", headline="warm")[0] == "480 samples in 24 blocks at 1 place"
    # Only the cold series' repeats are stored.
    assert part(SOUND, "repeated", headline="warm") == ("repeated blocks unknown", "noticed")


def test_a_processors_time_says_what_cannot_be_known() -> None:
    on_cpu = samples.timed(samples.problems("add", [{"n": 4096}], "fp32")[0], "torch_eager", 0.9, device=samples.CPU)
    now = Conditions(sm_clock_hz=2.4e9, threads=2)
    made = found(msgspec.structs.replace(on_cpu, conditions=now))
    assert made.level == "noticed"
    assert made.line == (
        "◐ noticed · 480 samples in 24 blocks · ±0.2 % · caches cold · clock 2400 MHz as reported, not measured, burst · "
        "throttle unknown · no block repeated · correct: 41 % of bound, 3 seeds · host clock · other processes unknown"
    )


@pytest.mark.parametrize("stage", ["wrong", "impossible"])
def test_a_wrong_time_is_doubtful_whatever_else_is_right(stage: Any) -> None:
    timing = SOUND.timing
    passed = stage == "impossible"
    checked = Accuracy(passed=passed, relative_l2=0.9, max_abs=3.0, worst_of_bound=0.1 if passed else 812.0, seeds=3)
    wrong = msgspec.structs.replace(SOUND, outcome=Failure(stage=stage, message="", timing=timing), accuracy=checked)
    assert part(wrong, "correct") == ("✕ wrong" if stage == "wrong" else "✕ impossibly fast", "doubtful")


def test_without_a_time_there_is_nothing_to_trust() -> None:
    failed = samples.failed(SOUND.problem, "torch_eager", "compile")
    assert (trust(failed), trust_words(failed)) == (None, "not timed")
    cold_only = msgspec.structs.replace(SOUND, outcome=Timing(device_cold_s=Figure(estimate=1e-6)))
    assert trust(cold_only, "warm") is None
    found = trust(cold_only)
    assert found is not None
    assert found.level == "doubtful"
