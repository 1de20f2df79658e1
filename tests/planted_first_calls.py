"""Variants of `add` whose first call of a process takes longer than the others, so that a test sees which calls were timed.

Given to a session as a plug-in, never imported by a test process.
"""

import os
import time

from kernelviz.ops import Launch, variant

BIND_S, FIRST_S = 0.05, 0.2
_called: list[int] = []


@variant(op="add", backend="torch")
def slow_first_call(x_N, y_N) -> Launch:
    """The first call of a process sleeps."""
    import torch

    time.sleep(BIND_S)
    out_N = torch.empty_like(x_N)

    def launch():
        if not _called:
            time.sleep(FIRST_S)
        _called.append(1)
        return torch.add(x_N, y_N, out=out_N)

    return launch


@variant(op="add", backend="torch")
def raises_elsewhere(x_N, y_N) -> Launch:
    """Works in the process that PLANTED_PARENT names only."""
    import torch

    out_N = torch.empty_like(x_N)

    def launch():
        if os.environ.get("PLANTED_PARENT") != str(os.getpid()):
            raise ArithmeticError("not in this process")
        return torch.add(x_N, y_N, out=out_N)

    return launch
