"""For ncu: calls of variants, each after a flush and before the end marker, which separates the rows. Run as a module.

ncu --profile-from-start off … python -m kernelviz.measure.selftest.ncu_probe cuda:0 CASES
"""

from __future__ import annotations

import sys
import traceback

import msgspec
import torch

from kernelviz.core import Case
from kernelviz.measure.selftest import ncu
from kernelviz.measure.session.binding import BoundProblem
from kernelviz.measure.timing.kernels import Instruments
from kernelviz.ops import Launch, op_named

TIMES = 5
AWAKE = 20
"""Flushes before each call: ncu leaves the device idle between kernels, and after idling its clock is lower for a while."""


def main(device_id: str, cases_json: str) -> None:
    """Call each case TIMES times; for a case that does not bind only the marker is launched."""
    where = torch.device(device_id)
    torch.cuda.set_device(where)
    tools = Instruments(where)
    for case in msgspec.json.decode(cases_json, type=list[Case]):
        launch = _bound(case, where)
        for _ in range(TIMES):
            for _ in range(AWAKE):
                tools.flush()
            with ncu.watched():
                if launch is not None:
                    launch()
                tools.marker()


def _bound(case: Case, where: torch.device) -> Launch | None:
    op = op_named(case.problem.op).of(case.problem)
    variant = op.variant_named(case.variant)
    try:
        bound = BoundProblem.allocate(op, case.problem, where, torch.cuda.mem_get_info(where)[0], str(where))
        return bound.bind(variant, bound.inputs)[0]
    except Exception:
        traceback.print_exc()
        return None


if __name__ == "__main__":
    main(*sys.argv[1:3])
