"""The roofs of a device: every kernel compiles, the best of the candidates wins, and a CPU is calibrated for real."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch
from torch import Tensor

from kernelviz.core.errors import DeviceError
from kernelviz.core.events import Event, RoofDone
from kernelviz.core.problem import Method
from kernelviz.core.result import Kernel, LaunchMode, Timer
from kernelviz.core.run import Device, Roof
from kernelviz.formats.validation import check_roof
from kernelviz.hardware.thread_times import ThreadTimes, thread_times
from kernelviz.machine_code.cubin import read_cubin
from kernelviz.machine_code.disassembly import instructions_of
from kernelviz.measure import roofs
from kernelviz.measure.roofs import arithmetic, calibrate, streams, tensor_loops
from kernelviz.measure.roofs.candidate import CHOOSING_ROUNDS, Candidate, Contest, Effort, measured, without_the_wait
from kernelviz.measure.session.inputs import as_tuple
from kernelviz.measure.timing.timer import BlockSamples, BoundLaunch, Calls, DeviceTimer, Timed
from kernelviz.metrics.issue_rate import FLOP_PER_SM_AND_CLOCK
from kernelviz.metrics.roof_checks import refusal
from kernelviz.metrics.statistics import Interval
from kernelviz.ops.catalog.variant import TARGETS
from kernelviz.ops.kernels import nvrtc

QUICK = Effort(choosing=Method(budget_s=1e-9), deciding=Method(budget_s=1e-3), host_product_s=1e-3)
SMALL = Device(id="cpu", kind="cpu", name="a CPU", uuid="cpu", last_level_cache_bytes=2**20)


class Quick:
    """A call, timed once a block."""

    launch_mode: LaunchMode = "call"
    kernels: tuple[Kernel, ...] = ()
    notes: tuple[str, ...] = ()
    correction_s = 0.0

    def __init__(self, place: BoundLaunch, warm: bool) -> None:
        self.launches, self.warm = [place], warm

    def run_once(self) -> tuple[Tensor, ...]:
        return as_tuple(self.launches[0].launch())


class QuickTimer(DeviceTimer):
    """Blocks of one call by the host's clock; or, where the launch has a planted time, that."""

    name: Timer = "host"
    worn = None

    def __init__(self, planted: dict[int, float] | None = None) -> None:
        self.planted = planted or {}
        self.prepared: list[Quick] = []
        self.taken = 0

    def refine(self, timed: Timed) -> None: ...

    def prepare(self, first: BoundLaunch, others: Iterable[BoundLaunch] = (), *, warm: bool = False) -> Timed:
        self.prepared.append(Quick(first, warm))
        return self.prepared[-1]

    def block_s(self, timed: Timed) -> float:
        return 1e-3

    def collect(self, rounds: Sequence[Sequence[Timed]]) -> list[list[BlockSamples]]:
        return [[self._block(t) for t in r] for r in rounds]

    def _block(self, timed: Timed) -> BlockSamples:
        self.taken += 1
        launch = timed.launches[0].launch
        begun = time.perf_counter()
        launch()
        took = self.planted.get(id(launch), time.perf_counter() - begun)
        return BlockSamples([took], [took], begun, clock_hz=1e9)

    def describe(self, timed: Timed) -> str:
        return "quick"

    def flush(self) -> None: ...

    def sustain(self, timed: Timed, blocks: int, before_s: float, stop: Callable[[], bool]) -> list[BlockSamples]:
        raise NotImplementedError

    def calls(self, place: BoundLaunch) -> Calls:
        raise NotImplementedError

    def waits_s(self, coming_s: float) -> float:
        return 0.0

    def rest(self, coming_s: float) -> None: ...

    def refused(self) -> str | None:
        return None


def planted(times: Sequence[float], amounts: Sequence[float]) -> tuple[QuickTimer, list[Candidate]]:
    """Candidates called 0, 1, … that take these times for these amounts."""
    launches: list[Callable[[], Tensor]] = [lambda i=i: torch.zeros(1) + i for i in range(len(times))]  # type: ignore[misc]
    timer = QuickTimer({id(launch): t for launch, t in zip(launches, times, strict=True)})
    made = [
        Candidate(Roof(name="copy", level="dram", moved_bytes=8, how=str(i)), launch, amount)
        for i, (launch, amount) in enumerate(zip(launches, amounts, strict=True))
    ]
    return timer, made


def test_the_best_rate_wins_not_the_shortest_time() -> None:
    timer, made = planted([4e-6, 1e-6, 3e-6, 2e-6], [400.0, 10.0, 360.0, 200.0])
    found = Contest(timer, lambda: False, QUICK).best(made)
    assert found is not None
    assert (found.how, found.bandwidth_bytes_per_s) == ("2", pytest.approx(120e6))
    assert (found.rate_flop_per_s, found.time_s, found.clock_hz, found.timer) == (None, None, 1e9, "host")
    assert found.low == pytest.approx(120e6)
    assert found.measured_at.endswith("+00:00")


def test_only_the_finalists_are_measured_further() -> None:
    timer, made = planted([4e-4, 1e-4, 3e-4], [1.0, 1.0, 1.0])
    contest = Contest(timer, lambda: False, QUICK)
    assert contest.best(made) is not None
    assert timer.taken == 3 * CHOOSING_ROUNDS + 2 * 10
    assert [r.how for r in contest.tried] == ["1", "2", "0"]
    timer, made = planted([4e-4, 1e-4], [1.0, 1.0])
    assert Contest(timer, lambda: False, QUICK).best(made) is not None
    assert timer.taken == 2 * 10


class NoisyTimer(QuickTimer):
    """Planted times with 5 % of noise; counts the blocks of each launch."""

    def __init__(self, planted: dict[int, float] | None = None) -> None:
        super().__init__(planted)
        self.random, self.blocks = random.Random(3), Counter[int]()

    def _block(self, timed: Timed) -> BlockSamples:
        at = id(timed.launches[0].launch)
        self.blocks[at] += 1
        took = self.planted[at] * self.random.gauss(1, 0.05)
        return BlockSamples([took], [took], time.perf_counter(), clock_hz=1e9)


@pytest.mark.parametrize(("second_s", "goes_on"), [(2e-4, False), (1.01e-4, True)])
def test_a_finalist_that_is_clearly_slower_is_not_measured_on(second_s: float, goes_on: bool) -> None:
    quick, made = planted([second_s, 1e-4], [1.0, 1.0])
    timer = NoisyTimer(quick.planted)
    effort = Effort(choosing=Method(budget_s=1e-9), deciding=Method(budget_s=0.05, half_width=1e-6))
    found = Contest(timer, lambda: False, effort).best(made)
    assert found is not None
    second, first = (timer.blocks[id(c.launch)] for c in made)
    assert first >= 20
    assert second == (first if goes_on else 10)
    if not goes_on:
        assert found.how == "1"


def test_a_clear_roof_does_not_wait_for_the_interval_of_what_is_slower() -> None:
    """The leader's interval is wide enough for this half-width, the other's is not asked."""
    quick, made = planted([4e-4, 1e-4], [1.0, 1.0])
    timer = NoisyTimer(quick.planted)
    effort = Effort(choosing=Method(budget_s=1e-9), deciding=Method(budget_s=60.0, half_width=0.2))
    found = Contest(timer, lambda: False, effort).best(made)
    assert found is not None
    assert timer.blocks.total() == 2 * 10


class UneasyTimer(QuickTimer):
    """Takes the given times in turn, ten blocks each, then the last one: a machine under load that calms down, or does not."""

    def __init__(self, *series: Sequence[float]) -> None:
        super().__init__()
        self.series = series

    def _block(self, timed: Timed) -> BlockSamples:
        took = self.series[min(self.taken // 10, len(self.series) - 1)][self.taken % 10]
        self.taken += 1
        return BlockSamples([took], [took], time.perf_counter(), clock_hz=1e9)


ONE_SERIES = Effort(choosing=Method(budget_s=1e-9), deciding=Method(budget_s=1e-9))
CALM, WILD = [1e-4] * 10, [1e-4, 9e-4] * 5


@pytest.mark.parametrize(
    ("series", "blocks", "usable"), [((WILD, CALM), 20, True), ((WILD,), 30, False), ((CALM,), 10, True)]
)
def test_a_wide_roof_is_measured_again_and_then_refused(
    series: tuple[list[float], ...], blocks: int, usable: bool
) -> None:
    timer = UneasyTimer(*series)
    (candidate,) = planted([1.0], [1.0])[1]
    found = Contest(timer, lambda: False, ONE_SERIES).best([candidate])
    assert found is not None
    assert timer.taken == blocks
    assert (refusal(found) is None) == usable


def ratios(*waited: float) -> Iterator[ThreadTimes]:
    """The times before and after each attempt, in which the threads waited for this part of the time."""
    ran_s = waited_s = 0.0
    for fraction in waited:
        yield ThreadTimes(ran_s, waited_s)
        ran_s, waited_s = ran_s + 1 - fraction, waited_s + fraction
        yield ThreadTimes(ran_s, waited_s)


@pytest.mark.parametrize(
    ("waited", "blocks", "high", "usable"),
    [
        ((0.0,), 10, 1.0, True),
        ((0.04,), 10, 1.0, True),
        ((0.1,), 10, 1 / 0.9, True),
        ((0.5, 0.01), 20, 1.0, True),
        ((0.5, 0.6, 0.5), 30, 2.0, False),
        ((1.0, 1.0, 1.0), 30, 1000.0, False),
    ],
)
def test_a_roof_of_a_processor_that_others_used_is_measured_again_and_then_refused(
    waited: tuple[float, ...], blocks: int, high: float, usable: bool
) -> None:
    """However even its blocks are: half of a processor gives half of its rate, each time."""
    timer = UneasyTimer(CALM)
    (candidate,) = planted([1.0], [1.0])[1]
    times = ratios(*waited)
    found = Contest(timer, lambda: False, ONE_SERIES, times=lambda: next(times)).best([candidate])
    assert found is not None
    assert timer.taken == blocks
    assert next(times, None) is None, "each attempt was judged by its own times"
    assert found.bandwidth_bytes_per_s == pytest.approx(1e4)
    assert found.high == pytest.approx(high * 1e4)
    assert (refusal(found) is None) == usable


def test_a_time_is_shorter_without_the_wait_and_what_has_no_interval_stays() -> None:
    launch = Roof(name="launch", what="torch_call", time_s=4e-6, low=3.9e-6, high=4.2e-6)
    assert without_the_wait(launch, 0.5) == msgspec.structs.replace(launch, low=2e-6)
    bare = Roof(name="copy", bandwidth_bytes_per_s=1e9)
    assert without_the_wait(bare, 0.5) is bare


def test_a_system_that_does_not_count_the_wait_changes_nothing() -> None:
    timer = UneasyTimer(CALM)
    (candidate,) = planted([1.0], [1.0])[1]
    found = Contest(timer, lambda: False, ONE_SERIES, times=lambda: None).best([candidate])
    assert found is not None
    assert (timer.taken, found.high) == (10, pytest.approx(1e4))


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_only_the_threads_of_a_processor_s_calibration_are_asked(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(roofs, "Contest", lambda *_, **given: asked.append(given["times"]))
    monkeypatch.setattr(roofs, "_kinds", lambda *_: ())
    monkeypatch.setattr(roofs.transfers, "Transfers", lambda *_: None)
    monkeypatch.setattr(roofs.launches, "HostLaunches", lambda *_: None)
    calibrate(replace_device(SMALL, kind), QuickTimer(), lambda event: None, lambda: False)
    assert asked == [thread_times if kind == "cpu" else None]


def replace_device(device: Device, kind: str) -> Device:
    return msgspec.structs.replace(device, kind=kind)


def test_a_cache_slower_than_memory_is_measured_again_and_then_refused() -> None:
    memory = Roof(name="copy", level="dram", moved_bytes=2**30, bandwidth_bytes_per_s=1.5e4)
    cached = Candidate(Roof(name="copy", level="l2", moved_bytes=8), lambda: torch.zeros(1), 1.0)
    timer = UneasyTimer([1e-3] * 10, CALM)
    contest = Contest(timer, lambda: False, ONE_SERIES, results=[memory])
    assert contest.best([cached], warm=True) == contest.results[-1]
    assert timer.taken == 30, "1e4 bytes/s is still less than memory's"
    slow = refusal(contest.results[-1], contest.results)
    assert slow is not None
    assert slow.kind == "slower_than_memory"
    faster = msgspec.structs.replace(memory, bandwidth_bytes_per_s=0.5e4)
    timer = UneasyTimer([1e-3] * 10, CALM)
    assert Contest(timer, lambda: False, ONE_SERIES, results=[faster]).best([cached], warm=True) is not None
    assert timer.taken == 20


def test_measuring_again_ends_with_its_budget() -> None:
    """A calibration of an H200 takes 25 s, and must not take three times as long because the machine is busy."""
    timer = UneasyTimer(WILD)
    (candidate,) = planted([1.0], [1.0])[1]
    contest = Contest(timer, lambda: False, replace(ONE_SERIES, again_s=0.0))
    assert contest.best([candidate]) is not None
    assert timer.taken == 10


def test_without_candidates_or_when_stopped_there_is_no_roof() -> None:
    timer, made = planted([1e-6], [1.0])
    assert Contest(timer, lambda: False, QUICK).best([]) is None
    assert Contest(timer, lambda: True, QUICK).best(made) is None
    assert timer.taken == 0


def test_a_rate_has_its_interval_turned_round_and_a_time_has_it_as_it_is() -> None:
    time_s = Interval(2e-6, 1e-6, 4e-6)
    rate = measured(Roof(name="fma", precision="fp32"), 8.0, time_s, timer="cupti", clock_hz=1e9)
    assert (rate.rate_flop_per_s, rate.low, rate.high) == (pytest.approx(4e6), pytest.approx(2e6), pytest.approx(8e6))
    launch = measured(Roof(name="launch", what="torch_call"), None, time_s, timer="host")
    assert (launch.time_s, launch.low, launch.high) == (2e-6, 1e-6, 4e-6)
    unsure = measured(Roof(name="copy"), 8.0, Interval(2e-6, None, None), timer="host")
    assert (unsure.bandwidth_bytes_per_s, unsure.low, unsure.high) == (pytest.approx(4e6), None, None)


def test_a_cpu_is_calibrated() -> None:
    timer = QuickTimer()
    events: list[Event] = []
    calibrate(SMALL, timer, events.append, lambda: False, QUICK)
    roofs = [e.roof for e in events if isinstance(e, RoofDone)]
    assert len({r.key for r in roofs}) == len(roofs) == len(events)
    for i, roof in enumerate(roofs):
        check_roof(roof, f"$[{i}]")
        assert roof.measured_at
    levels = {level: {r.name for r in roofs if r.level == level} for level in ("dram", "l2")}
    assert levels["dram"] == levels["l2"] == set(streams.MIXES)
    assert all(3 * 2**20 < (r.moved_bytes or 0) <= 2**22 for r in roofs if r.level == "dram")
    assert all(2**18 < (r.moved_bytes or 0) <= 2**19 for r in roofs if r.level == "l2")
    assert [r.precision for r in roofs if r.name == "matmul"] == ["fp32", "bf16", "fp64"]
    assert [r.what for r in roofs if r.name == "launch"] == ["torch_call"]
    assert sum(t.warm for t in timer.prepared) == len(streams.MIXES)


def test_a_calibration_ends_when_it_is_stopped() -> None:
    events: list[Event] = []
    calibrate(SMALL, QuickTimer(), events.append, lambda: len(events) == 2, QUICK)
    assert len(events) == 2


class BlindOnce(QuickTimer):
    """Cannot time what is warm."""

    def prepare(self, first: BoundLaunch, others: Iterable[BoundLaunch] = (), *, warm: bool = False) -> Timed:
        if warm:
            raise RuntimeError("no stamps came")
        return super().prepare(first, others, warm=warm)


def test_what_cannot_be_measured_costs_the_other_roofs_nothing() -> None:
    events: list[Event] = []
    with pytest.raises(DeviceError, match=r"not measured: streams \(no stamps came\); all other roofs were"):
        calibrate(SMALL, BlindOnce(), events.append, lambda: False, QUICK)
    names = {e.roof.name for e in events if isinstance(e, RoofDone)}
    assert {"matmul", "launch"} < names


def test_the_mix_one_to_two_writes_every_element_twice() -> None:
    source, target = torch.arange(8192.0), torch.zeros(3 * 8192)
    _, launch = streams.host_stream("read1_write2", source, target, 8192)
    launch()
    assert target[: 2 * 8192].view(2, 2, 4096)[:, 0].reshape(-1).equal(source)
    assert target[: 2 * 8192].view(2, 2, 4096)[:, 1].reshape(-1).equal(source)
    assert target[2 * 8192 :].count_nonzero() == 0


def test_gpu_products_name_their_units() -> None:
    def offered(capability: tuple[int, int]) -> dict[str, str | None]:
        device = Device(id="cuda:0", kind="cuda", name="a GPU", uuid="u", compute_capability=capability)
        return {p.precision: p.unit for p in arithmetic.gpu_products(device)}

    assert offered((9, 0)) == {
        "fp32": "vector", "tf32": "tensor", "fp16": "tensor", "bf16": "tensor", "fp64": "tensor", "fp8": "tensor",
        "int8": "tensor",
    }  # fmt: skip
    assert "fp8" not in offered((8, 0))
    assert offered((8, 6))["fp64"] == "vector"


_MIXES = [f"{r}_{w}_{n}" for r, w in streams.MIXES.values() for n in (1, 4)]
KERNELS = (
    *(f"kernelviz_stream_{mix}_{hint}" for mix in _MIXES for hint in ("cached", "streaming")),
    *(f"kernelviz_cached_stream_{mix}" for mix in _MIXES),
    *(f"kernelviz_fma_{f.precision}" for f in arithmetic.FORMATS),
)


@pytest.mark.parametrize("arch", TARGETS)
def test_every_kernel_compiles(arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")
    monkeypatch.setenv("KERNELVIZ_CACHE", str(tmp_path))
    cubin = nvrtc.compile_cubin(streams.SOURCE, arch)
    assert cubin.startswith(b"\x7fELF")
    assert [name for name in KERNELS if name.encode() + b"\0" not in cubin] == []


def test_the_kernel_file_and_the_host_agree_on_the_number_of_multiply_adds() -> None:
    constants = dict(re.findall(r"constexpr int (\w+) = (\d+);", streams.SOURCE.read_text()))
    assert (int(constants["CHAINS"]), int(constants["UNROLLED"])) == (arithmetic.CHAINS, arithmetic.UNROLLED)


LOOPS = [
    *(("sm_90a", f, {"WARPGROUPS": str(w)}) for f in tensor_loops.FORMATS for w in tensor_loops.WARPGROUPS),
    *(
        (f"sm_{major}{minor}", f, {})
        for major, minor in sorted(tensor_loops.MMA)
        for f in tensor_loops.FORMATS
        if (major, minor) >= f.since
    ),
]
"""Architecture, format and further macros of each loop of tensor-core instructions."""


@pytest.mark.parametrize(("arch", "number", "macros"), LOOPS, ids=lambda x: getattr(x, "precision", str(x)))
def test_a_loop_of_tensor_core_instructions_holds_nothing_else(
    arch: str, number: tensor_loops.Format, macros: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first and the last product of the unrolled loop nothing is loaded, stored or moved, and nothing is spilled."""
    pytest.importorskip("cuda.core")
    monkeypatch.setenv("KERNELVIZ_CACHE", str(tmp_path))
    name = "kernelviz_wgmma_loop" if macros else "kernelviz_mma_loop"
    cubin = nvrtc.compile_cubin(tensor_loops.SOURCE, arch, {"FORMAT": str(number.number), **macros}, name)
    (kernel,) = read_cubin(cubin).kernels
    opcodes = [i.opcode for i in instructions_of(cubin, read_cubin(cubin))[kernel.name]]
    products = [i for i, opcode in enumerate(opcodes) if "MMA" in opcode.split(".")[0]]
    a_round = tensor_loops.STEPS * (tensor_loops.STAGES if macros else tensor_loops.TILES_M * tensor_loops.TILES_N)
    assert len(products) % a_round == 0
    assert len({opcodes[i] for i in products}) == 1
    expected = {"bf16": "BF16", "fp16": "F32", "tf32": "TF32", "fp8": "E4M3"}[number.precision]
    assert expected in opcodes[products[0]].split(".")
    assert not [o for o in opcodes[products[0] : products[-1]] if o.startswith(("LD", "ST", "MOV", "FADD"))]
    assert not [o for o in opcodes if o.startswith(("LDL", "STL"))]


def test_the_loops_and_the_host_agree_on_the_number_of_products() -> None:
    constants = {
        name: int(value)
        for names in re.findall(r"constexpr int ((?:\w+ = \d+(?:, )?)+);", tensor_loops.SOURCE.read_text())
        for name, value in re.findall(r"(\w+) = (\d+)", names)
    }
    assert constants == {name: getattr(tensor_loops, name) for name in ("STEPS", "STAGES", "TILES_M", "TILES_N")}


def test_a_loop_of_products_is_rated_in_flop() -> None:
    """At 128 cycles an instruction, two warpgroups of 132 SMs reach 4,096 flop per SM and clock."""
    bf16, _, tf32, fp8 = tensor_loops.FORMATS
    rounds = tensor_loops.WGMMA_ROUNDS // 2
    cycles = 2 * rounds * tensor_loops.STAGES * tensor_loops.STEPS * 128
    for number, flop in ((bf16, 4096), (tf32, 2048), (fp8, 8192)):
        assert tensor_loops.wgmma_flop(number, 132, 2, rounds) == 132 * flop * cycles
    assert tensor_loops.mma_flop(bf16, 1, 1) == 8 * 4 * 8 * 2 * 16 * 8 * 16
    roof = measured(Roof(name="mma", precision="bf16"), 8.0, Interval(2e-6, 1e-6, 4e-6), timer="cupti", clock_hz=1e9)
    assert (roof.rate_flop_per_s, roof.bandwidth_bytes_per_s) == (pytest.approx(4e6), None)


def test_only_cards_whose_tensor_cores_are_known_have_a_loop() -> None:
    for capability in ((7, 5), (8, 7), (10, 0)):
        device = Device(id="cuda:0", kind="cuda", name="a GPU", uuid="u", compute_capability=capability)
        assert list(tensor_loops.tensor_core_roofs(device, Contest(QuickTimer(), lambda: False, QUICK))) == []
    assert set(FLOP_PER_SM_AND_CLOCK) == tensor_loops.WGMMA | tensor_loops.MMA
