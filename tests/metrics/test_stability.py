"""A time with two levels is found, said instead of a number, and never the fastest; shown times and speed-ups agree."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
import repeats
import sample_runs as samples

from kernelviz.core import Block, Figure, Run, Timing
from kernelviz.formats import shipped_runs
from kernelviz.metrics.comparison import compare
from kernelviz.metrics.library_comparison import comparison_rows
from kernelviz.metrics.placement import placed
from kernelviz.metrics.rows import ROUNDING, Row, rows
from kernelviz.metrics.stability import level_decides, levels_differ, stability, stability_of_means
from kernelviz.metrics.statistics import figure_interval, in_passes
from kernelviz.metrics.summary import summary
from kernelviz.metrics.verdict_reasons import NotStable
from kernelviz.metrics.winner import winners
from kernelviz.plots import bandwidth_by_size, time_by_variant
from kernelviz.plots.roofline_of_runs import describe_point
from kernelviz.text import describe_comparison_with_baseline, format_badge_of, format_time, format_variant
from kernelviz.text.winners import record

RANDOM = np.random.default_rng(19)
Floats = np.ndarray


def noise(count: int, level: float = 1.0, deviation: float = 0.01) -> Floats:
    return level * np.exp(RANDOM.normal(0, deviation, count))


def resembling(count: int, alike: float, deviation: float = 0.05) -> Floats:
    """Blocks that resemble the block before them, as on a loaded machine."""
    values = RANDOM.normal(0, deviation, count)
    for i in range(1, count):
        values[i] = alike * values[i - 1] + math.sqrt(1 - alike**2) * values[i]
    return np.exp(values)


def loaded_eager() -> Floats:
    """33 blocks of about 0.7 ms, then ten of 11 to 20 ms after a compilation of 19 s."""
    return np.concatenate([noise(33, 0.7e-3, 0.03), RANDOM.uniform(11e-3, 20e-3, 10)])


@pytest.mark.parametrize(
    ("name", "made", "most"),
    [
        ("normal noise of 0.2 %", lambda: noise(100, deviation=0.002), 0.0),
        ("normal noise of 20 %, ten blocks", lambda: noise(10, deviation=0.2), 0.01),
        ("Student's t, three degrees of freedom", lambda: np.exp(0.05 * RANDOM.standard_t(3, 43)), 0.01),
        ("a tenth are outliers", lambda: noise(60) * (1 + (RANDOM.random(60) < 0.1) * RANDOM.exponential(0.5, 60)), 0.01),
        ("neighbours resemble each other, r = 0.5", lambda: resembling(100, 0.5), 0.01),
        ("neighbours resemble each other, r = 0.8", lambda: resembling(100, 0.8), 0.05),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_noise_is_one_level(name: str, made: Callable[[], Floats], most: float) -> None:
    assert np.mean([stability_of_means(made()).unstable for _ in range(300)]) <= most


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (loaded_eager, "change"),
        (lambda: np.concatenate([noise(50), noise(50, 1.05)]), "change"),
        (lambda: np.concatenate([noise(7), noise(5, 3.0)]), "change"),
        (lambda: RANDOM.permutation(np.concatenate([noise(30, 12.8e-3), noise(20, 17.6e-3)])), "two groups"),
    ],
)
def test_two_levels_are_found(made: Callable[[], Floats], kind: str) -> None:
    found = [stability_of_means(made()).kind for _ in range(100)]
    assert found.count(kind) >= 95  # type: ignore[arg-type]


def test_of_recorded_quiet_times_none_but_real_changes_are_found() -> None:
    """In one process the last third of the rounds of one problem was 4 to 14 % slower, for all its variants."""
    found = {r.name: stability(f) for r in repeats.repeated() for f in (r.first, r.second) if stability(f).unstable}
    assert 10 <= len(found) <= 12
    assert all("'n': 262144" in name for name in found)
    # Of recorded runs by case, since a case that changes has all of its figures changed. Those of column_sum and histogram do:
    # torch's calls become 5 to 40 % faster or slower in both series of a baseline, and atomics differ by where the buffers are.
    cases = {
        (run.id, r.case.key): [one for one in (r.timing or Timing()).figures.values() if one.timer == "cupti"]
        for run in map(shipped_runs.load, shipped_runs.names())
        for r in run.results
    }
    unstable = [case for case, figures in cases.items() if any(stability(one).unstable for one in figures)]
    assert len(unstable) <= 0.01 * sum(map(bool, cases.values()))
    changing = [case for case in unstable if case[0] in ("h200-column_sum", "h200-histogram")]
    assert len(unstable) - len(changing) <= 0.006 * sum(map(bool, cases.values()))


def test_too_few_blocks_have_no_level() -> None:
    assert stability_of_means([1.0] * 9).kind == "unknown"
    assert not levels_differ([1.0, 1.0], [2.0] * 10)
    assert levels_differ(noise(33, 0.7e-3), noise(10, 15e-3))


def with_blocks(like: Figure, means: Floats, first_round: int = 0) -> Figure:
    blocks = tuple(
        Block(size=1, started_s=float(first_round + i), clock_hz=1.98e9, round=first_round + i)
        for i in range(len(means))
    )
    interval = figure_interval(tuple(means), blocks)
    return msgspec.structs.replace(
        like, estimate=interval.estimate, low=interval.low, high=interval.high, samples=tuple(means), blocks=blocks
    )


def planted_run() -> Run:
    """Eager: 0.7 ms, then 11 to 20 ms beside the compiled variant, which takes 29.6 ms there. Two variants beside the first."""
    run = samples.run()
    problem = run.plan.problems[0]
    base = next(r for r in run.results if r.problem == problem and r.variant == run.plan.baseline)
    assert base.timing is not None
    cold = base.timing.device_cold_s
    assert cold is not None
    figures = {
        run.plan.baseline: with_blocks(cold, loaded_eager()),
        "quick": with_blocks(cold, noise(33, 0.35e-3)),
        "between": with_blocks(cold, noise(33, 1.4e-3)),
        "compiled": with_blocks(cold, noise(10, 29.6e-3, 0.05), first_round=33),
    }
    results = tuple(
        msgspec.structs.replace(base, variant=name, outcome=Timing(device_cold_s=figure))
        for name, figure in figures.items()
    )
    plan = msgspec.structs.replace(run.plan, variants=tuple(figures), problems=(problem,))
    return msgspec.structs.replace(run, plan=plan, results=results)


def test_a_baseline_with_two_levels_says_both_and_no_speed_up_contradicts_it() -> None:
    run = planted_run()
    by_name = {row.result.variant: row for row in rows(run, ())}
    eager, compiled, between = by_name[run.plan.baseline], by_name["compiled"], by_name["between"]
    assert eager.figure is not None
    said = str(format_time(eager.figure))
    assert re.fullmatch(r"(6[5-9]|7[0-5])\d\.?\d* µs, then 1\d\.\d ms \(not stable\)", said), said
    assert "unreliable: not stable: " in str(format_badge_of(eager.result, "cold", "burst"))
    # The interval contains both levels.
    assert eager.figure.low is not None
    assert eager.figure.high is not None
    assert eager.figure.low < 0.75e-3 < 11e-3 < eager.figure.high
    # 29.6 ms is more than either level; the ratio is that of shared rounds, and both of its times are said.
    assert compiled.verdict is not None
    assert compiled.verdict.kind == "slower"
    assert compiled.in_shared_rounds is not None
    assert "in the rounds of both: " in str(describe_comparison_with_baseline(compiled))
    # 1.4 ms lies between the levels, so nobody knows which is faster.
    assert between.speed_up is None
    assert "two levels" in str(describe_comparison_with_baseline(between))


def test_an_unstable_time_is_never_the_only_fastest() -> None:
    run = planted_run()
    problem = run.plan.problems[0]
    less = msgspec.structs.replace(run, results=tuple(r for r in run.results if r.variant != "quick"))
    (lead,) = winners(rows(less, ()))
    assert lead.problem == problem
    assert lead.leader is not None
    assert set(lead.names) == {run.plan.baseline, "between"}, "eager may take 0.7 ms or 15 ms"
    assert not record(lead)["decided"]
    (decided,) = winners(rows(run, ()))
    assert decided.names == ("quick",), "it is faster than both levels"


def test_nothing_follows_from_a_time_that_is_not_stable() -> None:
    """No part of a page may give one number of it: no rate, no share, no label of a bar, no ratio, no mean over the sizes."""
    run = planted_run()
    problem = run.plan.problems[0]
    roofs = run.environment.roofs
    by_name = {row.result.variant: row for row in rows(run, roofs)}
    eager, quick = by_name[run.plan.baseline], by_name["quick"]
    assert (eager.unstable, quick.unstable) == (True, False)
    assert (eager.bandwidth_bytes_per_s, eager.rate_flop_per_s, eager.efficiency, eager.above_roof) == (None,) * 4
    assert quick.bandwidth_bytes_per_s
    assert quick.efficiency
    points = {point.variant: point.share for point in placed(run, "", roofs, roofs)}
    assert points == {name: row.efficiency for name, row in by_name.items()}
    for name, row in by_name.items():
        alone = msgspec.structs.replace(run, results=(msgspec.structs.replace(row.result, backend="triton"),))
        assert [one.share for one in comparison_rows([alone], roofs)] == [row.efficiency], name
    labels = {note.y: note.text for note in time_by_variant(run, problem, roofs=roofs).layout.annotations}
    assert labels[format_variant(run.plan.baseline)] == "not stable"
    assert "µs" in labels["quick"]
    of_eager = next(t for t in bandwidth_by_size(run, roofs=roofs).data if run.plan.baseline in str(t.legendgroup))
    assert "not stable" in of_eager.hovertext[0]
    assert "GB/s" not in of_eager.hovertext[0]
    less = msgspec.structs.replace(run, results=tuple(r for r in run.results if r.variant != "quick"))
    assert winners(rows(less, roofs))[0].ratio is None
    on_roofline = {c.variant: c for c in placed(run, "", roofs, roofs)}
    assert on_roofline[run.plan.baseline].share is None
    assert "not stable" in describe_point(on_roofline[run.plan.baseline])
    assert on_roofline["quick"].share
    again = msgspec.structs.replace(run, id="again")
    pairs = {
        pair.after.variant: pair for pair in compare(run, again, variant_a=run.plan.baseline, variant_b="between").pairs
    }
    assert pairs["between"].kind == "unclear"
    assert pairs["between"].reason == NotStable()


def test_a_case_without_a_time_does_not_blame_a_baseline_that_has_one() -> None:
    """On a loaded machine a case may lack its warm time only."""
    run = samples.run()
    problem, base = run.plan.problems[0], run.plan.baseline
    other = next(v for v in run.plan.variants if v != base)

    def told(without: str) -> str:
        results = [
            msgspec.structs.replace(r, outcome=Timing()) if r.variant == without else r
            for r in run.results
            if r.problem == problem and r.variant in (base, other)
        ]
        table = rows(msgspec.structs.replace(run, results=tuple(results)), ())
        return str(describe_comparison_with_baseline(next(row for row in table if row.result.variant == other)))

    assert (told(other), told(base)) == ("not compared", "the baseline has no time")


def test_the_best_overall_is_the_best_by_the_times_that_are_shown() -> None:
    """At the first size eager has two levels, which the table shows without a number, so the mean is over the second one."""
    run = planted_run()
    names = run.plan.baseline, "between"
    first, second = samples.run().plan.problems[:2]
    here = [r for r in run.results if r.variant in names]
    cold = here[0].timing.device_cold_s if here[0].timing else None
    assert cold is not None
    times_s = {run.plan.baseline: 0.6e-3, "between": 0.5e-3}
    there = [
        msgspec.structs.replace(
            r, problem=second, outcome=Timing(device_cold_s=with_blocks(cold, noise(33, times_s[r.variant])))
        )
        for r in here
    ]
    plan = msgspec.structs.replace(run.plan, variants=names, problems=(first, second))
    table = rows(msgspec.structs.replace(run, plan=plan, results=(*here, *there)), ())
    assert table[0].time_s < table[1].time_s / 1.5, "with it, the mean of eager would be the lowest"
    found = summary(table)
    assert found is not None
    assert (found.fastest, found.common, found.problems) == ("between", 1, 2)


def test_two_times_that_changed_together_are_compared_in_their_rounds() -> None:
    like = Figure(estimate=1.0, timer="cupti", launch="graph")
    slowed = np.concatenate([np.ones(40), np.full(40, 1.1)])
    time, other = with_blocks(like, noise(80) * slowed), with_blocks(like, 1.04 * noise(80) * slowed)
    assert stability(time).unstable
    assert not level_decides(time, other)
    assert level_decides(time, with_blocks(like, 1.04 * noise(80), first_round=500))


def agrees(row: Row, base: Row) -> bool:
    """Whether the speed-up is that of the two shown times within all intervals, or the row says in which rounds it holds."""
    figure, to = row.figure, base.figure
    if row.verdict is None or row.verdict.ratio is None or figure is None or to is None or row.speed_up is None:
        return True
    apart = abs(math.log(row.speed_up) - math.log(to.estimate / figure.estimate))
    allowed = math.hypot(*(one.half_width or 0.0 for one in (figure, to, row.verdict.ratio)), ROUNDING)
    said = "in the rounds of both" in str(describe_comparison_with_baseline(row))
    unstable = stability(figure).unstable or stability(to).unstable
    return said if unstable else said != (apart <= allowed)


@pytest.mark.parametrize("name", [*shipped_runs.names(), "planted"])
@pytest.mark.parametrize("headline", ["cold", "warm"])
def test_no_speed_up_contradicts_the_times_beside_it(name: str, headline: str) -> None:
    run = planted_run() if name == "planted" else shipped_runs.load(name)
    table = rows(run, (), headline)  # type: ignore[arg-type]
    bases = {row.result.problem.key: row for row in table if row.is_baseline}
    compared = [row for row in table if not row.is_baseline and row.result.problem.key in bases]
    assert compared
    assert all(agrees(row, bases[row.result.problem.key]) for row in compared)


def test_rounds_that_are_stored_twice_are_no_passes() -> None:
    """With them, the time was a mean over rounds instead of the median of blocks: one percent too long on an H200."""
    blocks = [Block(size=1, started_s=float(i), round=i) for i in range(90)]
    assert not in_passes([*blocks, *blocks[30:]])
    means = [*noise(85), *noise(5, 20.0)]
    twice = [*means, *means[30:]]
    assert figure_interval(twice, [*blocks, *blocks[30:]]).estimate == pytest.approx(float(np.median(twice)))
    assert in_passes([Block(size=1, started_s=0.0, round=i // 10) for i in range(30)])
