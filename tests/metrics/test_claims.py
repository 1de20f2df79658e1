"""Verdicts on claims, with planted results: right, wrong, close to the limit, incomplete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest
import sample_runs as samples

from kernelviz.core.claim import (
    ArithmeticTest,
    Claim,
    ClaimCase,
    ClaimDirection,
    ClaimUnit,
    DataSheetTest,
    MemoryTest,
    NoTest,
    Published,
    Quantity,
    RatioTest,
    RoofTest,
    TimeTest,
)
from kernelviz.core.problem import Problem
from kernelviz.core.reasons import LowerPrecision
from kernelviz.core.result import Failure, PeakMemory, Result, Timing
from kernelviz.metrics import claim_reasons as r
from kernelviz.metrics.claims import Assessment, Evidence, Facts, Scale, assess
from kernelviz.metrics.statistics import Interval
from kernelviz.tables.claims import COLUMNS, record
from kernelviz.text.claim_reasons import describe_assessment, describe_limits
from kernelviz.text.claims import describe_conversion

N = 1 << 20
PROBLEM = Problem(op="add", sizes={"n": N}, dtype="fp32")
OWN, OTHER = (ClaimCase(op="add", variant=v, sizes={"n": N}, dtype="fp32") for v in ("own", "torch_eager"))


def result(variant: str, time_s: float, seed: int = 1) -> Result:
    timed = samples.timed(PROBLEM, variant, 1.0)
    figure, again = (samples.figure(time_s, seed=s) for s in (seed, seed + 50))
    return msgspec.structs.replace(timed, outcome=Timing(device_cold_s=figure, again_s=again))


def wrong(variant: str, time_s: float) -> Result:
    timing = Timing(device_cold_s=samples.figure(time_s))
    failure = Failure(stage="wrong", reasons=(LowerPrecision(precision="fp16"),), timing=timing)
    return msgspec.structs.replace(result(variant, time_s), outcome=failure)


def claim(test: object, value: float, unit: ClaimUnit, direction: ClaimDirection = "about", **more: object) -> Claim:
    published = Published(value=value, unit=unit)
    return Claim(id="c", source="s", setup="x", published=published, direction=direction, test=test, **more)  # type: ignore[arg-type]


def facts(*results: Result, scale: Scale | None = None, apart: bool = False) -> Facts:
    """What is known where these results are of one run, or (`apart`) each of its own."""
    run = samples.run(results, op="add", sizes=[{"n": N}], dtype="fp32", shares={})
    runs = [msgspec.structs.replace(run, id=f"run {i}") if apart else run for i in range(len(results))]
    keys = {"own": OWN.key, "torch_eager": OTHER.key}
    evidence: Mapping[str, Evidence] = {keys[x.variant]: Evidence(of, x) for of, x in zip(runs, results, strict=True)}
    return Facts(data_sheet=lambda test: 2e12, roof=lambda test: None, scale=scale, results=evidence)


def said(one: Assessment) -> str:
    return str(describe_assessment(one))


@pytest.mark.parametrize(
    ("direction", "time_s", "verdict"),
    [
        ("about", 1.0e-3, "holds"),
        ("about", 1.05e-3, "holds"),
        ("about", 1.3e-3, "does not hold"),
        ("about", 0.7e-3, "does not hold"),
        ("at_most", 0.2e-3, "holds"),
        ("at_most", 1.3e-3, "does not hold"),
        ("at_least", 1.3e-3, "holds"),
        ("at_least", 0.7e-3, "does not hold"),
    ],
)
def test_a_time_is_compared_in_the_direction_of_the_claim(
    direction: ClaimDirection, time_s: float, verdict: str
) -> None:
    one = assess(claim(TimeTest(case=OWN), 1e-3, "s", direction), facts(result("own", time_s)))
    assert one.verdict == verdict
    assert one.measured is not None
    assert one.measured.estimate == pytest.approx(time_s, rel=0.01)
    assert "the published 1.0 ms" in said(one)


def test_an_interval_over_the_limit_is_unclear_and_one_without_blocks_is_not_compared() -> None:
    of_claim = claim(TimeTest(case=OWN), 1e-3, "s", "at_most")
    at_limit = result("own", 1e-3)
    wide = msgspec.structs.replace(at_limit.timing.device_cold_s, low=1e-3, high=1.2e-3)  # type: ignore[union-attr,type-var]
    straddling = msgspec.structs.replace(at_limit, outcome=Timing(device_cold_s=wide))
    one = assess(of_claim, facts(straddling))
    assert (one.verdict, type(one.reason)) == ("unclear", r.Straddling)
    bare = msgspec.structs.replace(wide, low=None, high=None, samples=None, blocks=None)  # type: ignore[type-var]
    two = assess(of_claim, facts(msgspec.structs.replace(at_limit, outcome=Timing(device_cold_s=bare))))
    assert (two.verdict, type(two.reason)) == ("unclear", r.WithoutInterval)


def test_a_rate_follows_from_the_cost_of_the_problem() -> None:
    ran = result("own", 1e-3)
    assert ran.cost is not None
    for unit, amount in (("B/s", ran.cost.moved_bytes), ("flop/s", ran.cost.work_flop), ("1/s", N)):
        one = assess(claim(TimeTest(case=OWN), amount / 1e-3, unit), facts(ran))  # type: ignore[arg-type]
        assert one.verdict == "holds", unit
        assert one.ratio is not None
        assert one.ratio.low is not None
        assert one.ratio.low <= one.ratio.estimate <= (one.ratio.high or 0)


def test_a_number_of_another_card_is_converted_before_it_is_compared() -> None:
    scale = Scale("bandwidth", "A", "B", 0.5)
    one = assess(claim(TimeTest(case=OWN), 2e-3, "s"), facts(result("own", 1e-3), scale=scale))
    assert (one.verdict, one.expected) == ("holds", 1e-3)
    assert assess(claim(TimeTest(case=OWN), 2e-3, "s"), facts(result("own", 1e-3))).verdict == "does not hold"
    cells = {column.name: column.single(one) for column in COLUMNS}
    assert cells["published"] == "about 2.0 ms (1.00 ms on this card)"
    assert "published on this card" in next(c.heading for c in COLUMNS if c.name == "ratio")
    assert float(cells["ratio"]) == pytest.approx(1.0, rel=0.01)
    assert str(describe_conversion(one)) == (
        "1.00 ms (the published 2.0 ms times 0.5, the ratio of memory bandwidth in the data sheets of A and B)"
    )
    assert record(one)["scale_factor"] == 0.5


def test_a_number_that_cannot_be_converted_is_unknown_on_this_card() -> None:
    scaled = claim(TimeTest(case=OWN), 2e-3, "s", scaled_by="bandwidth", published_on="A")
    one = assess(scaled, replace(facts(result("own", 1e-3)), device="B"))
    cells = {column.name: column.single(one) for column in COLUMNS}
    assert cells["published"] == "about 2.0 ms (unknown on this card)"
    assert cells["ratio"] == "–"
    assert "data sheets of both cards" in str(describe_conversion(one))
    assert (record(one)["expected"], record(one)["ratio"]) == (None, None)
    assert (one.verdict, one.reason) == ("cannot be tested here", r.NoDataSheet("B"))
    same = assess(scaled, replace(facts(result("own", 1e-3)), device="A"))
    assert (same.unconverted, same.verdict) == (False, "does not hold"), "it was published on this card"


@pytest.mark.parametrize(
    ("own_s", "by_number", "text"),
    [
        (1e-3, "holds", "; the claim would hold by this number, but the result of own is wrong"),
        (2e-3, "does not hold", "; the claim would not hold by this number, and the result of own is wrong"),
    ],
)
def test_a_wrong_result_says_what_its_time_alone_would_give(own_s: float, by_number: str, text: str) -> None:
    scale = Scale("bandwidth", "A", "B", 0.5)
    one = assess(claim(TimeTest(case=OWN), 2e-3, "s"), facts(wrong("own", own_s), scale=scale))
    assert (one.verdict, one.verdict_by_number) == ("wrong result", by_number)
    assert "of 1.00 ms (the published 2.0 ms scaled to this card's memory bandwidth)" in said(one) or own_s == 2e-3
    assert text in said(one)
    assert str(describe_limits(one)).startswith("with a right result, the claim holds from 900 µs to 1.10 ms")


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("own_s", "verdict"), [(0.5e-3, "holds"), (0.6e-3, "does not hold"), (1.0e-3, "does not hold")]
)
def test_a_gain_holds_only_if_it_is_reached(own_s: float, verdict: str, apart: bool) -> None:
    test = RatioTest(case=OWN, over=(OTHER,))
    one = assess(
        claim(test, 2.0, "x", "at_least"), facts(result("own", own_s), result("torch_eager", 1e-3, 9), apart=apart)
    )
    assert one.verdict == verdict
    assert one.measured is not None
    assert one.measured.estimate == pytest.approx(1e-3 / own_s, rel=0.01)
    assert one.fastest == "torch_eager"


def test_no_gain_does_not_meet_a_small_claimed_gain() -> None:
    """A tolerance of 10 % of the whole factor would let no difference at all pass as a gain of 6 %."""
    test = RatioTest(case=OWN, over=(OTHER,))
    one = assess(claim(test, 1.06, "x", "at_least"), facts(result("own", 1e-3), result("torch_eager", 1e-3, 9)))
    assert one.verdict == "does not hold"


@pytest.mark.parametrize(
    ("own_s", "verdict", "kind"),
    [(0.9e-3, "holds", "faster"), (1e-3, "does not hold", "same"), (1.2e-3, "does not hold", "slower")],
)
def test_a_claim_without_a_number_takes_the_verdict_on_both_times(own_s: float, verdict: str, kind: str) -> None:
    test = RatioTest(case=OWN, over=(OTHER,))
    one = assess(claim(test, 1.0, "x", "above"), facts(result("own", own_s), result("torch_eager", 1e-3, 9)))
    assert one.verdict == verdict
    assert isinstance(one.reason, r.Decided)
    assert one.reason.kind == kind


def test_a_wrong_variant_shows_the_ratio_of_its_time_and_never_holds() -> None:
    test = RatioTest(case=OWN, over=(OTHER,))
    one = assess(claim(test, 2.0, "x", "at_least"), facts(wrong("own", 0.1e-3), result("torch_eager", 1e-3)))
    assert one.verdict == "wrong result"
    assert one.measured is not None
    assert one.measured.estimate == pytest.approx(10, rel=0.01)
    assert "as fast as torch_eager (published 2.0×)" in said(one)
    assert "the result of own is wrong" in said(one)
    assert "fp16" in said(one), "the reason of the gate"


def test_what_failed_or_is_missing_has_no_number() -> None:
    test = RatioTest(case=OWN, over=(OTHER,))
    of_claim = claim(test, 2.0, "x", "at_least")
    crashed = msgspec.structs.replace(result("own", 1.0), outcome=Failure(stage="crash", message="boom"))
    one = assess(of_claim, facts(crashed, result("torch_eager", 1e-3)))
    assert (one.verdict, one.measured) == ("cannot be tested here", None)
    assert "boom" in said(one)
    two = assess(of_claim, facts(result("own", 1e-3)))
    assert (two.verdict, two.reason) == ("not measured yet", r.NotMeasured(1))
    loop = claim(TimeTest(case=msgspec.structs.replace(OWN, figure="loop")), 1.0, "s")
    run = facts(result("own", 1e-3))
    (evidence,) = run.results.values()
    three = assess(loop, replace(run, results={loop.cases[0].key: evidence}))
    assert three.verdict == "not measured yet", "the run has no such figure"


def test_memory_counts_with_or_without_the_inputs() -> None:
    ran = msgspec.structs.replace(result("own", 1e-3), memory=PeakMemory(bind_bytes=0, call_bytes=4 * N))
    with_inputs = assess(claim(MemoryTest(case=OWN), 12.0 * N, "B"), facts(ran))
    beside = assess(claim(MemoryTest(case=OWN, with_inputs=False), 12.0 * N, "B"), facts(ran))
    assert (with_inputs.verdict, beside.verdict) == ("holds", "does not hold")
    assert isinstance(assess(claim(MemoryTest(case=OWN), 1.0, "B"), facts(result("own", 1e-3))).reason, r.MemoryUnknown)


def test_arithmetic_data_sheets_roofs_and_rows_without_a_test() -> None:
    test = ArithmeticTest(product=(Quantity(name="a", value=6.0),), over=(Quantity(name="b", value=2.0),))
    assert assess(claim(test, 3.0, "B"), facts()).verdict == "holds"
    assert assess(claim(test, 4.0, "B"), facts()).verdict == "does not hold"
    sheet = DataSheetTest(card="x")
    assert assess(claim(sheet, 2e12, "B/s"), facts()).verdict == "holds"
    unknown = replace(facts(), data_sheet=lambda test: None)
    assert isinstance(assess(claim(sheet, 2e12, "B/s"), unknown).reason, r.NoDataSheet)
    assert isinstance(assess(claim(RoofTest(), 2e12, "B/s"), facts()).reason, r.NotCalibrated)
    measured = replace(facts(), roof=lambda test: Interval(1.0e12, 0.99e12, 1.01e12))
    assert assess(claim(RoofTest(), 2e12, "B/s"), measured).verdict == "does not hold"
    none = assess(claim(NoTest(takes="a second machine"), 1.0, "x"), facts())
    assert (none.verdict, said(none)) == ("cannot be tested here", "It would take a second machine.")
    lacking = replace(facts(), obstacle=r.NeedsGpus(2))
    assert said(assess(claim(RoofTest(), 1.0, "B/s"), lacking)) == "It needs 2 GPUs."


def with_interval(one: Result, low_s: float, high_s: float) -> Result:
    figure = msgspec.structs.replace(one.timing.device_cold_s, low=low_s, high=high_s)  # type: ignore[union-attr,type-var]
    return msgspec.structs.replace(one, outcome=Timing(device_cold_s=figure, again_s=figure))


def test_a_disturbed_time_decides_nothing_however_far_it_is_from_the_published_one() -> None:
    """As on a busy processor: 7.1 ms (1.5 to 13 ms) where 0.12 ms was published."""
    of_claim = claim(TimeTest(case=OWN), 0.12e-3, "s", "at_most")
    one = assess(of_claim, facts(with_interval(result("own", 7.1e-3), 1.5e-3, 13.3e-3)))
    assert (one.verdict, type(one.reason)) == ("unclear", r.TooWide)
    assert "disturbed" in said(one)
    assert assess(of_claim, facts(with_interval(result("own", 7.1e-3), 7.0e-3, 7.2e-3))).verdict == "does not hold"


@pytest.mark.parametrize("processes", [0, 2])
def test_a_suspect_time_is_unclear_with_the_reason(processes: int) -> None:
    shared = result("own", 0.5e-3)
    assert shared.conditions is not None
    shared = msgspec.structs.replace(
        shared, conditions=msgspec.structs.replace(shared.conditions, other_processes=processes)
    )
    verdicts = []
    for test, value, unit, results in (
        (TimeTest(case=OWN), 1e-3, "s", (shared,)),
        (RatioTest(case=OWN, over=(OTHER,)), 4.0, "x", (shared, result("torch_eager", 1e-3, 9))),
        (RatioTest(case=OWN, over=(OTHER,)), 1.5, "x", (shared, result("torch_eager", 1e-3, 9))),
    ):
        one = assess(claim(test, value, unit, "at_least"), facts(*results))  # type: ignore[arg-type]
        verdicts.append(one.verdict)
        if processes:
            assert "the time of own is unreliable (2 other processes)" in said(one).lower()
    assert verdicts == (["unclear"] * 3 if processes else ["does not hold", "does not hold", "holds"])


def test_no_claim_fails_while_its_interval_contains_the_published_number() -> None:
    directions: tuple[ClaimDirection, ...] = ("about", "at_least", "at_most")
    for direction in directions:
        for low, high in ((0.8, 1.1), (0.99, 1.3), (0.9, 1.0), (1.0, 1.01), (0.85, 1.0)):
            ran = with_interval(result("own", (low + high) / 2 * 1e-3), low * 1e-3, high * 1e-3)
            assert assess(claim(TimeTest(case=OWN), 1e-3, "s", direction), facts(ran)).verdict in ("holds", "unclear")


def test_a_missed_number_says_the_limit_and_that_it_is_of_another_card() -> None:
    of_claim = claim(TimeTest(case=OWN), 1e-3, "s", published_on="NVIDIA H100 80GB HBM3")
    one = assess(of_claim, replace(facts(result("own", 0.7e-3)), device="NVIDIA H200"))
    assert "the claim holds from 900 µs to 1.1 ms (tolerance: 10 %)" in said(one).replace("1.10 ms", "1.1 ms")
    assert "of NVIDIA H100 80GB HBM3, and this one of NVIDIA H200, which is faster than published" in said(one)
    same = assess(of_claim, replace(facts(result("own", 0.7e-3)), device="NVIDIA H100 80GB HBM3"))
    assert "NVIDIA H100" not in said(same)
