"""Launch costs: the time of an empty kernel on the device, and the host's time of a launch until it returns."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

import torch
from torch import Tensor

from kernelviz.core import Device, LaunchCost, Roof
from kernelviz.measure.roofs.candidate import Candidate, Contest, fastest_quarter, measured
from kernelviz.measure.timing import kernels
from kernelviz.measure.timing.timer import Calls
from kernelviz.metrics.statistics import median_interval
from kernelviz.ops import Launch

BLOCKS, CALLS, BLOCKS_A_TIME = 80, 50, 4
"""The minimum number of blocks, the calls in a block, and the blocks that are measured after each other roof. The fastest
quarter is used: the median of 40 blocks in 20 ms was 8-14 % longer in one calibration than in the next, for all three calls,
because of other load on the host."""


def empty_kernel(device: Device, contest: Contest) -> Iterator[Roof | None]:
    how = "an empty kernel's own time on the device, one block of 32 threads"
    launch = kernels.empty_launch(torch.zeros(1, device=device.id))
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
        self.medians += [median(self.calls.eager(CALLS)[1]) for _ in range(blocks)]

    def roof(self) -> Roof:
        how = (
            f"host clock round {self.description}, from idle until Python goes on; the fastest quarter of "
            f"{len(self.medians)} blocks of {CALLS} calls"
        )
        return measured(
            Roof(name="launch", what=self.what, how=how),
            None,
            median_interval(fastest_quarter(self.medians)),
            timer="host",
        )


class HostLaunches:
    """The host's part of launches, measured in short parts between the other roofs, because the host's speed drifts."""

    def __init__(self, device: Device) -> None:
        x, y = (torch.ones(1, device=device.id) for _ in range(2))
        out = torch.empty_like(x)
        launches: list[tuple[LaunchCost, str, Launch]] = [
            ("torch_call", "torch.add of one element", lambda: torch.add(x, y, out=out))
        ]
        on_gpu = device.kind == "cuda"
        wait = torch.cuda.current_stream(device.id).synchronize if on_gpu else lambda: None
        if on_gpu:
            empty = kernels.empty_launch(torch.zeros(1, device=device.id))
            launches += [
                ("kernel_launch", "an empty kernel through cuda.core", empty),
                ("graph_launch", "replay of a graph of one empty kernel", _replay_of(empty)),
            ]
        self.launched = [_HostLaunch(what, how, Calls(launch, wait)) for what, how, launch in launches]
        for launched in self.launched:
            launched.calls.eager(CALLS)

    def take(self) -> None:
        for launched in self.launched:
            launched.take(BLOCKS_A_TIME)

    def roofs(self, contest: Contest) -> Iterator[Roof | None]:
        for launched in self.launched:
            launched.take(max(0, BLOCKS - len(launched.medians)))

            def again(launched: _HostLaunch = launched) -> Roof | None:
                launched.take(BLOCKS)
                return None if contest.stop() else launched.roof()

            yield contest.settled(launched.roof(), again)


def _replay_of(launch: Launch) -> Launch:
    launch()
    graph, outputs = kernels.captured(launch)

    def replay() -> Tensor | tuple[Tensor, ...]:
        graph.replay()
        return outputs

    return replay
