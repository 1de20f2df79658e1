"""The kernel of `histogram` for few bytes, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

import pytest
import torch
from emulator import MODES, Emulator, Grid, Mode, needs_compiler
from torch import Tensor

from kernelviz.ops.histogram.cuda import BINS
from kernelviz.ops.histogram.one_block import SOURCE, one_block

pytestmark = needs_compiler
SIZES = (1, 255, 256, 257, 1000, 1025, 4099, 2**14)
"""Fewer bytes than threads and as many, several a thread."""


def counted(emulator: Emulator, x_N: Tensor, mode: Mode, change: tuple[str, str] = ("", "")) -> tuple[Tensor, str]:
    """The counts that the kernel leaves in a tensor of -1, with one behind the last, and the emulator's error."""
    threads, each = one_block(x_N.numel())
    text = SOURCE.read_text()
    assert change[0] in text
    defines = {"THREADS": str(threads), "EACH": str(each)}
    program = emulator.program(SOURCE, "histogram_one_block", defines, text=text.replace(*change))
    out = torch.full((BINS + 1,), -1)
    error = program.run([x_N, out, x_N.numel()], Grid(blocks=1, threads=threads), mode)
    return out, error


def right(x_N: Tensor) -> Tensor:
    """The counts, and what is behind them."""
    return torch.cat([torch.bincount(x_N.long(), minlength=BINS), torch.tensor([-1])])


@pytest.mark.parametrize("mode", MODES, ids=("in_order", "in_reverse"))
def test_bytes_are_counted(mode: Mode, emulator: Emulator) -> None:
    for n in SIZES:
        for offset in (0, 1):
            x_N = torch.randint(BINS, (n + offset,), dtype=torch.uint8)[offset:]
            counts, error = counted(emulator, x_N, mode)
            assert error == ""
            assert torch.equal(counts, right(x_N)), (n, offset)


MISTAKES = {
    "the last byte is left out": ("? __ldg(x + i) : BINS", "&& i + 1 < n ? __ldg(x + i) : BINS"),
    "all bytes of a thread are its first one": ("__ldg(x + i) : BINS", "__ldg(x + threadIdx.x) : BINS"),
    "threads without a byte count": ("__ldg(x + i) : BINS", "__ldg(x + i) : 0"),
    "counters are not cleared": ("table[bin] = 0;", "table[bin] = 1;"),
    "counters are stored before all is counted": (
        "    __syncthreads();\n    for (int bin = threadIdx.x; bin < BINS; bin += THREADS) {\n        out",
        "    for (int bin = threadIdx.x; bin < BINS; bin += THREADS) {\n        out",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gives_wrong_counts(mistake: str, emulator: Emulator) -> None:
    x_N = torch.arange(1999, 0, -1).remainder(251).to(torch.uint8)
    results = (counted(emulator, x_N, mode, MISTAKES[mistake]) for mode in MODES)
    assert any(error or not torch.equal(counts, right(x_N)) for counts, error in results)
