"""Launch costs: an empty kernel on the device, and the host's time from idle until Python continues (as a result's enqueue)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median

import torch
from torch import Tensor

from kernelviz.core import Device, LaunchCost, Roof
from kernelviz.measure.roofs.candidate import Candidate, Contest, measured
from kernelviz.measure.timing.host_calls import Calls
from kernelviz.metrics.statistics import median_interval
from kernelviz.ops import Launch

BLOCKS, CALLS, BLOCKS_A_TIME = 80, 50, 4
"""Least number of blocks, calls of a block, and blocks that are measured after each other roof."""
BEST_SHARE = 4
"""The fastest quarter of the blocks counts, because a floor is a time that was reached: of 40 blocks in 20 ms the median was
8-14 % longer in one calibration than in the next, for all three calls, because of the host's other load."""


def empty_kernel(device: Device, contest: Contest) -> Iterator[Roof | None]:
    how = "an empty kernel's own time on the device, one block of 32 threads"
    launch = _empty_kernel(device)
    yield contest.best(
        [Candidate(Roof(name="launch", what="empty_kernel", how=how), launch, more_launches=(launch,) * 4)]
    )


@dataclass(slots=True)
class _HostLaunch:
    what: LaunchCost
    description: str
    calls: Calls
    medians: list[float] = field(default_factory=list)

    def take(self, blocks: int) -> None:
        for _ in range(blocks):
            self.medians.append(median(self.calls.eager(CALLS)[1]))

    def roof(self) -> Roof:
        best = sorted(self.medians)[: max(1, len(self.medians) // BEST_SHARE)]
        how = (
            f"host clock round {self.description}, from idle until Python goes on; the fastest quarter of "
            f"{len(self.medians)} blocks of {CALLS} calls"
        )
        return measured(Roof(name="launch", what=self.what, how=how), None, median_interval(best), timer="host")


class HostLaunches:
    """The host's part of launches, measured in short parts between the other roofs, because the host's speed drifts."""

    def __init__(self, device: Device) -> None:
        x, y = (torch.ones(1, device=device.id) for _ in range(2))
        out = torch.empty_like(x)
        self._device = device
        self._launched = [
            self._prepared("torch_call", "torch.add of one element", lambda: torch.add(x, y, out=out)),
        ]
        if device.kind == "cuda":
            empty = _empty_kernel(device)
            self._launched += [
                self._prepared("kernel_launch", "an empty kernel through cuda.core", empty),
                self._prepared("graph_launch", "replay of a graph of one empty kernel", _replay_of(empty)),
            ]
        for launched in self._launched:
            launched.calls.eager(CALLS)

    def _prepared(self, what: LaunchCost, description: str, launch: Launch) -> _HostLaunch:
        on_gpu = self._device.kind == "cuda"
        wait = torch.cuda.current_stream(self._device.id).synchronize if on_gpu else lambda: None
        return _HostLaunch(what, description, Calls(launch, wait))

    def take(self) -> None:
        for launched in self._launched:
            launched.take(BLOCKS_A_TIME)

    def roofs(self) -> Iterator[Roof]:
        for launched in self._launched:
            launched.take(max(0, BLOCKS - len(launched.medians)))
            yield launched.roof()


def _empty_kernel(device: Device) -> Callable[[], Tensor]:
    from kernelviz.measure.timing.kernels import SOURCE
    from kernelviz.ops.kernels import nvrtc

    kernel = nvrtc.kernel(SOURCE, "kernelviz_empty")
    seen = torch.zeros(1, device=device.id)

    def launch() -> Tensor:
        nvrtc.launch(kernel, 1, 32)
        return seen

    return launch


def _replay_of(launch: Callable[[], Tensor]) -> Callable[[], Tensor]:
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        seen = launch()

    def replay() -> Tensor:
        graph.replay()
        return seen

    return replay
