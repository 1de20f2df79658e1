"""What ncu profiles: calls of variants, or reads of 16 MiB and of 64 KiB, each after the instrument's flush. Run as a module.

ncu --profile-from-start off … python -m kernelviz.measure.selftest.ncu_probe cuda:0 CASES|reads [TIMES]
"""

from __future__ import annotations

import sys
import traceback
from contextlib import nullcontext

import msgspec
import torch

from kernelviz.core import Case
from kernelviz.measure.selftest import children, kernels
from kernelviz.measure.session.binding import BoundProblem
from kernelviz.measure.timing.kernels import Instruments
from kernelviz.ops import Launch, op_named

TIMES, READS = 5, 3
"""How often each case is called unless the caller names another number, and each kind of read."""
AWAKE = 20
"""Flushes before each call: ncu leaves the device idle between kernels, and after idling its clock is lower for a while."""


def main(device_id: str, subject: str, times: str = str(TIMES)) -> None:
    """Launch what is profiled on this device: the reads, or the cases whose JSON is `subject`, each `times` times."""
    where = torch.device(device_id)
    torch.cuda.set_device(where)
    if subject == "reads":
        read(Instruments(where), where)
    else:
        call(msgspec.json.decode(subject, type=list[Case]), Instruments(where), where, int(times))


def call(cases: list[Case], tools: Instruments, where: torch.device, times: int) -> None:
    """Call each case `times` times, each before the end marker, which separates the rows; for a case that does not bind only the
    marker is launched."""
    for case in cases:
        launch = _bound(case, where)
        for _ in range(times):
            for _ in range(AWAKE):
                tools.flush()
            with children.watched():
                if launch is not None:
                    launch()
                tools.marker()


def read(tools: Instruments, where: torch.device) -> None:
    """For each size and kind of line READS times: read, flush, then the profiled read; `warm` is read twice without a flush."""
    for size_bytes in kernels.READ_SIZES_BYTES:
        _read(tools, kernels.vectors(size_bytes // kernels.VECTOR_BYTES, where))


def _read(tools: Instruments, source: torch.Tensor) -> None:
    for kind in kernels.READ_KINDS:
        launch = kernels.read(source, kind if kind in kernels.READS else "normal")
        with kernels.persisting(source) if kind == "persisting" else nullcontext():
            for _ in range(READS):
                launch()
                if kind != "warm":
                    tools.flush()
                with children.watched():
                    launch()


def _bound(case: Case, where: torch.device) -> Launch | None:
    op = op_named(case.problem.op).of(case.problem)
    variant = op.variant_named(case.variant)
    try:
        bound = BoundProblem(op, case.problem, where, torch.cuda.mem_get_info(where)[0], str(where))
        return bound.bound_alone(variant)
    except Exception:
        traceback.print_exc()
        return None


if __name__ == "__main__":
    main(*sys.argv[1:4])
