"""For ncu: reads of 16 MiB after the flush, for each kind of line, then a read directly after itself. Run as a module.

ncu --profile-from-start off … python -m kernelviz.measure.selftest.read_probe cuda:0
"""

import sys
from contextlib import nullcontext

import torch

from kernelviz.measure.selftest import kernels, ncu
from kernelviz.measure.timing.kernels import Instruments

TIMES = 3


def main(device: str) -> None:
    """For each kind TIMES times: read, flush, then the profiled read; `warm` is read twice without a flush."""
    torch.cuda.set_device(torch.device(device))
    tools = Instruments(torch.device(device))
    source = kernels.vectors(kernels.READ_BYTES // kernels.VECTOR_BYTES, torch.device(device))
    for kind in kernels.READ_KINDS:
        launch = kernels.read(source, kind if kind in kernels.READS else "normal")
        with kernels.persisting(source) if kind == "persisting" else nullcontext():
            for _ in range(TIMES):
                launch()
                if kind != "warm":
                    tools.flush()
                with ncu.watched():
                    launch()


if __name__ == "__main__":
    main(sys.argv[1])
