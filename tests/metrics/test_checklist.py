"""The checklist: each point is ticked by its threshold, from facts only, and is unknown where a fact is."""

from __future__ import annotations

import msgspec
import pytest
import sample_runs as samples

from kernelviz.core.result import Accuracy, Failure, Kernel, Result
from kernelviz.core.run import Device, Roof
from kernelviz.metrics.checklist import (
    CHECKS,
    BlockSize,
    Check,
    CheckName,
    GateResult,
    KernelCount,
    LaunchShare,
    ResidentShare,
    RoofShare,
    Unknown,
    WhyUnknown,
    checklist,
)
from kernelviz.metrics.limiter import limiter
from kernelviz.metrics.rows import Row, rows
from kernelviz.text.checklist import NAMES, RULES, WHY_UNKNOWN, describe_check, format_check

SIZE = {"n": 2**24}
EMPTY = Roof(name="launch", what="empty_kernel", time_s=0.68e-6, measured_at="2026-11-27T00:00:00+00:00")
ROOFS = (*samples.H200_ROOFS, EMPTY)


def kernel(threads: int = 256, grid: int = 10_000, registers: int = 32) -> Kernel:
    return Kernel(
        name="k", grid=(grid, 1, 1), block=(threads, 1, 1), registers_per_thread=registers, shared_memory_bytes=0,
        duration_s=1e-5,
    )  # fmt: skip


def case(share: float = 0.9, kernels: tuple[Kernel, ...] = (kernel(),), **changes: object) -> Result:
    problem = samples.problems("add", [SIZE], "fp32")[0]
    right = Accuracy(passed=True, relative_l2=0.0, max_abs=0.0, worst_of_bound=0.4, seeds=3)
    made = msgspec.structs.replace(samples.timed(problem, "torch_eager", share), kernels=kernels, accuracy=right)
    return msgspec.structs.replace(made, **changes)


def row_of(result: Result, roofs: tuple[Roof, ...] = ROOFS) -> Row:
    run = samples.run([result], op="add", sizes=[SIZE], dtype="fp32")
    return rows(run, roofs)[0]


def checks(result: Result, roofs: tuple[Roof, ...] = ROOFS, device: Device = samples.H200) -> dict[CheckName, Check]:
    found = checklist(row_of(result, roofs), device, roofs)
    assert tuple(check.name for check in found) == CHECKS
    return {check.name: check for check in found}


def test_a_good_kernel_passes_all_six_with_the_numbers_of_the_table() -> None:
    result = case()
    found = checks(result)
    assert {check.tick for check in found.values()} == {"passed"}
    share = found["bandwidth"].fact
    assert isinstance(share, RoofShare)
    assert share.fraction == row_of(result).efficiency
    assert found["block_size"].fact == BlockSize(256, 8)
    assert found["fusion"].fact == KernelCount(1)
    launching = found["launch_cost"].fact
    assert isinstance(launching, LaunchShare)
    assert (launching.launching_s, launching.kernels) == (0.68e-6, 1)
    assert found["accuracy"].fact == GateResult(True, 0.4, 3)


def test_a_memset_is_a_launch_but_nothing_to_fuse() -> None:
    memset = Kernel(name="memset", duration_s=1.15e-6)
    found = checks(case(kernels=(memset, kernel())))
    assert (found["fusion"].fact, found["fusion"].tick) == (KernelCount(1, memsets=1), "passed")
    launching = found["launch_cost"].fact
    assert isinstance(launching, LaunchShare)
    assert (launching.launching_s, launching.kernels, launching.memsets) == (2 * 0.68e-6, 1, 1)
    assert str(describe_check(found["fusion"])) == "Fusion: ✓ passed, 1 kernel and 1 memset in a call"
    assert checks(case(kernels=(kernel(), kernel())))["fusion"].tick == "not_passed"


@pytest.mark.parametrize(
    ("roof", "kind"),
    [
        (Roof(name="copy", level="dram", bandwidth_bytes_per_s=1e12), "bandwidth"),
        (Roof(name="matmul", precision="bf16", unit="tensor", rate_flop_per_s=8e14), "arithmetic"),
    ],
)
def test_the_share_of_a_roof_names_what_the_roof_limits(roof: Roof, kind: str) -> None:
    check = Check("bandwidth", "passed", RoofShare(0.962, roof))
    assert str(format_check(check)) == f"✓ 96.2 % of {kind}"
    assert str(describe_check(check)).startswith(f"Share of the roof: ✓ passed, 96.2 % of the roof of {kind}, ")


@pytest.mark.parametrize(("share", "tick"), [(0.9, "passed"), (0.7, "not_passed")])
def test_bandwidth_is_the_share_of_the_roof(share: float, tick: str) -> None:
    found = checks(case(share))["bandwidth"]
    assert isinstance(found.fact, RoofShare)
    assert (found.fact.fraction >= 0.8) is (tick == "passed")
    assert found.tick == tick


@pytest.mark.parametrize(
    ("threads", "registers", "tick"),
    [(256, 32, "passed"), (128, 32, "passed"), (64, 32, "passed"), (32, 32, "not_passed"), (100, 32, "not_passed"),
     (1000, 32, "not_passed"), (1024, 32, "passed")],
)  # fmt: skip
def test_a_block_has_whole_warps_and_enough_of_them(threads: int, registers: int, tick: str) -> None:
    assert checks(case(kernels=(kernel(threads, registers=registers),)))["block_size"].tick == tick


def test_a_small_block_of_unknown_resources_is_unknown() -> None:
    unknown = msgspec.structs.replace(kernel(64), registers_per_thread=None)
    found = checks(case(kernels=(unknown,)))
    assert (found["block_size"].fact, found["block_size"].tick) == (BlockSize(64, None), "unknown")
    assert (found["occupancy"].tick, found["occupancy"].fact) == ("unknown", Unknown("no_resources"))


def test_launch_cost_agrees_with_the_limiter() -> None:
    for empty_s in (0.68e-6, 1e-5, 5e-5, 1e-4):
        roofs = (*samples.H200_ROOFS, msgspec.structs.replace(EMPTY, time_s=empty_s))
        result = case()
        limited = limiter(result, samples.H200, roofs).kind == "launch"
        found = checks(result, roofs)["launch_cost"]
        assert isinstance(found.fact, LaunchShare)
        assert found.tick == ("not_passed" if found.fact.fraction >= 0.4 else "passed")
        if limited:
            assert found.tick == "not_passed"


def test_more_than_one_kernel_could_be_fused_and_pays_more_launches() -> None:
    found = checks(case(kernels=(kernel(), kernel())))
    assert (found["fusion"].tick, found["fusion"].fact) == ("not_passed", KernelCount(2))
    launching = found["launch_cost"].fact
    assert isinstance(launching, LaunchShare)
    assert launching.launching_s == pytest.approx(2 * 0.68e-6)


def test_occupancy_counts_resources_and_grid() -> None:
    full, small, heavy = (
        checks(case(kernels=(one,)))["occupancy"] for one in (kernel(), kernel(grid=66), kernel(256, registers=255))
    )
    assert full.tick == "passed"
    assert isinstance(small.fact, ResidentShare)
    assert small.fact.waves < 1
    assert (small.fact.occupancy_fraction, small.tick) == (1.0, "not_passed")
    assert small.fact.fraction == pytest.approx(66 / (8 * 132))
    assert heavy.tick == "not_passed"


WRONG = Accuracy(passed=False, relative_l2=1.0, max_abs=9.0, worst_of_bound=12.5, seeds=3)


@pytest.mark.parametrize(
    ("result", "roofs", "device", "unknown"),
    [
        (case(kernels=()), ROOFS, samples.H200, {"block_size": "no_kernels", "launch_cost": "no_kernels",
                                                "fusion": "no_kernels", "occupancy": "no_kernels"}),
        (case(kernels=()), samples.H200_ROOFS, samples.CPU, {"block_size": "no_kernels", "launch_cost": "no_empty_kernel",
                                                            "fusion": "no_kernels", "occupancy": "no_kernels"}),
        (case(), (), samples.H200, {"bandwidth": "no_roof", "launch_cost": "no_empty_kernel"}),
        (case(accuracy=None), ROOFS, samples.H200, {"accuracy": "not_checked"}),
        (case(kernels=(msgspec.structs.replace(kernel(), block=None),)), ROOFS, samples.H200,
         {"block_size": "no_block", "occupancy": "no_resources"}),
        (case(outcome=Failure(stage="wrong"), accuracy=WRONG), ROOFS, samples.H200,
         dict.fromkeys(("bandwidth", "block_size", "launch_cost", "fusion", "occupancy"), "wrong")),
        (case(outcome=Failure(stage="compile"), accuracy=None, kernels=()), ROOFS, samples.H200,
         {**dict.fromkeys(("bandwidth", "block_size", "launch_cost", "fusion", "occupancy"), "no_result"),
          "accuracy": "not_checked"}),
    ],
    ids=["no kernels", "processor", "no roofs", "not checked", "no block", "wrong", "failed"],
)  # fmt: skip
def test_what_is_not_known_is_unknown_with_the_reason(
    result: Result, roofs: tuple[Roof, ...], device: Device, unknown: dict[CheckName, WhyUnknown]
) -> None:
    found = checks(result, roofs, device)
    assert {name: c.fact.why for name, c in found.items() if isinstance(c.fact, Unknown)} == unknown
    assert {name for name, c in found.items() if c.tick == "unknown"} == set(unknown)


def test_a_wrong_result_never_passes_accuracy() -> None:
    found = checks(case(outcome=Failure(stage="wrong"), accuracy=WRONG))["accuracy"]
    assert (found.tick, found.fact) == ("not_passed", GateResult(False, 12.5, 3))
    assert "largest error 12.5 × the tolerance" in str(describe_check(found))
    right = Accuracy(passed=True, relative_l2=0.0, max_abs=0.0, worst_of_bound=0.4, seeds=3)
    recompiled = checks(case(outcome=Failure(stage="wrong"), accuracy=right))["accuracy"]
    assert recompiled.tick == "not_passed"
    assert "refused for another reason" in str(describe_check(recompiled))


def test_a_processors_launch_is_one_torch_call() -> None:
    roofs = (*samples.H200_ROOFS, Roof(name="launch", what="torch_call", time_s=1.0))
    found = checks(case(kernels=()), roofs, samples.CPU)["launch_cost"]
    assert isinstance(found.fact, LaunchShare)
    assert (found.fact.kernels, found.tick) == (None, "not_passed")


def test_every_point_has_a_name_a_rule_and_a_text() -> None:
    assert set(NAMES) == set(RULES) == set(CHECKS)
    for name, check in checks(case()).items():
        assert str(describe_check(check)).startswith(f"{NAMES[name]}: ✓ passed, ")
        assert str(format_check(check)).startswith("✓ ")
    assert set(WHY_UNKNOWN) == set(WhyUnknown.__args__)  # type: ignore[attr-defined]
