"""The five workloads: what they declare, what they prove, and that planted faults are found. Ranks are in one process."""

from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path

import msgspec
import pytest
import torch
from workload_runs import RUNS

from kernelviz.bench import Bench
from kernelviz.bench.workload_plan import WorkloadRequest, offers, plan_of
from kernelviz.core import Device
from kernelviz.core.claim import Claim
from kernelviz.core.reasons import ErrorTooLarge, NeedMissing, NotFinite
from kernelviz.core.result import Failure
from kernelviz.core.workload import Measured, Span, WorkloadCase, WorkloadPlan, WorkloadResult, WorkloadRun
from kernelviz.formats.claim_files import shipped_claims
from kernelviz.hardware.discovery import discover
from kernelviz.hardware.toolchain import environment_of
from kernelviz.metrics.claim_workloads import WorkloadEvidence
from kernelviz.metrics.claims import Facts, assess
from kernelviz.metrics.timelines import hidden_share
from kernelviz.store import Store
from kernelviz.workloads.all_reduce import torch_exchange, torch_powersgd
from kernelviz.workloads.all_reduce.torch_runner import bus_bandwidth
from kernelviz.workloads.amp_step import torch_runner as amp
from kernelviz.workloads.amp_step import torch_step
from kernelviz.workloads.amp_step.torch_resnet import PARAMETERS, ResNet50
from kernelviz.workloads.catalog import workloads
from kernelviz.workloads.data_loading import torch_images
from kernelviz.workloads.data_loading.torch_runner import lack_of_shared_memory, torch_threads
from kernelviz.workloads.gradient_sync.torch_trace import lane_of
from kernelviz.workloads.model_loading import page_cache, torch_loading
from kernelviz.workloads.ranks.series import RankSeries, refusal

CPU = torch.device("cpu")
OURS = ("all_reduce", "amp_step", "data_loading", "gradient_sync", "model_loading")
TINY = torch_step.Shape("transformer", batch=2, size=16, layers=1, width=64)


# What is declared


@pytest.mark.parametrize("name", OURS)
def test_a_declaration_is_complete(name: str) -> None:
    """Every figure and variant has text, each preset makes a plan, and what it cannot say is stated."""
    workload = workloads()[name].workload
    assert workload.limits
    assert [f.name for f in workload.figures if f.headline] == [workload.headline.name]
    assert workload.variant_named(workload.baseline) is not None
    assert all(figure.help for figure in workload.figures)
    assert all(variant.caption and variant.idea for variant in workload.variants)
    assert all(workload.figure_named(figure) is not None for figure in workload.chart.figures)
    assert {"cpu", "cuda"} <= {kind for preset in workload.presets for kind in preset.device_kinds}
    cpu = next(d for d in discover() if d.kind == "cpu")
    for preset in workload.presets:
        assert set(preset.values) == {axis.name for axis in workload.axes}
        if "cpu" in preset.device_kinds:
            assert plan_of(workload, WorkloadRequest(name, preset=preset.name, devices=("cpu",)), [cpu]).cases


def test_two_devices_on_a_cpu_say_mechanics_only() -> None:
    pairs = {name: workloads()[name].workload for name in OURS if workloads()[name].workload.ranks == 2}
    assert set(pairs) == {"all_reduce", "gradient_sync"}
    assert {w.on_cpu for w in pairs.values()} == {"mechanics_only"}


def test_a_hierarchical_all_reduce_is_refused_because_it_needs_two_hosts() -> None:
    for device in discover():
        offer = next(o for o in offers(workloads()["all_reduce"].workload, device) if o.variant.name == "hierarchical")
        assert isinstance(offer.lack, NeedMissing)
        assert offer.lack.notice is not None
        if device.usable:
            assert offer.lack.notice.data["cause"].kind == "two_hosts"  # type: ignore[union-attr]


# amp_step


def test_resnet50_is_the_published_one() -> None:
    """torchvision states 25,557,032 parameters; 224 × 224 become 7 × 7 before the mean."""
    with torch.device("meta"):
        model = ResNet50()
        assert model(torch.empty(1, 3, 224, 224)).shape == (1, 1000)
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS


def test_a_step_of_each_precision_has_right_gradients_and_a_wrong_one_is_refused() -> None:
    data = torch_step.batches(TINY, CPU)
    reference = torch_step.reference_gradients(TINY, data[0])
    for name in ("fp32", "bf16", "fp16_scaler", "bf16_checkpointed"):
        precision = amp.PRECISIONS[name]
        trainer = torch_step.Trainer(TINY, precision, CPU, data)
        gradients = trainer.gradients()
        assert amp.refusal(torch_step.relative_error(gradients, reference), precision) is None, name
        gradients[len(gradients) // 4 :] = 0  # as if most of the backward pass were missing
        failure = amp.refusal(torch_step.relative_error(gradients, reference), precision)
        assert failure is not None, name
        assert isinstance(failure.reasons[0], ErrorTooLarge), name
    broken = amp.refusal(torch_step.relative_error(gradients * math.nan, reference), precision)
    assert broken is not None
    assert isinstance(broken.reasons[0], NotFinite)


def test_a_scale_that_is_too_large_for_fp16_is_halved_before_the_proof() -> None:
    """GradScaler begins at 65,536, skips the steps whose gradients are not finite, and halves the scale."""
    data = torch_step.batches(TINY, CPU)
    reference = torch_step.reference_gradients(TINY, data[0])
    precision = torch_step.Precision(autocast="float16", scale=2.0**30)
    assert amp.refusal(torch_step.Trainer(TINY, precision, CPU, data).error(reference), precision) is None


def test_checkpointing_and_the_same_seed_give_the_same_losses() -> None:
    data = torch_step.batches(TINY, CPU)

    def losses(**changes: bool) -> list[float]:
        trainer = torch_step.Trainer(TINY, torch_step.Precision(**changes), CPU, data)
        return [float(trainer.step()) for _ in range(5)]

    plain = losses()
    assert losses(checkpointed=True) == pytest.approx(plain, rel=1e-5)
    assert plain[4] < plain[0], "the first batch comes again in the fifth step"


# all_reduce


def alone(tensor: torch.Tensor) -> None:
    """The sum over one rank."""


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_powersgd_reaches_the_least_error_of_its_rank(rank: int) -> None:
    """Subspace iteration on one matrix, without feedback, ends at the best matrix of that rank (Eckart and Young). One step is
    worse, and with feedback the sum of what is delivered is better than any matrix of the rank."""
    matrix = torch_exchange.gradient(64 * 64, rank=0, seed=1, device=CPU).view(64, 64).double()
    least = torch_powersgd.low_rank_error(matrix, rank)
    state = torch_powersgd.PowerSgd(64, 64, rank, seed=2, device=CPU, dtype=torch.float64)
    first = torch_exchange.relative_error(state.step(matrix, alone), matrix)
    for _ in range(60):
        state.error_NM.zero_()
        delivered = state.step(matrix, alone)
    assert first >= least * (1 - 1e-9)
    assert torch_exchange.relative_error(delivered, matrix) == pytest.approx(least, rel=1e-3)
    exchange = torch_exchange.LowRank(matrix.flatten(), 1, rank)
    total = sum((exchange.delivered(alone).clone() for _ in range(16)), torch.zeros(64 * 64, dtype=torch.float64))
    assert torch_exchange.relative_error(total / 16, matrix.flatten()) < least
    assert exchange.sent_bytes == 8 * rank * 128


class Ranks:
    """Two ranks in one process, with the sums of their collectives one after another."""

    def __init__(self, variant: str) -> None:
        self.gradients = [torch_exchange.gradient(32 * 32, rank=r, seed=5, device=CPU) for r in range(2)]
        self.mean = (self.gradients[0].double() + self.gradients[1].double()) / 2
        self.variant = variant
        self.sums: list[torch.Tensor] = []
        while len(parts := [self._next(gradient) for gradient in self.gradients]) and parts[0] is not None:
            self.sums.append(parts[0] + parts[1])

    def _next(self, gradient: torch.Tensor) -> torch.Tensor | None:
        """What a rank gives to the first collective whose sum is not known yet; None if there is none."""
        known = iter(self.sums)

        def add(tensor: torch.Tensor) -> None:
            total = next(known, None)
            if total is None:
                raise Reached(tensor.clone())
            tensor.copy_(total)

        try:
            torch_exchange.exchange_of(self.variant, gradient, 2).delivered(add)
        except Reached as reached:
            return reached.tensor
        return None

    def share(self, fault: float = 0.0) -> float:
        """The error of what rank 0 delivers as a share of the bound. `fault`: added to each sum."""
        sums = iter(self.sums)

        def add(tensor: torch.Tensor) -> None:
            tensor.copy_(next(sums) + fault)

        delivered = torch_exchange.exchange_of(self.variant, self.gradients[0], 2).delivered(add)
        return torch_exchange.share_of_bound(self.variant, delivered, self.mean)


class Reached(Exception):
    """The collective whose sum is not known yet."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


@pytest.mark.parametrize("variant", ["fp32", "bf16", "powersgd_r1", "powersgd_r2", "powersgd_r4"])
def test_an_exchange_of_two_ranks_is_proved_and_a_wrong_sum_is_refused(variant: str) -> None:
    right = Ranks(variant).share()
    assert right <= 1
    assert refusal([RankSeries(bound_share=right)]) is None
    wrong = Ranks(variant).share(fault=0.5)
    failure = refusal([RankSeries(bound_share=right), RankSeries(bound_share=wrong)])
    assert failure is not None
    assert failure.stage == "wrong"


def test_bus_bandwidth_is_that_of_nccl_tests_by_hand() -> None:
    """1 GiB in 5 ms on 2 ranks: algorithm bandwidth 214.7 GB/s, and the factor 2 (n - 1) / n is 1; on 8 ranks it is 1.75."""
    algorithm = 2**30 / 5e-3
    assert bus_bandwidth(2**30, 2, 5e-3) == pytest.approx(algorithm)
    assert bus_bandwidth(2**30, 8, 5e-3) == pytest.approx(1.75 * algorithm)


# gradient_sync


def test_the_hidden_share_is_by_the_interval_formula() -> None:
    """The exchange from 2 to 6 s; computing from 0 to 3 and, by two kernels at once, from 4 to 5: 2 of 4 s are hidden."""

    def compute(begin: float, end: float) -> Span:
        return Span(lane="compute", start_s=begin, end_s=end)

    exchange = Span(lane="communication", start_s=2.0, end_s=6.0)
    spans = [compute(0, 3), compute(4, 5), compute(4.2, 4.8)]
    assert hidden_share([*spans, exchange]) == pytest.approx(0.5)
    assert hidden_share(spans) is None
    assert hidden_share([compute(0.1, 0.3), Span(lane="communication", start_s=0.3, end_s=0.7)]) == 0
    assert lane_of("void at::cuda::(anonymous namespace)::spin_kernel(long)", on_gpu=True) == "communication"


def test_a_planted_delay_is_found_as_exposed_time_by_two_processes(tmp_path: Path) -> None:
    """30 ms before the exchange: all of it is exposed without overlap, and some of it with; both processes have the mean."""
    bench = Bench(Store.open(tmp_path), discover(), lock_directory=tmp_path)
    try:
        request = WorkloadRequest(
            "gradient_sync",
            variants=("after_backward",),
            values={"blocks": "1", "width": "16", "batch": "8", "delay_us": "30000"},
            devices=("cpu",),
            budget_s=0.05,
        )
        run_id = bench.workloads.run(bench.workloads.plan(request))
        for _ in bench.workloads.follow(run_id):
            pass
        run = bench.workloads.load(run_id)
    finally:
        bench.close()
    assert {result.case.variant: result.failure for result in run.results} == {"ddp": None, "after_backward": None}
    for result in run.results:
        assert result.mechanics_only
        exposed = result.values["exposed_s"]
        assert isinstance(exposed, Measured)
        assert exposed.estimate > 0.027, result.case.variant
        assert result.values["gradient_error"].value < 1e-6
        assert result.timeline is not None
        assert {span.lane for span in result.timeline.spans} == {"compute", "communication"}
    assert {len(result.values["hidden"].samples) for result in run.results} == {10}


# data_loading


def test_a_loader_that_loses_doubles_or_changes_an_image_is_refused(tmp_path: Path) -> None:
    images = torch_images.Images(torch_images.write_images(tmp_path, 3, 48, seed=1), 8, 32)
    expected = torch_images.checksums(images)
    batches = list(torch_images.loader(images, 4, torch_images.Loading()))
    torch_images.check(batches, expected)
    lost, doubled = batches[:1], [*batches, batches[0]]
    changed = [(batches[0][0] // 2, batches[0][1]), batches[1]]
    for wrong in (lost, doubled, changed):
        with pytest.raises(torch_images.WrongImages) as error:
            torch_images.check(wrong, expected)
        assert error.value.wrong == 4
    assert batches[0][0].shape == (4, 3, 32, 32)


def test_torch_has_one_thread_while_the_baseline_loads_and_all_of_them_afterwards() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for variant, count in (("workers_0_one_thread", 1), ("workers_0", 2), ("workers_4", 2)):
            with torch_threads(torch_images.LOADINGS[variant].threads):
                assert torch.get_num_threads() == count
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# model_loading


def test_batches_that_do_not_fit_into_shared_memory_are_refused_with_the_remedy(tmp_path: Path) -> None:
    """A worker that writes beyond it is killed by a bus error. /dev/shm of a container has 64 MB unless it is told otherwise."""
    why = lack_of_shared_memory(10**18, tmp_path)
    assert why is not None
    assert "smaller batch" in why
    assert lack_of_shared_memory(0, tmp_path) is None
    assert lack_of_shared_memory(10**18, tmp_path / "none") is None


def test_each_way_to_load_gives_the_same_model(tmp_path: Path) -> None:
    layers, width = 6, 32
    reference = torch_loading.expected(layers, width)
    whole = torch_loading.write(tmp_path, layers, width, sharded=False)
    shards = torch_loading.write(tmp_path, layers, width, sharded=True)
    assert len(shards) == 2
    for name, load in torch_loading.LOADS.items():
        model = load(shards if name == "sharded" else whole, layers, width, CPU)
        with torch.inference_mode():
            if name == "lazy":
                assert all(p.is_meta for p in model.parameters()), "no layer has weights before its first call"
            result = model(torch_loading.inputs(width))
        assert torch_loading.relative_error(result, reference) < 1e-5, name
    with torch.inference_mode():
        model[0].weight.zero_()
        assert torch_loading.relative_error(model(torch_loading.inputs(width)), reference) > 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="mincore is asked on Linux only")
def test_the_page_cache_is_asked_and_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\1" * 2**20)
    page_cache.warm(path)
    assert page_cache.cached_share([path]) == 1.0
    page_cache.drop(path)
    share = page_cache.cached_share([path])
    assert share is not None
    assert 0 <= share <= 1, "a file system in memory keeps them"


# Recorded runs


def _two_gpus() -> list[Device]:
    cpu = next(d for d in discover() if d.kind == "cpu")
    gpus = [
        msgspec.structs.replace(cpu, id=f"cuda:{i}", uuid=f"GPU-{i}", kind="cuda", name="NVIDIA H200") for i in range(2)
    ]
    return [*gpus, cpu]


@pytest.mark.parametrize("part", RUNS)
def test_the_recorded_runs_are_plans_of_the_catalogue(part: str) -> None:
    for name, request in RUNS[part].items():
        workload = workloads()[request.workload].workload
        plan = plan_of(workload, request, _two_gpus())
        assert len(plan.devices) == workload.ranks, name
        assert len(plan.cases) >= 3


def test_the_recorded_runs_test_the_claims_about_workloads() -> None:
    """Each case of a claim is in a plan that is recorded on one device, and a planted result of it gives the verdict."""
    keys = {
        case.key
        for part in RUNS.values()
        for request in part.values()
        for case in plan_of(workloads()[request.workload].workload, request, _two_gpus()).cases
    }
    about = [claim for claim in shipped_claims().claims if claim.workload_cases]
    assert len(about) >= 15
    for claim in about:
        workload = workloads()[claim.workload_cases[0].workload].workload
        for case in claim.workload_cases:
            assert workload.figure_named(case.figure) is not None, claim.id
            key = WorkloadCase(workload=case.workload, values=case.values, variant=case.variant).key
            assert key in keys, claim.id


@pytest.mark.parametrize(
    ("own", "verdict"), [((10.0, 10.1), "holds"), ((14.9, 15.0), "does not hold"), ((12.0, 12.9), "unclear")]
)
def test_a_claim_about_a_workload_is_judged_by_its_run(own: tuple[float, float], verdict: str) -> None:
    """`overlap-total`: DDP has to be 1.23 times as fast as an exchange after the backward pass, which takes 15 s here."""
    claim = next(c for c in shipped_claims().claims if c.id == "overlap-total")
    run = _run_of(claim, {"ddp": own, "after_backward": (15.0, 15.0)})
    facts = Facts(data_sheet=lambda _: None, roof=lambda _: None, workload=WorkloadEvidence("w-1", run))
    found = assess(claim, facts)
    assert found.verdict == verdict
    assert found.run_ids == ("w-1",)
    if verdict == "holds":
        assert found.measured is not None
        assert found.measured.estimate == pytest.approx(1.49, rel=0.02)
    assert assess(claim, dataclasses.replace(facts, workload=None)).verdict == "not measured yet"
    failed = _run_of(claim, {"ddp": own, "after_backward": (15.0, 15.0)}, wrong="ddp")
    assert assess(claim, dataclasses.replace(facts, workload=WorkloadEvidence("w-1", failed))).verdict == "wrong result"


def _run_of(claim: Claim, times: dict[str, tuple[float, float]], wrong: str = "") -> WorkloadRun:
    """A run of the cases of a claim whose samples go from one time to the other."""
    workload = workloads()[claim.workload_cases[0].workload].workload
    devices = _two_gpus()
    results = []
    for case in claim.workload_cases:
        low, high = times[case.variant]
        samples = tuple(low + (high - low) * i / 19 for i in range(20))
        samples = tuple(samples[i * 7 % 20] for i in range(20))
        value = Measured(
            estimate=(low + high) / 2, low=low, high=high, samples=samples, rounds=tuple(range(20)), again=samples
        )
        results.append(
            WorkloadResult(
                case=WorkloadCase(workload=case.workload, values=case.values, variant=case.variant),
                values={case.figure: value},
                failure=Failure(stage="wrong") if case.variant == wrong else None,
            )
        )
    plan = WorkloadPlan(
        workload=workload.name,
        cases=tuple(result.case for result in results),
        baseline=workload.baseline,
        devices=("cuda:0", "cuda:1"),
    )
    return WorkloadRun(
        id="w-1",
        title="",
        created_at="2026-11-27T12:00:00Z",
        environment=environment_of(devices[0], ()),
        devices=tuple(devices[:2]),
        declared=workload,
        plan=plan,
        results=tuple(results),
    )
