"""The rate of the tensor cores without memory: a loop of their instructions on operands in registers and shared memory.

The third ceiling of a matrix product, beside the data sheet and the issue rate at the measured clock: the same instructions on
the same kind of data, under the same power cap, but without moving the data.
"""

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from kernelviz.core import Device, Roof
from kernelviz.measure.roofs.candidate import Candidate, Contest
from kernelviz.ops.kernels import nvrtc

SOURCE = Path(__file__).with_name("tensor_loop.cu")
STAGES, STEPS = 2, 4
"""Of wgmma: stages of 128 bytes of K, and instructions in each. Of mma.sync: times that all tiles are multiplied in a round.
tensor_loop.cu has the same values."""
TILES_M, TILES_N = 2, 4
"""Of mma.sync: independent products of a warp. tensor_loop.cu has the same values."""
STEP_BYTES = 32
"""K of one instruction, in bytes of its format."""
WARPGROUPS = (2, 1)
"""Of wgmma: warpgroups of a block, one block on each SM. Two keep the tensor cores busy while one of them waits."""
WGMMA_ROUNDS, MMA_ROUNDS, MMA_THREADS = 1600, 512, 256
"""About 1 ms on an H200 (128 cycles an instruction, at the issue rate) and on an A100, so that filling the shared memory and the
launch, about 5 us, are half a percent."""
WGMMA, MMA = frozenset({(9, 0)}), frozenset({(8, 0), (8, 6), (8, 9), (12, 0)})
"""Compute capabilities with either instruction at the full rate. mma.sync of Hopper reaches 65 % of it, and the data-centre cards
of Blackwell have instructions of their own, so they are not here."""


@dataclass(frozen=True, slots=True)
class Format:
    """A precision, its type in torch, its number in tensor_loop.cu, and the least compute capability."""

    precision: str
    dtype: torch.dtype
    number: int
    since: tuple[int, int] = (8, 0)

    @property
    def instruction_k(self) -> int:
        """The length of the products of one instruction."""
        return STEP_BYTES // self.dtype.itemsize


FORMATS = (
    Format("bf16", torch.bfloat16, 0),
    Format("fp16", torch.float16, 1),
    Format("tf32", torch.float32, 2),
    Format("fp8", torch.float8_e4m3fn, 3, (8, 9)),
)


def tensor_core_roofs(device: Device, contest: Contest) -> Iterator[Roof | None]:
    """The fastest loop of each format that the tensor cores of the device have; nothing where no loop is known for them."""
    capability, where = device.compute_capability or (0, 0), torch.device(device.id)
    for number in FORMATS:
        if capability in WGMMA:
            yield contest.best([wgmma_candidate(number, where, warpgroups) for warpgroups in WARPGROUPS])
        elif capability in MMA and capability >= number.since:
            yield contest.best([mma_candidate(number, where)])


def wgmma_flop(number: Format, blocks: int, warpgroups: int, rounds: int) -> int:
    """The flop of a call: each instruction multiplies 64 rows by 256 columns.

    >>> wgmma_flop(FORMATS[0], blocks=1, warpgroups=1, rounds=1) == STAGES * STEPS * 2 * 64 * 256 * 16
    True
    """
    return blocks * warpgroups * rounds * STAGES * STEPS * 2 * 64 * 256 * number.instruction_k


def mma_flop(number: Format, blocks: int, rounds: int) -> int:
    """The flop of a call: each instruction of a warp multiplies 16 rows by 8 columns."""
    warps = blocks * MMA_THREADS // 32
    return warps * rounds * STEPS * TILES_M * TILES_N * 2 * 16 * 8 * number.instruction_k


def operands(number: Format, size_bytes: int, where: torch.device) -> Tensor:
    """So many bytes of normal numbers in the format."""
    return torch.randn(size_bytes // number.dtype.itemsize, device=where).to(number.dtype)


def wgmma_candidate(number: Format, where: torch.device, warpgroups: int) -> Candidate:
    """One block on each SM, of so many warpgroups. K of the operands is contiguous."""
    blocks, rounds = torch.cuda.get_device_properties(where).multi_processor_count, WGMMA_ROUNDS // warpgroups
    shared_bytes = STAGES * 128 * (warpgroups * 64 + 256)
    kernel = nvrtc.kernel(
        SOURCE,
        "kernelviz_wgmma_loop",
        {"FORMAT": str(number.number), "WARPGROUPS": str(warpgroups)},
        shared_bytes=shared_bytes,
        specific=True,
    )
    how = f"own loop of wgmma m64n256k{number.instruction_k} from shared memory, {warpgroups} warpgroups on each SM, normal data"
    flop = wgmma_flop(number, blocks, warpgroups, rounds)
    return _candidate(number, kernel, blocks, 128 * warpgroups, shared_bytes, rounds, flop, how, where)


def mma_candidate(number: Format, where: torch.device) -> Candidate:
    """As many blocks as are resident, with all operands in registers."""
    kernel = nvrtc.kernel(SOURCE, "kernelviz_mma_loop", {"FORMAT": str(number.number)})
    blocks = nvrtc.resident(kernel, MMA_THREADS)
    how = f"own loop of mma.sync m16n8k{number.instruction_k} from registers, {blocks} blocks of {MMA_THREADS}, normal data"
    flop = mma_flop(number, blocks, MMA_ROUNDS)
    return _candidate(number, kernel, blocks, MMA_THREADS, 0, MMA_ROUNDS, flop, how, where)


def _candidate(
    number: Format,
    kernel: object,
    blocks: int,
    threads: int,
    shared_bytes: int,
    rounds: int,
    flop: int,
    how: str,
    where: torch.device,
) -> Candidate:
    """The loop as a candidate. Its only output is a number that is never written, because outputs are poisoned."""
    size_bytes = shared_bytes or threads * 4 * (TILES_M * 4 + TILES_N * 2)
    numbers, sink = operands(number, size_bytes, where), torch.zeros(1, device=where)
    arguments = (ctypes.c_int(rounds), ctypes.c_float(math.nan))

    def launch() -> Tensor:
        nvrtc.launch(
            kernel, blocks, threads, numbers.data_ptr(), *arguments, sink.data_ptr(), shared_bytes=shared_bytes
        )
        return sink

    return Candidate(Roof(name="mma", precision=number.precision, unit="tensor", how=how), launch, float(flop))
