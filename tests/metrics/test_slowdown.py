"""Why B is slower: planted spills, another clock, a larger error, a refusal, a fallback, and a pair in which all is equal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import compared_runs as runs
from msgspec.structs import replace

from kernelviz.core import Cost, Result, Run
from kernelviz.core.code_changes import CodeChanges, SpillsChange
from kernelviz.core.code_facts import CaseFacts, KernelOfCase
from kernelviz.core.machine_code import Access, CodeFacts, KernelFacts, Occupancy, WarpRole
from kernelviz.core.notes import StaleTuning
from kernelviz.core.result import Failure
from kernelviz.formats import shipped_runs
from kernelviz.metrics.code_changes import ranked
from kernelviz.metrics.comparison import Comparison, Pair, compare
from kernelviz.metrics.slowdown import Slowdown, is_slower, slowdown
from kernelviz.metrics.slowdown_findings import (
    LargerError,
    LostInCode,
    LowerClock,
    LowerOccupancy,
    MoreProcesses,
    NoCorrectTime,
    OtherConfiguration,
    OtherEnvironment,
    OtherGrid,
    OtherKernels,
    OtherSource,
    SlowedDown,
    TopicFacts,
    TuningNotUsed,
    UnusualKernel,
)
from kernelviz.metrics.speedup import is_faster, speedup
from kernelviz.text.slowdown import (
    describe_how,
    describe_likeliest,
    describe_slowdown,
    describe_topic,
    describe_topics_of,
)

VARIANT = "triton_persistent"


def changed(of: Run, **fields: Any) -> Run:
    """The run with these fields of the results of the slow variant."""
    results = tuple(replace(r, **fields) if r.variant == VARIANT else r for r in of.results)
    return replace(of, results=results)


def worst(b: Run) -> tuple[Comparison, Pair]:
    compared = compare(runs.before(), b)
    pair = compared.pairs[0]
    assert is_slower(pair)
    return compared, pair


def status(slow: Slowdown) -> Mapping[str, str]:
    return {facts.topic: facts.status for facts in slow.topics}


def topic(slow: Slowdown, name: str) -> TopicFacts:
    return next(facts for facts in slow.topics if facts.topic == name)


def facts_of(result: Result, *, registers: int, spills: int, width_bytes: int, warps: int) -> CaseFacts:
    """A kernel without a loop that loads and stores, by so many bytes a thread."""
    accesses = tuple(Access(space="global", kind=kind, width_bytes=width_bytes, count=2) for kind in ("load", "store"))
    local = (Access(space="local", kind="load", width_bytes=4, count=spills),) if spills else ()
    whole = CodeFacts(instructions=100, classes={"global_memory": 4, "integer": 96}, accesses=accesses + local)
    kernel = KernelFacts(
        name=result.kernels[0].name,
        architecture="sm_90",
        registers=registers,
        spill_loads=spills,
        code_bytes=1600,
        load_passes=1,
        whole=whole,
        roles=(WarpRole(entry=0, main_loop=None, body=whole),),
    )
    limit = "registers" if warps < 64 else "threads"
    resident = Occupancy(blocks=warps // 8, warps=warps, fraction=warps / 64, limits={}, limited_by=(limit,))
    one = KernelOfCase(
        facts=kernel, digest=f"{registers} {spills} {width_bytes}", threads=256, shared_bytes=0, occupancy=resident
    )
    return CaseFacts(result=result, kernels=(one,))


def planted(pair: Pair, **of_b: int) -> CodeChanges:
    usual = {"registers": 32, "spills": 0, "width_bytes": 16, "warps": 64}
    return ranked(facts_of(pair.before, **usual), facts_of(pair.after, **{**usual, **of_b}), "a")


def test_a_pair_in_which_all_is_equal_has_no_reason() -> None:
    # Without a digest it is not known to be identical code, which would have no verdict.
    compared, pair = worst(changed(runs.after({VARIANT: 1.05}), source_digest=None))
    slow = slowdown(compared, pair, planted(pair))
    assert slow.reasons == ()
    assert set(status(slow).values()) == {"same"}
    assert slow.likeliest is None
    assert str(describe_likeliest(slow)) == "Nothing that is known of both sides explains it."
    assert str(describe_slowdown(slow)) == "the reason is not known"
    assert str(describe_topics_of([slow])) == "1 case of B is slower. No likely reason is known."


def test_kernels_that_differ_are_named_where_their_machine_code_is_not_known() -> None:
    """It said “Nothing that is known of both sides explains it.” above “≠ Kernels: …”."""
    run = shipped_runs.load("h200-rmsnorm")
    compared = compare(run, run, variant_a="torch_eager", variant_b="cuda_async")
    a = CaseFacts(result=compared.pairs[0].before, reason="library")
    b = CaseFacts(result=compared.pairs[0].after, reason="not_here")
    fast = speedup(compared, compared.pairs[0], ranked(a, b, "b"))
    assert fast.likeliest is None
    assert str(describe_likeliest(fast)) == (
        "What differs: kernels; why B is faster is not known, because the machine code of a side is not here."
    )


def test_another_device_is_named_as_the_reason_and_not_as_an_environment() -> None:
    a, b = (shipped_runs.load(f"{device}-rmsnorm") for device in ("h200", "h100-80gb-hbm3"))
    compared = compare(a, b)
    slow = [slowdown(compared, pair) for pair in compared.pairs if is_slower(pair)]
    told = str(describe_topics_of(slow))
    assert "another device (" in told
    assert not any(word in told for word in ("environment", "precondition"))


def test_planted_spills_are_named_before_what_follows_from_them() -> None:
    compared, pair = worst(runs.after({VARIANT: 1.05}))
    slow = slowdown(compared, pair, planted(pair, registers=255, spills=40, warps=16))
    first = slow.reasons[0]
    assert isinstance(first, LostInCode)
    assert isinstance(first.change, SpillsChange)
    assert (status(slow)["spills"], status(slow)["occupancy"]) == ("differs", "differs")
    text = str(describe_slowdown(slow))
    assert text.startswith("accesses to local memory (spills) 0 → 40; ")
    assert "limit: registers" in str(describe_slowdown(slow, most=9))
    # In B's favour, fewer spills are no reason.
    back = slowdown(
        compared,
        pair,
        ranked(
            facts_of(pair.before, registers=255, spills=40, width_bytes=16, warps=16),
            facts_of(pair.after, registers=32, spills=0, width_bytes=16, warps=64),
            "a",
        ),
    )
    assert (status(back)["spills"], status(back)["occupancy"]) == ("same", "same")


def test_narrower_accesses_are_a_lost_precondition() -> None:
    compared, pair = worst(runs.after({VARIANT: 1.05}))
    slow = slowdown(compared, pair, planted(pair, width_bytes=4))
    assert status(slow)["precondition"] == "differs"
    assert str(describe_likeliest(slow)) == "The likeliest reason: 4-byte loads and stores replaced 16-byte ones."


def test_another_clock_is_named_with_what_slowed_the_device_down() -> None:
    b = runs.after({VARIANT: 1.05})
    results = []
    for result in b.results:
        figure = result.timing.device_cold_s if result.timing else None
        assert figure is not None
        assert figure.blocks is not None
        blocks = tuple(replace(block, clock_hz=1.5e9) for block in figure.blocks)
        outcome = replace(result.outcome, device_cold_s=replace(figure, blocks=blocks))
        conditions = replace(result.conditions, event_reasons=("power cap", "idle"), other_processes=2)
        results.append(replace(result, outcome=outcome, conditions=conditions))
    compared, pair = worst(replace(b, results=tuple(results)))
    slow = slowdown(compared, pair, planted(pair))
    facts = topic(slow, "clock").findings
    assert [(f.a_hz, f.b_hz) for f in facts if isinstance(f, LowerClock)] == [(1.98e9, 1.5e9)]
    assert SlowedDown(("power cap",)) in facts
    assert MoreProcesses(0, 2) in facts
    assert "SM clock 1980 MHz → 1500 MHz" in str(describe_slowdown(slow, most=9))


def test_an_error_that_grew_is_shown_last() -> None:
    b = runs.after({VARIANT: 1.05})
    accuracy = b.results[0].accuracy
    assert accuracy is not None
    compared, pair = worst(changed(b, accuracy=replace(accuracy, relative_l2=0.1, worst_of_bound=0.95)))
    slow = slowdown(compared, pair, planted(pair, spills=4))
    assert isinstance(slow.reasons[-1], LargerError)
    assert "relative error 0.0012 → 0.1, largest error 0.41 → 0.95 of the bound" in str(describe_slowdown(slow, most=9))
    a_bit = changed(b, accuracy=replace(accuracy, relative_l2=1.05 * 1.2e-3))
    assert status(slowdown(*worst(a_bit)))["error"] == "same"
    unknown = changed(b, accuracy=None)
    assert status(slowdown(*worst(unknown)))["error"] == "unknown"


def test_kernels_source_configuration_and_tuning() -> None:
    b = runs.after({VARIANT: 1.05})
    kernel = b.results[0].kernels[0]
    slow_result = next(r for r in b.results if r.variant == VARIANT)
    conditions = replace(slow_result.conditions, notes=(StaleTuning(run_id="x", another="source"),))
    two = (replace(kernel, name="first"), replace(kernel, name="second"))
    slow = slowdown(*worst(changed(b, kernels=two, configuration={"warps": 4}, conditions=conditions)))
    facts = topic(slow, "kernels").findings
    assert OtherKernels((f"{VARIANT}_kernel",), ("first", "second"), same_source=False) in facts
    assert OtherSource() in facts
    assert OtherConfiguration((("warps", None, 4),)) in facts
    assert TuningNotUsed("source") in facts
    untraced = slowdown(*worst(changed(b, kernels=())))
    assert topic(untraced, "kernels").unknown == "no_launches"
    assert status(untraced)["occupancy"] == "unknown"


def test_the_same_source_that_launches_another_kernel_lost_a_precondition() -> None:
    b = changed(runs.after({VARIANT: 1.05}), source_digest="0123456789abcdef")
    last = b.plan.problems[0]
    results = tuple(
        replace(r, backend="triton", kernels=(replace(r.kernels[0], name="fallback"),))
        if r.variant == VARIANT and r.problem == last
        else replace(r, backend="triton")
        for r in b.results
    )
    compared = compare(runs.before(), replace(b, results=results))
    pair = next(p for p in compared.pairs if p.problem == last and p.after.variant == VARIANT)
    slow = slowdown(compared, pair)
    assert topic(slow, "kernels").findings == (OtherKernels((f"{VARIANT}_kernel",), ("fallback",), same_source=True),)
    assert topic(slow, "precondition").findings == (UnusualKernel("fallback", f"{VARIANT}_kernel", 5),)
    assert topic(slow, "precondition").unknown == "not_read"
    assert "although the source is the same" in str(describe_slowdown(slow))


def test_launches_show_another_grid_and_a_lower_occupancy_without_machine_code() -> None:
    b = runs.after({VARIANT: 1.05})
    kernel = next(r for r in b.results if r.variant == VARIANT).kernels[0]
    heavy = replace(kernel, grid=(66, 1, 1), registers_per_thread=128)
    slow = slowdown(*worst(changed(b, kernels=(heavy,))))
    assert topic(slow, "precondition").findings == (OtherGrid(kernel.name, 132, 66, 256, 256),)
    assert topic(slow, "occupancy").findings == (LowerOccupancy(0.75, 0.25),)


def test_a_refusal_is_a_lost_precondition_and_a_wrong_result_an_error() -> None:
    compared, pair = worst(runs.after({VARIANT: 1.02}, wrong=VARIANT))
    slow = slowdown(compared, pair)
    assert isinstance(pair.after.outcome, Failure)
    assert topic(slow, "error").findings == (NoCorrectTime(pair.after.outcome),)
    assert status(slow)["spills"] == "unknown"
    refused = replace(pair.after, outcome=Failure(stage="unavailable"))
    other = slowdown(compared, Pair(pair.before, refused, pair.kind, None, None, pair.reason))
    assert status(other)["precondition"] == "differs"
    assert "not available here" in str(describe_slowdown(other))


def test_the_environment_is_named_with_both_values() -> None:
    b = runs.after({VARIANT: 1.05}, device={"driver": "600"}, versions={"triton": "3.9.0", "numpy": "9"})
    slow = slowdown(*worst(b))
    parts = {(f.part, f.name) for f in topic(slow, "environment").findings if isinstance(f, OtherEnvironment)}
    assert ("driver", "") in parts
    assert ("package", "triton") in parts
    assert ("package", "numpy") not in parts, "it generates no kernel"
    text = str(describe_slowdown(slow, most=9))
    assert "driver 580.159 → 600" in text
    assert "3.9.0" in text


def test_a_clock_is_first_if_it_explains_the_whole_difference_and_last_if_little_of_it() -> None:
    compared, measured = worst(runs.after({VARIANT: 1.3}))
    # Of a problem that computes: memory has a clock of its own.
    computes = replace(measured.after, cost=Cost(work_flop=10**15, read_bytes=10**6, written_bytes=10**6))
    pair = dataclasses.replace(measured, after=computes)
    of_code = slowdown(compared, pair, planted(pair, spills=40))

    def with_clock(b_hz: float, topics: tuple[TopicFacts, ...]) -> Slowdown:
        return Slowdown(pair, (*topics, TopicFacts("clock", (LowerClock(1.98e9, b_hz, None),))), of_code.changes)

    whole = with_clock(1.98e9 / 1.29, of_code.topics)
    assert isinstance(whole.likeliest, LowerClock)
    assert isinstance(dataclasses.replace(whole, pair=measured).likeliest, LostInCode)
    partly = with_clock(1.98e9 / 1.2, of_code.topics)
    assert isinstance(partly.likeliest, LostInCode)
    assert isinstance(with_clock(1.98e9 / 1.2, ()).likeliest, LowerClock)
    little = with_clock(1.98e9 / 1.03, ())
    assert little.likeliest is None
    assert str(describe_slowdown(little)).startswith("the reason is not known; SM clock 1980 MHz → ")


def test_why_b_is_faster_is_why_a_is_slower_told_from_a_to_b() -> None:
    """The runs of the slow case change sides: each finding has the values of the other side, and the same rank."""
    slow_run = runs.after({VARIANT: 1.05}, device={"driver": "600"})
    results = []
    for result in slow_run.results:
        figure = result.timing.device_cold_s if result.timing else None
        assert figure is not None
        assert figure.blocks is not None
        blocks = tuple(replace(block, clock_hz=1.5e9) for block in figure.blocks)
        outcome = replace(result.outcome, device_cold_s=replace(figure, blocks=blocks))
        conditions = replace(
            result.conditions,
            event_reasons=("power cap",),
            other_processes=2,
            notes=(StaleTuning(run_id="x", another="space"),),
        )
        accuracy = result.accuracy
        assert accuracy is not None
        kernel = replace(result.kernels[0], grid=(66, 1, 1), registers_per_thread=128)
        results.append(
            replace(
                result, outcome=outcome, conditions=conditions, configuration={"warps": 4},
                kernels=(kernel, replace(kernel, name="x")), accuracy=replace(accuracy, relative_l2=0.1),
            )
        )  # fmt: skip
    slow_run = replace(slow_run, results=tuple(results))
    compared, pair = worst(slow_run)
    slow = slowdown(compared, pair, planted(pair, spills=40, width_bytes=4))

    back = compare(slow_run, runs.before())
    other = next(p for p in reversed(back.pairs) if p.key == pair.key)
    assert is_faster(other)
    of_slow = {"registers": 32, "spills": 40, "width_bytes": 4, "warps": 64}
    of_fast = {"registers": 32, "spills": 0, "width_bytes": 16, "warps": 64}
    fast = speedup(back, other, ranked(facts_of(other.before, **of_slow), facts_of(other.after, **of_fast), "b"))
    assert status(fast) == status(slow)
    assert [type(f) for f in fast.reasons] == [type(f) for f in slow.reasons]
    assert len({type(f) for f in fast.reasons}) >= 9
    assert str(describe_likeliest(fast)) == "The likeliest reason: accesses to local memory (spills) 40 → 0."
    assert str(describe_how(fast)).startswith("Registers need no access.")
    assert str(describe_how(slow)).startswith("In favour of A: Registers need no access.")
    text = str(describe_slowdown(fast, most=20))
    assert "16-byte loads and stores replaced 4-byte ones" in text
    assert "SM clock 1500 MHz → 1980 MHz" in text
    assert "A was slowed down by power cap, B was not" in text
    assert "other processes on the device 2 → 0" in text
    assert "driver 600 → 580.159" in text
    assert "configuration: warps 4 → none" in text
    assert "relative error 0.1 → 0.0012" in text
    assert "kernels per call 2 → 1" in text
    assert "the tuned configuration was not used in A" in text
    assert str(describe_topics_of([fast])) == "1 case of B is faster. The likeliest reasons: spills (1)."
    assert str(describe_topic(TopicFacts("error"), fast.faster)) == "not smaller than in A"
