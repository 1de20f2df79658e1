"""Compile variants for a GPU that need not be here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelviz import bench as use_cases
from kernelviz.api.measurement import size_texts
from kernelviz.api.report import PathLike
from kernelviz.bench import comparison, precompiling
from kernelviz.bench.precompiling import Precompilation
from kernelviz.core import Run, RunRequest


def precompile(
    op: str,
    output: PathLike,
    *,
    sizes: Mapping[str, int | str | Sequence[int]] | None = None,
    preset: str | None = None,
    dtype: str | None = None,
    compute: str | None = None,
    variants: Sequence[str] | None = None,
    direction: str = "forward",
    of: Run | PathLike | None = None,
    ptxas: PathLike | None = None,
) -> Precompilation:
    """Compile the Triton variants of an op with the Triton that is installed here, and write a plug-in with the machine code.

    `kernelviz.run(op, plugins=[output])` on the machine with the GPU measures each variant with both codes in the same rounds.
    output: the Python file to write. of: a run on such a GPU (its id, a file or the run); by default the recorded run of the op.
    ptxas: another assembler for the PTX. Errors: UnknownName and BadField; DeviceError where Triton is missing.
    """
    run = of if isinstance(of, Run) or of is None else comparison.opened(use_cases.current(), os.fspath(of))
    request = RunRequest(
        op=op,
        sizes=size_texts(sizes),
        preset=preset,
        dtype=dtype,
        compute=compute,
        variants=None if variants is None else tuple(variants),
        direction=direction,
    )
    return precompiling.precompile(
        request, Path(os.fspath(output)), of=run, ptxas=None if ptxas is None else Path(os.fspath(ptxas))
    )
