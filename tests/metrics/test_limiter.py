"""The limiter on planted cases, on every shipped result, and where something is not known."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import msgspec
import planted_limits as plant
import pytest
import sample_runs as samples

from kernelviz.bench import backup
from kernelviz.bench.roofline import with_empty_kernel
from kernelviz.core.problem import Cost, Problem
from kernelviz.core.result import Conditions, Kernel, Result
from kernelviz.core.run import Roof, Run
from kernelviz.formats import shipped_runs
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.limiter import HALF, ROOF_SHARE, limiter
from kernelviz.metrics.limiter_evidence import EvidenceKind, Limiter, LimiterKind, Missing, MissingKind
from kernelviz.metrics.placement import placed
from kernelviz.metrics.roofline import efficiency, intense, speed_of_light
from kernelviz.ops import op_named
from kernelviz.text.limiter import (
    EVIDENCE,
    MEANINGS,
    MISSING,
    describe_evidence,
    describe_limiter_reason,
)

DEVICE, ROOFS = plant.machine()
LADDERS = Path(__file__).parents[2] / "docs" / "h200-ladders.jsonl.gz"
HALF_GIB_ARITHMETIC = Cost(work_flop=2**28, read_bytes=2**28, written_bytes=2**28)
"""A copy of 256 MiB that also computes, so that it does not count as only moving data."""
Shipped = list[tuple[Run, Result, Headline, Limiter]]


def line(found: Limiter) -> str:
    return f"{found.kind}: {describe_limiter_reason(found)}"


def because_of(found: Limiter) -> str:
    return str(describe_limiter_reason(found))


def limit(result: Result, headline: Headline = "cold") -> Limiter:
    return limiter(result, DEVICE, ROOFS, headline)


@pytest.mark.parametrize(
    ("make", "headline", "word", "because"),
    [
        (plant.empty_kernel, "cold", "launch", r"69\d ns is 1\.0 × an empty kernel's 683 ns"),
        (
            plant.strided_copy,
            "cold",
            "bandwidth",
            r"a wave of blocks takes 5\.9 µs for 8 bytes per thread, 9 empty kernels: .*\(inferred\); moves .* in 1\.46 ms: 8 %",
        ),
        (plant.scalar_copy, "warm", "latency", r"a wave of blocks passes in 0?\.?\d+ [nµ]s, .*\(8 per thread\)"),
        (
            plant.naive_matmul,
            "cold",
            "unclear",
            r"4\.10 TFLOP/s: 0\.5 % of the measured matmul bf16.*reads that repeat",
        ),
        (plant.big_copy, "cold", "bandwidth", r"moves 537 MB in 124 µs: 99 % of the measured copy at 537 MB"),
        (plant.l2_sized, "warm", "L2", r"5\.42 TB/s is 1\.20 × what memory delivers.*warm is 0\.71 of cold"),
        (plant.l2_sized, "cold", "bandwidth", r"85 % of the measured read:write 2:1"),
        (plant.fused_chain, "cold", "bandwidth", r"100 % of the measured copy"),
        (
            plant.unfused_chain,
            "cold",
            "bandwidth",
            r"6 kernels pass results through memory: .*\(inferred\).*7 % of 1\.72 ms",
        ),
        (
            plant.short_chain,
            "cold",
            "launch",
            r"9 kernels of at least an empty one's 683 ns and the gaps.* are 55 % of 12\.5 µs",
        ),
        (
            plant.low_occupancy,
            "cold",
            "latency",
            r"theoretical occupancy 6 %: 48 KiB of shared memory per block; moves .* 8 %",
        ),
    ],
)
def test_planted_cases(make: Callable[[], Result], headline: Headline, word: str, because: str) -> None:
    found = limit(make(), headline)
    assert found.kind == word, line(found)
    assert re.search(because, because_of(found)), because_of(found)


@pytest.fixture(scope="module")
def all_shipped() -> Shipped:
    return [
        (run, result, headline, limiter(result, run.environment.device, run.environment.roofs, headline))
        for run in map(shipped_runs.load, shipped_runs.names())
        for result in run.results
        for headline in ("cold", "warm")
    ]


def test_no_shipped_result_is_contradicted(all_shipped: Shipped) -> None:
    """Obvious facts of the H200's runs, each over all cases that it is true of."""
    cold = {(r.problem.op, r.variant, *r.problem.sizes.values()): f.kind for _, r, h, f in all_shipped if h == "cold"}
    variants = shipped_runs.load(plant.ADD).plan.variants
    assert {cold["add", v, 2**12] for v in variants} == {"launch"}
    assert {cold["add", v, 2**28] for v in variants} == {"bandwidth"}
    assert {cold["scale", "torch_eager", 2**n] for n in range(22, 29)} == {"bandwidth"}
    for size in (4096, 8192):
        assert cold["matmul", "torch_eager", size, size, size] == "compute"
        assert cold["matmul", "triton_grouped", size, size, size] == "compute"
    hand_made = {word for (op, v, *_), word in cold.items() if op == "matmul" and v in ("cuda_naive", "cuda_tiled")}
    assert hand_made == {"unclear"}
    large = {"softmax", "rmsnorm"}  # of the other ops, small sizes were recorded, too
    assert {word for (op, v, *_), word in cold.items() if v == "composite_eager" and op in large} == {"bandwidth"}
    assert "compute" not in {f.kind for _, r, _, f in all_shipped if not intense(r.cost)}


MORE_MOVED = ("queued_wave", "chain")
"""Evidence that more is moved than the problem's bytes, so that bandwidth limits it below half of the roof."""


def test_who_reaches_a_roof_is_limited_by_it_and_who_does_not_is_not(all_shipped: Shipped) -> None:
    seen = set()
    for run, result, headline, found in all_shipped:
        light = speed_of_light(result.problem, result.cost, run.environment.roofs, headline)
        share = efficiency(light, figure_of(result.timing, headline))
        if share is None or len(result.kernels) > 2:
            continue
        at_roof = {"bandwidth", "L2"}
        if light is not None and intense(result.cost):
            at_roof = {"compute"} if light.bound == "compute" else {"compute", *at_roof}  # near the ridge, either one
        if share >= ROOF_SHARE:
            assert found.kind in at_roof, line(found)
        elif share >= HALF:
            assert found.kind in at_roof | {"launch", "latency"}, line(found)
        elif found.kind != "bandwidth" or found.evidence[0].kind not in MORE_MOVED:
            assert found.kind in ("launch", "latency", "L2", "unclear"), line(found)
        seen.add(found.kind)
    # `issue` needs counters: tests/metrics/test_limiter_with_counters.py.
    assert seen | {"issue"} == set(get_args(LimiterKind)) == set(MEANINGS)


def test_every_answer_has_numbers_or_names_what_is_missing(all_shipped: Shipped) -> None:
    for _, _, _, found in all_shipped:
        assert found.evidence or found.missing
        assert found.kind == "unclear" or all(re.search(r"\d", str(describe_evidence(e))) for e in found.evidence)
        assert found.kind == "unclear" or not found.missing
        assert "None" not in line(found)
        assert "nan" not in line(found)


def test_a_larger_problem_is_never_launch_limited_again(all_shipped: Shipped) -> None:
    """Along a sweep, the limiters have this order: launching, then latency, then a roof."""
    order = ["launch", "latency", "unclear", "bandwidth"]
    for variant in shipped_runs.load(plant.ADD).plan.variants:
        words = [f.kind for run, r, h, f in all_shipped if run.id == plant.ADD and r.variant == variant and h == "cold"]
        assert words == sorted(words, key=order.index), variant


FACTS = json.loads((LADDERS.parent / "gpu-figures.json").read_text())["figures"]["limiter"]["facts"]
OPS = {
    "cuda_scalar": "copy",
    "triton_block": "copy",
    "strided": "copy",
    "low_occupancy": "copy",
    "composite_eager": "rmsnorm",
}
OPS |= {"triton_block_per_row": "rmsnorm", "torch_eager": "matmul", "cuda_naive": "matmul"}
BETTER = {("strided {'n': 3145728}", "warm"): "L2"}
"""Was unclear: the same access as in the cold case, which queues for memory; its data are in the L2."""


@pytest.mark.parametrize("case", FACTS)
def test_the_planted_cases_of_the_gpu_suite_keep_their_answers(case: str) -> None:
    """From the facts that an H200 gave: tests/gpu/test_instrument.py."""
    variant, sizes = case.split(" ", 1)
    op = op_named(OPS[variant])
    problem = Problem(op=op.name, sizes=ast.literal_eval(sizes), dtype="fp32" if op.name == "copy" else "bf16")
    facts = FACTS[case]
    shared = 48 * 1024 if variant == "low_occupancy" else 0
    kernels = tuple(
        Kernel(
            name=name, grid=tuple(grid), block=tuple(block), registers_per_thread=registers, duration_s=duration_s,
            shared_memory_bytes=shared,
        )
        for name, grid, block, registers, duration_s in facts["kernels"]
    )  # fmt: skip
    bare = plant.planted(facts["cold_s"], warm_s=facts["warm_s"], cost=op.cost_of(problem), kernels=kernels)
    result = msgspec.structs.replace(bare, problem=problem)
    for headline in ("cold", "warm"):
        answer = facts[headline].split(":")[0].removesuffix("-limited")
        assert limit(result, headline).kind == BETTER.get((case, headline), answer), line(limit(result, headline))


WITHOUT_ROOF = ("topk", "histogram", "scatter_add", "branch_divergence")
"""Ops that compare numbers, add them by atomics, or branch, for which no roof is measured."""
FLASH = ("attention", "causal_attention", "varlen_attention")
"""With 1,024 keys, all of their kernels reach 25 to 47 % of the tensor cores, and no other roof."""


def recorded() -> Iterator[tuple[str, Limiter]]:
    """Every answer on the recorded runs of H200s, as the Roofline page gives them."""
    runs = {"shipped": map(shipped_runs.load, shipped_runs.names()), "ladders": backup.runs(LADDERS)}
    for source, of_source in runs.items():
        for run in of_source:
            device = run.environment.device
            roofs = with_empty_kernel(run.environment.roofs, device.name)
            named = "channels" if run.id.endswith("-channels") else source if run.environment.roofs else "uncalibrated"
            named = "no roof" if source == "shipped" and run.plan.op in WITHOUT_ROOF else named
            named = "attention" if source == "shipped" and run.plan.op in FLASH else named
            for result in run.results:
                for headline in ("cold", "warm"):
                    if figure_of(result.timing, headline) is not None:
                        yield f"{named} {headline}", limiter(result, device, roofs, headline)


def test_at_most_a_tenth_of_the_recorded_cases_is_unclear() -> None:
    """Before the rules on half of a roof, threads in flight and the empty kernel of the model: 9.6, 9.8 and 27.5 %. A recorded
    sweep of convolutions with 64 filters, which reach 35 to 48 % of the tensor cores and no other roof, counts apart, and so do
    attention, a run of a machine that was not calibrated, and ops whose work has no roof."""
    answers: dict[str, list[LimiterKind]] = {}
    for source, found in recorded():
        answers.setdefault(source, []).append(found.kind)
    for headline in ("cold", "warm"):
        assert set(answers.pop(f"uncalibrated {headline}")) == {"unclear"}, "no roof was measured"
        without = answers.pop(f"no roof {headline}")
        assert 0.3 < without.count("unclear") / len(without) < 0.7, "only counters say more"
    for headline in ("cold", "warm"):
        attention = answers.pop(f"attention {headline}")
        assert 0.2 < attention.count("unclear") / len(attention) < 0.5, "what they wait for is not known"
    channels = answers.pop("channels cold")
    assert 0.3 < channels.count("unclear") / len(channels) < 0.6, "what they wait for is not known"
    unclear = {source: kinds.count("unclear") / len(kinds) for source, kinds in answers.items()}
    assert set(unclear) == {"shipped cold", "shipped warm", "ladders cold"}
    assert sum(map(len, answers.values())) > 2000
    assert all(share <= 0.1 for share in unclear.values()), unclear


def test_a_grid_that_fills_a_quarter_of_the_gpu_is_waiting() -> None:
    """Row sums by one thread a row: 256 blocks of 128 threads, of 2,112 that an H200 holds, at 11 % of the roof."""
    only = plant.kernel(268e-6, blocks=256, threads=128)
    read = Cost(work_flop=2**26, read_bytes=2**27, written_bytes=2**17)
    found = limit(plant.planted(268e-6, cost=read, kernels=(only,)))
    assert found.kind == "latency", line(found)
    assert because_of(found).startswith("the grid fills 12 % of the GPU: at most 32,768 threads are on it at once; ")


@pytest.mark.parametrize(("registers", "kind"), [(96, "latency"), (32, "unclear")])
def test_too_few_threads_to_have_the_bandwidth_in_flight(registers: int, kind: LimiterKind) -> None:
    """31 % of the threads with 16 bytes each reach 46 % of 4.35 TB/s in trips of 683 ns. With all threads they would reach it."""
    time_s = 0.123e-3 / 0.40
    result = plant.planted(
        time_s, cost=HALF_GIB_ARITHMETIC, kernels=(plant.kernel(time_s, threads=128, registers=registers),)
    )
    found = limit(result)
    assert found.kind == kind, line(found)
    if kind == "latency":
        assert "with one 16-byte vector in flight each, and 683 ns for a trip to memory, they reach 46 %" in because_of(
            found
        )
    faster = plant.planted(0.123e-3 / 0.48, cost=HALF_GIB_ARITHMETIC, kernels=result.kernels)
    assert "16-byte vector" not in because_of(limit(faster)), "it exceeds what one vector a thread would reach"


def test_half_of_the_roof_is_named_with_what_is_not_known() -> None:
    result = plant.planted(0.123e-3 / 0.55, cost=HALF_GIB_ARITHMETIC, kernels=(plant.kernel(0.123e-3 / 0.55),))
    found = limit(result)
    assert found.kind == "bandwidth"
    assert "what takes the other 45 % of its time is not known" in because_of(found)
    slower = plant.planted(0.123e-3 / 0.45, cost=HALF_GIB_ARITHMETIC, kernels=(plant.kernel(0.123e-3 / 0.45),))
    assert limit(slower).kind == "unclear"


def test_a_chain_may_pass_on_fp32_but_several_passes_over_the_input_are_no_chain() -> None:
    """Quantisation by eager PyTorch: each step reads and writes fp32, 4 times the 3 bytes an element of the problem."""
    quantised = Cost(work_flop=2**26, read_bytes=2**27, written_bytes=2**26)
    once_s = (2**27 + 2**26) / 4.5e12
    steps = tuple(plant.kernel(3.4 * once_s) for _ in range(6))
    result = plant.planted(6 * 3.4 * once_s, cost=quantised, kernels=steps)
    result = msgspec.structs.replace(result, problem=msgspec.structs.replace(result.problem, dtype="bf16"))
    assert limit(result).kind == "bandwidth"
    one_slow = (plant.kernel(12 * once_s), *(plant.kernel(once_s) for _ in range(5)))
    assert limit(msgspec.structs.replace(result, kernels=one_slow)).kind == "unclear", "one step is no copy of tensors"
    selected = msgspec.structs.replace(
        result, cost=Cost(work_flop=2**26, read_bytes=2**27 + 2**26, written_bytes=2**10)
    )
    assert limit(selected).kind == "unclear", "top-k passes no whole tensor on"


def test_the_empty_kernel_of_the_model_stands_in_and_is_named() -> None:
    """The calibration of one of the recorded H200s has no launches."""
    without = tuple(r for r in ROOFS if r.name != "launch")
    short = plant.real(plant.ADD, "triton_block", n=4096)
    found = limiter(short, DEVICE, with_empty_kernel(without, DEVICE.name))
    assert found.kind == "launch"
    assert "is that of another GPU of this model" in because_of(found)
    assert "another GPU" not in because_of(limiter(short, DEVICE, ROOFS))
    assert with_empty_kernel(without, "a card that no shipped run is of") == without
    assert with_empty_kernel((), DEVICE.name) == (), "a device without a calibration gets none of another one"


def test_a_processor_is_judged_by_its_roofs_and_by_the_time_of_a_call() -> None:
    """Found at 99.3 % of the roof and called unclear."""
    problem = samples.problems("copy", [{"n": 2**24}], "fp32")[0]
    memory = Roof(name="copy", level="dram", moved_bytes=2**27, bandwidth_bytes_per_s=2e10)
    call = Roof(name="launch", what="torch_call", time_s=2e-6)
    cost = Cost(work_flop=0, read_bytes=2**26, written_bytes=2**26)

    def on_cpu(time_s: float, cost: Cost, *roofs: Roof) -> Limiter:
        result = plant.planted(time_s, cost=cost)
        return limiter(msgspec.structs.replace(result, problem=problem), samples.CPU, roofs)

    near = on_cpu(2**27 / 2e10 / 0.993, cost, memory, call)
    assert near.kind == "bandwidth"
    assert because_of(near).startswith("moves 134 MB in 6.78 ms: 99 % of the measured copy at 134 MB")
    assert on_cpu(2**27 / 2e10 / 0.3, cost, memory, call).missing == (Missing("gpu"),)
    small = Cost(work_flop=0, read_bytes=2**10, written_bytes=2**10)
    one_call = on_cpu(4e-6, small, memory, call)
    assert (one_call.kind, because_of(one_call)) == (
        "launch",
        "4.01 µs is 2.0 × one torch call of one element, 2.00 µs",
    )
    assert on_cpu(6e-6, small, memory, call).kind == "unclear"
    assert on_cpu(4e-6, small, memory).kind == "unclear", "the time of a call is unknown"


def test_an_unclear_case_comes_with_the_command_that_profiles_it() -> None:
    run = shipped_runs.load(plant.MATMUL)
    cases = placed(run, "run", ROOFS, ROOFS)
    assert all(c.commands for c in cases), "every case of a GPU has commands"
    naive = next(c for c in cases if c.variant == "cuda_naive" and c.problem.sizes["m"] == 512)
    assert naive.limiter.kind == "unclear"
    assert naive.commands is not None
    assert naive.commands.ncu == (
        "ncu --set full --profile-from-start off --clock-control none kernelviz launch matmul --variants cuda_naive --size m=512 "
        "--size n=512 --size k=512 --dtype bf16"
    )
    assert MEANINGS["unclear"] == "Unknown; profile with ncu"


def test_a_file_without_figures_is_unclear_with_what_is_missing() -> None:
    problem = samples.problems("add", [{"n": 2**20}], "fp32")[0]
    bare = plant.planted(1e-3, cost=None)
    found = limiter(bare, DEVICE, ())
    assert (found.kind, found.evidence) == ("unclear", ())
    assert found.missing == (Missing("empty_kernel"), Missing("cost"), Missing("resources"))
    failed = samples.failed(problem, "torch_eager", "wrong")
    assert limit(failed).missing == (Missing("device_time", "cold"),)
    assert limit(plant.big_copy(), "cold").kind == "bandwidth"
    cold_only = plant.planted(1e-3, cost=plant.HALF_GIB, kernels=(plant.kernel(1e-3),))
    assert limit(cold_only, "warm").missing == (Missing("device_time", "warm"),)


def test_without_an_empty_kernel_nothing_is_called_latency() -> None:
    """Few blocks take long, but so does launching them."""
    without = tuple(r for r in ROOFS if r.what != "empty_kernel")
    short = plant.real(plant.ADD, "triton_block", n=4096)
    found = limiter(short, DEVICE, without)
    assert found.kind == "unclear"
    assert found.missing == (Missing("empty_kernel"),)
    assert limiter(plant.big_copy(), DEVICE, without).kind == "bandwidth"


def test_a_chain_of_slow_kernels_is_not_called_bandwidth() -> None:
    """Each takes ten times as long as moving the bytes once: no chain of full-size passes does that."""
    four = tuple(plant.kernel(1.23e-3) for _ in range(4))
    assert limit(plant.planted(4.95e-3, cost=plant.HALF_GIB, kernels=four)).kind == "unclear"
    small = Cost(work_flop=0, read_bytes=2**23, written_bytes=2**23)
    in_l2 = tuple(plant.kernel(8e-6) for _ in range(4))
    assert limit(plant.planted(33e-6, cost=small, kernels=in_l2)).kind == "unclear", "its results may lie in the L2"


def test_the_clock_is_told_where_the_power_cap_held_it() -> None:
    fast = plant.real(plant.MATMUL, "torch_eager", m=2048, n=2048, k=2048)
    capped = msgspec.structs.replace(fast, conditions=Conditions(event_reasons=("power cap",)))
    assert re.search(r"SM clock \d{4} MHz under the power cap", because_of(limit(capped)))
    assert "SM clock" not in because_of(limit(fast))


def test_every_kind_of_fact_has_a_text() -> None:
    assert set(EVIDENCE) == set(get_args(EvidenceKind))
    assert set(MISSING) == set(get_args(MissingKind))
