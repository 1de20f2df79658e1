"""Multiply-adds in registers: the peak rate of a GPU's vector units, by precision."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernelviz.core import Device, Roof
from kernelviz.measure.roofs.candidate import Candidate, Contest
from kernelviz.measure.roofs.streams import SOURCE
from kernelviz.ops.kernels import nvrtc

CHAINS, UNROLLED = 8, 16
"""As in roofs.cu: independent chains per thread, and multiply-adds of each chain per round."""
_THREADS = 512


@dataclass(frozen=True, slots=True)
class Format:
    """A precision, its lanes per register, -1 and 1 as arguments, and the least compute capability."""

    precision: str
    lanes: int
    minus_one: Any
    one: Any
    rounds: int
    since: tuple[int, int] = (5, 3)


# 512 rounds of fp32 take some 0.26 ms on an H200; launch and tail are 0.5 % of that.
FORMATS = (
    Format("fp32", 1, ctypes.c_float(-1), ctypes.c_float(1), 512),
    Format("fp64", 1, ctypes.c_double(-1), ctypes.c_double(1), 256),
    Format("fp16", 2, ctypes.c_uint(0xBC00BC00), ctypes.c_uint(0x3C003C00), 512),
    Format("bf16", 2, ctypes.c_uint(0xBF80BF80), ctypes.c_uint(0x3F803F80), 512, (8, 0)),
)


def roofs(device: Device, contest: Contest) -> Iterator[Roof | None]:
    for number in FORMATS:
        if (device.compute_capability or (0, 0)) >= number.since:
            yield contest.best([_candidate(number, torch.device(device.id))])


def _candidate(number: Format, where: torch.device) -> Candidate:
    properties = torch.cuda.get_device_properties(where)
    blocks = properties.multi_processor_count * (properties.max_threads_per_multi_processor // _THREADS)
    flop = 2.0 * number.lanes * CHAINS * UNROLLED * number.rounds * blocks * _THREADS
    how = f"own kernel, {CHAINS} chains of multiply-adds a thread in registers, {blocks} blocks of {_THREADS}"
    kernel = nvrtc.kernel(SOURCE, f"kernelviz_fma_{number.precision}")
    sink = torch.zeros(2, device=where)

    def launch() -> Tensor:
        rounds = ctypes.c_int(number.rounds)
        nvrtc.launch(kernel, blocks, _THREADS, sink.data_ptr(), rounds, number.minus_one, number.one)
        return sink

    return Candidate(Roof(name="fma", precision=number.precision, unit="vector", how=how), launch, flop)
