"""The fastest variant at each size: by the verdict rule, never a wrong result, and through the baseline without shared rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pytest
import sample_runs as samples

from kernelviz.core.problem import Problem
from kernelviz.core.result import Figure, Result, Timing
from kernelviz.core.run import Run
from kernelviz.metrics.rows import Row, rows
from kernelviz.metrics.statistics import Floats
from kernelviz.metrics.verdict_reasons import ByBaseline, NoSharedRounds
from kernelviz.metrics.verdicts import noise_floor, verdict
from kernelviz.metrics.winner import Winner, compared, mistakes, never_winning, winners
from kernelviz.text.winners import by_mistake, describe_mistake, describe_winners, regions, strips

Times = Mapping[str, float]


def figure(time_s: float, seed: int, *, first_round: int = 0, blocks: int = 24, noise: float = 0.0005) -> Figure:
    rng = np.random.default_rng(seed)
    taken = [float(t) for t in time_s * (1 + rng.normal(0, noise, blocks))]
    made = samples.figure(time_s, blocks=blocks, size=1).blocks
    assert made is not None
    moved = tuple(msgspec.structs.replace(b, round=i + first_round) for i, b in enumerate(made))
    return Figure(estimate=float(np.median(taken)), low=min(taken), high=max(taken), samples=tuple(taken), blocks=moved)


def of_samples(times_s: Floats) -> Figure:
    """A figure of these times, one a round."""
    made, taken = figure(1.0, 0, blocks=len(times_s)), tuple(map(float, times_s))
    return msgspec.structs.replace(
        made, estimate=float(np.median(times_s)), low=min(taken), high=max(taken), samples=taken
    )


def result(
    problem: Problem, variant: str, time_s: float, *, rounds: Sequence[int] = (0,), noise: float = 0.0005
) -> Result:
    """`rounds`: where each series of 24 begins; the baseline is in all of them."""
    seed = sum(variant.encode()) + sum(problem.sizes.values())
    parts = [figure(time_s, seed + start, first_round=start, noise=noise) for start in rounds]
    both = msgspec.structs.replace(
        parts[0],
        samples=tuple(s for p in parts for s in p.samples or ()),
        blocks=tuple(b for p in parts for b in p.blocks or ()),
    )
    return msgspec.structs.replace(samples.timed(problem, variant, 0.5), outcome=Timing(device_cold_s=both))


def run_of(times: Mapping[tuple[int, int], Times], *, late: Sequence[str] = (), noise: float = 0.0005) -> Run:
    """A softmax run; `late` variants are measured in rounds of their own with the baseline."""
    made = []
    for problem in samples.problems("softmax", [{"m": m, "n": n} for m, n in times]):
        for variant, time_s in times[problem.sizes["m"], problem.sizes["n"]].items():
            rounds = (0, 1000) if variant == "torch_eager" else (1000,) if variant in late else (0,)
            made.append(result(problem, variant, time_s, rounds=rounds, noise=noise))
    return samples.run(made, op="softmax", sizes=[{"m": m, "n": n} for m, n in times], shares={})


def table(run: Run) -> tuple[Row, ...]:
    return rows(run, ())


def lead(run: Run) -> list[tuple[str, ...]]:
    return [w.names for w in winners(table(run))]


def said(run: Run, axis: str | None = None) -> list[str]:
    return describe_winners(table(run), winners(table(run)), axis, str, str)


def sweep(*leaders: str, others: Times | None = None) -> Run:
    """One axis: at each size the named ones (a|b: both) take 10 us, torch_eager 20, others 15."""
    at = {}
    for i, names in enumerate(leaders):
        both = names.split("|")
        at[16, 2 ** (i + 7)] = {
            "torch_eager": 2e-5,
            "triton_online": 1.5e-5,
            "triton_persistent": 1.5e-5,
        } | dict.fromkeys(both, 1e-5)
    return run_of(at)


def test_the_fastest_leads_alone_where_the_interval_clears_the_floor_and_not_below_it() -> None:
    run = run_of({(16, 128): {"torch_eager": 2e-5, "triton_online": 1e-5, "triton_persistent": 1.02e-5},
                  (16, 256): {"torch_eager": 2e-5, "triton_online": 1e-5, "triton_persistent": 1.001e-5}})  # fmt: skip
    first, second = winners(table(run))
    assert first.names == ("triton_online",)
    assert first.second is not None
    assert first.second.result.variant == "triton_persistent"
    assert first.ratio is not None
    assert abs(first.ratio - 1.02) < 0.002
    assert set(second.names) == {"triton_online", "triton_persistent"}
    assert second.verdict is not None
    assert second.verdict.kind == "same"


def test_a_wrong_variant_never_wins_not_even_where_it_is_right() -> None:
    made = winners(table(samples.mixed()))
    assert all("triton_block_per_row" not in w.names for w in made)
    run = run_of({(16, n): {"torch_eager": 2e-5, "triton_online": 1e-5} for n in (128, 256)})
    wrong = samples.failed(run.results[1].problem, "triton_online", "wrong")
    run = msgspec.structs.replace(run, results=(run.results[0], wrong, *run.results[2:]))
    assert lead(run) == [("torch_eager",), ("torch_eager",)]
    assert said(run)[-1] == "Excluded because of a wrong result: triton_online."


def test_what_excludes_a_variant_is_said_by_what_it_did() -> None:
    sizes = [{"n": 2**20}, {"n": 2**22}]
    first, second = samples.problems("add", sizes, "fp32")
    made = [samples.timed(p, "torch_eager", 0.5, again=True) for p in (first, second)]
    made += [samples.failed(first, "a", "wrong"), samples.failed(second, "b", "impossible")]
    made += [samples.failed(first, "c", "wrong"), samples.failed(second, "c", "impossible")]
    run = samples.run(made, op="add", sizes=sizes, dtype="fp32", shares={})
    assert said(run)[-3:] == [
        "Excluded because of a wrong result: a.",
        "Excluded because of an impossible time: b.",
        "Excluded because of a wrong result and an impossible time: c.",
    ]
    assert set(never_winning(table(run))) == {"a", "b", "c"}
    assert [describe_mistake(stages) for stages in by_mistake(mistakes(table(run)))] == [
        "computed a wrong result",
        "reported an impossible time",
        "computed a wrong result and reported an impossible time",
    ]


def test_a_case_that_does_not_fit_costs_no_other_size() -> None:
    run = run_of({(16, n): {"torch_eager": 2e-5, "triton_online": 1e-5} for n in (128, 256)})
    gone = samples.failed(run.results[3].problem, "triton_online", "out_of_memory")
    assert lead(msgspec.structs.replace(run, results=(*run.results[:3], gone))) == [
        ("triton_online",),
        ("torch_eager",),
    ]


def test_variants_without_shared_rounds_are_compared_by_way_of_the_baseline_at_twice_the_floor() -> None:
    times = {"torch_eager": 2e-5, "torch_compile": 1e-5, "triton_online": 1.05e-5}
    (far,) = winners(table(run_of({(16, 128): times}, late=("torch_compile",))))
    assert far.names == ("torch_compile",)
    assert far.verdict is not None
    assert isinstance(far.verdict.reason, ByBaseline)
    assert far.ratio is not None
    assert abs(far.ratio - 1.05) < 0.003
    near = times | {"triton_online": 1.008e-5}  # clears the floor of 0.5 %, not twice that
    (undecided,) = winners(table(run_of({(16, 128): near}, late=("torch_compile",))))
    assert (undecided.tied, undecided.unclear, undecided.outcome) == (("triton_online",), (), "tied")
    (shared,) = winners(table(run_of({(16, 128): near})))
    assert shared.names == ("torch_compile",)


def test_the_verdict_against_the_baseline_is_that_of_the_table() -> None:
    """Also where the interval ends at the noise floor; some of these pairs were "faster" in the table and "unclear" here."""
    opposite = {"faster": "slower", "slower": "faster"}
    kinds = set()
    for seed in range(60):
        base, other = figure(1e-4, 2 * seed, noise=0.003), figure(0.9935e-4, 2 * seed + 1, noise=0.003)
        shown, leading = verdict(other, base), compared(base, other, base, None)
        assert leading.kind == opposite.get(shown.kind, shown.kind)
        assert leading.ratio is not None
        assert leading.ratio.inverse().low == pytest.approx(shown.ratio.low if shown.ratio else None)
        kinds.add(shown.kind)
    assert kinds == {"faster", "unclear"}


def test_a_speed_up_that_contradicts_the_times_is_none() -> None:
    """Beside much other work, the median of the ratios and the medians of the times can disagree on which variant is faster."""
    rng = np.random.default_rng(24)
    run = run_of({(64, 1024): {"torch_eager": 1e-4, "triton_online": 1e-4}})
    noisy = [
        msgspec.structs.replace(r, outcome=Timing(device_cold_s=of_samples(1e-4 * rng.lognormal(0, 0.4, 24))))
        for r in run.results
    ]
    made = table(msgspec.structs.replace(run, results=tuple(noisy)))
    base, other = sorted(made, key=lambda row: not row.is_baseline)
    assert other.verdict is not None
    assert other.verdict.ratio is not None
    assert (other.verdict.kind, other.verdict.ratio.estimate > 1.04, other.time_s < 0.93 * base.time_s) == (
        "unclear", True, True,
    )  # fmt: skip
    assert other.speed_up is None
    (winner,) = winners(made)
    assert winner.leader is other
    assert (winner.outcome, winner.ratio) == ("unclear", None)


def test_without_samples_nobody_is_told_apart() -> None:
    bare = Figure(estimate=1e-6)
    assert compared(bare, bare, None, None).kind == "unclear"
    assert compared(bare, bare, bare, None).reason == NoSharedRounds(with_baseline=False)
    assert noise_floor(bare, None) == 0.005


def test_shared_rounds_overrule_the_order_of_estimates() -> None:
    run = run_of({(16, 128): {"torch_eager": 2e-5, "triton_online": 1e-5, "triton_persistent": 1.05e-5}})
    swapped = []
    for r in run.results:
        timing = r.timing
        assert timing is not None
        assert timing.device_cold_s is not None
        cold = timing.device_cold_s
        if r.variant == "triton_persistent":
            cold = msgspec.structs.replace(cold, estimate=9e-6)
        swapped.append(msgspec.structs.replace(r, outcome=Timing(device_cold_s=cold)))
    assert lead(msgspec.structs.replace(run, results=tuple(swapped))) == [("triton_online",)]


def test_the_sentence_says_who_leads_up_to_where() -> None:
    run = sweep("triton_online", "triton_online", "triton_persistent", "triton_persistent|triton_online")
    assert said(run) == ["triton_online is the fastest up to n = 256, then triton_persistent (tied at 1 of 2 sizes)."]
    assert said(sweep("triton_online", "triton_online")) == ["triton_online is the fastest at both sizes."]
    (both,) = said(sweep("triton_online|triton_persistent", "triton_online|triton_persistent"))
    assert both in (
        "triton_online and triton_persistent are the fastest at both sizes (tied).",
        "triton_persistent and triton_online are the fastest at both sizes (tied).",
    )
    several = said(
        sweep("triton_online|triton_persistent", "triton_online|triton_persistent|torch_eager", "triton_block_per_row")
    )
    assert several[0].endswith(" is the fastest up to n = 256 (tied at every size), then triton_block_per_row.")


def test_an_unclear_size_is_not_a_tie() -> None:
    """Noise of 15 % hides a difference of 5 %: nothing says that the two are equally fast."""
    times = {"torch_eager": 4e-5, "triton_online": 1e-5, "triton_persistent": 1.05e-5}
    run = run_of({(16, 128): times, (16, 256): times}, noise=0.15)
    assert [(w.outcome, w.tied, len(w.names)) for w in winners(table(run))] == [("unclear", (), 2)] * 2
    assert "tie" not in said(run)[0]
    assert said(run)[0].endswith("(unclear which).")
    half = {"torch_eager": 4e-5, "triton_online": 1e-5, "triton_persistent": 4e-5}
    assert said(run_of({(16, 128): times, (16, 256): half}, noise=0.15)) == [
        "triton_online may be the fastest at both sizes (unclear at 1 of 2 sizes)."
    ]
    other = {"torch_eager": 4e-5, "triton_online": 1.02e-5, "triton_persistent": 1e-5}
    first = said(run_of({(16, 128): half, (16, 256): half, (16, 512): other}, noise=0.15))
    assert first == [
        "triton_online is the fastest up to n = 256, then triton_persistent or triton_online (unclear which)."
    ], "it is not called the fastest at a size at which another one leads"
    again = said(run_of({(16, 128): half, (16, 256): other, (16, 512): times}, noise=0.15))
    assert len(again[0].split(", then ")) == 2, "the unclear sizes are one region, though another one leads at each"
    mixed = run_of({(16, 128): times | {"cuda_row": 1e-5}}, late=("triton_persistent",), noise=0.0005)
    assert [w.outcome for w in winners(table(mixed))] == ["tied"]


def test_a_sweep_has_as_few_regions_as_the_verdicts_allow() -> None:
    problem = samples.problems("softmax", [{"m": 16, "n": 2**e} for e in range(7, 12)])

    def one(i: int, *names: str) -> Winner:
        made = (
            rows(samples.run([samples.timed(problem[i], names[0], 0.5)], op="softmax", shares={}), ())
            if names
            else (None,)
        )
        return Winner(problem[i], made[0], None, None, names[1:], (), ())

    strip = [one(0, "a", "b"), one(1, "b", "c"), one(2, "b"), one(3, "c", "a"), one(4)]
    assert [(r.variant, len(r.winners), r.tied) for r in regions(strip)] == [
        ("b", 3, 2),
        ("c", 1, 1),
        (None, 1, 0),
    ]
    assert regions([]) == []
    assert [r.variant for r in regions([one(0), one(1), one(2, "a")])] == [None, "a"]


def test_two_axes_have_a_strip_for_each_size_of_the_other_and_alike_ones_share_a_line() -> None:
    fast = {"torch_eager": 2e-5, "triton_online": 1e-5}
    run = run_of({(m, n): (fast if n < 256 or m > 64 else {"torch_eager": 1e-5, "triton_online": 2e-5})
                  for m in (16, 64, 256) for n in (128, 256)})  # fmt: skip
    made = strips(winners(table(run)), "n")
    assert list(made) == [(("m", 16),), (("m", 64),), (("m", 256),)]
    assert said(run, "n") == [
        "Of 6 sizes: triton_online is fastest at 4, torch_eager is fastest at 2.",
        "m = 16, 64: triton_online is the fastest up to n = 128, then torch_eager.",
        "m = 256: triton_online is the fastest at both sizes.",
    ]
    assert list(strips(winners(table(run)), "m")) == [(("n", 128),), (("n", 256),)]


def test_nobody_has_a_correct_time() -> None:
    run = samples.run(
        [
            samples.failed(p, "torch_eager", "compile")
            for p in samples.problems("softmax", [{"m": 1, "n": 2}, {"m": 1, "n": 4}])
        ],
        op="softmax",
        shares={},
    )
    assert said(run) == ["no correct time at any size."]
    assert describe_winners((), (), None, str, str) == []
