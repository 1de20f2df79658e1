"""The configurations of a tuning: which has a time, the shortest so far, what each parameter is worth, and transfer."""

from __future__ import annotations

import random

import msgspec
import peers
import pytest
import sample_runs as samples
import sample_tunings as tunings

from kernelviz.core import Span
from kernelviz.core.configuration import configured_name
from kernelviz.core.errors import BadField
from kernelviz.core.notes import StoppedEarly
from kernelviz.core.problem import Problem
from kernelviz.core.result import Conditions, Result, Timing
from kernelviz.core.run import Run
from kernelviz.formats import read
from kernelviz.metrics.configurations import configuration_space, running_best
from kernelviz.metrics.parameter_effects import parameter_effects
from kernelviz.metrics.transfer import comparable, transfer
from kernelviz.metrics.tuning import tried
from kernelviz.text.configurations import configuration_insight, describe_counts, describe_time, format_state
from kernelviz.text.transfer import format_cell, transfer_insight


def of(results: list[Result], base: Run | None = None) -> Run:
    run = base or tunings.run()
    names = tuple(r.variant for r in results)
    plan = msgspec.structs.replace(run.plan, variants=names, baseline=names[0])
    return msgspec.structs.replace(run, plan=plan, results=tuple(results), created_at="2026-11-21T09:59:00+00:00")


def one(block: int, time_s: float, *, at: str = "10:00:00", stopped: bool = False, warps: int = 4) -> Result:
    made = tunings.figure_result(
        configured_name("triton_tuned", {"block": block, "warps": warps}), time_s, blocks=1 if stopped else 12,
        measured_at=f"2026-11-21T{at}+00:00",
    )  # fmt: skip
    notes = Conditions(notes=(StoppedEarly(ratio=2.0, factor=1.5),) if stopped else ())
    return msgspec.structs.replace(made, conditions=notes)


def test_what_failed_or_is_wrong_has_no_time_and_is_never_best() -> None:
    space = configuration_space(tunings.run())
    counts = {state: sum(c.state == state for c in space.configurations) for state in ("measured", "wrong", "failed")}
    assert counts == {"measured": 114, "wrong": 6, "failed": 24}
    assert all(c.time_s is None for c in space.untimed)
    assert space.best is not None
    assert space.best.state == "measured"
    best = tried(tunings.run()).best
    assert best is not None
    assert (space.best.variant, space.best.time_s) == (best.result.variant, best.time_s), "as the tuning itself says"
    assert space.default is not None
    assert space.parameters["warps"] == (1, 2, 4, 8, 16, 32), "in ascending order, whatever the default is"


def test_a_configuration_of_one_block_is_an_estimate_and_never_best() -> None:
    run = of([one(64, 20e-6), one(128, 10e-6, stopped=True), one(256, 15e-6)])
    space = configuration_space(run)
    stopped = space.configurations[1]
    assert (stopped.state, stopped.low_s, stopped.is_best) == ("stopped", None, False)
    assert space.best is not None
    assert space.best.values["block"] == 256
    assert str(describe_time(stopped)) == "≈ 10.0 µs: the estimate of one block, stopped early"
    assert tried(run).stopped == 1
    assert [row.result.variant for row in tried(run).ranked][-1] == stopped.variant
    assert {s.time_s for s in running_best(space)} == {20e-6, 15e-6}, "nor the shortest so far"


def test_a_tuning_of_another_tool_is_shown_as_not_checked() -> None:
    (run,) = read(peers.kernel_tuner())
    space = configuration_space(run)
    assert space.foreign
    assert {c.state for c in space.configurations} == {"unchecked"}
    assert space.best is not None
    assert space.best.values == {"block_size_x": 768}
    assert space.default is None, "the file names none"
    said = str(configuration_insight(space, parameter_effects(space)))
    assert said.startswith("Fastest by its file: block_size_x=768")
    assert "nobody checked the results here" in said
    with pytest.raises(BadField, match="another tool measured it"):
        tried(run)


def test_a_run_that_is_no_tuning_is_refused() -> None:
    with pytest.raises(BadField, match="it is no tuning"):
        configuration_space(samples.run())


def test_the_time_of_the_search_leaves_out_the_final_and_pauses() -> None:
    """The first and the third configuration were measured again at the end, after a pause of two hours."""
    run = of(
        [
            one(64, 20e-6, at="12:30:00"), one(128, 18e-6, at="10:00:10"), one(256, 15e-6, at="12:30:00"),
            one(512, 19e-6, at="10:00:20"), one(1024, 19e-6, at="12:20:00"),
        ]
    )  # fmt: skip
    after = [c.after_s for c in configuration_space(run).configurations]
    assert after == [70.0, 70.0, 80.0, 80.0, 80.0]


def test_the_share_of_a_parameter_is_that_of_its_planted_effect() -> None:
    """log time = effect of block, plus a tenth of it for warps, plus noise; a third parameter does nothing."""
    noise = random.Random(3)
    results = []
    for block in (64, 128, 256, 512):
        for warps in (1, 2, 4, 8):
            for parts in range(6):
                name = configured_name("triton_tuned", {"block": block, "warps": warps, "parts": parts})
                time_s = 1e-5 * (2.0 ** (block.bit_length()) * 2.0 ** (0.3 * warps.bit_length())) * noise.gauss(1, 0.02)
                results.append(tunings.figure_result(name, time_s))
    effects = parameter_effects(configuration_space(of(results)))
    shares = {e.name: e.share or 0.0 for e in effects.parameters}
    assert list(shares) == ["block", "warps", "parts"]
    # Variances of log2 time: 1.25 of block, 0.3^2 * 1.25 of warps.
    assert shares["block"] == pytest.approx(1 / 1.09, abs=0.01)
    assert shares["warps"] == pytest.approx(0.09 / 1.09, abs=0.01)
    assert shares["parts"] < 0.01
    assert effects.rest is not None
    assert effects.rest < 0.02


def test_an_interaction_is_in_no_share_and_chance_is_no_effect() -> None:
    noise = random.Random(5)
    crossed, random_times = [], []
    for block in (64, 128):
        for warps in (1, 2):
            for parts in range(40):
                name = configured_name("triton_tuned", {"block": block, "warps": warps, "parts": parts % 5})
                name = f"{name[:-1]},again={parts // 5}]"
                crossed.append(tunings.figure_result(name, 1e-5 if (block == 64) is (warps == 1) else 2e-5))
                random_times.append(tunings.figure_result(name, 1e-5 * noise.uniform(1, 2)))
    effects = parameter_effects(configuration_space(of(crossed)))
    assert all((e.share or 0.0) < 0.01 for e in effects.parameters), "only both together decide"
    assert effects.rest is not None
    assert effects.rest > 0.95
    by_chance = parameter_effects(configuration_space(of(random_times)))
    assert max(e.share or 0.0 for e in by_chance.parameters) < 0.1


def test_few_configurations_and_equal_times_have_no_share() -> None:
    few = parameter_effects(configuration_space(of([one(64, 1e-5), one(128, 2e-5), one(256, 3e-5)])))
    assert {e.name: e.limit for e in few.parameters} == {"block": "few", "warps": "one_value"}
    assert few.rest is None
    alike = [one(b, 1e-5 * (1 + 0.001 * w), warps=w) for b in (64, 128) for w in range(1, 7)]
    assert {e.limit for e in parameter_effects(configuration_space(of(alike))).parameters} >= {"alike"}


def test_no_share_is_said_early_or_from_few_configurations_of_a_planned_value() -> None:
    """A random sample of 100 over 7 values that was cancelled after 12: only two values have a time yet."""
    names = [configured_name("triton_tuned", {"block": 2**b, "warps": w}) for b in range(7) for w in range(1, 15)]
    results = [tunings.figure_result(name, 1e-5 * (1 + place)) for place, name in enumerate(names)]

    def limits(some: list[Result], planned: list[str]) -> dict[str, str | None]:
        run = of(results)
        plan = msgspec.structs.replace(run.plan, variants=tuple(planned))
        run = msgspec.structs.replace(run, plan=plan, results=tuple(some))
        return {e.name: e.limit for e in parameter_effects(configuration_space(run)).parameters}

    assert limits(results[:20], names) == {"block": "early", "warps": "early"}
    assert limits(results[:13], names) == {"block": "early", "warps": "early"}, "one value of block so far"
    assert limits(results, names) == {"block": None, "warps": None}
    assert limits(results[:90], names)["block"] is None, "90 % of 98 is near the end"
    few = [r for r in results if r.variant in (*names[:6], *names[14:20])]
    others = [samples.failed(tunings.ADD, n, "compile", "no") for n in names if n not in {r.variant for r in few}]
    assert limits([*few, *others], names)["block"] == "few", "12 times over 7 values"


def test_a_spread_that_no_parameter_explains_is_not_said_to_be_explained() -> None:
    noise = random.Random(7)
    results = []
    for block in (64, 128, 256):
        for warps in range(1, 13):
            made = one(block, time_s := 1e-5 * noise.uniform(1, 8), warps=warps)
            assert isinstance(made.timing, Timing)
            assert made.timing.device_cold_s is not None
            wide = msgspec.structs.replace(made.timing.device_cold_s, low=0.4 * time_s, high=2.5 * time_s)
            results.append(
                msgspec.structs.replace(made, outcome=msgspec.structs.replace(made.timing, device_cold_s=wide))
            )
    space = configuration_space(of(results))
    effects = parameter_effects(space)
    said = str(configuration_insight(space, effects))
    assert "no parameter alone explains more than" in said
    assert "explains 1" not in said
    assert effects.noise is not None
    assert effects.noise > 0.25
    assert "of it is noise of the single times" in said
    assert "36 of the times have an interval wider than ±10 %" in str(describe_counts(space))
    assert "wide interval" in str(format_state(space.configurations[3]))


def matrix_of(made: object, runs: dict[str, Run]) -> object:
    return transfer(made, lambda problem: [r for r in runs.values() if problem in r.plan.problems])  # type: ignore[arg-type]


def test_a_matrix_has_only_what_was_measured() -> None:
    made, runs = tunings.shapes()
    matrix = transfer(made, lambda problem: [r for r in runs.values() if problem in r.plan.problems])
    assert [[str(format_cell(c)) for c in row] for row in matrix.cells] == [
        ["same", "1.25×", "1.50×"],
        ["1.10×", "same", "no time"],
        ["not measured", "1.02×", "same"],
    ]  # fmt: skip
    assert matrix.missing == ((2, 0),)
    cell = matrix.cells[0][2]
    assert cell.ratio is not None
    assert cell.ratio.low is not None, "both were measured in the same rounds"
    assert cell.run_id == "tuned-67108864"
    said = str(transfer_insight(matrix))
    assert "takes 1.50× the time at n = 67,108,864, the worst transfer. 1 of 6 pairs is not measured." in said


def test_tunings_of_other_code_are_never_compared() -> None:
    made, runs = tunings.shapes()
    other, _ = tunings.shapes(digest="fedcba9876543210")
    together, left_out = comparable(made[0], (*made[:2], other[2]))
    assert (together, left_out) == (made[:2], 1)
    # A run of other code at the same shape says nothing either, whatever the names of its configurations.
    changed = {
        k: msgspec.structs.replace(
            r, results=tuple(msgspec.structs.replace(x, source_digest="fedcba9876543210") for x in r.results)
        )
        for k, r in runs.items()
    }
    matrix = transfer(made, lambda problem: [r for r in changed.values() if problem in r.plan.problems])
    assert {c.state for row in matrix.cells for c in row} == {"same", "not_measured"}


def test_another_device_number_format_or_direction_is_another_matrix() -> None:
    made, _ = tunings.shapes()
    problem = msgspec.structs.replace(made[1].problem, dtype="bf16")
    backward = msgspec.structs.replace(made[2].problem, direction="backward")
    others = (
        msgspec.structs.replace(made[1], problem=problem),
        msgspec.structs.replace(made[2], problem=backward),
        msgspec.structs.replace(made[1], device_uuid="GPU-other"),
    )
    assert comparable(made[0], (made[0], *others)) == ((made[0],), 0)


def test_the_same_configuration_needs_no_measurement() -> None:
    made, _ = tunings.shapes()
    again = msgspec.structs.replace(made[1], configuration=made[0].configuration)
    matrix = transfer((made[0], again), lambda problem: [])
    assert [[c.state for c in row] for row in matrix.cells] == [["same", "same"], ["same", "same"]]
    assert matrix.cells[0][1].ratio == Span(estimate=1.0)
    said = str(transfer_insight(matrix))
    assert said.startswith("All 2 shapes chose the same configuration")
    assert said.endswith("so there is nothing to compare."), "and nothing is said to be within 2 %"


def test_inputs_of_other_data_are_the_same_shape() -> None:
    made, runs = tunings.shapes()
    zeros = Problem(op="add", sizes={"n": 2**20}, dtype="fp32", data="zeros")
    asked = msgspec.structs.replace(made[0], problem=zeros)
    matrix = transfer((asked, made[1]), lambda problem: list(runs.values()))
    assert str(format_cell(matrix.cells[1][0])) == "1.10×"
