"""CUDA C++ kernels of the backward passes of the normalisations for a few long rows, which several blocks share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.split_rows import SMALL_CHUNKS, Chunks, RowSplit, row_split
from kernelviz.ops.normalisation import cuda_backward
from kernelviz.ops.normalisation.cuda_backward import BackwardInputs, Saved

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_split_backward.cu"
COLUMN_LANES = 256
"""Threads of a block of `backward_columns`."""
SINGLES = 4
"""Columns of a thread there, where rows are not whole vectors."""
ROW_BYTES = 16
"""Of shared memory for the numbers of a row there."""


def column_blocks(n: int, itemsize_bytes: int, parts: int) -> int:
    """Blocks of `backward_columns`: as many for each part of the columns, of which the last may have nothing to do.

    >>> column_blocks(3_508_120, 2, 66), column_blocks(300_001, 2, 10)
    (1716, 300)
    """
    each = 16 // itemsize_bytes if n * itemsize_bytes % 16 == 0 else SINGLES
    blocks = -(-n // (COLUMN_LANES * each))
    return parts * -(-blocks // parts)


@dataclass(frozen=True, slots=True)
class _Split:
    """A backward pass with the division of its rows: what each kernel is compiled and launched with."""

    backward: BackwardInputs
    split: RowSplit

    def launch_of(
        self,
        name: str,
        blocks: int,
        tensors: tuple[Tensor | None, ...],
        *sizes: Any,
        threads: int = 0,
        shared_bytes: int = 0,
    ) -> Callable[[], None]:
        """A kernel's launch: pointers of the tensors, then m, n, parts and these sizes."""
        inputs = self.backward.inputs
        defines = inputs.defines() | self.split.defines(inputs.x_MN)
        kernel = nvrtc.kernel(SOURCE, name, defines, shared_bytes=shared_bytes)
        m, n = inputs.x_MN.shape
        rows = ctypes.c_int(m) if name == "backward_columns" else ctypes.c_longlong(m)
        pointers = tuple(0 if t is None else t.data_ptr() for t in tensors)
        arguments = (*pointers, rows, ctypes.c_int(n), ctypes.c_int(self.split.parts), *sizes)
        lanes = threads or self.split.lanes

        def launch(alive: object = tensors) -> None:
            nvrtc.launch(kernel, blocks, lanes, *arguments, shared_bytes=shared_bytes)

        return launch

    def forward(self, saved: Saved) -> Callable[[], None]:
        """The rows' statistics, and with a residual the sum that was normalised. Not timed."""
        inputs = self.backward.inputs
        m = inputs.x_MN.shape[0]
        s_MN = None if inputs.r_MN is None else saved.row_MN
        sums, squares = self.partials(1), self.partials(1)
        read = (inputs.x_MN, inputs.r_MN, s_MN)
        blocks = m * self.split.parts
        launches = [self.launch_of("statistics_parts", blocks, (*read, None, sums))] if inputs.b_N is not None else []
        launches += [
            self.launch_of("statistics_parts", blocks, (*read, sums, squares)),
            self.launch_of(
                "statistics_of_rows", m, (sums, squares, saved.mean_M, saved.scale_M), ctypes.c_float(inputs.eps)
            ),
        ]

        def launch() -> None:
            for one in launches:
                one()

        return launch

    def partials(self, numbers: int) -> Tensor:
        import torch

        x_MN = self.backward.inputs.x_MN
        return torch.empty((x_MN.shape[0], self.split.parts, numbers), dtype=torch.float32, device=x_MN.device)

    def call(self, saved: Saved) -> Launch:
        """The gradients, in two launches."""
        import torch

        inputs, dy_MN, ds_MN = self.backward.inputs, self.backward.dy_MN, self.backward.ds_MN
        m, n = inputs.x_MN.shape
        dx_MN, dw_N = torch.empty_like(inputs.x_MN), torch.empty_like(inputs.w_N)
        db_N = None if inputs.b_N is None else torch.empty_like(inputs.b_N)
        partials = self.partials(1 if db_N is None else 2)
        read = (saved.row_MN, inputs.w_N, dy_MN)
        sum_parts = self.launch_of("backward_parts", m * self.split.parts, (*read, saved.mean_M, partials))
        reduce_columns = self.launch_of(
            "backward_columns",
            column_blocks(n, dy_MN.element_size(), self.split.parts),
            (*read, ds_MN, saved.mean_M, saved.scale_M, partials, dx_MN, dw_N, db_N),
            threads=COLUMN_LANES,
            shared_bytes=m * ROW_BYTES,
        )
        gradients = (dx_MN, dw_N) if db_N is None else (dx_MN, dw_N, db_N)

        def call() -> tuple[Tensor, ...]:
            sum_parts()
            reduce_columns()
            return gradients

        return call


def bind(backward: BackwardInputs, *, chunks: Chunks = SMALL_CHUNKS) -> Staged:
    """Several blocks a row, then several rows a block; rows that are not few or not long as `cuda_backward`.

    `chunks` are those of `row_split`. Errors: BadField for tensors that are not contiguous or aligned.
    """
    import torch

    backward.check()
    inputs = backward.inputs
    x_MN = inputs.x_MN
    m, n = x_MN.shape
    split = row_split(m, n, x_MN.element_size(), multiprocessors(x_MN.device), chunks=chunks)
    if split.parts == 1:
        return cuda_backward.bind(backward)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    mean_M = None if inputs.b_N is None else torch.empty_like(scale_M)
    saved = Saved(x_MN if inputs.r_MN is None else torch.empty_like(x_MN), mean_M, scale_M)
    bound = _Split(backward, split)
    return Staged(bound.forward(saved), bound.call(saved))
