"""What a launch costs: an empty kernel on the device, and the host from idle until Python goes on (as a result's enqueue)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from kernelviz.core.result import Block
from kernelviz.core.run import Device, LaunchCost, Roof
from kernelviz.measure.calls import Calls
from kernelviz.measure.roofs.candidate import Candidate, Contest, measured
from kernelviz.metrics.statistics import figure_interval
from kernelviz.ops import Launch

BLOCKS, CALLS = 40, 50


def roofs(device: Device, contest: Contest) -> Iterator[Roof | None]:
    if device.kind == "cuda":
        yield from _gpu(device, contest)
    x, y = (torch.ones(1, device=device.id) for _ in range(2))
    out = torch.empty_like(x)
    yield _host_cost("torch_call", lambda: torch.add(x, y, out=out), device, "torch.add of one element")


def _gpu(device: Device, contest: Contest) -> Iterator[Roof | None]:
    empty = _empty_kernel(device)
    how = "an empty kernel's own time on the device, one block of 32 threads"
    yield contest.best([Candidate(Roof(name="launch", what="empty_kernel", how=how), empty)])
    yield _host_cost("kernel_launch", empty, device, "an empty kernel through cuda.core")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        seen = empty()

    def replay() -> Tensor:
        graph.replay()
        return seen

    yield _host_cost("graph_launch", replay, device, "replay of a graph of one empty kernel")


def _empty_kernel(device: Device) -> Callable[[], Tensor]:
    from kernelviz.measure.instruments import SOURCE
    from kernelviz.ops import nvrtc

    kernel = nvrtc.kernel(SOURCE, "kernelviz_empty")
    seen = torch.zeros(1, device=device.id)

    def launch() -> Tensor:
        nvrtc.launch(kernel, 1, 32)
        return seen

    return launch


def _host_cost(what: LaunchCost, launch: Launch, device: Device, words: str) -> Roof:
    calls = Calls(launch, torch.cuda.current_stream(device.id).synchronize if device.kind == "cuda" else lambda: None)
    samples: list[float] = []
    blocks: list[Block] = []
    calls.eager(CALLS)
    for _ in range(BLOCKS):
        blocks.append(Block(size=CALLS, started_s=time.time()))
        samples += calls.eager(CALLS)[1]
    how = f"host clock round {words}, from idle until Python goes on"
    return measured(Roof(name="launch", what=what, how=how), None, figure_interval(samples, blocks), timer="host")
